# argmax returns a position, an integer without a gradient.
import torch

scores = torch.tensor([0.1, 2.0, 0.3], requires_grad=True)
weight = torch.tensor(1.0, requires_grad=True)
best = scores.argmax()
loss = best * weight
loss.backward()
print(scores.grad, weight.grad)
