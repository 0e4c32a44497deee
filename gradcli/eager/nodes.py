"""What a recorded operation remembers goes in, the graph that PyTorch's users walk comes out; runs no rule itself.

A node knows where its gradients go (`inputs`), what it saved and the line that made it; never its own output tensor.
Classes are made by name, so that `type(node).__name__` is PyTorch's. A leaf stands for itself among the inputs:
its `AccumulateGrad` is made when someone looks, and stays the same as long as someone holds it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from gradcli.eager.hooks import Handle
from gradcli.eager.state import Place, sequence, spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.tensor import Tensor

_OF_THE_ENGINE = frozenset(("CopySlices", "CopyBackwards"))  # PyTorch names these with their namespace
LAST = 2**64 - 1  # the sequence number of a leaf: it runs as soon as it is ready


class Saved:
    """A tensor that a node reads when it runs, with the version that it had."""

    __slots__ = ("array", "counter", "tensor", "version")

    def __init__(self, tensor: Tensor | None, array: Any, counter: Any) -> None:
        self.tensor = tensor
        self.array = array
        self.counter = counter
        self.version = counter.value

    def checked(self, name: str, where: Place) -> Any:
        """The array; RuntimeError where it was changed in place since it was saved."""
        if self.counter.value != self.version:
            raise RuntimeError(
                f"a tensor that {name} ({spoken(where)}) saved for its gradient was changed by an in-place operation "
                f"at {spoken(self.counter.place)}: it is at version {self.counter.value}, expected version "
                f"{self.version}. Write the change out of place, or clone() the tensor before it"
            )
        return self.array


class Node:
    """One recorded operation: `name()`, `next_functions`, `metadata`, hooks, `_saved_*`."""

    __slots__ = (
        "__weakref__",
        "freed",
        "hooks",
        "inputs",
        "metadata",
        "outputs",
        "place",
        "prehooks",
        "retained",
        "saved",
        "seq",
        "tensor_hooks",
    )
    saved_names: tuple[str, ...] = ()

    def __init__(self, inputs: tuple[Any, ...], saved: tuple[Saved, ...], where: Place, outputs: int = 1) -> None:
        self.inputs = inputs  # each None, a leaf tensor, or (node, number of its output)
        self.saved = saved
        self.place = where
        self.outputs = outputs
        self.seq = next(sequence)
        self.freed = False
        self.hooks: dict[int, Any] | None = None
        self.prehooks: dict[int, Any] | None = None
        self.tensor_hooks: dict[int, dict[int, Any]] | None = None
        self.retained: dict[int, weakref.ref[Tensor]] | None = None
        self.metadata: dict[Any, Any] = {}

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For each input the node that its gradient goes to, and the number of that node's output."""
        return tuple([edge_of(source) for source in self.inputs])

    def name(self) -> str:
        """PyTorch's name of the operation's node."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in _OF_THE_ENGINE else name

    def _sequence_nr(self) -> int:
        return self.seq

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran; what it returns replaces grad_inputs."""
        if self.hooks is None:
            self.hooks = {}
        return Handle(self.hooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_outputs)` before the node runs; what it returns replaces grad_outputs."""
        if self.prehooks is None:
            self.prehooks = {}
        return Handle(self.prehooks, hook)

    def check_not_freed(self) -> None:
        """RuntimeError where the saved values are gone."""
        if self.freed:
            raise RuntimeError(
                f"cannot go backward through {self.name()} ({spoken(self.place)}) a second time: what it had saved was "
                "freed by the first backward. Pass retain_graph=True to the first one if the graph is needed again"
            )

    def release(self) -> None:
        """Free what was saved; a node that saved nothing may run again."""
        if self.saved:
            self.saved = ()
            self.freed = True

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class AccumulateGrad:
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

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


Node.__module__ = AccumulateGrad.__module__ = "builtins"

_classes: dict[Any, type[Node]] = {}


def class_named(base: type[Node], name: str) -> type[Node]:
    """The class of nodes of this name; the same one each time."""
    found = _classes.get((base, name))
    if found is None:
        found = _classes[base, name] = type(name, (base,), {"__module__": "builtins", "__slots__": ()})
    return found


def edge_of(source: Any) -> tuple[Any, int]:
    """An input as `next_functions` shows it."""
    if source is None:
        return (None, 0)
    if isinstance(source, tuple):
        return (source[0], source[1])
    return (accumulator(source), 0)


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The `AccumulateGrad` of a leaf: the same object while anyone holds it."""
    held = leaf._accumulator
    found: AccumulateGrad | None = held() if held is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(found)
    return found
