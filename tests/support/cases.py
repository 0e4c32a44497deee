"""A declaration goes in, programs that call it at points of its domain come out; everything is read from the declaration.

A `Case` is a script such as `clamp(x0, x1, x2)`, with a shape and an interval for each leaf. Operands come from `sample`,
further calls from `examples`: their literals become leaves, their static arguments stay. An operation that no
script can call gets its cases from the graphs in which it occurs (`inner_cases`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.domain import Interval
from gradcli.graph.node import CONSTANT, DATA, LEAF, Builder, Node, reachable
from gradcli.graph.primitive import signature_of
from gradcli.graph.types import Type
from gradcli.language import syntax as s
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.primitives import catalogue, functions
from gradcli.transforms import derivatives
from tests.support import numpy_reading
from tests.support.case_tables import DEFAULT, INNER_SHAPES, MORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape

GRID = 2.0**-10  # points are short binary fractions: exact in every oracle
POSITIONS = ("indices", "index")  # operands that are positions, never differentiated
LABELS = (*POSITIONS, "target")  # and operands that may be


class Leaf(NamedTuple):
    """What one leaf of a case is drawn from."""

    shape: Shape
    interval: Interval
    form: str | None = None  # "positive definite", "symmetric", ...


class Case:
    """A script that calls one operation, and where its leaves come from."""

    def __init__(self, name: str, text: str, leaves: Mapping[str, Leaf]) -> None:
        self.name = name
        self.text = text
        self.leaves = dict(leaves)

    def __repr__(self) -> str:
        shapes = ",".join(f"{name}{list(leaf.shape)}" for name, leaf in self.leaves.items())
        return f"{self.text} with {shapes}"

    def points(self, count: int, seed: int = 1) -> dict[str, np.ndarray]:
        """Short binary fractions inside the intervals, `count` of them in front of each leaf's own shape."""
        random = np.random.default_rng([seed, len(self.text), *map(ord, self.text)])
        return {name: draw(random, leaf, count) for name, leaf in self.leaves.items()}

    def one(self, seed: int = 1, number: int = 0) -> dict[str, np.ndarray]:
        """One point."""
        return {name: values[number] for name, values in self.points(number + 1, seed).items()}

    def lowered(self) -> Any:
        """The program of the script, fresh: no other test has seen its builder."""
        return lower(parse(self.text), at={name: np.zeros(leaf.shape) for name, leaf in self.leaves.items()})

    def nodes(self) -> tuple[list[Node], dict[str, Node]]:
        """The outputs and the leaves of the program."""
        program = self.lowered().program
        return list(program.outputs), {name: program.leaves[name].node for name in self.leaves}


def draw(random: Any, leaf: Leaf, count: int) -> np.ndarray:
    """Values for one leaf, on the grid, off the ends of its interval."""
    interval = leaf.interval
    low = max(interval.low, interval.high - 4 if np.isfinite(interval.high) else -2.0)
    high = min(interval.high, low + 4)
    margin = (high - low) / 64
    values = random.uniform(low + margin, high - margin, (count, *leaf.shape))
    values = np.round(values / GRID) * GRID
    for point in values:
        while len(np.unique(point)) < point.size:  # equal entries are a tie of everything that puts them in order
            point[...] = np.round(random.uniform(low + margin, high - margin, leaf.shape) / GRID) * GRID
    square = len(leaf.shape) >= 2 and leaf.shape[-1] == leaf.shape[-2]
    if leaf.form == "positive definite":
        values = np.round((values @ np.swapaxes(values, -1, -2) + np.eye(leaf.shape[-1])) / GRID) * GRID
    elif leaf.form == "symmetric":
        values = values + np.swapaxes(values, -1, -2)
    elif leaf.form is not None:
        raise AssertionError(f"a sample of an unknown form: {leaf.form}")
    elif square:  # well away from singular matrices
        values = values + 3 * np.eye(leaf.shape[-1]) * np.sign(np.trace(values, axis1=-2, axis2=-1))[..., None, None]
    return values


# --- cases of what scripts call -------------------------------------------------------------------------------


@cache
def script_cases(name: str) -> tuple[Case, ...]:
    """The cases of a function that scripts call."""
    primitive = catalogue()[name]
    found: dict[str, Case] = {}
    for case in (*_sampled(primitive), *_further(primitive), *_exemplary(primitive)):
        found.setdefault(repr(case), case)
    return tuple(found.values())


def _sampled(primitive: Primitive) -> Iterator[Case]:
    """The plain call on operands from `sample`, and calls with the usual static arguments."""
    if primitive.internal or not primitive.sample or None in primitive.sample:
        return
    signature = signature_of(primitive)
    operands = [name for name in signature.names if name not in primitive.static]
    if any(name in POSITIONS for name in operands):
        return
    required = [n for n in signature.names if n in primitive.static and n not in signature.defaults]
    if required or (
        len(operands) > len(primitive.sample)
        and not all(n in signature.defaults for n in operands[len(primitive.sample) :])
    ):
        return
    leaves = {f"x{i}": _leaf(primitive, i, (4,)) for i in range(min(len(operands), len(primitive.sample)))}
    if not leaves:
        leaves = {f"x{i}": _leaf(primitive, i, (4,)) for i in range(len(primitive.sample))}
    call = ", ".join(leaves)
    quick = f"{primitive.name}_derivative" not in catalogue() or primitive.name.startswith("sinc")
    if quick:
        yield Case(primitive.name, f"{primitive.name}({call})", leaves)
    if primitive.pointwise:
        scalars = {name: leaf._replace(shape=()) for name, leaf in leaves.items()}
        yield Case(primitive.name, f"{primitive.name}({call})", scalars)
        if len(leaves) > 1 and quick:  # broadcasting
            shapes: list[Shape] = [(2, 1), (3,), ()]
            mixed = {n: leaf._replace(shape=shapes[i % 3]) for i, (n, leaf) in enumerate(leaves.items())}
            yield Case(primitive.name, f"{primitive.name}({call})", mixed)
    rank = max(len(leaf.shape) for leaf in leaves.values())
    extras = {
        "axis": ["axis=0", "axis=-1"],
        "keepdims": ["keepdims=True"],
        "ddof": ["ddof=1"],
        "k": ["k=1", "k=-1"],
    }
    if rank > 1:
        extras["axis"].append("axis=(0, 1)")
    for static, texts in extras.items():
        for text in texts if static in primitive.static else ():
            case = Case(primitive.name, f"{primitive.name}({call}, {text})", leaves)
            if is_refused_by_numpy(case):
                REFUSED.setdefault(primitive.name, []).append(case)
            elif _lowers(case):
                yield case


REFUSED: dict[str, list[Case]] = {}  # calls with static arguments that NumPy does not take


def is_refused_by_numpy(case: Case) -> bool:
    """Whether the function of this name in NumPy raises for the call."""
    try:
        numpy_reading.read(case.text, case.one())
    except (TypeError, ValueError):
        return True
    except KeyError:
        pass
    return False


def _lowers(case: Case) -> bool:
    try:
        case.lowered()
    except GradcliError:
        return False
    return True


def _leaf(primitive: Primitive, position: int, shape: Shape) -> Leaf:
    sample = primitive.sample[min(position, len(primitive.sample) - 1)] if primitive.sample else DEFAULT
    if isinstance(sample, Interval):
        return Leaf(shape, sample)
    if sample is None:
        return Leaf(shape, DEFAULT)
    return Leaf(sample[1], sample[0], *sample[2:])


def _further(primitive: Primitive) -> Iterator[Case]:
    for text, leaves in MORE.get(primitive.name, ()):
        yield Case(primitive.name, text, {name: Leaf(*leaf) for name, leaf in leaves.items()})


def _exemplary(primitive: Primitive) -> Iterator[Case]:
    """The calls in `examples`, with leaves in place of their literals."""
    for text, _ in primitive.examples:
        case = _generalised(primitive, text)
        if case is not None and _asks_positions(case):
            case = _generalised(primitive, text, LABELS)
        if case is not None:
            yield case


def _asks_positions(case: Case) -> bool:
    try:
        Tape(case.nodes()[0]).run(case.one())
    except GradcliError as problem:
        return problem.diagnostics[0].code == "GC406"
    return False


def _generalised(primitive: Primitive, text: str, fixed: Sequence[str] = POSITIONS) -> Case | None:
    """The example with leaves in place of the literals that stand for operands, but not for `fixed` ones."""
    names = functions()
    leaves: dict[str, Leaf] = {}
    edits: list[tuple[int, int, str]] = []
    for statement in parse(text).statements:
        stack: list[Any] = [statement]
        while stack:
            node = stack.pop()
            stack.extend(s.children(node))
            if isinstance(node, s.Call) and names.get(node.function.id) is primitive:
                _literals(primitive, node, leaves, edits, fixed)
    if not leaves:
        return None
    for start, stop, name in sorted(edits, reverse=True):
        text = text[:start] + name + text[stop:]
    return Case(primitive.name, text, leaves)


def _literals(
    primitive: Primitive,
    call: s.Call,
    leaves: dict[str, Leaf],
    edits: list[tuple[int, int, str]],
    fixed: Sequence[str],
) -> None:
    signature = signature_of(primitive)
    given = [
        (signature.names[i] if i < len(signature.names) else signature.variadic, arg) for i, arg in enumerate(call.args)
    ]
    given += [(keyword.name, keyword.value) for keyword in call.keywords]
    position = 0
    for parameter, argument in given:
        if parameter in primitive.static:
            continue
        parts = argument.items if isinstance(argument, s.Tuple) else (argument,)
        for part in parts:
            shape = literal_shape(part)
            if shape is not None and parameter not in fixed:
                name = f"x{len(leaves)}"
                leaves[name] = _leaf(primitive, position, shape)._replace(shape=shape)
                if leaves[name].form and len(shape) < 2:
                    leaves[name] = leaves[name]._replace(form=None)
                edits.append((part.span.column - 1, part.span.end_column - 1, name))
        position += 1


def literal_shape(node: Any) -> Shape | None:
    """The shape of a literal number or nested list; None for anything else."""
    while isinstance(node, s.Unary) and node.op in "+-":
        node = node.operand
    if isinstance(node, s.Number):
        return ()
    if isinstance(node, s.List):
        inner = [literal_shape(item) for item in node.items]
        if inner and inner[0] is not None and all(shape == inner[0] for shape in inner):
            return (len(inner), *inner[0])
    return None


# --- cases of what only graphs contain --------------------------------------------------------------------------


class InnerCase(Case):
    """One operation of a graph on leaves of its own; truth values and positions are constants of the program."""

    def __init__(self, primitive: Primitive, types: Sequence[Type], params: Mapping[str, Any], values: Sequence[Any],
                 ) -> None:  # fmt: skip
        self.primitive = primitive
        self.types = tuple(types)
        self.params = dict(params)
        self.fixed = {i: values[i] for i, type in enumerate(types) if type.kind != "float"}
        for i, type in enumerate(types):
            if type.kind == "bool":  # every combination of truth values
                self.fixed[i] = (np.arange(type.size).reshape(type.shape) >> i) & 1 == 0
        self.start = {f"x{i}": np.asarray(values[i], float) for i, t in enumerate(types) if t.kind == "float"}
        leaves = {
            f"x{i}": _leaf(primitive, i, type.shape)._replace(shape=type.shape)
            for i, type in enumerate(types)
            if type.kind == "float"
        }
        arguments = ", ".join([str(type) for type in types] + [f"{k}={v}" for k, v in params.items()])
        super().__init__(primitive.name, f"{primitive.name}({arguments})", leaves)

    def points(self, count: int, seed: int = 1) -> dict[str, np.ndarray]:
        if self.primitive.sample:
            return super().points(count, seed)
        random = np.random.default_rng([seed, len(self.text), *map(ord, self.text)])
        found = {}
        for name, values in self.start.items():
            near = values + random.integers(-64, 65, (count, *values.shape)) * GRID
            if is_symmetric(values):
                near = (near + np.swapaxes(near, -1, -2)) / 2
            signs = random.choice([-1.0, 1.0], (count,) + (1,) * values.ndim)
            found[name] = np.round(near / GRID) * GRID * signs
        return found

    def lowered(self) -> Any:
        raise TypeError("an operation of graphs has no script")

    def nodes(self) -> tuple[list[Node], dict[str, Node]]:
        builder = Builder(catalogue())
        args, leaves = [], {}
        for i, type in enumerate(self.types):
            if i in self.fixed:
                value = np.asarray(self.fixed[i]).astype(bool if type.kind == "bool" else np.int64)
                args.append(builder.array(f"fixed{i}", value, type))
            else:
                x = leaves[f"x{i}"] = builder.leaf(f"x{i}", type.shape)
                if is_symmetric(self.start[f"x{i}"]):  # LAPACK reads one triangle, so nothing else ever comes here
                    x = builder.call("mul", builder.call("add", x, x.mT), Fraction(1, 2))
                args.append(x)
        output = builder.apply(self.primitive, tuple(args), dict(self.params))
        builder.close()
        return [output], leaves


def is_symmetric(values: np.ndarray) -> bool:
    """Whether a value is made of symmetric matrices, larger than 1 by 1 and not diagonal."""
    if values.ndim < 2 or values.shape[-1] < 2 or not np.array_equal(values, np.swapaxes(values, -1, -2)):
        return False
    return bool(np.any(np.triu(values, 1)))


@cache
def _harvest() -> dict[str, dict[Any, InnerCase]]:
    """Every operation in the values and gradients, of first and second order, of all script cases."""
    found: dict[str, dict[Any, InnerCase]] = {}
    for name, primitive in catalogue().items():
        for case in script_cases(name) if not primitive.internal else ():
            for node, values in _occurrences(case):
                if node.primitive in (LEAF, DATA, CONSTANT):
                    continue
                key = (tuple(arg.type for arg in node.args), tuple(sorted(node.params.items(), key=str)))
                known = found.setdefault(node.primitive.name, {})
                if key not in known and len(known) < 12 and sum(arg.type.size for arg in node.args) <= 40:
                    types = [arg.type for arg in node.args]
                    known[key] = InnerCase(node.primitive, types, node.params, [values[arg] for arg in node.args])
    return found


def _occurrences(case: Case) -> list[tuple[Node, Any]]:
    outputs, leaves = case.nodes()
    try:
        nodes = _derivative_nodes(outputs, list(leaves.values()))
    except GradcliError:
        nodes = outputs
    values = Tape(nodes).run_all({**case.one(), **_seeds(nodes)}, backend="numpy")
    return [(node, values) for node in reachable(nodes)]


def _seeds(nodes: Sequence[Node]) -> dict[str, np.ndarray]:
    """Values of the leaves that derivations made."""
    random = np.random.default_rng(5)
    return {
        node.params["name"]: np.round(random.uniform(-2, 2, node.type.shape) / GRID) * GRID
        for node in reachable(nodes)
        if node.primitive is LEAF and node.params["name"].startswith("~")
    }


def _derivative_nodes(outputs: Sequence[Node], leaves: Sequence[Node]) -> list[Node]:
    floats = [output for output in outputs if output.type.kind == "float"]
    if not floats:
        return list(outputs)
    with building(floats[0].builder, reachable([*outputs, *leaves])) as builder:
        seeds = [builder.fresh_leaf(output.type) for output in floats]
        first = derivatives.vjp(floats, seeds, leaves)
        more = [builder.fresh_leaf(leaf.type) for leaf in leaves]
        second = derivatives.vjp(first, more, leaves)
        pushed = derivatives.jvp(floats, leaves, more)
    return [*outputs, *first, *second, *pushed]


@cache
def inner_cases(name: str) -> tuple[InnerCase, ...]:
    """The cases of an operation that only graphs contain; of several at most three, of different forms."""
    if catalogue()[name].static == ("orders",):
        return ()
    known = list(_harvest().get(name, {}).values())
    known += [
        InnerCase(catalogue()[name], [Type("float", shape) for shape in shapes], {}, [np.zeros(s) for s in shapes])
        for shapes in INNER_SHAPES.get(name, ())
    ]
    sample = catalogue()[name].sample
    if not known and sample and all(isinstance(one, tuple) for one in sample):
        types = [Type("float", one[1]) for one in sample]
        known.append(InnerCase(catalogue()[name], types, {}, [np.zeros(type.shape) for type in types]))
    sizes = {case: sum(type.size for type in case.types) for case in known}
    known.sort(key=lambda case: (sizes[case] > 24, -len(case.text)))
    shapes = [list(one) for one in INNER_SHAPES.get(name, ())]
    asked = [
        case for case in known if [list(type.shape) for type in case.types] in [list(map(list, s)) for s in shapes]
    ]
    known = asked + known[:1] + [case for case in known[1:] if sizes[case] <= 24]
    known = list(dict.fromkeys(known))
    return tuple(known[:3])


@cache
def cases(name: str) -> tuple[Case, ...]:
    """The cases of any operation, those that scripts call first."""
    return script_cases(name) if script_cases(name) else inner_cases(name)


def public() -> list[str]:
    """The names of all functions that a script may call."""
    return [name for name, primitive in catalogue().items() if not primitive.internal]


def internal() -> list[str]:
    """The names of all operations that only graphs contain."""
    return [name for name, primitive in catalogue().items() if primitive.internal]
