"""A seed goes in, a smooth program comes out, twice: as the text of a script, and built node by node without any text.

Every operation is smooth on all real numbers and keeps values of moderate size, so a derivative exists everywhere and
differences of the value are sharp. Parts are used more than once, so gradients add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.builder import Builder
from gradcli.graph.types import broadcast_shapes
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

UNARY = (
    "sin({})", "cos({})", "tanh({})", "atan({})", "sigmoid({})", "softplus({})", "erf({})", "asinh({})", "gelu({})",
    "silu({})", "logsigmoid({})", "log(1 + {}**2)", "sqrt(1 + {}**2)", "exp(tanh({}))", "1/(1 + {}**2)", "-{}",
    "expm1(sin({}))", "log1p({}**2)", "sinc({})", "{}*tanh({})", "cbrt(2 + sin({}))", "lgamma(2 + tanh({}))",
)  # fmt: skip
BINARY = (
    "({} + {})", "({} - {})", "({}*{})", "{}/(2 + cos({}))", "atan2({}, 3 + sin({}))", "hypot({}, 1 + {}**2)",
    "logaddexp({}, {})", "(2 + sin({}))**tanh({})", "where({} > -9, {}, 0)", "0.5*{} + {}/3", "xlogy({}, 2 + tanh({}))",
)  # fmt: skip
REDUCTIONS = (
    "sum({}, axis={})", "mean({}, axis={})", "logsumexp({}, axis={})", "prod(tanh({}), axis={})",
    "var({}, axis={})", "norm(2 + sin({}), axis={})", "logsumexp(-{}, axis={})", "prod(-tanh({}), axis={})",
)  # fmt: skip
ARRAYS = (
    "softmax(-{})",
    "log_softmax(-{})",
    "cumprod(-sin({}), axis=-1)",
    "softmax({})",
    "cumsum({}, axis=-1)",
    "cumprod(sin({}), axis=-1)",
    "log_softmax({})",
    "flip({}, axis=-1)",
)
SQUARE = "4*eye(2) + tanh({} @ {}.T)"
MATRICES = (
    "tanh({} @ {}.T)", f"inv({SQUARE})", f"solve({SQUARE}, -{{}})", f"det(-({SQUARE}))", f"logdet({SQUARE})",
    f"expm(tanh(-({SQUARE})))", f"solve(({SQUARE}).T, {{}})", f"matrix_power({SQUARE}, 2)",
)  # fmt: skip
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3))


class Statement(NamedTuple):
    """`name = template` with other names in its holes; `shape` is that of its value."""

    name: str
    template: str
    args: tuple[str, ...]
    shape: Shape

    @property
    def text(self) -> str:
        return f"{self.name} = {fill(self.template, self.args)}"


class Program(NamedTuple):
    """Leaves with their values, statements in order, and the names whose entries add up to the output."""

    values: dict[str, np.ndarray]
    statements: list[Statement]
    outputs: list[str]

    @property
    def text(self) -> str:
        total = " + ".join(f"sum({name})" for name in self.outputs)
        return "\n".join([*(statement.text for statement in self.statements), total])

    def values_list(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in self.values.items()}


def fill(template: str, args: tuple[str, ...]) -> str:
    holes = template.count("{}")
    return template.format(*(args * holes)[:holes]) if len(args) < holes else template.format(*args)


def make(seed: int, size: int | None = None, arrays: bool | None = None) -> Program:
    """The program of a seed: 3 to 14 statements on one to three leaves, with arrays in half of the programs."""
    random = np.random.default_rng([7, seed])
    with_arrays = bool(random.integers(2)) if arrays is None else arrays
    count = int(random.integers(1, 4))
    shapes = {f"x{i}": SHAPES[int(random.integers(3))] if with_arrays else () for i in range(count)}
    values = {name: np.round(random.uniform(-2, 2, shape) * 1024) / 1024 for name, shape in shapes.items()}
    pool: dict[str, Shape] = dict(shapes)
    statements = []
    for number in range(size or int(random.integers(3, 15))):
        name = f"t{number}"
        statement = _statement(random, name, pool)
        statements.append(statement)
        pool[name] = statement.shape
    used = {arg for statement in statements for arg in statement.args}
    outputs = [name for name in pool if name not in used] or [statements[-1].name]
    return Program(values, statements, outputs)


def _statement(random: Any, name: str, pool: dict[str, Shape]) -> Statement:
    names = list(pool)
    recent = names[-4:]

    def pick() -> str:
        among = recent if random.random() < 0.7 else names
        return str(among[int(random.integers(len(among)))])

    kind = random.random()
    x = pick()
    shape = pool[x]
    if shape and kind < 0.2:
        axis = int(random.integers(-len(shape), len(shape)))
        template = REDUCTIONS[int(random.integers(len(REDUCTIONS)))].replace("axis={}", f"axis={axis}")
        return Statement(name, template, (x,), tuple(n for i, n in enumerate(shape) if i != axis % len(shape)))
    if shape and kind < 0.35:
        return Statement(name, ARRAYS[int(random.integers(len(ARRAYS)))], (x,), shape)
    if shape == (2, 3) and kind < 0.45:
        template = MATRICES[int(random.integers(len(MATRICES)))]
        scalar = template.startswith(("det", "logdet"))
        return Statement(name, template, (x,), () if scalar else (2, 3) if template.startswith("solve") else (2, 2))
    if kind < 0.7:
        return Statement(name, UNARY[int(random.integers(len(UNARY)))], (x,), shape)
    y = pick()
    common = broadcast_shapes(shape, pool[y])
    if common is None:
        return Statement(name, "sin({})", (x,), shape)
    return Statement(name, BINARY[int(random.integers(len(BINARY)))], (x, y), common)


# --- the same without text ----------------------------------------------------------------------------------


class Direct:
    """Operands that build a graph as Python computes with them: a template is read by a table, not by the parser."""

    def __init__(self, program: Program) -> None:
        self.builder = Builder(catalogue())
        self.names: dict[str, Node] = {n: self.builder.leaf(n, v.shape) for n, v in program.values.items()}
        self.leaves = dict(self.names)
        for statement in program.statements:
            args = [self.names[arg] for arg in statement.args]
            self.names[statement.name] = self._built(statement, args)
        total = None
        for name in program.outputs:
            summed = self.call("sum", self.names[name])
            total = summed if total is None else self.call("add", total, summed)
        assert total is not None
        self.output = total
        self.builder.close()

    def call(self, name: str, *xs: Any, **params: Any) -> Any:
        """An operation of the catalogue on nodes and numbers, the way scripts call it."""
        primitive = catalogue()[name]
        if (primitive.pointwise and primitive.definition is None) or name in ("silu", "gelu"):
            shape = next(x.shape for x in xs if not isinstance(x, (int, float)))
            nodes = [self.builder.constant(x, shape) if isinstance(x, (int, float)) else x for x in xs]
            return primitive(*together(*nodes), **params)
        return primitive.call(*xs, **params) if primitive.call else primitive(*xs, **params)

    def _built(self, statement: Statement, args: list[Any]) -> Any:
        call, template = self.call, statement.template
        holes = template.count("{}")
        x, *rest = (args * holes)[: max(holes, 1)]
        y = rest[0] if rest else x
        if template in ("({} + {})", "({} - {})", "({}*{})"):
            return call({"+": "add", "-": "sub", "*": "mul"}[template.strip("({})").strip()], x, y)
        head, _, tail = template.partition("({}")
        if tail == ")" and head in catalogue():
            return call(head, x)
        if tail.startswith(", axis="):
            return call(head, x, axis=int(tail[7:-1]))

        def square(z: Any) -> Any:
            return call("power", z, n=2)

        special = {
            "log(1 + {}**2)": lambda: call("log", call("add", 1, square(x))),
            "sqrt(1 + {}**2)": lambda: call("sqrt", call("add", 1, square(x))),
            "exp(tanh({}))": lambda: call("exp", call("tanh", x)),
            "1/(1 + {}**2)": lambda: call("div", 1, call("add", 1, square(x))),
            "-{}": lambda: call("neg", x),
            "expm1(sin({}))": lambda: call("expm1", call("sin", x)),
            "log1p({}**2)": lambda: call("log1p", square(x)),
            "{}*tanh({})": lambda: call("mul", x, call("tanh", x)),
            "cbrt(2 + sin({}))": lambda: call("cbrt", call("add", 2, call("sin", x))),
            "lgamma(2 + tanh({}))": lambda: call("lgamma", call("add", 2, call("tanh", x))),
            "{}/(2 + cos({}))": lambda: call("div", x, call("add", 2, call("cos", y))),
            "atan2({}, 3 + sin({}))": lambda: call("atan2", x, call("add", 3, call("sin", y))),
            "hypot({}, 1 + {}**2)": lambda: call("hypot", x, call("add", 1, square(y))),
            "logaddexp({}, {})": lambda: call("logaddexp", x, y),
            "(2 + sin({}))**tanh({})": lambda: call("pow", call("add", 2, call("sin", x)), call("tanh", y)),
            "where({} > -9, {}, 0)": lambda: call("where", call("greater", x, -9), y, 0),
            "0.5*{} + {}/3": lambda: call("add", call("mul", 0.5, x), call("div", y, 3)),
            "xlogy({}, 2 + tanh({}))": lambda: call("xlogy", x, call("add", 2, call("tanh", y))),
            "tanh({} @ {}.T)": lambda: call("tanh", x @ x.mT),
        }
        for reduced in ("prod(tanh({})", "norm(2 + sin({})"):
            if template.startswith(reduced):
                inner = call("tanh", x) if reduced.startswith("prod") else call("add", 2, call("sin", x))
                return call(reduced[:4], inner, axis=int(template.split("axis=")[1][:-1]))
        if template.startswith("cumprod"):
            inner = call("sin", x)
            return call("cumprod", call("neg", inner) if "-sin" in template else inner, axis=-1)
        if "(-" in template and "axis=" in template:
            inner = call("neg", call("tanh", x) if "tanh" in template else x)
            return call(template.split("(")[0], inner, axis=int(template.split("axis=")[1][:-1]))
        if template in ("softmax(-{})", "log_softmax(-{})"):
            return call(template.split("(")[0], call("neg", x))
        if template in MATRICES[1:]:
            return self._matrix(template, x)
        return special[template]()

    def _matrix(self, template: str, x: Any) -> Any:
        """The functions of the matrix 4*I + tanh(x x.T)."""
        one = self.builder.call("unslice", self.builder.constant(1, (2,)), shape=(4,), start=(0,), step=(3,))
        eye = self.builder.call("reshape", one, shape=(2, 2))
        square = self.call("add", self.call("mul", 4, eye), self.call("tanh", x @ x.mT))
        table = {
            f"inv({SQUARE})": lambda: self.call("inv", square),
            f"solve({SQUARE}, -{{}})": lambda: self.call("solve", square, self.call("neg", x)),
            f"det(-({SQUARE}))": lambda: self.call("det", self.call("neg", square)),
            f"logdet({SQUARE})": lambda: self.call("logdet", square),
            f"expm(tanh(-({SQUARE})))": lambda: self.call("expm", self.call("tanh", self.call("neg", square))),
            f"solve(({SQUARE}).T, {{}})": lambda: self.call("solve", square.mT, x),
            f"matrix_power({SQUARE}, 2)": lambda: square @ square,
        }
        return table[template]()
