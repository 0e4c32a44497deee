# A tensor made in inference mode can be read, but not saved for backward.
import torch

with torch.inference_mode():
    table = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor(2.0, requires_grad=True)
print((w + table).sum().requires_grad)
try:
    (w * table).sum()
except RuntimeError as problem:
    print(type(problem).__name__, "clone" in str(problem))
(w * table.clone()).sum().backward()
print(w.grad)
