# The gradient of cross entropy with respect to the scores: softmax minus the one-hot target.
import torch
import torch.nn.functional as F

scores = torch.tensor([[2.0, 0.5, -1.0], [0.0, 0.0, 0.0]], requires_grad=True)
target = torch.tensor([0, 2])
F.cross_entropy(scores, target).backward()
by_hand = (torch.softmax(scores.detach(), dim=1) - torch.eye(3)[target]) / 2
print(torch.allclose(scores.grad, by_hand))
print(scores.grad[1])
