# Three ways not to record, and what each result can still be used for.
import torch

x = torch.tensor(2.0, requires_grad=True)
a = (x * 3).detach()
with torch.no_grad():
    b = x * 3
with torch.inference_mode():
    c = x * 3
for name, t in (("detach", a), ("no_grad", b), ("inference", c)):
    print(name, t.requires_grad, t.is_leaf, t.is_inference())
    try:
        (x * t).backward()
        print("  as a factor:", x.grad)
    except RuntimeError as problem:
        print("  as a factor:", type(problem).__name__, "nference" in str(problem))
    x.grad = None
