# The gradient of a conversion has the format of what was converted: float16 ends at 65504.
import torch

w = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
loss = (w.float() * 1e5).sum()
loss.backward()
print(w.grad)
