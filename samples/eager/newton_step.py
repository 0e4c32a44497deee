# Newton's method on a function of one variable: slope over curvature.
import torch

x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
for step in range(5):
    y = (x - 1) ** 4 + x**2
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, x)
    with torch.no_grad():
        x -= slope / curvature
    print(step, f"{x.item():.6f}", f"{slope.item():.6f}")
