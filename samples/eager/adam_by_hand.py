# One step of Adam moves each entry by about the learning rate, whatever the size of its gradient.
import torch

w = torch.tensor([1.0, 1.0], requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.25)
for step in range(2):
    optimizer.zero_grad()
    (100 * w[0] + w[1] / 100).backward()
    optimizer.step()
    print(step, [f"{one:.4f}" for one in w.tolist()])
