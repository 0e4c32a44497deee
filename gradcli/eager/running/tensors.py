"""How a record reads tensors: their numbers, flags, nodes, formats and entries.

`Tensors` reads those of this package. The adaptor of the installed PyTorch overrides what differs there, so that one
record, and one set of reasons and pictures, serves both.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager._core.modes import ours, recording, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager.running.entries import Size, array_of, kept, masked_rows, name_of, size_of

if TYPE_CHECKING:
    from gradcli.eager._core import dtypes
    from gradcli.eager.running.entries import Step

MOST_SIZES = 64  # of what a backward sent, until it has arrived


class Facts(NamedTuple):
    """What an entry keeps of a tensor."""

    requires: bool
    seq: int | None  # the number of its node
    dtype: str
    shape: tuple[int, ...]
    size: Size
    value: Any  # a copy of a small tensor, an extent, or None


class Flags(NamedTuple):
    """The state of a tensor that a reader of the file sees."""

    leaf: bool
    requires: bool
    retains: bool
    floating: bool
    dtype: str
    node: str
    shape: tuple[int, ...]
    parameter: bool


class Tensors:
    """Reads the tensors of this package; a gradient may be an array too."""

    recorders: tuple[str, ...] = ("gradcli.eager.running",)  # rooms whose frames are the record's own

    kind: type = Tensor

    def __init__(self) -> None:
        self._sent: dict[int, tuple[Any, Size]] = {}

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor that has entries; a stand-in of a recording has none."""
        return isinstance(value, Tensor) and not isinstance(value, Traced)

    def mark(self, tensor: Any) -> int:
        """Its number in a record; -1 for none."""
        mark: int = tensor._mark
        return mark

    def set_mark(self, tensor: Any, mark: int) -> None:
        """Give it a number."""
        tensor._mark = mark

    def requires(self, tensor: Any) -> bool:
        """Whether it requires grad."""
        requires: bool = tensor._requires
        return requires

    def seq(self, tensor: Any) -> int | None:
        """The number of the node that made it."""
        edge = tensor._edge
        return None if edge is None else edge[0].seq

    def base(self, tensor: Any) -> Any:
        """The tensor that it is a view of, or None."""
        return tensor._base

    def grad(self, tensor: Any) -> Any:
        """Its `.grad`, unnoticed."""
        return tensor._grad

    def added(self, tensor: Any) -> int:
        """How many backwards have added into its `.grad` since that was None or zero."""
        grad = tensor._grad
        return 0 if grad is None else grad._added

    def facts(self, tensor: Any, extents: bool) -> Facts:
        """What an entry keeps of it."""
        array, edge = tensor._raw, tensor._edge
        seq = None if edge is None else edge[0]._seq
        return Facts(
            tensor._requires, seq, name_of(array.dtype), array.shape, size_of(array, extents), kept(array, extents)
        )

    def flags(self, tensor: Any) -> Flags:
        """What a reader of the file sees of it."""
        edge = tensor._edge
        return Flags(
            edge is None,
            tensor.requires_grad,
            tensor._retains,
            tensor._raw.dtype.kind in "fc",
            _spoken(tensor.dtype),
            "" if edge is None else type(edge[0]).__name__,
            tensor._raw.shape,
            type(tensor).__name__ == "Parameter",
        )

    # --- entries --------------------------------------------------------------------------------------------------

    def array(self, value: Any) -> Any:
        """The entries of a tensor or of a gradient."""
        return array_of(value)

    def size(self, value: Any, exact: bool = False) -> Size:
        """The norm, and whether every entry is finite."""
        return size_of(self.array(value), exact)

    def kept(self, value: Any, extents: bool) -> Any:
        """A copy of a small one, an extent of a large one where these are wanted, or None."""
        return kept(self.array(value), extents)

    def is_zero(self, value: Any) -> bool:
        """Whether every entry is zero."""
        return not self.array(value).any()

    def has_nan(self, value: Any) -> bool:
        """Whether an entry is NaN."""
        return bool(np.isnan(self.array(value)).any())

    def probe(self, value: Any) -> Any:
        """A few entries, which distinguish a large gradient from others of the same norm."""
        array = self.array(value)
        return (array.item(0), array.item(array.size // 2), array.item(-1)) if array.size else ()

    def zero_units(self, value: Any) -> Any:
        """Which units of an activation are zero in every row."""
        array = self.array(value)
        return ~array.reshape(-1, array.shape[-1] if array.ndim > 1 else array.size).any(axis=0) if array.size else None

    def masked_rows(self, scores: Any, result: Any) -> tuple[int, int] | None:
        """How many rows of a softmax are NaN because their scores are all -inf, and of how many; None for none."""
        return masked_rows(self.array(scores), self.array(result))

    def note_stuck(self, step: Step, arrived: Any, sent: Any, size: Size) -> None:
        """Note the share of entries where what a node sent, of this size, is not finite and what arrived was zero."""
        if not size.finite:
            arrived, sent = self.array(arrived), self.array(sent)
            if arrived.shape == sent.shape:
                step.stuck_shares.append((~np.isfinite(sent) & (arrived == 0)).mean())

    def sent(self, value: Any, exact: bool) -> Size:
        """The size of what a node sends: most of it arrives somewhere as it is."""
        array = self.array(value)
        size = size_of(array, exact)
        if array.ndim:
            if len(self._sent) > MOST_SIZES:
                self._sent.clear()
            self._sent[id(array)] = (array, size)
        return size

    def arrived(self, value: Any, exact: bool) -> Size:
        """The size of what arrived at a node."""
        array = self.array(value)
        known = self._sent.pop(id(array), None)
        return size_of(array, exact) if known is None or known[0] is not array else known[1]

    def swept(self) -> None:
        """A backward is over."""
        self._sent.clear()

    # --- where the run stands -------------------------------------------------------------------------------------

    def mode(self) -> str:
        """Whether operations are recorded: grad, no_grad or inference."""
        return "inference" if state._inference else "grad" if state._grad else "no_grad"

    def recording(self) -> bool:
        """Whether operations leave nodes."""
        return recording()

    def inside(self, module: Any) -> bool:
        """Whether a module, by its name, belongs to the library and not to the file that runs."""
        return ours[module]


@cache
def _spoken(kind: dtypes.dtype) -> str:
    """The name of a format without the library's."""
    return str(kind).removeprefix("torch.")
