# A list of losses keeps every graph in memory; a list of numbers keeps none.
import torch


def kept(history):
    nodes, stack = set(), [one.grad_fn for one in history if isinstance(one, torch.Tensor)]
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            stack.extend(below for below, _ in node.next_functions)
    return len(nodes)


w = torch.ones(3, requires_grad=True)
losses, copies, numbers = [], [], []
for _ in range(5):
    loss = (w * w).sum()
    losses.append(loss)
    copies.append(loss.detach())
    numbers.append(loss.item())
print(kept(losses), kept(copies), kept(numbers))
