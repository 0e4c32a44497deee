# A checkpoint saves only the input, and runs the function again during backward.
import torch
from torch.utils.checkpoint import checkpoint

calls = 0


def block(x):
    global calls
    calls += 1
    return torch.tanh(x * 2) * x


x = torch.tensor([0.5, -1.0], requires_grad=True)
checkpoint(block, x, use_reentrant=False).sum().backward()
print("calls:", calls)
kept = x.grad.clone()
x.grad = None
block(x).sum().backward()
print("calls:", calls, torch.allclose(kept, x.grad))
