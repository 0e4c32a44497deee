# Targets of shape (N,), outputs of shape (N, 1): the loss compares every output with every target.
import torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 8)[:, None]
y = 2 * x[:, 0] + 1
net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for _ in range(5):
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
print(round(abs(net.weight.item()), 2))
