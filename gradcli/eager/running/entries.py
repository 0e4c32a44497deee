"""What the record of a run consists of: values, nodes that ran, backwards, events. It keeps no tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.results.graph_vertices import Extent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.running.places import Line
    from gradcli.results.graph_vertices import Group

SMALL = 9  # entries of an array that is kept as it is
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
BELOW, ABOVE = 1e-20, 1e30  # of a sum of squares in single precision that neither lost nor overflowed anything


@dataclass(slots=True, eq=False)
class Size:
    """The norm of an array, and whether every entry is finite."""

    norm: float
    finite: bool


@dataclass(slots=True, init=False, eq=False)
class Entry:
    """One value of the run: a leaf at its first use, the result of an operation, or a value that left the graph."""

    mark: int
    role: str  # leaf, operation, cut
    name: str
    inputs: tuple[int, ...]
    line: Line | None
    groups: tuple[Group, ...]  # calls, layers and turns of loops around it, where these are wanted
    mode: str  # grad, no_grad, inference
    requires: bool
    wanted: bool  # whether an operand required grad at that time
    seq: int | None  # of the node, if there is one
    sweeps: int  # how many backwards had begun before
    inside: bool  # made by a backward, not by the file
    dtype: str
    shape: tuple[int, ...]
    size: Size
    below: tuple[Size, ...]  # of the inputs, as they were then
    spoilt: Line | None  # where NaN or infinity was written into it later
    value: Any  # a copy of a small array; of a large one its extent, where these are wanted
    zeros: Any  # of a relu: which units were zero throughout
    masked: tuple[int, int] | None  # of a softmax: how many rows were -inf throughout and became NaN, and of how many

    @property
    def finite(self) -> bool:
        """Whether every entry is finite."""
        return self.size.finite

    @property
    def calm(self) -> bool:
        """Whether every entry of every input was finite."""
        return all(size.finite for size in self.below)


class Sent(NamedTuple):
    """What a node sent to one of its inputs."""

    to: tuple[str, int]  # ("node", its number) or ("leaf", its mark)
    size: Size
    value: Any  # a copy where it is small


@dataclass(slots=True, eq=False)
class Step:
    """A node that ran in a backward: what arrived and what it sent on."""

    seq: int
    name: str
    line: Line | None
    sizes: list[Size]  # of what arrived
    arrived: Any  # a copy where it is one small array
    sent: list[Sent] = field(default_factory=list)
    withheld: list[tuple[str, int]] = field(default_factory=list)  # inputs that it sent nothing to, not even zeros
    stuck_shares: list[Any] = field(
        default_factory=list
    )  # of entries where something not finite met a gradient of zero

    @property
    def norm(self) -> float:
        """The norm of what arrived; NaN where one is."""
        found = 0.0
        for size in self.sizes:
            found = found if size.norm <= found else size.norm
        return found

    @property
    def finite(self) -> bool:
        """Whether all that arrived was finite."""
        return all(size.finite for size in self.sizes)

    @property
    def stuck(self) -> float:
        """The largest share of entries where something not finite met zero, where all that arrived was finite."""
        return max(map(float, self.stuck_shares), default=0.0) if self.finite else 0.0


@dataclass(slots=True, eq=False)
class Sweep:
    """One backward."""

    line: Line | None
    roots: Sequence[tuple[int, int | None, bool]]  # (mark, number of the node, finite)
    retain: bool
    create: bool
    accumulate: bool
    targets: tuple[int, ...] | None
    ended: bool = False
    steps: list[Step] = field(default_factory=list)
    seqs: set[int] = field(default_factory=set)
    reached: list[Reached] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Reached:
    """A gradient that was added into a `.grad`, and what that holds then (`total`; None where it was not kept)."""

    leaf: int
    added: int
    size: Size
    value: Any
    total: Any
    probe: Any

    @property
    def norm(self) -> float:
        """Its norm."""
        return self.size.norm

    @property
    def finite(self) -> bool:
        """Whether every entry is finite."""
        return self.size.finite


@dataclass(slots=True, eq=False)
class Event:
    """Something that happened to a tensor or to its `.grad`.

    Kinds: none, zero, read (someone looked and found this); added (by a backward); dropped (set to None), zeroed, set,
    altered (in place); changed (the tensor itself, in place).
    """

    kind: str
    mark: int
    line: Line | None
    sweeps: int
    name: str = ""


class Rule(NamedTuple):
    """The Function that gave a value: its name, where its backward begins, and what it saved; None for its result."""

    name: str
    line: Line | None
    saved: tuple[int | None, ...]


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


def size_of(array: Any, exact: bool = False) -> Size:
    """The norm of an array, and whether every entry is finite; unless `exact`, in the format of the array."""
    kind = array.dtype.kind
    if kind not in "fc":
        return Size(0.0, True)
    if not array.ndim:
        number = abs(array.item())
        return Size(number, number - number == 0)
    if not exact and (array.dtype is F32 or array.dtype is F64):
        line = array if array.ndim == 1 else array.reshape(-1)
        square = float(line.dot(line))
        if BELOW < square < ABOVE:
            return Size(math.sqrt(square), True)
    flat = array.reshape(-1).astype(np.float64 if kind == "f" else np.complex128)  # squares of float32 may overflow
    norm = math.sqrt(flat.dot(flat) if kind == "f" else np.vdot(flat, flat).real)
    return Size(norm, norm - norm == 0 or bool(np.isfinite(flat).all()))


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
