# A query whose keys are all masked: the softmax of its row is NaN.
import torch

scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
mask = torch.tensor([[False, True], [True, True]])
masked = scores.masked_fill(mask, float("-inf"))
weights = torch.softmax(masked, dim=-1)
loss = weights.sum()
loss.backward()
print(loss)
