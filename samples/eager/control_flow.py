# Python's control flow decides which graph is built, anew in each call.
import torch


def f(x):
    steps = 0
    while x.norm() < 10:
        x = x * 2 if steps % 2 else x * 3
        steps += 1
    return x.sum(), steps


for start in (1.0, 6.0, 20.0):
    x = torch.tensor([start], requires_grad=True)
    y, steps = f(x)
    y.backward()
    print(start, steps, x.grad.item())
