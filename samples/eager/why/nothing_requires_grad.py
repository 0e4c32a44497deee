# No leaf requires grad, so backward has nowhere to go.
import torch

w = torch.tensor([1.0, 2.0])
loss = (w * 3).sum()
loss.backward()
