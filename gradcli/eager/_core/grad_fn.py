"""The nodes of the graph of a backward: what an operation remembers, under PyTorch's names.

A node holds where its gradients go (`ins`), what it saved and the line that made it; never its own output tensor: it
keeps operands as they are, results as a payload with its version, and what a pack hook made with its unpack hook.
Classes are made by name, so that `type(node).__name__` is PyTorch's. A leaf stands for itself among the inputs: its
`AccumulateGrad` is made when someone looks, and stays the same as long as someone holds it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradcli.eager._core import events
from gradcli.eager._core.modes import Place, sequence, spoken, state, sweeps
from gradcli.eager._core.tensor import Handle, Tensor


class SavedResult:
    """A result that its own node reads when it runs: the payload and the version, without the tensor."""

    __slots__ = ("__dict__", "_count", "_raw")
    _raw: Any
    _count: Any
    version = 0
    output = 0
    tangent: Any = None  # of a dual result, while its level is open


def saved_result(raw: Any, counter: Any, output: int = 0) -> SavedResult:
    """A result as its node keeps it."""
    saved = SavedResult()
    saved._raw, saved._count = raw, counter
    if counter.value:
        saved.version = counter.value
    if output:
        saved.output = output
    return saved


class Packed:
    """What a pack hook made of a saved tensor, and the hook that makes a tensor of it again."""

    __slots__ = ("dtype", "kept", "shape", "source", "unpack")
    _count = None

    def __init__(self, kept: Any, unpack: Any, source: Any, raw: Any) -> None:
        self.kept = kept
        self.shape, self.dtype = raw.shape, raw.dtype
        self.unpack = unpack
        self.source = source  # where a gradient of the tensor goes; a number: it is that output of the node itself

    @property
    def _raw(self) -> Any:
        """The payload of what the unpack hook returns, in the format that was packed."""
        return self.tensor()._raw.astype(self.dtype, copy=False)

    def attached(self, node: Node) -> Tensor:
        """What the unpack hook returns, in the place that the packed tensor had in the graph."""
        tensor, source = self.tensor(), self.source
        if source is None or source is tensor:
            return tensor
        result = Tensor(tensor._raw, True)
        if isinstance(source, int):
            result._edge = (node, source)
        elif source._seq < 0:
            result._edge = (source.node, source.nr)
        elif source._seq > 0:
            result._edge = (source, 0)
        else:
            result._stands_for, result._special = source, True
        return result

    def tensor(self) -> Tensor:
        """What the unpack hook returns; TypeError unless it is a tensor, RuntimeError unless it has the shape."""
        tensor = self.unpack(self.kept)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"the unpack hook of saved_tensors_hooks must return a tensor, not {type(tensor).__name__}")
        if tensor._raw.shape != self.shape:
            raise RuntimeError(
                f"the unpack hook of saved_tensors_hooks returned a tensor of shape {list(tensor.shape)}, "
                f"but one of shape {list(self.shape)} was packed"
            )
        return tensor


def versions(saved: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The versions that saved values have now; None where all are 0."""
    for value in saved:
        if value is not None and value._count is not None and value._count.value:
            return tuple([0 if x is None or x._count is None else x._count.value for x in saved])
    return None


_OF_THE_ENGINE = ("CopySlices", "CopyBackwards", "NotImplemented")  # PyTorch names these with their namespace
LAST = 2**64 - 1  # the sequence number of a leaf: it runs as soon as it is ready


class OutputEdge:
    """One of several outputs of a node, as the end of an edge. (A node with one output stands for itself.)"""

    __slots__ = ("node", "nr")
    _seq = -1

    def __init__(self, node: Node, nr: int) -> None:
        self.node = node
        self.nr = nr


@dataclass(slots=True, eq=False)
class Extra:
    """What few nodes have: hooks, tensors that retain their gradient, the user's `metadata`."""

    hooks: dict[int, Any] = field(default_factory=dict)
    prehooks: dict[int, Any] = field(default_factory=dict)
    tensor_hooks: dict[int, dict[int, Any]] = field(default_factory=dict)
    retained: dict[int, weakref.ref[Tensor]] = field(default_factory=dict)
    metadata: dict[Any, Any] = field(default_factory=dict)


class Hooked:
    """Hooks and metadata of a node."""

    __slots__ = ()
    rare: Any  # an `Extra`, made at the first use

    @property
    def metadata(self) -> Any:
        """A dictionary for the user."""
        return self.rare.metadata

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; what it returns replaces grad_inputs."""
        sweeps.watched = True
        return Handle(self.rare.hooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_outputs)` before the node runs; what it returns replaces grad_outputs."""
        sweeps.watched = True
        return Handle(self.rare.prehooks, hook)


class Node(Hooked):
    """One recorded operation: `name()`, `next_functions`, `metadata`, hooks, `_saved_*`."""

    __slots__ = ("__weakref__", "_at", "_code", "_seq", "extra", "ins", "saved", "vers")
    outputs = 1
    simple = False  # whether the short sweep may run it
    keeps = False  # whether it may run twice although it saved something: positions that follow from shapes
    ins: tuple[Any, ...]  # each None, a leaf tensor, a node, or an `OutputEdge`
    saved: tuple[Any, ...] | None  # operands themselves, `SavedResult` results, numbers; None once freed
    vers: tuple[int, ...] | None  # the versions of what was saved; None where all are 0
    extra: Extra | None
    _code: Any  # of the line that made it: the code, or None
    _at: int  # and the instruction

    def __init__(self, ins: tuple[Any, ...], saved: tuple[Any, ...], where: Place) -> None:
        self.ins = ins
        self.saved = saved
        self.vers = versions(saved)
        self.place = where
        self._seq = next(sequence)
        self.extra = None

    @property
    def place(self) -> Place:
        """The code and the instruction that made it."""
        return None if self._code is None else (self._code, self._at)

    @place.setter
    def place(self, where: Place) -> None:
        self._code, self._at = where or (None, 0)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For each input the node that its gradient goes to, and the number of that node's output."""
        return tuple([edge_of(source) for source in self.ins])

    def name(self) -> str:
        """PyTorch's name of the operation's node."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in _OF_THE_ENGINE else name

    def _sequence_nr(self) -> int:
        return self._seq

    @property
    def rare(self) -> Extra:
        """Hooks and the like, made at the first use."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    def check_not_freed(self) -> None:
        """RuntimeError where the saved values are gone."""
        if self.saved is None:
            events.report("stopped", "freed", self, None)
            raise RuntimeError(
                f"cannot go backward through {self.name()} ({spoken(self.place)}) a second time: what it had saved was "
                "freed by the first backward. Pass retain_graph=True to the first one if the graph is needed again"
            )

    def check_versions(self) -> None:
        """RuntimeError where something saved was changed in place since."""
        saved, known = self.saved or (), self.vers
        for i, value in enumerate(saved):
            if value is None:
                continue
            version = value.version if isinstance(value, SavedResult) else 0 if known is None else known[i]
            counter = value._count
            if counter is not None and counter.value != version:
                name = self.name()
                events.report("stopped", "changed", self, counter, version)
                raise RuntimeError(
                    f"a tensor that {name} ({spoken(self.place)}) saved for its gradient was changed by an in-place "
                    f"operation at {spoken(counter.place)}: it is at version {counter.value}, expected version "
                    f"{version}. Write the change out of place, or clone() the tensor before it"
                )

    def tensor_saved(self, i: int) -> Any:
        """A saved value as a tensor: the operand itself, or the result with this node as its `grad_fn`."""
        value = (self.saved or ())[i]
        if type(value) is Packed:
            return value.attached(self)
        if value is None or isinstance(value, Tensor):
            return value
        result = Tensor(value._raw, False, value._count)
        if type(value) is SavedResult:
            result._requires, result._edge = True, (self, value.output)
            if value.tangent is not None and state.dual is not None:
                state.dual.give(result, value.tangent)
        return result

    def release(self) -> None:
        """Free what was saved; a node that saved nothing may run again."""
        if self.saved and not self.keeps:
            self.saved = None

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs; each kind of node has its own."""
        raise RuntimeError(f"{self.name()} has no rule")

    def __repr__(self) -> str:
        kind = type(self)
        home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        return f"<{home}{kind.__name__} object at {id(self):#x}>"


class AccumulateGrad(Hooked):
    """The end of a path: adds what arrives into the `.grad` of its `variable`."""

    __slots__ = ("__weakref__", "variable")
    next_functions = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        """PyTorch's name, with its C++ namespace."""
        return "torch::autograd::AccumulateGrad"

    def _sequence_nr(self) -> int:
        return LAST

    @property
    def rare(self) -> Extra:
        """Hooks and the like; they belong to the leaf."""
        if self.variable._leaf_hooks is None:
            self.variable._leaf_hooks = Extra()
        extra: Extra = self.variable._leaf_hooks
        return extra

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


Node.__module__ = AccumulateGrad.__module__ = "builtins"

_classes: dict[Any, type[Node]] = {}


def class_named(base: type[Node], name: str) -> Any:
    """The class of nodes of this name; the same one each time."""
    kind = _classes.get((base, name))
    if kind is None:
        kind = _classes[base, name] = type(name, (base,), {"__module__": "builtins", "__slots__": ()})
    return kind


def edge_of(source: Any) -> tuple[Any, int]:
    """An input as `next_functions` shows it."""
    if source is None:
        return (None, 0)
    if source._seq < 0:
        return (source.node, source.nr)
    return (accumulator(source) if source._seq == 0 else source, 0)


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The `AccumulateGrad` of a leaf: the same object while anyone holds it."""
    held = leaf._accumulator
    node: AccumulateGrad | None = held() if held is not None else None
    if node is None:
        node = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(node)
    return node
