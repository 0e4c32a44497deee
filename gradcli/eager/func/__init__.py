"""PyTorch's `torch.func`: transforms of functions, such as `grad`, `vjp`, `jvp`, `jacrev` and `vmap`."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager.func.batching import vmap
from gradcli.eager.func.calling import functional_call, stack_module_state
from gradcli.eager.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    raise missing("func", name, __all__)
