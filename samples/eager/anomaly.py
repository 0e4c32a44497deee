# detect_anomaly stops at the operation whose backward produced the NaN.
import torch
import warnings

warnings.simplefilter("ignore")
x = torch.tensor([0.0, 1.0], requires_grad=True)
try:
    with torch.autograd.detect_anomaly():
        (torch.sqrt(x) * 0).sum().backward()
except RuntimeError as problem:
    print(type(problem).__name__, "SqrtBackward0" in str(problem))
