# Recording that depends on a flag, as in a training and an evaluation pass.
import torch

w = torch.tensor(1.5, requires_grad=True)
for train in (True, False):
    with torch.set_grad_enabled(train):
        out = w * 2
    print(train, out.requires_grad, out.grad_fn is None)
torch.set_grad_enabled(False)
print((w * 2).requires_grad)
torch.set_grad_enabled(True)
print((w * 2).requires_grad)
