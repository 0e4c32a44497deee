# A missing value in the data.
import torch

x = torch.tensor([1.0, float("nan"), 3.0])
w = torch.tensor(2.0, requires_grad=True)
loss = (w * x).mean()
loss.backward()
print(w.grad)
