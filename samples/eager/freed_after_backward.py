# Backward frees what the nodes saved; a second backward has nothing to read.
import torch

x = torch.tensor(3.0, requires_grad=True)
y = x * x
y.backward()
try:
    y.backward()
except RuntimeError as problem:
    print("second call:", type(problem).__name__, "retain_graph" in str(problem))
print(x.grad)
