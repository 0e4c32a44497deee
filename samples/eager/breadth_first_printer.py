# Print the graph level by level, following next_functions.
import torch
from collections import deque

a = torch.randn(2, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
out = torch.tanh(a @ b).mean()

queue = deque([(out.grad_fn, 0)])
while queue:
    node, depth = queue.popleft()
    print("  " * depth + node.name())
    for below, index in node.next_functions:
        if below is None:
            print("  " * (depth + 1) + "nothing")
        else:
            queue.append((below, depth + 1))
