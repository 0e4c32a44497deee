# The gradient rules of a matrix product: G B' and A' G.
import torch

A = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
B = torch.tensor([[0.0, 1.0], [1.0, 1.0]], requires_grad=True)
G = torch.tensor([[1.0, 0.0], [2.0, -1.0]])
(A @ B).backward(G)
print(A.grad, torch.equal(A.grad, G @ B.detach().T))
print(B.grad, torch.equal(B.grad, A.detach().T @ G))
