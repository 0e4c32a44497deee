# autograd.grad returns gradients and does not fill .grad.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(found,) = torch.autograd.grad((w * w).sum(), w)
print(w.grad, found)
