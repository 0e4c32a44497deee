# The loss is computed in inference mode.
import torch

w = torch.tensor(2.0, requires_grad=True)
with torch.inference_mode():
    loss = w * w
loss.backward()
