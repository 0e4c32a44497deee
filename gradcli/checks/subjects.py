"""What is judged in a script: a scalar, a target, and a claimed gradient each.

Every leaf of every output, every claim, and every parameter of every hand-written rule is one subject. An output that
is an array is judged through a fixed combination of its entries. The engine's derivatives are taken here, where no
oracle reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.floats import evaluated
from gradcli.checks.formatting import node_text
from gradcli.checks.report import Settings
from gradcli.graph.arrays import ArrayData, digest_of
from gradcli.graph.building import building
from gradcli.graph.node import Node, reachable
from gradcli.graph.node_text import kink_texts
from gradcli.language.comments.directives import output_line
from gradcli.language.syntax import FunctionDef
from gradcli.lowering.assigned_names import assigned_names
from gradcli.lowering.derived import written_derivative
from gradcli.primitives.arithmetic import mul
from gradcli.primitives.comparison import cast
from gradcli.primitives.movement import sum_
from gradcli.transforms import derivatives
from gradcli.transforms.surfaces import surfaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.domain import Interval
    from gradcli.graph.primitive import Kink
    from gradcli.lowering import Claim, HandRule, Lowered
    from gradcli.lowering.derived import Derived, Slot

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]


class Surface(NamedTuple):
    """A node that is zero where another one is not smooth, by the declaration of its operation."""

    node: Node
    zero: Node
    kink: Kink

    @property
    def where(self) -> str:
        """The equation in the program's own terms where that is short, else the declaration's words."""
        node, zero = self.node, self.zero
        sides = zero.args if zero.primitive.name == "sub" and set(zero.args) <= set(node.args) else (zero,)
        if zero in node.args or len(sides) == 2:
            return " = ".join([*map(node_text, sides), "0"][:2])
        return " and ".join(dict.fromkeys(self._texts()[0].removeprefix("where ").split(" and ")))

    @property
    def convention(self) -> str:
        """Which derivative is returned there, in the words of the declaration."""
        return self._texts()[1]

    def _texts(self) -> tuple[str, str]:
        return kink_texts(self.kink, [node_text(arg) for arg in self.node.args])


def surfaces_of(output: Node) -> list[Surface]:
    """The surfaces of every operation that an output needs; comparisons are zero where their sides meet."""
    return [Surface(*surface) for surface in surfaces(reachable([output]))]


@dataclass(eq=False, repr=False)
class Subject:
    """What is judged: `judged` is claimed to be the gradient of `output` with respect to `target`.

    For an equality `output` and `target` are None, and `left` is claimed to equal `judged`. `engine` is the engine's
    own gradient where another one is judged. `derived` holds what the script's derivative operators made, `names`
    what it calls its intermediates.
    """

    kind: str
    judged: Node
    values: Mapping[str, Floats]
    moving: Sequence[str]
    leaf: str | None = None
    line: int | None = None
    text: str = ""
    output: Node | None = None
    target: Node | None = None
    left: Node | None = None
    engine: Node | None = None
    domain: Interval | None = None
    rtol: float | None = None
    rounding: float = 0.0  # a relative error of constants of many digits, which were computed before the graph was seen
    expect: str | None = None
    note: str | None = None
    group: int | None = None
    derived: Derived = field(default_factory=dict)
    names: Mapping[Node, str] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # names that mean neither a leaf nor a library function in the script
    rule: str | None = None  # the operation whose hand-written rule is judged
    file: str | None = None  # of a rule that was written in Python
    place: int | None = None  # the line by which pragmas apply to it
    settings: Settings = field(default_factory=Settings)
    surfaces: list[Surface] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = dict(self.values)
        self.moving = tuple(self.moving)

    def at(self, values: Mapping[str, Floats]) -> Subject:
        """The same to be judged at another point."""
        return replace(self, values=values)

    def nodes(self) -> list[Node]:
        """Every node that questions to the oracle may name."""
        nodes = [self.judged, *(surface.zero for surface in self.surfaces)]
        nodes += [node for node in (self.output, self.target, self.left, self.engine) if node is not None]
        about = [part[1:] for part in self.of_equality] + ([self.inner] if self.inner is not None else [])
        for base, slots in about:
            nodes += [base, *(node for slot in slots for node in slot[1:])]
        return nodes

    def derivative(self, values: Values | None = None, entries: Sequence[int] | None = None) -> dict[str, Any]:
        """The derivative of the output by these entries of the target, or by all, as a question to the oracle names it.

        It is that in the region of the point, or of another one. Each complex entry has two slopes, those of the real
        part of the output by its parts.
        """
        name: dict[str, Any] = {part: getattr(self, part) for part in ("output", "target", "moving", "inner")}
        name |= {"point": self.values if values is None else values, "entries": entries}
        return {**name, "seed": self.settings.seed or 0, "plane": self.settings.plane}

    @property
    def inner(self) -> tuple[Node, list[Slot]] | None:
        """What the output is a derivative of, if the script writes it as one: then the claim is about higher orders."""
        return None if self.output is None else written_derivative(self.output, self.derived)

    @property
    def of_equality(self) -> list[tuple[Node, Node, list[Slot]]]:
        """The derivatives in both sides of an equality, and what each is of; none of them contains another."""
        if self.left is None or self.settings.plane:
            return []
        written: dict[Node, tuple[Node, list[Slot]]] = {}
        pending, seen = [self.left] if self.left is self.judged else [self.left, self.judged], set()
        while pending:
            node = pending.pop()
            if (about := written_derivative(node, self.derived)) is not None:
                written[node] = about
            elif node not in seen:
                seen.add(node)
                pending += node.args
        return [(node, *about) for node, about in written.items()]


def subjects(lowered: Lowered, values: Mapping[str, Floats], settings: Settings) -> list[Subject]:
    """Everything in a script that can be judged, in the order: gradients, claims, rules.

    Each has the settings that hold at its line; a tolerance beside an assert is nearer than that of the file.
    """
    leaves, outputs = lowered.program.leaves, lowered.program.outputs
    targets = [leaves[name].node for name in lowered.wrt]
    place = output_line(lowered.script.statements)
    seed = settings.seed or 0
    wanted: list[Subject] = []
    for position, output in enumerate(outputs):
        scalar, note = combined(output, seed)
        gradients = derivatives.grad(scalar, targets) if targets else []
        about: Any = {"output": scalar, "expect": lowered.expect, "note": note, "group": position}
        about |= {"line": None if output.span is None else output.span.line, "place": place}
        which = "" if len(outputs) == 1 else f" (output {position + 1})"
        for name, target, gradient in zip(lowered.wrt, targets, gradients, strict=True):
            own: Any = {"leaf": name, "text": f"{name}{which}", "target": target, "domain": leaves[name].domain}
            wanted.append(Subject("gradient", gradient, values, lowered.wrt, **own, **about))
    wanted += [of_claim(lowered, claim, values) for claim in lowered.claims]
    wanted += [subject for rule in lowered.rules for subject in of_rule(rule, values, seed)]
    of_output = cache(surfaces_of)
    taken = taken_names(lowered)
    for subject in wanted:
        subject.names, subject.taken, subject.derived = lowered.names, taken, lowered.derived
        subject.surfaces = [] if subject.output is None or settings.plane else of_output(subject.output)
        own = settings if subject.rtol is None else settings._replace(rtol=subject.rtol)
        subject.settings = own.at_lines(lowered, subject.place)
        subject.rtol = subject.settings.rtol
    return wanted


def taken_names(lowered: Lowered) -> frozenset[str]:
    """The names that a formula beside the script may not use: functions of the script, and names it computes."""
    statements, leaves = lowered.script.statements, lowered.program.leaves
    functions = {statement.name.id for statement in statements if isinstance(statement, FunctionDef)}
    places = assigned_names(statements)
    return frozenset(functions | {name for name, spans in places.items() if name not in leaves or len(spans) > 1})


def combined(output: Node, seed: int) -> tuple[Node, str | None]:
    """A scalar that an output's gradient can be taken of: itself, or a combination of its entries."""
    if not output.type.shape and output.type.kind == "float":
        return output, None
    generator = np.random.default_rng(seed)
    weights = [Fraction(int(w), 64) for w in generator.integers(33, 128, output.type.size) | 1]
    builder = output.builder
    with building(builder, reachable([output])):
        node = output if output.type.kind == "float" else cast(output, kind="float")
        if not node.type.shape:
            return node, None
        data = ArrayData(node.type.shape, weights)
        known = builder.array(digest_of(data), data, node.type)
    return paired(node, known), "of a combination of all entries"


def of_claim(lowered: Lowered, claim: Claim, values: Mapping[str, Floats]) -> Subject:
    """A claim: of a derivative by a scalar the derivative is judged, of anything else the equality."""
    leaf = lowered.program.leaves.get(claim.leaf or "")
    moving = tuple(dict.fromkeys((*lowered.wrt, *((claim.leaf,) if claim.leaf is not None and leaf else ()))))
    about: dict[str, Any] = {name: getattr(claim, name) for name in ("leaf", "line", "text", "rtol", "expect")}
    about["place"] = claim.line if claim.source is lowered.source else None  # not from the command line
    if claim.derivative is None or claim.derivative[0].type.shape:
        about["left"] = claim.left
    else:
        output, target = claim.derivative
        about |= {"output": output, "target": target, "engine": claim.left, "domain": leaf.domain if leaf else None}
    return Subject("claim", claim.right, values, moving, **about)


def of_rule(rule: HandRule, values: Mapping[str, Floats], seed: int) -> list[Subject]:
    """The parameters of a hand-written rule, judged on a random cotangent at the operands of its first call."""
    dtype = "complex128" if any(value.dtype.kind == "c" for value in values.values()) else "float64"
    operands = evaluated(rule.args, values, dtype)
    arriving = rule.cotangent.params["name"]
    names = [leaf.node.params["name"] for leaf in rule.leaves]
    point = {**values, **{name: np.array(value) for name, value in zip(names, operands, strict=True)}}
    point[arriving] = cotangent(rule.cotangent.type.shape, seed)
    output = paired(rule.output, rule.cotangent)
    rule_subjects = []
    lines = rule.lines or (rule.span.line,) * len(rule.leaves)
    for leaf, result, line in zip(rule.leaves, rule.results, lines, strict=True):
        about: dict[str, Any] = {"output": output, "target": leaf.node, "domain": leaf.domain, "file": rule.file}
        about |= {"leaf": leaf.name if rule.file is None else f"{rule.name}.{leaf.name}", "line": line, "place": line}
        about |= {"text": f"{rule.title} by {leaf.name}", "rule": rule.name}
        rule_subjects.append(Subject("vjp", result, point, (*names, arriving), **about))
    return rule_subjects


def cotangent(shape: tuple[int, ...], seed: int) -> Floats:
    """A random cotangent whose entries are neither 0 nor 1."""
    generator = np.random.default_rng(seed + 1)
    signs = generator.choice([-1.0, 1.0], shape)
    return np.asarray(signs * (generator.integers(16, 96, shape) | 1) / 32, dtype=np.float64)


def paired(output: Node, cotangent: Node) -> Node:
    """The sum of the products of the entries of two nodes."""
    builder = output.builder
    with building(builder, reachable([output, cotangent])):
        product = mul(cotangent, output)
        rank = len(product.type.shape)
        return sum_(product, axis=tuple(range(-rank, 0))) if rank else product
