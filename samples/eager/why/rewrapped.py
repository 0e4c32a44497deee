# torch.tensor() copies numbers: the losses lose their history.
import torch

w = torch.tensor(2.0, requires_grad=True)
losses = [w * w, w * 3]
total = torch.tensor([losses[0], losses[1]], requires_grad=True).sum()
total.backward()
print(w.grad)
