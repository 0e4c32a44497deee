# What a node saves for backward can be inspected until it is freed.
import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(5.0, requires_grad=True)
y = a * b
print(y.grad_fn._saved_self, y.grad_fn._saved_other)
e = torch.exp(a)
print(torch.equal(e.grad_fn._saved_result, e))
y.backward()
try:
    y.grad_fn._saved_self
except RuntimeError as problem:
    print(type(problem).__name__)
