# The modes decorate functions and generators, with and without parentheses.
import torch

x = torch.tensor(2.0, requires_grad=True)


@torch.no_grad()
def square(t):
    return t * t


@torch.no_grad
def cube(t):
    return t * t * t


@torch.no_grad()
def steps(t):
    for k in range(2):
        yield t * k


print(square(x).requires_grad, cube(x).requires_grad)
for y in steps(x):
    print(y.requires_grad, (x * 1).requires_grad)
