# The order in which hooks run: those of a tensor, of its node, and of the leaf.
import torch

x = torch.tensor(2.0, requires_grad=True)
y = x * x
y.register_hook(lambda g: print("first hook of y", g.item()))
y.register_hook(lambda g: print("second hook of y", g.item()))
y.grad_fn.register_prehook(lambda gs: print("before the node", gs[0].item()))
y.grad_fn.register_hook(lambda ins, outs: print("after the node", [None if i is None else i.item() for i in ins]))
x.register_hook(lambda g: print("leaf hook", g.item()))
x.register_post_accumulate_grad_hook(lambda t: print("accumulated", t.grad.item()))
(y * 2).backward()
