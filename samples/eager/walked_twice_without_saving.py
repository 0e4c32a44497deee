# An addition saves nothing, so backward may run through it twice; through a product it may not.
import torch

x = torch.tensor(3.0, requires_grad=True)
for name, make in (("x + 3", lambda: x + 3), ("x * 3", lambda: x * 3), ("-x", lambda: -x), ("x ** 2", lambda: x**2)):
    x.grad = None
    y = make()
    y.backward()
    try:
        y.backward()
        print(name, "twice:", x.grad.item())
    except RuntimeError:
        print(name, "once:", x.grad.item())
