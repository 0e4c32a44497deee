"""What the record of a run consists of: values, nodes that ran, backwards, events. It keeps no tensor."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.tensor import Tensor
from gradcli.execution.graphs import Extent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.running.places import Line

SMALL = 9  # entries of an array that is kept as it is
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
BELOW, ABOVE = 1e-20, 1e30  # of a sum of squares in single precision that neither lost nor overflowed anything


class Entry:
    """One value of the run: a leaf at its first use, the result of an operation, or a value that left the graph."""

    __slots__ = (
        "calm",
        "dtype",
        "finite",
        "inputs",
        "inside",
        "line",
        "mark",
        "masked",
        "mode",
        "name",
        "requires",
        "role",
        "seq",
        "shape",
        "spoilt",
        "sweeps",
        "value",
        "wanted",
        "zeros",
    )
    mark: int
    role: str  # leaf, operation, cut
    name: str
    inputs: tuple[int, ...]
    line: Line | None
    mode: str  # grad, no_grad, inference
    requires: bool
    wanted: bool  # whether an operand required grad at that time
    seq: int | None  # of the node, if there is one
    sweeps: int  # how many backwards had begun before
    inside: bool  # made by a backward, not by the file
    dtype: str
    shape: tuple[int, ...]
    finite: bool  # every entry is
    calm: bool  # every entry of every input was finite
    spoilt: Line | None  # where NaN or infinity was written into it later
    value: Any  # a copy of a small array; of a large one its extent, where these are wanted
    zeros: Any  # of a relu: which units were zero throughout
    masked: tuple[int, int] | None  # of a softmax: how many rows were -inf throughout and became NaN, and of how many


class Step:
    """A node that ran in a backward: what arrived and what it sent on."""

    __slots__ = ("arrived", "finite", "line", "name", "norm", "sent", "seq", "stuck", "withheld")
    seq: int
    name: str
    line: Line | None
    norm: float
    arrived: Any  # a copy where it is small
    finite: bool
    sent: list[tuple[Any, float, bool, Any]]  # for each input: (where to, norm, finite, copy where small)
    withheld: list[Any]  # inputs that it sent nothing to, not even zeros
    stuck: float  # share of entries where something not finite met a gradient of zero


class Sweep:
    """One backward."""

    __slots__ = ("accumulate", "create", "ended", "line", "reached", "retain", "roots", "seqs", "steps", "targets")

    def __init__(self, line: Line | None, roots: Sequence[tuple[int, int | None, bool]], retain: bool) -> None:
        self.line = line
        self.roots = roots  # (mark, number of the node, finite)
        self.retain = retain
        self.create = self.accumulate = self.ended = False
        self.targets: tuple[int, ...] | None = None
        self.steps: list[Step] = []
        self.seqs: set[int] = set()
        self.reached: list[Reached] = []


class Reached:
    """A gradient that was added into a `.grad`."""

    __slots__ = ("added", "finite", "leaf", "norm", "probe", "value")

    def __init__(self, leaf: int, array: Any, added: int, extents: bool = False) -> None:
        self.leaf, self.added = leaf, added
        self.norm, self.finite = size_of(array, extents)
        self.value = kept(array, extents)
        self.probe = () if array.size <= SMALL else (array.item(0), array.item(array.size // 2), array.item(-1))


class Event:
    """Something that happened to a tensor or to its `.grad`.

    Kinds: none, zero, read (someone looked and found this); added (by a backward); dropped (set to None), zeroed, set,
    altered (in place); changed (the tensor itself, in place).
    """

    __slots__ = ("kind", "line", "mark", "name", "sweeps")

    def __init__(self, kind: str, mark: int, line: Line | None, sweeps: int, name: str = "") -> None:
        self.kind, self.mark, self.line, self.sweeps, self.name = kind, mark, line, sweeps, name


class Rule:
    """The Function that gave a value: its name, where its backward begins, and what it saved; None for its result."""

    __slots__ = ("line", "name", "saved")

    def __init__(self, name: str, line: Line | None, saved: tuple[int | None, ...]) -> None:
        self.name, self.line, self.saved = name, line, saved


def kept(array: Any, extents: bool) -> Any:
    """What a record keeps of an array: a copy while it is small, else its extent or nothing."""
    if array.size <= SMALL:
        return array.copy()
    return extent(array) if extents else None


def extent(array: Any) -> Extent:
    """Shape, smallest and largest finite entry, and norm of a large array."""
    flat = np.abs(array) if array.dtype.kind == "c" else np.asarray(array)
    finite = flat[np.isfinite(flat)].astype(np.float64)
    if not finite.size:
        return Extent(array.shape, math.nan, math.nan, math.nan, array.size)
    norm = math.sqrt(float(finite @ finite))
    low, high = float(finite.min()) + 0.0, float(finite.max()) + 0.0  # no -0
    return Extent(array.shape, low, high, norm, int(array.size - finite.size))


def masked_rows(scores: Any, result: Any) -> tuple[int, int] | None:
    """How many rows of scores are -inf throughout and NaN in a softmax of them, and of how many; None for none.

    Rows lie along the last axis for which this holds. `result` may be an attention with these weights, whose last axis
    differs, and `scores` what is added to its scores.
    """
    shape = result.shape
    for axis in range(scores.ndim - 1, -1, -1) if scores.shape == shape else (-1,):
        rows = np.isneginf(scores).all(axis=axis)
        moved = np.moveaxis(result, axis, -1)
        rows = np.broadcast_to(rows, moved.shape[:-1])
        if rows.any() and np.isnan(moved[rows]).all():
            return int(rows.sum()), int(rows.size)
    return None


def finite(array: Any) -> bool:
    """Whether every entry of an array is finite."""
    kind = array.dtype
    if kind is F32 or kind is F64:
        if not array.ndim:
            number = float(array)
            return number - number == 0
        line = array if array.ndim == 1 else array.reshape(-1)
        if BELOW < line.dot(line) < ABOVE:  # else a square may be too large, or no number
            return True
    return size_of(array)[1]


def size_of(array: Any, exact: bool = False) -> tuple[float, bool]:
    """The norm of an array, and whether every entry is finite; unless `exact`, in the format of the array."""
    kind = array.dtype.kind
    if kind not in "fc":
        return 0.0, True
    if not array.ndim:
        number = abs(array.item())
        return number, number - number == 0
    if not exact and (array.dtype is F32 or array.dtype is F64):
        line = array if array.ndim == 1 else array.reshape(-1)
        square = float(line.dot(line))
        if BELOW < square < ABOVE:
            return math.sqrt(square), True
    flat = array.reshape(-1).astype(np.float64 if kind == "f" else np.complex128)  # squares of float32 may overflow
    norm = math.sqrt(flat.dot(flat) if kind == "f" else np.vdot(flat, flat).real)
    return norm, norm - norm == 0 or bool(np.isfinite(flat).all())


def name_of(dtype: Any) -> str:
    """The name of a format; NumPy takes its time to make it, and to look it up."""
    return "float32" if dtype is F32 else "float64" if dtype is F64 else _name_of(dtype)


@cache
def _name_of(dtype: Any) -> str:
    return str(dtype)


def array_of(value: Any) -> Any:
    """The entries of a tensor, or what an array or a number is itself."""
    return value._raw if isinstance(value, Tensor) else value


def flat(xs: Sequence[Any]) -> list[Any]:
    """What is in lists and tuples, however deep."""
    found: list[Any] = []
    waiting = list(xs)[::-1]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting.extend(reversed(one))
        else:
            found.append(one)
    return found
