"""A straight line of operations goes in, one Python function on raw arrays comes out; knows no tensor and no rule.

What an operation computes is read off its declared `impl`, by calling it once with stand-ins that write down what is
done to them: `lambda xp, x: xp.sin(x)` becomes the text `sin(v0)`. An `impl` that looks at its operands cannot be
written down so; it is then called as it is. The functions save a call, a lookup and a loop per operation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution import generated
from gradcli.execution.namespaces import namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node

_SMALL = 4096  # up to so many entries a repeated number is written out, which is faster than a view without strides


class _Opaque(Exception):
    """An `impl` did something that cannot be written down."""


class Script:
    """Lines of a function, and the objects that they name."""

    def __init__(self, kind: np.dtype[Any], prefix: str = "k") -> None:
        self.kind = kind
        self.prefix = prefix
        self.xp = names_for(kind)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.known: dict[int, str] = {}

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
        pointwise = primitive.pointwise
        shapes = [None if pointwise else arg.shape for arg in node.args]
        params = node.params if pointwise else {**node.params, "ranks": tuple([len(arg.shape) for arg in node.args])}
        return self.applied(primitive, args, shapes, params)

    def applied(self, primitive: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of a declared operation on named operands."""
        if primitive.name == "sigmoid" and self.kind == np.float32:
            return f"{self.name(_sigmoid)}({args[0]})"
        return self.text(primitive.impl, args, shapes, params)

    def text(self, impl: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of an `impl` on named operands: what it does, or a call of it."""
        spies = [_Spy(self, arg, shape) for arg, shape in zip(args, shapes, strict=True)]
        try:
            found = impl(_Names(self), *spies, **params)
        except Exception:  # whatever a stand-in cannot do, the function itself can
            found = None
        if isinstance(found, _Spy):
            return found.text
        given = ", ".join([*args, *[f"{key}={self.name(value)}" for key, value in params.items()]])
        return f"{self.name(impl)}({self.name(self.xp)}, {given})"

    def function(self, title: str, arguments: str, end: str) -> Any:
        """The finished function."""
        body = "\n".join(f"    {line}" for line in [*self.lines, end])
        scope = {**self.names, "__name__": "gradcli.eager.generated"}
        return generated.function(f"def {title}({arguments}):\n{body}\n", scope, title)


class _Names:
    """The namespace as an `impl` under observation sees it."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __getattr__(self, name: str) -> Any:
        script = self._script

        def called(*xs: Any, **options: Any) -> Any:
            if not any(isinstance(x, _Spy) for x in xs):
                raise _Opaque
            return _Spy(script, _called(script, name, xs, options), None)

        return called


def _called(script: Script, name: str, xs: tuple[Any, ...], options: dict[str, Any]) -> str:
    texts = [x.text if isinstance(x, _Spy) else None for x in xs]
    if name == "reshape" and not options and len(xs) == 2:
        return f"{texts[0]}.reshape({script.name(tuple(xs[1]))})"
    if name == "sum" and set(options) == {"axis"}:
        return f"{script.name(_added_up)}({texts[0]}, {script.name(options['axis'])})"
    if name == "broadcast_to" and not options:
        shape = tuple(xs[1])
        repeated = _written_out if math.prod(shape) <= _SMALL and xs[0].shape == () else np.broadcast_to
        return f"{script.name(repeated)}({texts[0]}, {script.name(shape)})"
    if name == "cast":
        if xs[1] != "float":
            raise _Opaque
        return f"{texts[0]}.astype({script.name(script.kind)})"
    function = _of_scalars(name, getattr(script.xp, name))
    given = [x.text if isinstance(x, _Spy) else _plain(script, x) for x in xs]
    given += [f"{key}={_plain(script, value)}" for key, value in options.items()]
    return f"{script.name(function)}({', '.join(given)})"


def _plain(script: Script, x: Any) -> str:
    if isinstance(x, float) and script.kind.kind in "fc":
        return script.name(np.asarray(x, script.kind))
    parts = x if isinstance(x, tuple) else (x,)
    if all(isinstance(part, (int, float, str, slice, type(None), np.generic)) for part in parts):
        return script.name(x)
    raise _Opaque


_added_up = np.add.reduce


def _written_out(x: Any, shape: tuple[int, ...]) -> Any:
    found = np.empty(shape, x.dtype)
    found.fill(x)
    return found


def _sigmoid(x: Any) -> Any:
    """1/(1 + exp(-x)) in four passes; as steady as a formula with two branches until the result is no normal number."""
    if not isinstance(x, np.ndarray):
        return x.dtype.type(1 / (1 + np.exp(-np.float64(x))))
    found = np.negative(x)
    np.exp(found, out=found)
    found += 1
    return np.reciprocal(found, out=found)


def _sigmoid_of_negative(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return _sigmoid(-x)
    found = np.exp(x)
    found += 1
    return np.reciprocal(found, out=found)


_PRECISE = {
    **{name: getattr(math, name) for name in ("exp", "expm1", "tanh", "log", "log1p", "sin", "cos")},
    "arctan": math.atan,
}


def _of_scalars(name: str, function: Any) -> Any:
    """The function, which for one number goes through Python's own: float32 results are rounded from doubles."""
    precise = _PRECISE.get(name)
    if precise is None:
        return function

    def chosen(x: Any, function: Any = function, precise: Any = precise) -> Any:
        kind = x.__class__
        if kind is np.float32 or kind is np.float64:
            try:
                return kind(precise(x))
            except (ValueError, OverflowError):
                return function(x)
        return function(x)

    return chosen


def _operator(sign: str, swapped: bool = False) -> Any:
    def method(self: _Spy, other: Any) -> _Spy:
        text = other.text if isinstance(other, _Spy) else _plain(self.script, other)
        left, right = (text, self.text) if swapped else (self.text, text)
        return _Spy(self.script, f"({left} {sign} {right})", None)

    return method


class _Spy:
    """A stand-in for an operand, which writes down what is done to it."""

    __slots__ = ("known", "script", "text")

    def __init__(self, script: Script, text: str, shape: Any) -> None:
        self.script = script
        self.text = text
        self.known = shape

    @property
    def shape(self) -> Any:
        if self.known is None:
            raise _Opaque
        return self.known

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __bool__(self) -> bool:
        raise _Opaque

    def __getitem__(self, index: Any) -> _Spy:
        return _Spy(self.script, f"{self.text}[{_plain(self.script, index)}]", None)

    def __neg__(self) -> _Spy:
        return _Spy(self.script, f"(-{self.text})", None)

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")
    __eq__, __ne__ = _operator("=="), _operator("!=")
    __and__, __or__ = _operator("&"), _operator("|")

    def __hash__(self) -> int:
        return id(self)


def _joined(script: Script, node: Node, names: dict[Node, str]) -> str | None:
    """Two operations as one, where that is faster: a product with a step function as one with truth values (relu goes
    back so), and the sigmoid of a negative.
    """
    if node.primitive.name == "sigmoid" and node.args[0].primitive.name == "neg" and script.kind == np.float32:
        return f"{script.name(_sigmoid_of_negative)}({names[node.args[0].args[0]]})"
    if node.primitive.name != "mul" or script.kind.kind != "f":
        return None
    for step, other in (node.args, reversed(node.args)):
        if step.primitive.name == "step" and other.primitive.name != "step":
            below = f"({names[step.args[0]]} <= 0)"
            return f"({names[other]} * {script.name(np.logical_not)}{below})"
    return None


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


def straight(script: Script, given: dict[Node, str], order: Sequence[Node], outputs: Sequence[Node]) -> list[str]:
    """Write the lines for some nodes; the names of the outputs.

    What is used once and is short is written where it is used.
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
    for node in order:
        if node in names:
            continue
        if node not in outputs and _left_to_numpy(node, users.get(node, [])):
            names[node] = names[node.args[0]]
            continue
        if node.primitive is CONSTANT:
            names[node] = script.number(node)
            continue
        text = _joined(script, node, names)
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
