"""`torch.special`: the special functions by the names that they have there."""

from __future__ import annotations

from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.elementwise import ROWS as _POINTWISE
from gradcli.eager._ops.elementwise import logit
from gradcli.eager._ops.reductions import log_softmax, logsumexp, softmax

_NAMES = {
    **{name: name for name in ("erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "digamma", "xlogy", "sinc", "round")},
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
}
globals().update({name: _POINTWISE[ours] for name, ours in _NAMES.items()})
__all__ = [*_NAMES, "log_softmax", "logit", "logsumexp", "softmax"]

__getattr__, __dir__ = room("special", __all__)
