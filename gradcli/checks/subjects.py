"""What is judged in a script: a scalar, a target, and a claimed gradient each, with the settings that apply to it.

Every leaf of every output, every claim, and every parameter of every hand-written rule is one subject. An output that
is an array is judged through a fixed combination of its entries. The engine's derivatives are taken here, where no
oracle reads them. Settings stand in comments, `# gradcli: rtol=1e-6`: a directive of the line takes precedence over one
of the file, and that over the caller's; what the caller requires always holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import kinks
from gradcli.checks.decide.floats import evaluated
from gradcli.checks.report import CODE_OF_VERDICT, NOT_AS_REQUIRED
from gradcli.diagnostics import NOTE, WARNING, Diagnostic
from gradcli.graph.arrays import ArrayData, digest_of
from gradcli.graph.builder import building
from gradcli.graph.node import reachable
from gradcli.language.directives import output_line
from gradcli.language.syntax import FunctionDef
from gradcli.lowering.scan import assigned_names
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.decide.kinks import Surface
    from gradcli.checks.report import Check
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node
    from gradcli.language.directives import Directive
    from gradcli.lowering import Claim, HandRule, Lowered

    Floats = NDArray[np.floating[Any]]

LOOSER = ("rtol", "allow-kink")  # settings with which a check may pass that fails without them


class Settings(NamedTuple):
    """How one check is judged."""

    samples: int
    timeout: float
    dtype: str
    seed: int | None
    require: frozenset[str]
    allow_kink: bool
    rtol: float | None = None

    def with_directives(self, directives: Iterable[Directive]) -> Settings:
        """These settings with what directives say on top, a later one on top of an earlier one."""
        told = self
        for directive in directives:
            changes: dict[str, Any] = {key.replace("-", "_"): value for key, value in directive.settings.items()}
            if "require" in changes:
                changes["require"] = told.require | {changes["require"]}
            told = told._replace(**changes)
        return told


def of_file(lowered: Lowered, settings: Settings) -> Settings:
    """The settings that hold where no line says otherwise."""
    return settings.with_directives(one for one in lowered.script.directives if one.whole)


def settle_settings(lowered: Lowered, subjects: Sequence[Subject], settings: Settings) -> None:
    """Give each subject the line by which directives apply to it, and the settings that hold there.

    That is the line of a claim or rule, and for a gradient that of the output; a claim of the command line has none. A
    tolerance beside an assert is nearer than that of the file.
    """
    output = output_line(lowered.script.statements)
    directives = [one for one in lowered.script.directives if not one.whole]
    claims = iter(lowered.claims)
    for subject in subjects:
        subject.place = output if subject.kind == "gradient" else subject.line
        if subject.kind == "claim" and next(claims).source is not lowered.source:
            subject.place = None
        near = [one for one in directives if one.covers(subject.place)]
        own = settings.with_directives(near)
        if subject.rtol is not None and not any("rtol" in one.settings for one in near):
            own = own._replace(rtol=subject.rtol)
        subject.settings, subject.rtol = own, own.rtol


def rule_of(check: Check) -> str:
    """The id of the rule that a check which did not pass has broken."""
    return CODE_OF_VERDICT.get(check.verdict, NOT_AS_REQUIRED)


def suppressed(
    lowered: Lowered, places: Sequence[int | None], checks: Sequence[Check], require: str | None, warn: bool
) -> tuple[list[Check], list[Diagnostic]]:
    """The checks, those that a directive of their line suppresses passed, and diagnostics about directives.

    `places` are the lines of the first checks, the others are expected results. A suppression that suppresses nothing
    gets a warning, if `warn`; and one that permits more than the caller requires a note.
    """
    found = list(checks)
    lines = [*places, *(one.line for one in checks[len(places) :])]
    expected = {one.line for one in lowered.script.expected}
    diagnostics: list[Diagnostic] = []
    for directive in lowered.script.directives:
        used: set[str] = set()
        for i, (one, line) in enumerate(zip(found, lines, strict=True)):
            codes = {rule_of(one), *(told.code for told in one.diagnostics)} & set(directive.codes)
            if not directive.covers(line) or (one.passed and "suppressed" not in one.evidence):
                continue
            used |= codes
            if codes and not one.passed:
                evidence = {**one.evidence, "suppressed": directive.reason}
                message = f"{one.message}; suppressed: {directive.reason}"
                found[i] = replace(one, passed=True, evidence=evidence, message=message)
        unused = [code for code in directive.codes if code not in used]
        if unused and warn:
            message = f"nothing to suppress here: {', '.join(unused)}"
            diagnostics.append(Diagnostic("GC811", message, directive.span, (), "remove it", WARNING))
        looser = [key for key in LOOSER if key in directive.settings] + ["ignore"] * bool(used)
        if looser and require is not None and directive.line not in expected:
            message = f"this directive permits more than --require {require} alone: {', '.join(looser)}"
            diagnostics.append(Diagnostic("GC727", message, directive.span, severity=NOTE))
    return found, [one.with_source(lowered.source) for one in diagnostics]


@dataclass(eq=False)
class Subject:
    """What is judged: `judged` is claimed to be the gradient of `output` with respect to `target`.

    For an equality `output` and `target` are None, and `left` is claimed to equal `judged`. `engine` is the engine's
    own gradient where another one is judged. `derived` tells what the script's derivative operators made, `names`
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
    derived: Mapping[Node, tuple[str, Node, Node]] = field(default_factory=dict)
    names: Mapping[Node, str] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # names that mean neither a leaf nor a library function in the script
    file: str | None = None  # of a rule that was written in Python
    place: int | None = None  # the line by which directives apply to it
    settings: Settings | None = None  # how to judge it, where that is known here
    surfaces: list[Surface] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = dict(self.values)
        self.moving = tuple(self.moving)

    def at(self, values: Mapping[str, Floats]) -> Subject:
        """The same to be judged at another point."""
        return replace(self, values=values)

    def nodes(self) -> list[Node]:
        """Every node that questions to the oracle may name."""
        found = [self.judged, *(surface.zero for surface in self.surfaces)]
        found += [node for node in (self.output, self.target, self.left, self.engine) if node is not None]
        return [*found, *(self.inner or ())]

    @property
    def inner(self) -> tuple[Node, Node] | None:
        """The scalars y and z where the output is `grad(y, z)`: then the claim is about second derivatives of y."""
        name, y, z = self.derived.get(self.output, ("", None, None)) if self.output is not None else ("", None, None)
        if name != "grad" or y is None or z is None or y.type.shape or z.type.shape:
            return None
        return y, z


def subjects(lowered: Lowered, values: Mapping[str, Floats], seed: int) -> list[Subject]:
    """Everything in a script that can be judged, in the order: gradients, claims, rules."""
    leaves = lowered.program.leaves
    found: list[Subject] = []
    outputs = lowered.program.outputs
    for position, output in enumerate(outputs):
        scalar, note = combined(output, seed)
        line = None if output.span is None else output.span.line
        targets = [leaves[name].node for name in lowered.wrt]
        gradients = derivatives.grad(scalar, targets) if targets else []
        of_output = {"output": scalar, "line": line, "expect": lowered.expect, "note": note, "group": position}
        for name, target, gradient in zip(lowered.wrt, targets, gradients, strict=True):
            label = name if len(outputs) == 1 else f"{name} (output {position + 1})"
            about: Any = {"text": label, "target": target, "domain": leaves[name].domain, **of_output}
            found.append(Subject("gradient", gradient, values, lowered.wrt, name, **about))
    found += [_claim(lowered, claim, values) for claim in lowered.claims]
    for rule in lowered.rules:
        found += of_rule(rule, values, seed)
    known: dict[Node, list[Surface]] = {}
    taken = taken_names(lowered)
    for subject in found:
        subject.names, subject.taken = lowered.names, taken
        if subject.output is not None:
            if subject.output not in known:
                known[subject.output] = kinks.surfaces([subject.output])
            subject.surfaces = known[subject.output]
    return found


def taken_names(lowered: Lowered) -> frozenset[str]:
    """The names that a formula beside the script may not use: functions of the script, and names it computes."""
    statements, leaves = lowered.script.statements, lowered.program.leaves
    functions = {one.name.id for one in statements if isinstance(one, FunctionDef)}
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
        node = output if output.type.kind == "float" else builder.call("cast", output, kind="float")
        if not node.type.shape:
            return node, None
        data = ArrayData(node.type.shape, weights)
        known = builder.array(digest_of(data), data, node.type)
        axes = tuple(range(-len(node.type.shape), 0))
        return builder.call("sum", builder.call("mul", known, node), axis=axes), "of a combination of all entries"


def _claim(lowered: Lowered, claim: Claim, values: Mapping[str, Floats]) -> Subject:
    leaf = lowered.program.leaves.get(claim.leaf or "")
    moving = tuple(dict.fromkeys((*lowered.wrt, *((claim.leaf,) if claim.leaf is not None and leaf else ()))))
    about: dict[str, Any] = {
        name: getattr(claim, name) for name in ("leaf", "line", "text", "rtol", "expect", "derived")
    }
    if claim.derivative is None or claim.derivative[0].type.shape:
        return Subject("claim", claim.right, values, moving, left=claim.left, **about)
    output, target = claim.derivative
    about |= {"output": output, "target": target, "engine": claim.left, "domain": leaf.domain if leaf else None}
    return Subject("claim", claim.right, values, moving, **about)


def of_rule(rule: HandRule, values: Mapping[str, Floats], seed: int) -> list[Subject]:
    """The parameters of a hand-written rule, judged on a random cotangent at the operands of its first call."""
    point = dict(values)
    dtype = "complex128" if any(value.dtype.kind == "c" for value in values.values()) else "float64"
    for leaf, value in zip(rule.leaves, evaluated(rule.args, values, dtype), strict=True):
        point[leaf.node.params["name"]] = np.array(value)
    arriving = rule.cotangent.params["name"]
    point[arriving] = cotangent(rule.cotangent.type.shape, seed)
    moving = (*(leaf.node.params["name"] for leaf in rule.leaves), arriving)
    of_rule: dict[str, Any] = {"output": paired(rule.output, rule.cotangent), "file": rule.file}
    found = []
    lines = rule.lines or (rule.span.line,) * len(rule.leaves)
    for leaf, result, line in zip(rule.leaves, rule.results, lines, strict=True):
        name = leaf.name if rule.file is None else f"{rule.name}.{leaf.name}"
        about = {"text": f"{rule.title} by {leaf.name}", "target": leaf.node, "domain": leaf.domain, **of_rule}
        found.append(Subject("vjp", result, point, moving, name, line, **about))
    return found


def cotangent(shape: tuple[int, ...], seed: int) -> Floats:
    """A random cotangent whose entries are neither 0 nor 1."""
    generator = np.random.default_rng(seed + 1)
    signs = generator.choice([-1.0, 1.0], shape)
    return np.asarray(signs * (generator.integers(16, 96, shape) | 1) / 32, dtype=np.float64)


def paired(output: Node, cotangent: Node) -> Node:
    """The sum of the products of the entries of two nodes."""
    builder = output.builder
    with building(builder, reachable([output, cotangent])):
        product = builder.call("mul", cotangent, output)
        rank = len(product.type.shape)
        return builder.call("sum", product, axis=tuple(range(-rank, 0))) if rank else product
