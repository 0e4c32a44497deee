"""Float values of nodes at points, and nodes as functions of some entries, for finite differences.

What a derivative does not move is an input of the function: `detach(x)` stays at its value, `ste(value, surrogate)`
moves as its surrogate does, and an intermediate value that is differentiated with respect to becomes an input of its
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.primitives.comparison import detach, ste

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.primitive import Primitive

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]
    AtPoints = Callable[[Values], list[Floats]]

LIMIT_ULPS = 1024  # how far a float may be from the exact value before it is called imprecise


def evaluated(nodes: Sequence[Node], values: Values, dtype: str = "float64", backend: str = "numpy") -> list[Floats]:
    """The values of some nodes at a point; NaN where a node cannot be evaluated."""
    return evaluator(nodes, dtype, backend)(values)


def evaluator(nodes: Sequence[Node], dtype: str = "float64", backend: str = "numpy") -> AtPoints:
    """`evaluated` as a function of the point, for many points."""
    tape = Tape(list(nodes))
    kind = np.complex128 if dtype == "complex128" else np.float64

    def at(values: Values) -> list[Floats]:
        try:
            arrays = tape.run(values, backend=backend, dtype=dtype)
        except GradcliError:
            return [np.full(node.type.shape, np.nan, kind) for node in nodes]
        return [np.broadcast_to(np.asarray(x, dtype=kind), n.type.shape) for n, x in zip(nodes, arrays, strict=True)]

    return at


def moving(output: Node, target: Node, values: Values) -> tuple[Callable[[Floats], Floats], Floats]:
    """A scalar node as a function of the entries of another one, with all else fixed; and these entries at the point.

    The function takes points of shape [n, entries] and gives n values. Detached values stay as they are. Where values
    are complex, every entry is two, its real and its imaginary part, and the function is the real part of the node.
    """
    plane = any(value.dtype.kind == "c" for value in values.values())
    dtype = "complex128" if plane else "float64"
    held_output, moved, fixed = hold(output, target)
    tape, known = Tape([held_output]), dict(values)
    for name, nodes in fixed.items():
        known[name] = np.subtract.reduce(evaluated(nodes, values, dtype))

    def f(points: Floats) -> Floats:
        entries = points[:, ::2] + 1j * points[:, 1::2] if plane else points
        inputs = {**known, moved: entries.reshape((len(points), *target.type.shape))}
        try:
            outputs = np.real(tape.run(inputs, backend="numpy", dtype=dtype)[0])
        except GradcliError:
            return np.full(len(points), np.nan)
        return np.broadcast_to(np.asarray(outputs, dtype=np.float64), (len(points),))

    flat = evaluated([target], values, dtype)[0].reshape(-1)
    return f, np.stack([flat.real, flat.imag], axis=1).reshape(-1) if plane else flat


def kind_of(dtype: str) -> Any:
    """The largest number, the precision and other limits of the real floats of a dtype."""
    return np.finfo(np.float32 if dtype == "float32" else np.float64)


def ulps(value: float, exact: float, dtype: str = "float64", size: float | None = None) -> float:
    """How many spacings of floats at `exact` (or at `size`) lie between two numbers; inf for one that is not finite."""
    if value == exact:
        return 0.0
    if not np.isfinite(value):
        return float("inf")
    kind = kind_of(dtype)
    with np.errstate(all="ignore"):
        spacing = float(np.spacing(min(kind.dtype.type(abs(exact) if size is None else size), kind.max)))
        return abs(value - exact) / max(spacing, 5e-324)


def hold(output: Node, target: Node) -> tuple[Node, str, dict[str, tuple[Node, ...]]]:
    """The output as a function of another node, the name of that one as an input, and inputs for what stays fixed.

    The value of a fixed input is that of a node, or the difference of two.
    """
    replaced: dict[Node, Node] = {}
    fixed: dict[str, tuple[Node, ...]] = {}

    def like(node: Node, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any], serial: int) -> Node:
        return Node(primitive, args, params, node.type, serial, node.span, node.builder)

    if target.primitive is not LEAF:
        replaced[target] = like(target, LEAF, (), {"name": "~target"}, target.serial)
    for node in reachable([output]):
        name, args = f"~held{node.serial}", tuple(replaced.get(arg, arg) for arg in node.args)
        if node in replaced:
            continue
        if node.primitive in (detach, ste):
            fixed[name] = node.args
            replaced[node] = held = like(node, LEAF, (), {"name": name}, node.args[0].serial)
            if node.primitive is ste:
                replaced[node] = like(node, node.builder.vocabulary["add"], (args[1], held), {}, node.serial)
        elif args != node.args:
            replaced[node] = like(node, node.primitive, args, node.params, node.serial)
    return replaced.get(output, output), replaced.get(target, target).params["name"], fixed
