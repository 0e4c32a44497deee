# A leaf that requires grad may be changed in place only where nothing is recorded.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
try:
    w.mul_(2)
except RuntimeError as problem:
    print(type(problem).__name__, "leaf" in str(problem))
with torch.no_grad():
    w.mul_(2)
print(w, w.is_leaf, w._version)
w.data.add_(1)
print(w, w._version)
