"""A function of tensors and an example go in, the graph that it computes comes out, for every oracle and transform.

The function runs on stand-ins, once for each way through it: a branch that depends on data is a guard, for whose other
side it runs again, and both sides are joined by `where`, as far as a number of runs allows.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.recording import Trace
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Traced
from gradcli.graph.program import Leaf, Program
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.eager.recording import Guard
    from gradcli.graph.handrule import HandRule
    from gradcli.graph.node import Node

MOST_RUNS = 16


class Recorded(Program):
    """A program that was recorded, with the guards of the example's own way through the function.

    `rules` are the backwards of the Functions on that way, to be judged.
    """

    __slots__ = ("guards", "rules")
    guards: tuple[Guard, ...]
    rules: tuple[HandRule, ...]


def record(f: Callable[..., Any], *example: Tensor, runs: int = MOST_RUNS, values_only: bool = False) -> Recorded:
    """The graph of a function of tensors, at the types of an example; its leaves are named like the arguments.

    Branches on data become `where`, both sides of which are recorded; beyond `runs` runs of the function, the other
    side is NaN. Tensors that the function reads from outside are constants. A `Function` becomes an operation whose
    derivative is its `backward`, and which is listed in `rules`; where only values are asked for, its forward alone
    is recorded. RuntimeError for what reads entries: `item()`, random numbers, shapes that depend on data, NumPy in a
    forward or backward.

    >>> import gradcli.eager as torch
    >>> from gradcli.execution.evaluate import evaluate
    >>> program = torch.record(lambda x: x * 2 if x > 0 else -x, torch.tensor(3.0))
    >>> evaluate(program, {"x": 3.0}), evaluate(program, {"x": -5.0})
    ([6.0], [5.0])
    """
    trace = Trace(guarded=True, values_only=values_only)
    leaves: dict[str, Leaf] = {}
    inputs: list[Tensor] = []
    arguments = names_of(f, len(example))
    trace.names = {known: name for known, name in _outside(f).items() if name not in arguments}
    for name, x in zip(arguments, example, strict=True):
        array = np.array(x._raw)
        if array.dtype.kind != "f":  # whole numbers decide: they are constants
            inputs.append(x)
            continue
        node = trace.builder.leaf(name, array.shape)
        leaves[name] = Leaf(name, node, array)
        trace.values[name] = array
        inputs.append(Traced(np.zeros_like(array), node))
    paths = Paths(trace, lambda: _run(trace, f, inputs), runs)
    outputs = paths.joined()
    for one in trace.captures.values():
        name = one.leaf.params["name"]
        leaves[name] = Leaf(name, one.leaf, np.array(one.array), None, True)
    program = Recorded(trace.builder, leaves, outputs)
    program.guards, program.rules = paths.guards, tuple(trace.rules)
    return program


def _outside(f: Callable[..., Any]) -> dict[int, str]:
    """What the module and the scope of a function call tensors, and the parameters of networks, by `id`."""
    f = inspect.unwrap(f)
    inner = getattr(f, "__func__", f)
    around = dict(getattr(inner, "__globals__", {}))
    cells = getattr(inner, "__closure__", None) or ()
    for name, cell in zip(inner.__code__.co_freevars if cells else (), cells, strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    found: dict[int, str] = {}
    for name, value in around.items():
        if isinstance(value, Tensor):
            found[id(value)] = name
        elif hasattr(type(value), "named_parameters"):
            found.update((id(x), f"{name}.{inside}") for inside, x in value.named_parameters())
    return found


def _run(trace: Trace, f: Callable[..., Any], inputs: Sequence[Tensor]) -> list[Node]:
    """The outputs of one run of a function."""
    given = [trace.copied(x) if isinstance(x, Traced) else x for x in inputs]
    try:
        with trace.running():
            found = f(*given)
        tensors = [found] if isinstance(found, Tensor) else list(found)
        if not all(isinstance(x, Tensor) for x in tensors):
            raise TypeError("a function that is recorded returns tensors")
        return [trace.node_of(x) for x in tensors]
    finally:
        trace.release()


class Paths:
    """All ways through what `run` does, each recorded by a run of its own; `guards` are those of the first."""

    def __init__(self, trace: Trace, run: Callable[[], list[Node]], runs: int = MOST_RUNS) -> None:
        self.trace, self.run, self.runs = trace, run, runs
        self.guards: tuple[Guard, ...] = ()

    def joined(self, forced: tuple[bool, ...] = ()) -> list[Node]:
        """The outputs, where the first conditions are decided so and the others as the point decides."""
        trace = self.trace
        self.runs -= 1
        outer = trace.guards, trace.forced, trace.aside
        trace.guards, trace.forced, trace.aside = [], forced, trace.aside or bool(forced)
        try:
            outputs = self.run()
            guards = tuple(trace.guards)
        finally:
            trace.guards, trace.forced, trace.aside = outer
        if not forced:
            self.guards = guards
        ways = [(*[one.taken for one in guards[:i]], not guards[i].taken) for i in range(len(forced), len(guards))]
        others = [self._other(way, outputs) for way in ways]  # early branches first: loops end there
        for guard, other in zip(reversed(guards[len(forced) :]), reversed(others), strict=True):
            outputs = self._either(guard, outputs, other)
        return outputs

    def _other(self, way: tuple[bool, ...], like: list[Node]) -> list[Node]:
        """What the other side of a branch gives; NaN where it fails, or where there are too many."""
        if self.runs > 0:
            try:
                found = self.joined(way)
            except (ArithmeticError, ValueError, RuntimeError):
                found = []
            if [node.type for node in found] == [node.type for node in like]:
                return found
        zero = self.trace.builder.constant(0)
        return [stretch(self.trace.builder.call("div", zero, zero), node.type.shape) for node in like]

    def _either(self, guard: Guard, here: list[Node], there: list[Node]) -> list[Node]:
        found = []
        for one, other in zip(here, there, strict=True):
            condition = stretch(guard.condition, one.type.shape)
            yes, no = (one, other) if guard.taken else (other, one)
            found.append(one if one is other else self.trace.builder.call("where", condition, yes, no))
        return found


def names_of(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's arguments, or x0, x1, ... where it does not say them."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return names[:count] if len(names) >= count else [f"x{i}" for i in range(count)]
