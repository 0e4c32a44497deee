# Two losses share an encoder: run backward twice with retain_graph, or once for the sum.
import torch

w = torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
u = torch.tensor([1.0, 2.0], requires_grad=True)
v = torch.tensor([-1.0, 0.5], requires_grad=True)
x = torch.tensor([1.0, 3.0])

z = torch.relu(w @ x)
first, second = (z * u).sum(), (z * v).sum()
first.backward(retain_graph=True)
second.backward()
apart = w.grad.clone()
w.grad = None
z = torch.relu(w @ x)
((z * u).sum() + (z * v).sum()).backward()
print(apart)
print(torch.equal(apart, w.grad))
