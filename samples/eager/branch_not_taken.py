# where() selects the right value, but the branch that it did not select still sends 0 * inf.
import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, torch.sqrt(x), torch.zeros(2))
y.sum().backward()
print(y.detach(), x.grad)
x.grad = None
safe = torch.where(x > 0, x, torch.ones(2))
y = torch.where(x > 0, torch.sqrt(safe), torch.zeros(2))
y.sum().backward()
print(y.detach(), x.grad)
