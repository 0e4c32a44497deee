"""Probabilities or their logarithms go in, the other ones come out; knows no law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager._ops.reductions import finfo

if TYPE_CHECKING:
    from gradcli.eager._core.tensor import Tensor


class Chances:
    """Either `probs` or `logits`; the other ones are made when they are asked for, once."""

    _param: Tensor

    def __getattr__(self, name: str) -> Any:
        if name not in ("probs", "logits") or not {"probs", "logits"} & vars(self).keys():
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = self._of_logits(self.logits) if name == "probs" else self._of_probs(self._inner(self.probs))
        setattr(self, name, found)
        return found

    def _inner(self, probs: Any) -> Any:
        """Probabilities away from 0 and 1, so that their logarithms are finite."""
        small = finfo(probs.dtype).eps
        return probs.clamp(min=small, max=1 - small)

    def _of_probs(self, probs: Any) -> Any:
        raise NotImplementedError

    def _of_logits(self, logits: Any) -> Any:
        raise NotImplementedError


def need_one(probs: Any, logits: Any) -> None:
    """ValueError unless one of both is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
