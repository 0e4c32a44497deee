"""`torch.special`: the special functions by the names that they have there, as their declarations say."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager._ops.elementwise import ROWS, logit, row
from gradcli.eager._ops.tensor_reductions import log_softmax, logsumexp, softmax
from gradcli.primitives import addresses

_HOME = "torch.special."
_OWN = {"log_softmax": log_softmax, "logit": logit, "logsumexp": logsumexp, "softmax": softmax}
globals().update(_OWN)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    primitive = addresses().get(_HOME + name)
    if primitive is None or primitive.static:
        raise missing("special", name, __dir__())
    other = "Tensor" if primitive.arity == 2 else ""
    return ROWS.get(primitive.name) or row(name, primitive, other)


def __dir__() -> list[str]:
    own = [address.removeprefix(_HOME) for address, each in addresses().items() if not each.static]
    return sorted({*_OWN, *[name for name in own if "." not in name]})
