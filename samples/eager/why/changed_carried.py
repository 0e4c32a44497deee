# The state of a recurrent loop keeps its history, and retain_graph=True hides that until a weight is changed.
import torch

torch.manual_seed(0)
w = torch.randn(3, 3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
state = torch.ones(1, 3)
for step in range(3):
    state = torch.tanh(state @ w)
    loss = state.sum()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
