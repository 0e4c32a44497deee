# With inputs=, backward fills the .grad of the named leaves only.
import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
(a * b).backward(inputs=[a])
print(a.grad, b.grad)
