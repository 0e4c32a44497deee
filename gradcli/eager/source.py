"""A straight line of operations goes in, one Python function on raw arrays comes out; knows no tensor and no rule.

What an operation computes is read off its declared `impl` (see `spies.py`); one that cannot be written down is called
as it is. The functions save a call, a lookup and a loop per operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import kernels
from gradcli.eager.spies import written
from gradcli.eager.windowing import Joined, steps_of
from gradcli.execution import generated
from gradcli.execution.namespaces import namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node


class Script:
    """Lines of a function, and the objects that they name."""

    def __init__(self, kind: np.dtype[Any], prefix: str = "k") -> None:
        self.kind = kind
        self.prefix = prefix
        self.xp = names_for(kind)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.known: dict[int, str] = {}
        self.parts: list[str] = []  # of the text that is being written: what may occur several times
        self.shared = 0  # names given to such parts
        self.backward = False  # whether these are gradients: their sums may be taken in any order

    def name(self, value: Any) -> str:
        """A name for an object."""
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = f"{self.prefix}{len(self.names)}"
            self.names[found] = value
        return found

    def number(self, node: Node) -> str:
        """The text of a constant of the graph."""
        value = number_of(node, self.kind)
        return self.name(np.broadcast_to(value, node.shape) if node.shape else value)

    def operation(self, node: Node, args: Sequence[str]) -> str:
        """The text of one operation on named operands."""
        primitive = node.primitive
        if primitive.name == "cast" and node.params["kind"] == "float":
            return f"{args[0]}.astype({self.name(self.kind)})"
        if primitive.name == "matmul" and all(len(arg.shape) == 2 for arg in node.args):
            product = np.dot if node.args[0].shape[1] == 1 else np.matmul  # matmul has a slow loop for one column
            return f"{self.name(product)}({args[0]}, {args[1]})"
        pointwise = primitive.pointwise
        shapes = [None if pointwise else arg.shape for arg in node.args]
        params = node.params if pointwise else {**node.params, "ranks": tuple([len(arg.shape) for arg in node.args])}
        return self.applied(primitive, args, shapes, params)

    def applied(self, primitive: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of a declared operation on named operands."""
        if primitive.name == "sigmoid" and self.kind == np.float32:
            return f"{self.name(kernels.sigmoid)}({args[0]})"
        return self.text(primitive.impl, args, shapes, params)

    def text(self, impl: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of an `impl` on named operands: what it does, or a call of it."""
        found = written(self, impl, args, shapes, params)
        if found is not None:
            return found
        given = ", ".join([*args, *[f"{key}={self.name(value)}" for key, value in params.items()]])
        return f"{self.name(impl)}({self.name(self.xp)}, {given})"

    def function(self, title: str, arguments: str, end: str) -> Any:
        """The finished function."""
        body = "\n".join(f"    {line}" for line in [*self.lines, end])
        scope = {**self.names, "__name__": "gradcli.eager.generated"}
        return generated.function(f"def {title}({arguments}):\n{body}\n", scope, title)


def _joined(script: Script, node: Node, names: dict[Node, str]) -> str | None:
    """Two operations as one: a product with a step function, or with a number or 0, as a choice (relu and clamp go back
    so); and where that is faster, the sigmoid of a negative.
    """
    if node.primitive.name == "sigmoid" and node.args[0].primitive.name == "neg" and script.kind == np.float32:
        return f"{script.name(kernels.sigmoid_of_negative)}({names[node.args[0].args[0]]})"
    if node.primitive.name != "mul" or script.kind.kind != "f":
        return None
    for step, other in (node.args, reversed(node.args)):
        if step.primitive.name == "step" and other.primitive.name != "step":
            at = step.args[0]
            if at.primitive.name == "relu":  # what is not 0 is positive, or no number
                return f"{script.name(kernels.passed)}({names[other]}, {names[at]} != 0)"
            return f"{script.name(kernels.held_back)}({names[other]}, {names[at]} <= 0)"
        if step.primitive.name == "where" and _is_number(step.args[2], 0) and step.args[1].primitive is CONSTANT:
            factor = "" if _is_number(step.args[1], 1) else f" * {script.number(step.args[1])}"
            return f"{script.name(kernels.passed)}({names[other]}{factor}, {names[step.args[0]]})"
    return None


def _is_number(node: Node, value: int) -> bool:
    return node.primitive is CONSTANT and node.type.kind == "float" and node.params["value"] == value


def _left_to_numpy(node: Node, users: Sequence[Node]) -> bool:
    """Whether a broadcast may be left to the operations that use it: each has another operand of the whole shape."""
    if node.primitive.name != "broadcast":
        return False
    for user in users:
        others = [arg for arg in user.args if arg is not node]
        if not user.primitive.pointwise or len(others) != 1 or len(user.args) != 2:
            return False
        if others[0].primitive.name == "broadcast" or others[0].primitive is CONSTANT:
            return False
    return True


def _added_in_place(script: Script, node: Node, names: dict[Node, str], uses: dict[Node, int]) -> str | None:
    """A sum into the memory of a product that nobody else reads."""
    for product, other in (node.args, reversed(node.args)):
        if product.primitive.name == "matmul" and uses.get(product, 0) == 1 and product.shape == node.shape:
            return f"{script.name(np.add)}({names[product]}, {names[other]}, out={names[product]})"
    return None


def straight(
    script: Script,
    given: dict[Node, str],
    order: Sequence[Node],
    outputs: Sequence[Node],
    turned: Sequence[Node] = (),
) -> list[str]:
    """Write the lines for some nodes; the names of the outputs.

    What is used once and is short is written where it is used. Products in `turned` are laid out column by column.
    """
    names = dict(given)
    uses: dict[Node, int] = {}
    for node in order:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    for node in outputs:
        uses[node] = uses.get(node, 0) + 2
    users: dict[Node, list[Node]] = {}
    for node in order:
        for arg in node.args:
            users.setdefault(arg, []).append(node)
    together, gone = steps_of(order, uses)
    last, by_column = set(outputs), set(turned)
    for node in order:
        if node in names or node in gone:
            continue
        step = together.get(node)
        if step is not None:
            given_names = [names[one] for one in ([step.array] if isinstance(step, Joined) else step.arrays)]
            names[node] = f"t{len(script.lines)}"
            script.lines.append(f"{names[node]} = {script.name(step)}({', '.join(given_names)})")
            continue
        if node not in last and _left_to_numpy(node, users.get(node, [])):
            names[node] = names[node.args[0]]
            continue
        if node.primitive is CONSTANT:
            names[node] = script.number(node)
            continue
        text = _joined(script, node, names)
        if node in by_column and node.primitive.name == "matmul" and len(node.shape) == 2:
            text = f"{script.name(kernels.turned_product)}({', '.join(names[arg] for arg in node.args)})"
        if text is None and node.primitive.name == "add" and node.shape:
            text = _added_in_place(script, node, names, uses)
        if text is None:
            text = script.operation(node, [names[arg] for arg in node.args])
        if uses.get(node, 0) == 1 and node.primitive.pointwise and len(text) < 200:
            names[node] = text
            continue
        name = f"t{len(script.lines)}"
        script.lines.append(f"{name} = {text}")
        names[node] = name
    return [names[node] for node in outputs]


def names_for(kind: np.dtype[Any]) -> Any:
    """The namespace that computes with arrays of this format."""
    return namespace(
        "numpy", {"f": "float64" if kind == np.float64 else "float32", "c": "complex128"}.get(kind.kind, "float32")
    )


def number_of(node: Node, kind: np.dtype[Any]) -> Any:
    """A constant of the graph in a format."""
    if node.type.kind == "bool":
        return np.bool_(node.params["value"])
    value = nearest_float(node.params["value"])
    if kind.kind in "fc":
        return kind.type(value)
    return kind.type(int(value)) if kind.kind in "iu" and value == int(value) else np.float32(value)
