# A depth-first walk over grad_fn, reversed, puts every node before the nodes that it reads.
import torch

x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
h = w * x
loss = (h + x) * h

order, seen = [], set()
stack = [(loss.grad_fn, False)]
while stack:
    node, done = stack.pop()
    if done:
        order.append(node)
    elif node not in seen:
        seen.add(node)
        stack.append((node, True))
        for below, _ in reversed(node.next_functions):
            if below is not None:
                stack.append((below, False))
for node in reversed(order):
    print(type(node).__name__, [type(n).__name__ for n, _ in node.next_functions])
