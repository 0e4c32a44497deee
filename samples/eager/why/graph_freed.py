# backward() runs twice over one graph.
import torch

w = torch.tensor(2.0, requires_grad=True)
hidden = w * w
first = hidden * 3
second = hidden * 5
first.backward()
second.backward()
