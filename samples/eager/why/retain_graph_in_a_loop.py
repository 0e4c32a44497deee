# The state is carried from step to step with its whole history.
import torch

w = torch.tensor(0.5, requires_grad=True)
state = torch.tensor(1.0)
for step in range(4):
    state = torch.tanh(state * w)
    loss = (state - 1) ** 2
    loss.backward(retain_graph=True)
    w.grad = None
print(f"{state.item():.3f}")
