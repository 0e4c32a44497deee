"""Python source for a program on arrays: one function with a line for each step.

The text of an operation is read off its implementation: it runs once on operands that write down what is done to them
(`Spy`), and what cannot be written down is called by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.eager._engine import numpy_kernels
from gradcli.execution import generated
from gradcli.execution.namespaces import namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, Node, reachable

Array = Any


class StraightLine:
    """A straight line of operations from some nodes of a graph to others."""

    __slots__ = ("functions", "inputs", "order", "outputs")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        known = set(inputs)
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.order = [node for node in reachable(outputs, inputs) if node not in known]
        self.functions: dict[Any, Any] = {}

    def function(self, kind: np.dtype[Any]) -> Callable[..., list[Array]]:
        """A function from the arrays of the inputs to those of the outputs."""
        value = self.functions.get(kind)
        if value is None:
            script = FunctionSource(kind)
            names = [f"v{i}" for i in range(len(self.inputs))]
            results = straight(script, dict(zip(self.inputs, names, strict=True)), self.order, self.outputs)
            value = self.functions[kind] = script.function("value", ", ".join(names), f"return [{', '.join(results)}]")
        return value  # type: ignore[no-any-return]

    def on_operands(
        self, kind: np.dtype[Any], values: Sequence[Any], lift: Callable[[Any], Any], apply: Callable[..., Any]
    ) -> list[Any]:
        """The results on operands: `lift` makes one of an array, `apply` applies an operation."""
        known = dict(zip(self.inputs, values, strict=True))
        for node in self.order:
            if node.primitive is CONSTANT:
                known[node] = lift(np.full(node.shape, number_of(node, kind)))
            else:
                known[node] = apply(node.primitive, tuple([known[arg] for arg in node.args]), node.params)
        return [known[result] for result in self.outputs]


_REDUCTIONS = {"sum": numpy_kernels.sums, "max": numpy_kernels.largest}
# kernels that get the general function as their first argument
_ALONG = {"take_along_axis": numpy_kernels.taken_along, "put_along_add": numpy_kernels.put_along}

_REPEATED = ("broadcast", CONSTANT.name)  # what may be left to the operations that use it


class _Opaque(Exception):
    """An `impl` did something that cannot be written down."""


def written(
    script: FunctionSource, impl: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]
) -> str | None:
    """What an `impl` does as text, each part of it once; None where it cannot be written down."""
    spies = [_Spy(script, arg, shape) for arg, shape in zip(args, shapes, strict=True)]
    script.parts = []
    try:
        result = impl(_ObservedNamespace(script), *spies, **params)
    except Exception:  # whatever a stand-in cannot do, the function itself can
        return None
    return _shared(script, result.text) if isinstance(result, _Spy) else None


def _shared(script: FunctionSource, text: str) -> str:
    """Give parts that occur several times a name where they occur first."""
    for part in sorted(set(script.parts), key=len, reverse=True):
        if text.count(part) > 1:
            before, rest = text.split(part, 1)
            name = f"c{script.shared}"
            script.shared += 1
            text = f"{before}({name} := {part}){rest.replace(part, name)}"
    return text


class _ObservedNamespace:
    """The namespace as an `impl` under observation sees it."""

    def __init__(self, script: FunctionSource) -> None:
        self._script = script

    def __getattr__(self, name: str) -> Any:
        script = self._script

        def called(*xs: Any, **options: Any) -> Any:
            if not any(isinstance(x, _Spy) for x in xs):
                raise _Opaque
            return _Spy(script, _called(script, name, xs, options), None, True)

        return called


def _called(script: FunctionSource, name: str, xs: tuple[Any, ...], options: dict[str, Any]) -> str:
    texts = [x.text if isinstance(x, _Spy) else None for x in xs]
    if name in ("reshape", "transpose") and not options and len(xs) == 2 and isinstance(xs[0], _Spy):
        return f"{texts[0]}.{name}({script.name(tuple(xs[1]))})"
    if name == "sum" and script.backward and options == {"axis": (-2,)} and xs[0].known and len(xs[0].known) == 2:
        return f"{script.name(numpy_kernels.column_sums)}({texts[0]})"
    if name == "cast":
        if xs[1] != "float":
            raise _Opaque
        return f"{texts[0]}.astype({script.name(script.kind)})"
    function, arguments = getattr(script.xp, name), []
    if name in _REDUCTIONS and "axis" in options and set(options) <= {"axis", "keepdims"}:
        function = _REDUCTIONS[name]
    elif name == "broadcast_to" and script.backward:
        function = numpy_kernels.repeated
    elif name in _ALONG:
        function, arguments = _ALONG[name], [script.name(function)]
    arguments += [x.text if isinstance(x, _Spy) else _plain(script, x) for x in xs]
    arguments += [f"{key}={_plain(script, value)}" for key, value in options.items()]
    return f"{script.name(function)}({', '.join(arguments)})"


def _plain(script: FunctionSource, x: Any) -> str:
    if isinstance(x, float) and script.kind.kind in "fc":
        return script.name(np.asarray(x, script.kind))
    parts = x if isinstance(x, tuple) else (x,)
    if all(isinstance(part, (int, float, str, slice, type(None), np.generic)) for part in parts):
        return script.name(x)
    raise _Opaque


def _operator(sign: str, swapped: bool = False) -> Any:
    def method(self: _Spy, other: Any) -> _Spy:
        text = other.text if isinstance(other, _Spy) else _plain(self.script, other)
        left, right = (text, self.text) if swapped else (self.text, text)
        return _Spy(self.script, f"({left} {sign} {right})", None, True)

    return method


class _Spy:
    """A stand-in for an operand, which writes down what is done to it."""

    __slots__ = ("known", "script", "text")

    def __init__(self, script: FunctionSource, text: str, shape: Any, part: bool = False) -> None:
        self.script = script
        self.text = text
        self.known = shape
        if part:
            script.parts.append(text)

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
        return _Spy(self.script, f"{self.text}[{_plain(self.script, index)}]", None, True)

    def __neg__(self) -> _Spy:
        return _Spy(self.script, f"(-{self.text})", None, True)

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")
    __eq__, __ne__ = _operator("=="), _operator("!=")
    __and__, __or__ = _operator("&"), _operator("|")

    def __hash__(self) -> int:
        return id(self)


class FunctionSource:
    """Lines of a function, and the objects that they name."""

    def __init__(self, kind: np.dtype[Any], prefix: str = "k") -> None:
        self.kind = kind
        self.prefix = prefix
        name = "float64" if kind == np.float64 else "complex128" if kind.kind == "c" else "float32"
        self.xp = namespace("numpy", name)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.known: dict[int, str] = {}
        self.parts: list[str] = []  # of the text that is being written: what may occur several times
        self.shared = 0  # names given to such parts
        self.turned: set[Node] = set()  # products that are to lie column by column
        self.backward = False  # whether these are gradients: their sums may be taken in any order

    def name(self, value: Any) -> str:
        """A name for an object."""
        name = self.known.get(id(value))
        if name is None:
            name = self.known[id(value)] = f"{self.prefix}{len(self.names)}"
            self.names[name] = value
        return name

    def number(self, node: Node, alone: bool = False) -> str:
        """The text of a constant of the graph; `alone`: as one number where it has a shape."""
        value = number_of(node, self.kind)
        return self.name(np.broadcast_to(value, () if alone else node.shape) if node.shape else value)

    def operation(self, node: Node, args: Sequence[str]) -> str:
        """The text of one operation on named operands."""
        primitive = node.primitive
        if primitive.name == "cast" and node.params["kind"] == "float":
            return f"{args[0]}.astype({self.name(self.kind)})"
        if primitive.name == "matmul" and all(len(arg.shape) == 2 for arg in node.args):
            product = self.name(numpy_kernels.product(node.shape[0], node.args[0].shape[1], node.shape[1]))
            if node in self.turned:
                return f"{product}({args[1]}.T, {args[0]}.T).T"
            return f"{product}({args[0]}, {args[1]})"
        pointwise = primitive.pointwise
        shapes = [None if pointwise else arg.shape for arg in node.args]
        params = node.params if pointwise else {**node.params, "ranks": tuple([len(arg.shape) for arg in node.args])}
        return self.applied(primitive, args, shapes, params)

    def applied(self, primitive: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of a declared operation on named operands."""
        if primitive.name == "sigmoid" and self.kind == np.float32:
            return f"{self.name(numpy_kernels.sigmoid)}({args[0]})"
        return self.text(primitive.impl, args, shapes, params)

    def text(self, impl: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]) -> str:
        """The text of an `impl` on named operands: what it does, or a call of it."""
        text = written(self, impl, args, shapes, params)
        if text is not None:
            return text
        arguments = ", ".join([*args, *[f"{key}={self.name(value)}" for key, value in params.items()]])
        return f"{self.name(impl)}({self.name(self.xp)}, {arguments})"

    def function(self, title: str, arguments: str, end: str) -> Any:
        """The finished function."""
        body = "\n".join(f"    {line}" for line in [*self.lines, end])
        scope = {**self.names, "__name__": "gradcli.eager.generated"}
        return generated.function(f"def {title}({arguments}):\n{body}\n", scope, title)


def _joined(script: FunctionSource, node: Node, names: dict[Node, str], users: dict[Node, list[Node]]) -> str | None:
    """Two operations as one: a product with a step function, or with a number or 0, is a choice (relu and clamp go back
    so); in a gradient, the sums of products along rows are products of rows, and what is repeated is scaled before.
    """
    if node.primitive.name not in ("mul", "sum") or script.kind.char not in "fd":
        return None
    for left, right in (node.args, reversed(node.args)) if len(node.args) == 2 else ((None, node.args[0]),):
        inner = right.args if script.backward and right.primitive.name == "mul" and len(users[right]) == 1 else ()
        if left is None:
            short = node.params["axis"] == (-1,) and right.shape[-1] <= numpy_kernels.ROW
            if inner and short and not any(x.primitive.name in _REPEATED for x in inner):
                return f"{script.name(np.vecdot)}({names[inner[0]]}, {names[inner[1]]})"
        elif inner and left.primitive.name == "broadcast" and names[left] == names[left.args[0]]:
            for x, number in (inner, reversed(inner)):
                if number.primitive is CONSTANT and names[right].startswith("("):
                    return f"(({names[left]} * {names[number]}) * {names[x]})"
        elif left.primitive.name == "step" and right.primitive.name != "step":
            through = f"{script.name(np.logical_not)}({names[left.args[0]]} <= 0)"
            return f"{script.name(numpy_kernels.passed)}({names[right]}, {through})"
        elif left.primitive.name == "where" and _is_number(left.args[2], 0) and left.args[1].primitive is CONSTANT:
            factor = "" if _is_number(left.args[1], 1) else f" * {script.number(left.args[1])}"
            return f"{script.name(numpy_kernels.passed)}({names[right]}{factor}, {names[left.args[0]]})"
    return None


def _is_number(node: Node, value: int) -> bool:
    return node.primitive is CONSTANT and node.type.kind == "float" and node.params["value"] == value


def _left_to_numpy(node: Node, users: Sequence[Node]) -> bool:
    """Whether a broadcast or the shape of a number may be left to the operations that use it.

    Each of them must have another operand of the whole shape.
    """
    if node.primitive.name != "broadcast" and not (node.primitive is CONSTANT and node.shape):
        return False
    for user in users:
        others = [arg for arg in user.args if arg is not node]
        if not user.primitive.pointwise or len(others) != 1 or len(user.args) != 2:
            return False
        if others[0].primitive.name == "broadcast" or others[0].primitive is CONSTANT:
            return False
    return True


def straight(
    script: FunctionSource, named: dict[Node, str], order: Sequence[Node], outputs: Sequence[Node]
) -> list[str]:
    """Write the lines for some nodes; the names of the outputs.

    What is used once and is short is written where it is used.
    """
    names = dict(named)
    users: dict[Node, list[Node]] = {}
    for node in order:
        for arg in node.args:
            users.setdefault(arg, []).append(node)
    last = set(outputs)
    for node in order:
        if node in names:
            continue
        left = node not in last and _left_to_numpy(node, users[node])
        if node.primitive is CONSTANT:
            names[node] = script.number(node, left)
            continue
        if left:
            names[node] = names[node.args[0]]
            continue
        text = _joined(script, node, names, users)
        if text is None:
            text = script.operation(node, [names[arg] for arg in node.args])
        if node not in last and len(users[node]) == 1 and node.primitive.pointwise and len(text) < 200:
            names[node] = text
            continue
        name = f"t{len(script.lines)}"
        script.lines.append(f"{name} = {text}")
        names[node] = name
    return [names[node] for node in outputs]


def number_of(node: Node, kind: np.dtype[Any]) -> Any:
    """A constant of the graph in a format."""
    if node.type.kind == "bool":
        return np.bool_(node.params["value"])
    value = nearest_float(node.params["value"])
    if kind.kind in "fc":
        return kind.type(value)
    return kind.type(int(value)) if kind.kind in "iu" and value == int(value) else np.float32(value)
