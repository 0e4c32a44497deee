# Tensors stay on the CPU until they are moved; a device that does not exist is an error.
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
print(x.device, x.cpu() is x, x.to("cpu") is x)
try:
    x.to("cuda:99")
except (RuntimeError, AssertionError):
    print("there is no such device")
