# The weight is replaced after the optimizer was created: the optimizer still holds the old one.
import torch

torch.manual_seed(0)
x, y = torch.randn(8, 3), torch.randn(8, 1)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.weight = torch.nn.Parameter(torch.zeros(1, 3))
for _ in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
print(net.weight.tolist())
