"""The base of distributions: shapes, checks, and probabilities or logits, whichever are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._ops.creation import scalar_tensor
from gradcli.eager._ops.joining import broadcast_tensors
from gradcli.eager._ops.reductions import finfo

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Any], Any]


class Distribution:
    """Base of distributions: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `parameters` holds for each parameter what must be true of it, and how PyTorch names that. ValueError where it is
    not, unless `validate_args=False`.
    """

    has_rsample = False
    parameters: dict[str, tuple[str, Check]] = {}
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, (said, holds) in self.parameters.items():
            value = vars(self).get(name)
            if value is not None and not holds(value).all():
                raise ValueError(
                    f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to "
                    f"satisfy the constraint {said}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        found: Tensor = self.variance.sqrt()
        return found

    @property
    def variance(self) -> Tensor:
        """The variance; of a subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """A draw through which gradients flow; of a subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no draws with a gradient")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A draw without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def entropy(self) -> Tensor:
        """The entropy; of a subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        found: Tensor = self.entropy().exp()
        return found

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return (*tuple(sample_shape), *self._batch_shape, *self._event_shape)

    def _check(self, value: Any, holds: Check) -> None:
        """ValueError for a value of another shape, or outside the support."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        for n, m in zip(reversed(value.shape), reversed(self._batch_shape), strict=False):
            if n != m and 1 not in (n, m):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs "
                    f"{tuple(self._batch_shape)}."
                )
        if not holds(value).all():
            raise ValueError(f"Expected value argument to be within the support of {self!r}, but found {value}")

    def __repr__(self) -> str:
        shown = [(name, vars(self)[name]) for name in self.parameters if name in vars(self)]
        text = ", ".join(f"{name}: {x if x.numel() == 1 else x.size()}" for name, x in shown)
        return f"{type(self).__name__}({text})"


class ProbsLogits:
    """Either `probs` or `logits`; the other ones are made when they are requested, once."""

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


def tensors(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape. ValueError for anything else."""
    for x in values:
        if not isinstance(x, (Tensor, int, float)):
            raise ValueError("Input arguments must all be instances of Number or torch.Tensor")
    kinds = [x.dtype for x in values if isinstance(x, Tensor)]
    made = [x if isinstance(x, Tensor) else scalar_tensor(x, dtype=kinds[0] if kinds else None) for x in values]
    return broadcast_tensors(*made)


def is_number(x: Any) -> Any:
    """Where entries are numbers."""
    return x == x
