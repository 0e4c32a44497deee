"""A seed goes in, a smooth program comes out, as the text of a script and as a graph.

Every operation is smooth on all real numbers and keeps values of moderate size, so a derivative exists everywhere and
differences of the value are sharp. Parts are used more than once, so gradients add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.types import broadcast_shapes
from gradcli.language.parser import parse
from gradcli.lowering import lower

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


class Built(NamedTuple):
    """The graph of a program."""

    output: Node
    leaves: dict[str, Node]


def built(program: Program) -> Built:
    lowered = lower(parse(program.text), at=program.values).program
    return Built(lowered.outputs[0], {name: lowered.leaves[name].node for name in program.values})
