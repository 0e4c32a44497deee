# A gradient has the dtype of the tensor that was converted: float16 ends at 65504.
import torch

w = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
loss = (w.float() * 1e5).sum()
loss.backward()
print(w.grad)
