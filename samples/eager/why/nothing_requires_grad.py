# No leaf requires grad, so backward() has nothing to compute.
import torch

w = torch.tensor([1.0, 2.0])
loss = (w * 3).sum()
loss.backward()
