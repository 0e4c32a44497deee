# The features are computed in a no_grad block that was meant for evaluation.
import torch

encoder = torch.tensor([1.0, 2.0], requires_grad=True)
head = torch.tensor([0.5, 0.5], requires_grad=True)
x = torch.tensor([1.0, -1.0])
with torch.no_grad():
    features = encoder * x
loss = (features * head).sum()
loss.backward()
print(encoder.grad, head.grad)
