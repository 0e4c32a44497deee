"""Float values of nodes at points, and nodes as functions of some entries, for finite differences.

What a derivative does not move is an input of the function: `detach(x)` stays at its value, `ste(value, surrogate)`
moves as its surrogate does, and an intermediate value that is differentiated with respect to becomes an input of its
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]

LIMIT_ULPS = 1024  # how far a float may be from the exact value before it is called imprecise


def read_value(value: Any, shape: tuple[int, ...], plane: bool = False) -> Floats | None:
    """The value of a leaf as doubles in its shape; None where it is complex, off the plane, or has another shape."""
    from gradcli.points import array_of

    array = np.asarray(array_of(value))
    if plane:
        return np.array(array, dtype=np.complex128)
    if array.dtype.kind == "c" or array.shape != shape:
        return None
    return np.array(array, dtype=np.float64)


def evaluated(nodes: Sequence[Node], values: Values, dtype: str = "float64", backend: str = "numpy") -> list[Floats]:
    """The values of some nodes at a point; NaN where a node cannot be evaluated."""
    return evaluator(nodes, dtype, backend)(values)


def evaluator(
    nodes: Sequence[Node], dtype: str = "float64", backend: str = "numpy"
) -> Callable[[Values], list[Floats]]:
    """`evaluated` as a function of the point, for many points."""
    tape = Tape(list(nodes))
    needed = {node.params["name"] for node, _ in tape.inputs}
    kind = np.complex128 if dtype == "complex128" else np.float64

    def at(values: Values) -> list[Floats]:
        given = {name: value for name, value in values.items() if name in needed}
        try:
            found = tape.run(given, backend=backend, dtype=dtype)
        except GradcliError:
            return [np.full(node.type.shape, np.nan, kind) for node in nodes]
        return [np.broadcast_to(np.asarray(x, dtype=kind), n.type.shape) for n, x in zip(nodes, found, strict=True)]

    return at


def moving(output: Node, target: Node, values: Values) -> tuple[Callable[[Floats], Floats], Floats]:
    """A scalar node as a function of the entries of another one, with all else fixed; and these entries at the point.

    The function takes points of shape [n, entries] and gives n values. Detached values stay as they are. Where values
    are complex, every entry is two, its real and its imaginary part, and the function is the real part of the node.
    """
    plane = any(value.dtype.kind == "c" for value in values.values())
    dtype = "complex128" if plane else "float64"
    held_output, moved, fixed = hold(output, target)
    known = dict(values)
    for name, nodes in fixed.items():
        first, *rest = evaluated(nodes, values, dtype)
        known[name] = first - rest[0] if rest else first
    tape = Tape([held_output])
    needed = {node.params["name"] for node, _ in tape.inputs}
    known = {name: value for name, value in known.items() if name in needed}

    def f(points: Floats) -> Floats:
        entries = points[:, ::2] + 1j * points[:, 1::2] if plane else points
        inputs = {moved: entries.reshape((len(points), *target.type.shape))} if moved in needed else {}
        try:
            found = np.real(tape.run({**known, **inputs}, backend="numpy", dtype=dtype)[0])
        except GradcliError:
            return np.full(len(points), np.nan)
        return np.broadcast_to(np.asarray(found, dtype=np.float64), (len(points),))

    flat = evaluated([target], values, dtype)[0].reshape(-1)
    return f, np.stack([flat.real, flat.imag], axis=1).reshape(-1) if plane else flat


def kind_of(dtype: str) -> Any:
    """The largest number, the precision and other limits of the real floats of a dtype."""
    return np.finfo(np.float32 if dtype == "float32" else np.float64)


def ulps(found: float, exact: float, dtype: str = "float64", size: float | None = None) -> float:
    """How many spacings of floats at `exact` (or at `size`) lie between two numbers; inf for one that is not finite."""
    if found == exact:
        return 0.0
    if not np.isfinite(found):
        return float("inf")
    kind = kind_of(dtype)
    with np.errstate(all="ignore"):
        spacing = float(np.spacing(min(kind.dtype.type(abs(exact) if size is None else size), kind.max)))
        return abs(found - exact) / max(spacing, 5e-324)


def hold(output: Node, target: Node) -> tuple[Node, str, dict[str, tuple[Node, ...]]]:
    """The output as a function of another node, the name of that one as an input, and inputs for what stays fixed.

    The value of a fixed input is that of a node, or the difference of two.
    """
    replaced = {} if target.primitive is LEAF else {target: input_like(target, "~target", target.serial)}
    moved: str = replaced.get(target, target).params["name"]
    fixed: dict[str, tuple[Node, ...]] = {}
    for node in reachable([output]):
        if node in replaced:
            continue
        name = f"~held{node.serial}"
        if node.primitive.name == "detach":
            fixed[name] = (node.args[0],)
            replaced[node] = input_like(node, name, node.serial)
        elif node.primitive.name == "ste":
            fixed[name] = node.args
            value, surrogate = node.args
            gap = input_like(node, name, value.serial)
            surrogate = replaced.get(surrogate, surrogate)
            replaced[node] = step_like(node, node.builder.vocabulary["add"], (surrogate, gap), {})
        elif any(arg in replaced for arg in node.args):
            args = tuple(replaced.get(arg, arg) for arg in node.args)
            replaced[node] = step_like(node, node.primitive, args, node.params)
    return replaced.get(output, output), moved, fixed


def input_like(like: Node, name: str, serial: int) -> Node:
    """An input of the type of a node, at its position in the order."""
    return Node(LEAF, (), {"name": name}, like.type, serial, like.span, like.builder)


def step_like(like: Node, primitive: Primitive, args: tuple[Node, ...], params: dict[str, object]) -> Node:
    """An operation of the type of a node, at its position in the order."""
    return Node(primitive, args, params, like.type, like.serial, like.span, like.builder)
