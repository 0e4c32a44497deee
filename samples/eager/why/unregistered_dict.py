# Layers in a plain dictionary: their parameters never reach the optimizer.
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {"first": nn.Linear(2, 2), "second": nn.Linear(2, 2)}
        self.last = nn.Linear(2, 1)

    def forward(self, x):
        for layer in self.layers.values():
            x = torch.tanh(layer(x))
        return self.last(x)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    net(torch.ones(4, 2)).sum().backward()
    optimizer.step()
print(sum(p.numel() for p in net.parameters()))
