"""What the record of a run keeps (values, nodes that ran, backwards, events; no tensor), and how it reads tensors.

`TensorReader` reads arrays of NumPy. A library's adaptor adds what it takes to read its tensors, so that one record,
and one set of reasons and pictures, serves every library.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from gradcli.base.results.graph_vertices import Extent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from gradcli.base.results.graph_vertices import Group
    from gradcli.recording.runs.source_lines import SourceLine


SMALL = 9  # entries of an array that is kept as it is
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
BELOW, ABOVE = 1e-20, 1e30  # of a sum of squares in single precision that neither lost nor overflowed anything


@dataclass(slots=True, eq=False)
class ArrayNorm:
    """The norm of an array, and whether every entry is finite."""

    norm: float
    finite: bool


@dataclass(slots=True, init=False, eq=False)
class Entry:
    """One value of the run: a leaf at its first use, the result of an operation, or a value that left the graph."""

    mark: int  # also its time: numbers of values and of events are one sequence
    role: str  # leaf, operation, cut
    name: str
    inputs: tuple[int, ...]
    line: SourceLine | None
    via: CodeType | None  # the function of a library that the file called, where the file did not call the tensors
    layer: ModuleRecord | None  # the innermost layer that ran
    groups: tuple[Group, ...]  # calls, layers and iterations of loops around it, where these are wanted
    mode: str  # grad, no_grad, inference
    switch: Switch | None  # what had turned recording off
    requires: bool
    wanted: bool  # whether an operand required grad at that time
    seq: int | None  # of the node, if there is one
    sweeps: int  # how many backwards had begun before
    inside: bool  # made by a backward, not by the file
    dtype: str
    shape: tuple[int, ...]
    size: ArrayNorm  # when it was made
    now: ArrayNorm  # after the last change that was seen
    version: int  # of its memory, when that was
    below: tuple[ArrayNorm, ...]  # of the inputs, as they were then
    value: Any  # a copy of a small array; of a large one its extent, where these are wanted
    remark: Any  # of some operations, what else is known of their operands (`remarks.py`)

    @property
    def finite(self) -> bool:
        """Whether every entry is finite."""
        return self.size.finite

    @property
    def calm(self) -> bool:
        """Whether every entry of every input was finite."""
        return all(size.finite for size in self.below)


class ModuleRecord:
    """A module of the file: its class, and the name that it has there once one is known."""

    __slots__ = ("alive", "kind", "local", "name", "training")

    def __init__(self, module: Any) -> None:
        self.kind, self.name, self.local = type(module).__name__, "", True  # the name is that of a function's variable
        self.alive, self.training = ref(module), bool(getattr(module, "training", True))

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})" if self.name else self.kind


class Switch(NamedTuple):
    """What turned the recording of gradients off, or on again."""

    context: object  # itself: another one may have its identity when it is gone
    mode: str  # the mode from then on
    line: SourceLine | None
    how: str  # with, call, decorator, library
    time: int
    plain: bool = False  # a call that nothing has entered


class Hook(NamedTuple):
    """A hook that the file registered: on a tensor, or on a layer with a count of its calls."""

    line: SourceLine | None
    time: int
    mark: int
    seq: int | None
    layer: ModuleRecord | None
    kind: str  # the name of the function that registered it
    calls: list[int]  # the times at which it ran; of a tensor nothing is noted


class Update(NamedTuple):
    """One step of an optimizer."""

    time: int
    line: SourceLine | None
    sweeps: int
    rates: tuple[float, ...]
    moved: tuple[int, ...]
    probes: tuple[Any, ...]  # a few entries of some parameters afterwards
    ratios: dict[int, float]  # how far each parameter moved beside its norm, where that is wanted


@dataclass(slots=True, eq=False)
class OptimizerRecord:
    """An optimizer of the file: where it was made, what it holds since when, and its steps."""

    kind: str
    line: SourceLine | None
    time: int
    name: str = ""
    held: dict[int, int] = field(default_factory=dict)  # mark of a parameter: when it was given
    probes: tuple[Any, ...] = ()  # of some parameters before the first step
    updates: list[Update] = field(default_factory=list)
    alike: list[int] = field(default_factory=list)  # parameters whose rows are equal after several steps
    decay: float = 0.0  # the largest weight decay
    uphill: bool = False  # whether it maximises
    remembers: bool = False  # whether a step depends on earlier ones


class Clip(NamedTuple):
    """Gradients were clipped."""

    time: int
    line: SourceLine | None
    marks: tuple[int, ...]
    empty: bool  # no backward had added anything into one of them


class SentGradient(NamedTuple):
    """What a node sent to one of its inputs."""

    to: tuple[str, int]  # ("node", its number) or ("leaf", its mark)
    size: ArrayNorm
    value: Any  # a copy where it is small


@dataclass(slots=True, eq=False)
class Step:
    """A node that ran in a backward: what arrived and what it sent on."""

    seq: int
    name: str
    line: SourceLine | None
    sizes: list[ArrayNorm]  # of what arrived
    arrived: Any  # a copy where it is one small array
    sent: list[SentGradient] = field(default_factory=list)
    withheld: list[tuple[str, int]] = field(default_factory=list)  # inputs that it sent nothing to, not even zeros
    overwritten: int | None = None  # the number of what arrived, if the node itself has written into it
    stuck_shares: list[Any] = field(default_factory=list)  # of entries where a gradient of 0 met what is not finite

    @property
    def norm(self) -> float:
        """The norm of what arrived; NaN where one is."""
        largest = 0.0
        for size in self.sizes:
            largest = largest if size.norm <= largest else size.norm
        return largest

    @property
    def finite(self) -> bool:
        """Whether all that arrived was finite."""
        return all(size.finite for size in self.sizes)

    @property
    def stuck(self) -> float:
        """The largest share of entries where something not finite met zero, where all that arrived was finite."""
        return max(map(float, self.stuck_shares), default=0.0) if self.finite else 0.0


@dataclass(slots=True, eq=False)
class BackwardRecord:
    """One backward."""

    time: int
    line: SourceLine | None
    roots: Sequence[tuple[int, int | None, bool]]  # (mark, number of the node, finite)
    retain: bool
    create: bool
    accumulate: bool
    targets: tuple[int, ...] | None
    closure: bool  # inside a step of an optimizer
    ended: bool = False
    steps: list[Step] = field(default_factory=list)
    seqs: set[int] = field(default_factory=set)
    reached: list[Reached] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Reached:
    """A gradient that was added into a `.grad`, and what that holds then (`total`; None where it was not kept)."""

    leaf: int
    added: int
    size: ArrayNorm
    value: Any
    total: Any
    probe: Any
    counts: Any  # the share of zeros and the number of entries that are not finite, where these are wanted

    @property
    def zeros(self) -> float:
        """The share of its entries that are zero; NaN where they were not counted."""
        return math.nan if self.counts is None else float(self.counts[0])

    @property
    def spoilt(self) -> int:
        """How many entries are not finite."""
        return 0 if self.counts is None else int(self.counts[1])

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
    altered (in place); changed (the tensor itself, in place); spoilt (it was finite before); filled (by nn.init);
    frozen, unfrozen (requires_grad was set); drifted (a step moved it although it is frozen);
    retained (retain_grad() was called); itself (it, or a detach() or .data of it, was given its own entries).
    """

    kind: str
    mark: int
    line: SourceLine | None
    sweeps: int
    time: int
    name: str = ""


class SeenTensor(NamedTuple):
    """A tensor as it was when it was last seen."""

    name: str
    scope: str  # the function that has the name; empty for the file itself
    leaf: bool
    requires: bool
    retains: bool
    floating: bool
    dtype: str
    node: str
    shape: tuple[int, ...]
    parameter: bool
    size: ArrayNorm | None  # of its `.grad`; None where there is none

    @property
    def norm(self) -> float:
        """The norm of its `.grad`; 0 where there is none."""
        return 0.0 if self.size is None else self.size.norm

    @property
    def grad(self) -> str:
        """What its `.grad` is: none, zero, nan, inf or fine."""
        if self.size is None:
            return "none"
        if self.size.finite:
            return "zero" if self.norm == 0 and 0 not in self.shape else "fine"
        return "nan" if self.norm != self.norm else "inf"


class FunctionRule(NamedTuple):
    """The Function that gave a value: its name, where its backward begins, and what it saved; None for its result."""

    name: str
    line: SourceLine | None
    saved: tuple[int | None, ...]


class WrongRule(NamedTuple):
    """A derivative of the file that is not that of its own forward; `factor` of it, if it is that everywhere."""

    name: str
    line: SourceLine | None
    argument: int
    factor: float | None


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


def size_of(array: Any, exact: bool = False) -> ArrayNorm:
    """The norm of an array, and whether every entry is finite; unless `exact`, in the format of the array."""
    kind = array.dtype.kind
    if kind not in "fc":
        return ArrayNorm(0.0, True)
    if not array.ndim:
        number = abs(array.item())
        return ArrayNorm(number, number - number == 0)
    if not exact and (array.dtype is F32 or array.dtype is F64):
        line = array if array.ndim == 1 else array.reshape(-1)
        square = float(line.dot(line))
        if BELOW < square < ABOVE:
            return ArrayNorm(math.sqrt(square), True)
    flat = array.reshape(-1).astype(np.float64 if kind == "f" else np.complex128)  # squares of float32 may overflow
    norm = math.sqrt(flat.dot(flat) if kind == "f" else np.vdot(flat, flat).real)
    if norm == 0 or norm - norm != 0:  # squares of doubles may vanish or overflow too
        largest = float(np.abs(flat).max(initial=0))
        if 0 < largest < math.inf:
            return ArrayNorm(largest * float(np.linalg.norm(flat / largest)), True)
    return ArrayNorm(norm, norm - norm == 0)


def flat(xs: Sequence[Any]) -> list[Any]:
    """What is in lists and tuples, however deep."""
    items: list[Any] = []
    waiting = list(xs)[::-1]
    while waiting:
        item = waiting.pop()
        if issubclass(type(item), (list, tuple)):
            waiting.extend(reversed(item))
        else:
            items.append(item)
    return items


class TensorFacts(NamedTuple):
    """What an entry keeps of a tensor."""

    requires: bool
    seq: int | None  # the number of its node
    dtype: str
    shape: tuple[int, ...]
    size: ArrayNorm
    value: Any  # a copy of a small tensor, an extent, or None


class TensorReader(ABC):
    """Reads the tensors of a library."""

    layer_call: tuple[str, str]  # the module and the name of the function that calls a layer
    library: str  # the folder of the tensors' own code
    kind: type
    optimizer: type
    dialect = "torch"  # in which fixes are written

    def shown(self, name: str) -> str:
        """What users call an operation."""
        return name

    @abstractmethod
    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor that has entries."""

    @abstractmethod
    def mark(self, tensor: Any) -> int:
        """Its number in a record; -1 for none."""

    @abstractmethod
    def set_mark(self, tensor: Any, mark: int) -> None:
        """Give it a number."""

    def entered(self, tensor: Any, mark: int, seq: int | None) -> tuple[int, int] | None:
        """Give it a number, where that of its node is known; the place of the tensor."""
        self.set_mark(tensor, mark)
        return self.place(tensor)

    @abstractmethod
    def requires(self, tensor: Any) -> bool:
        """Whether it requires grad."""

    @abstractmethod
    def place(self, tensor: Any) -> tuple[int, int] | None:
        """The number of the node that made it, and which of its results it is."""

    @abstractmethod
    def version(self, tensor: Any) -> int:
        """How often its memory was changed in place."""

    @abstractmethod
    def memory(self, tensor: Any) -> int:
        """The identity of its memory, which views share."""

    @abstractmethod
    def base(self, tensor: Any) -> Any:
        """The tensor that it is a view of, or None."""

    @abstractmethod
    def grad(self, tensor: Any) -> Any:
        """Its `.grad`, unnoticed."""

    @abstractmethod
    def added(self, tensor: Any) -> int:
        """How many backwards have added into its `.grad` since that was None or zero."""

    @abstractmethod
    def facts(self, tensor: Any, extents: bool) -> TensorFacts:
        """What an entry keeps of it."""

    @abstractmethod
    def subject(self, tensor: Any, name: str, scope: str, size: ArrayNorm | None) -> SeenTensor:
        """The state of a tensor now, under a name of the file; the size of its `.grad` may be known."""

    def seq(self, tensor: Any) -> int | None:
        """The number of the node that made it."""
        place = self.place(tensor)
        return None if place is None else place[0]

    # --- entries --------------------------------------------------------------------------------------------------

    @abstractmethod
    def array(self, value: Any) -> Any:
        """The entries of a tensor or of a gradient in main memory."""

    def size(self, value: Any, exact: bool = False) -> ArrayNorm:
        """The norm, and whether every entry is finite."""
        return size_of(self.array(value), exact)

    def sizes(self, values: Sequence[Any]) -> list[ArrayNorm]:
        """The sizes of some tensors."""
        return list(map(self.size, values))

    def alike(self, tensor: Any) -> bool:
        """Whether all rows of a matrix of several rows are equal, and not zero."""
        array = self.array(tensor)
        return array.ndim > 1 and array.shape[0] > 1 and bool((array == array[:1]).all() and array.any())

    @abstractmethod
    def copied(self, tensor: Any) -> Any:
        """A copy of the entries of a tensor."""

    def ratio(self, tensor: Any, before: Any) -> float:
        """How far a tensor moved from a copy, beside the norm of the copy."""
        moved, norm = self.size(tensor - before).norm, self.size(before).norm
        return moved / norm if norm else math.nan

    def kept(self, value: Any, extents: bool) -> Any:
        """A copy of a small one, an extent of a large one where these are wanted, or None."""
        return kept(self.array(value), extents)

    def is_zero(self, value: Any) -> bool:
        """Whether every entry is zero."""
        return not self.array(value).any()

    def counts(self, value: Any) -> Any:
        """The share of entries that are zero, and how many are not finite."""
        array = self.array(value)
        return ((array == 0).mean(), (~np.isfinite(array)).sum()) if array.size else (0.0, 0)

    def probe(self, value: Any) -> Any:
        """A few entries, which distinguish a large gradient from others of the same norm."""
        array = self.array(value)
        return (array.item(0), array.item(array.size // 2), array.item(-1)) if array.size else ()

    def unit_signs(self, value: Any) -> Any:
        """Which units of an activation are zero in every row, then which are positive in every row."""
        array = self.array(value)
        if not array.size:
            return None
        rows = array.reshape(-1, array.shape[-1] if array.ndim > 1 else array.size)
        return np.concatenate([~rows.any(axis=0), (rows > 0).all(axis=0)])

    def note_stuck(self, step: Step, arrived: Any, sent: Any, size: ArrayNorm) -> None:
        """Note the share of entries where what a node sent, of this size, is not finite and what arrived was zero."""
        if not size.finite:
            arrived, sent = self.array(arrived), self.array(sent)
            if arrived.shape == sent.shape:
                step.stuck_shares.append((~np.isfinite(sent) & (arrived == 0)).mean())

    def sent(self, value: Any, exact: bool) -> ArrayNorm:
        """The size of what a node sends; an adaptor may keep it until it arrives."""
        return self.size(value, exact)

    def arrived(self, value: Any, exact: bool) -> ArrayNorm:
        """The size of what arrived at a node."""
        return self.size(value, exact)

    def overwritten(self, value: Any) -> bool:
        """Whether what arrived at a node was written to since it was sent."""
        return False

    def swept(self) -> None:  # noqa: B027 - few adaptors have something to do
        """Note that a backward is over."""

    # --- where the run stands -------------------------------------------------------------------------------------

    @abstractmethod
    def mode(self) -> str:
        """Whether operations are recorded: grad, no_grad or inference."""


@cache
def spoken(kind: Any) -> str:
    """The name of a format without the library's."""
    return str(kind).removeprefix("torch.")
