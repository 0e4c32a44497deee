"""Rigorous verdicts for functions whose graph can be recorded, of NumPy, PyTorch, JAX or gradcli's tensors.

The function runs on values that record what is done with them, and what it computes becomes a program that every oracle
can read: its gradient, written by hand or the library's own, is then judged as a script's is. A recording counts only
where it gives the function's own values, at the point and beside it, and the function's own gradient there. It is a
table of plain data (`graph/flat.py`): a function may run in another process than the one that judges it. Nothing here
imports a library of tensors: its caller has imported it.
"""

from __future__ import annotations

import inspect
import math
import sys
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.floats import evaluated, evaluator
from gradcli.checks.decide.numerical import ALIKE, STEPPED, of_differences, remark_on
from gradcli.checks.decide.refutation import blaming, disagrees
from gradcli.checks.diagnosis.ratios import Comparison, readings
from gradcli.checks.differences.step_sequences import EPSILON, seeded_directions, suspicious
from gradcli.checks.differences.survey import DUST, FAR, SlopeFinding, Survey, contradicted
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import GOOD, NONSMOOTH, Settings
from gradcli.checks.scripts import verdict_on
from gradcli.checks.subjects import Subject, combined, cotangent, of_rule, paired, surfaces_of
from gradcli.graph.arrays import subscript
from gradcli.graph.building import building
from gradcli.graph.flat import Table, restore_nodes
from gradcli.graph.node import dependents, reachable
from gradcli.graph.program import Leaf, cotangent_name
from gradcli.primitives import catalogue
from gradcli.recording.calls.box import JACOBIAN, OWN
from gradcli.recording.calls.failures import Failed, OutOfTime, describe
from gradcli.recording.calls.gradient_libraries import EAGER, JAX, NUMPY, TORCH, is_function_class, unit_of
from gradcli.recording.graphs.operations import Opaque, constant, entries
from gradcli.recording.graphs.second_order import by_differentiating_again
from gradcli.recording.graphs.traced_rule import alike, by_usage, is_rule, traced_rule
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node
    from gradcli.graph.program import Program
    from gradcli.recording.calls.box import BlackBox

    Floats = NDArray[np.floating[Any]]
    Message = dict[str, Any]

MOST_NODES, MOST_ENTRIES = 3_000, 5_000  # of a program that is worth it: what is larger is judged by values
SAME = 1e-11  # two evaluations of the same operations, each entry relative to itself; or so many units of that
ROUNDINGS = 64  # and of the largest entry, or times the change that a unit of the point makes
CLOSE = 1e-12  # a smaller relative gap refutes nothing where no double shows it
CONSTANT = 2.0**-50  # a relative error of the constants of a graph, each of which may have been rounded a few times
NONLINEAR = "the backward pass is not linear in its cotangent: checked at a cotangent that shows it"
LONG = 1.0 + 2.0**-12 / 3.0  # times a cotangent: it then has all digits of a double
SCALES = (1.0, -1.0, 2.0**20, 2.0**-20)  # of a cotangent, which a rule must be linear in
BESIDE = 3  # points at which the recording has to give the function's values
ABOUT = ("moving", "leaf", "line", "text", "rule", "file", "values")  # of a rule inside the function
MOST_PLACES, LONGEST = 256, 0.05  # of finite differences in a graph; and their longest step, in sizes of the point
ROUNDED = "rounded to whole numbers inside"
DECIDED = (*GOOD, "DISAGREES", *NONSMOOTH)


class Rigorous(NamedTuple):
    """A verdict for each argument that the oracles decide, those on the rules of Functions inside, and notes."""

    arguments: dict[str, Outcome]
    rules: list[tuple[Subject, Outcome]]
    notes: list[str]


class Recorded(NamedTuple):
    """A recording that gives the function's values and gradients.

    `weights` combine the outputs of the function; `sent` is how far off what is sent is, by argument (`reproduced`).
    `formats` are those that it computes in, `taken` is that of its arguments.
    """

    program: Program
    outputs: list[Node]
    subjects: list[Subject]
    rules: list[Subject]
    weights: Floats
    sent: dict[str, float]
    formats: list[str]
    taken: str
    refutes: bool  # whether the graph shows all that decides the gradient: nothing that is detached

    @property
    def unit(self) -> float:
        """The coarsest relative spacing of the numbers that it computes with."""
        return max(map(unit_of, self.formats))

    @property
    def loses(self) -> str:
        """The coarsest format that it computes in, where that has fewer digits than its arguments; else ""."""
        return max(self.formats, key=unit_of) if self.unit > unit_of(self.taken) else ""


def by_recording(box: BlackBox, recorded: Message, seed: int, settings: Settings) -> Rigorous:
    """What the oracles decide of what `recording` found; no verdict where only values can.

    The recording may come from another process, so all of it is verified: the combination of outputs is built here, and
    values and gradients must be those that the function itself gives.
    """
    other_use = {str(name): Outcome("DISAGREES", str(text), {}) for name, text in recorded.pop("used", {}).items()}
    undecided = Rigorous(other_use, [], [str(again)] if (again := recorded.pop("again", "")) else [])
    if not recorded:
        return undecided
    try:
        if "unfit" in recorded:
            raise Opaque(str(recorded["unfit"]))
        known = read(box, recorded, seed)
        options = Settings(settings.samples, seed=seed, witnesses=settings.witnesses)
        verdicts = judged(box, known, options)
        inside = [pair for pair in verdicts if pair[0].file is not None]
        pairs = [(subject, standing(box, known, subject, out)) for subject, out in verdicts if subject.file is None]
        own = [(subject, out) for subject, out in pairs if out is not None]
    except (OutOfTime, GradcliError, Opaque) as problem:
        alone = [f"checked by its values alone: {problem}"] if isinstance(problem, Opaque) and str(problem) else []
        return undecided._replace(notes=[*undecided.notes, *alone])
    arguments = {str(subject.leaf): blaming(as_sent(box, known, subject, verdict), inside) for subject, verdict in own}
    notes, left = [*undecided.notes, *notes_on(box, known)], [name for name in box.names if name not in arguments]
    if any(subject.note == NONLINEAR for subject in known.subjects):
        notes.append(NONLINEAR)
    if left and known.refutes and box.library.name != EAGER:
        notes.append(f"{', '.join(left)}: checked by values, since the exact oracles cannot decide what floats show")
    return Rigorous({**arguments, **other_use}, inside, notes)


# --- recording: beside the function -----------------------------------------------------------------------------


def recording(box: BlackBox, seed: int) -> Message:
    """The program of a function, its gradients and the rules inside it as plain data; empty where there is none.

    Of a `Function` the forward is the program, and its backward the gradients. `used` tells how these depend on which
    arguments and results are used.
    """
    uses = ("used", by_usage(box, seed)), ("again", by_differentiating_again(box, seed))
    recorded: Message = {key: own for key, own in uses if own}
    try:
        return {**recorded, **(of_framework if box.library.name in (TORCH, JAX, NUMPY) else of_tensors)(box, seed)}
    except Opaque as problem:
        return {**recorded, "unfit": str(problem)}
    except GradcliError:
        return recorded


def of_tensors(box: BlackBox, seed: int) -> Message:
    """The recording of a function of gradcli's tensors, or of a `Function` of theirs."""
    record = getattr(sys.modules.get(EAGER), "record", None)
    if record is None or box.kind != OWN or box.taken != "float64" or not np.isfinite(box.x).all():
        return {}
    program = ran(box, record)
    owner: Any = getattr(box.f, "__self__", None)
    return of_class(box, program, owner, seed) if is_function_class(owner) else of_function(box, program, seed)


def of_function(box: BlackBox, program: Any, seed: int) -> Message:
    """The recording of a function, with its gradients: those of a combination of its outputs."""
    outputs = list(program.outputs)
    if any(node.type.kind != "float" for node in outputs):
        raise Opaque("")
    total, _ = summed(outputs, seed)
    gradients = derivatives.grad(total, [program.leaves[name].node for name in box.names])
    return message(program, outputs, dict(zip(box.names, gradients, strict=True)), seed)


def of_class(box: BlackBox, program: Any, owner: Any, seed: int) -> Message:
    """The recording of a `Function`'s forward, and of its backward, which is a rule written by hand."""
    rule = next((other for other in program.rules if other.name == owner.__name__), None)
    if box.shape is None or rule is None or {*box.names} - {leaf.name for leaf in rule.leaves}:
        raise Opaque("")
    program.rules = tuple(other for other in program.rules if other is not rule)
    name = cotangent_name(box.names)
    arriving = program.builder.leaf(name, rule.cotangent.type.shape)
    program.leaves[name] = Leaf(name, arriving, np.zeros(arriving.type.shape))
    operands = {leaf.node: node for leaf, node in zip(rule.leaves, rule.args, strict=True)}
    output, *sent = program.builder.substituted([rule.output, *rule.results], {**operands, rule.cotangent: arriving})
    sent_to = dict(zip([leaf.name for leaf in rule.leaves], sent, strict=True))
    recorded = message(program, [output], {name: sent_to[name] for name in box.names}, seed)
    return {**recorded, "by hand": True, "cotangents": {"0": name}}


def of_framework(box: BlackBox, seed: int) -> Message:
    """The recording of a function of NumPy, PyTorch or JAX with its backward."""
    rule = traced_rule(box, seed)
    if rule is None:
        return {}
    nodes = [*rule.outputs, *rule.gradients.values()]
    large(rule.program, nodes)
    return {
        **message(rule.program, rule.outputs, rule.gradients, seed),
        "by hand": True,
        "cotangents": {str(k): node.params["name"] for k, node in rule.cotangents.items()},
        "rule": box.kind != OWN or is_rule(box.f),
        "formats": rule.formats,
    }


def message(program: Program, outputs: Sequence[Node], gradients: Mapping[str, Node], seed: int) -> Message:
    """A recording as plain data: one table of nodes, and which rows of it are what."""
    rules: list[tuple[Subject, dict[str, Any]]] = [
        (x, {"judged": x.judged, "target": x.target, "output": rule.output, "cotangent": rule.cotangent})
        for rule in getattr(program, "rules", ())
        for x in of_rule(rule, at_point(program), seed)
    ]
    nodes = [*outputs, *gradients.values(), *(node for _, parts in rules for node in parts.values())]
    try:
        table = Table(nodes, program.builder.vocabulary, program.leaves)
    except TypeError:
        raise Opaque("") from None
    rows = table.rows
    return {
        "flat": table.flat,
        "outputs": [rows[node] for node in outputs],
        "gradients": {name: rows[node] for name, node in gradients.items()},
        "rules": [
            {**{name: rows[node] for name, node in parts.items()}, **{name: getattr(subject, name) for name in ABOUT}}
            for subject, parts in rules
        ],
    }


# --- reading: where it is judged --------------------------------------------------------------------------------


def read(box: BlackBox, recorded: Message, seed: int) -> Recorded:
    """A recording as a program, with what is judged: the gradients by the arguments, and the rules inside it."""
    try:
        program, nodes = restore_nodes(recorded["flat"], catalogue())
        outputs = [nodes[row] for row in recorded["outputs"]]
        gradients = {str(name): nodes[row] for name, row in recorded["gradients"].items()}
        rules = [rule_of(row, nodes) for row in recorded["rules"]]
        formats = [str(name) for name in recorded.get("formats", ())]
        unknown = {*box.names} - program.leaves.keys()
    except Exception:  # a table that nothing of ours wrote
        raise Opaque("its recording cannot be read") from None
    if unknown or gradients.keys() != {*box.names}:
        raise Opaque("its recording cannot be read")
    values = {**at_point(program), **moved(box, box.x)}
    by_hand = bool(recorded.get("by hand"))
    arriving = {int(k): str(name) for k, name in recorded.get("cotangents", {}).items()}
    note: str | None = None
    if by_hand and not arriving and [node.type.shape for node in outputs] == [()]:  # of one number: its own gradient
        (total,) = outputs
    elif by_hand:
        if not arriving or {*arriving.values()} - program.leaves.keys() or not {*arriving} <= {*range(len(outputs))}:
            raise Opaque("no result of it has a gradient")
        for k, name in arriving.items():
            values[name] = cotangent(outputs[k].type.shape, seed + k)
        total = added([paired(outputs[k], program.leaves[name].node) for k, name in arriving.items()])
    else:
        total, note = summed(outputs, seed)
    surfaces = surfaces_of(total)
    subjects = []
    for name in box.names:
        target = program.leaves[name].node
        if gradients[name].type != target.type:
            raise Opaque("")
        kind, moving = "gradient" if not by_hand else "vjp" if arriving else "claim", tuple(box.names)
        moving = (*moving, *arriving.values()) if by_hand else moving
        shared: dict[str, Any] = {"output": total, "target": target, "note": note, "surfaces": surfaces}
        shared["rounding"] = 0.0 if box.library.name == EAGER else CONSTANT
        subjects.append(Subject(kind, gradients[name], values, moving, leaf=name, text=name, **shared))
    if by_hand:
        if arriving:
            values = nonlinear_at(subjects, list(arriving.values()))
        rest = np.zeros if arriving else np.ones
        pieces = [values[arriving[k]] if k in arriving else rest(node.type.shape) for k, node in enumerate(outputs)]
    else:
        pieces = evaluated(derivatives.grad(total, list(outputs)), subjects[0].values)
    weights = np.concatenate([part.reshape(-1) for part in pieces])
    refutes = bool(recorded.get("rule")) or box.library.name == EAGER
    known = Recorded(program, outputs, subjects, rules, weights, {}, [*formats, box.taken], box.taken, refutes)
    known = known._replace(sent=reproduced(box, known, seed))
    known = known._replace(formats=[*known.formats, *([box.claimed] if box.claimed else [])])
    for rule in rules:
        assert rule.output is not None
        rule.surfaces = surfaces_of(rule.output)
    return known


def standing(box: BlackBox, known: Recorded, subject: Subject, verdict: Outcome) -> Outcome | None:
    """A verdict on a recording as one on the function; None where values have to decide.

    What is sent has to be finite to pass. A graph of PyTorch or JAX does not show what is detached, or computed under
    no_grad: outside a rule only what is right counts. Where it computes in fewer digits than float64, its constants are
    rounded to as many, and a difference that this makes refutes nothing; nor does one that no double shows.
    """
    right = verdict.verdict in GOOD
    if not (np.isfinite(known.sent[str(subject.leaf)]) if right else known.refutes):
        return None
    if (subject.surfaces or verdict.verdict in GOOD[1:]) and not backed(box, known, subject, verdict):
        rounded = verdict.verdict in DECIDED and any(surface.node.primitive.whole_steps for surface in subject.surfaces)
        text = f"{verdict.message.partition('; ')[0]}; but finite differences do not confirm it: f is {ROUNDED}"
        return verdict._replace(verdict="INCONCLUSIVE", message=text, diagnostics=()) if rounded else None
    if verdict.verdict != "DISAGREES" or box.library.name == EAGER:
        return verdict
    if box.x.size > 1 and of_dust(box, known, subject):
        return None
    gap, unit = relative_gap(subject), known.unit
    sure = gap > max(CLOSE, ROUNDINGS * unit) or (unit == EPSILON and not same_double(verdict))
    return verdict if sure else None


def backed(box: BlackBox, known: Recorded, subject: Subject, outcome: Outcome) -> bool:
    """Whether differences of the function's own values do not contradict a verdict on its recording.

    A graph that compares values, as a bisection does, may be smooth between two jumps that are closer than floats: its
    derivative is then not that of the values. A refutation needs differences that side with it, be it on small steps
    where the graph jumps between whole numbers alone. And what is no proof may not be wrong at points nearby whose
    numbers are longer: a claim may be rounded as the point is.
    """
    leaf, both, verdict = str(subject.leaf), evaluator(sides(subject)), outcome.verdict
    part = box.slices[leaf]

    def gap_at(values: Floats) -> float:
        place = {leaf: values.reshape(box.shape_of(leaf))}
        exact, claimed = (y.reshape(-1) for y in both({**subject.values, **place}))
        return float(np.abs(exact - claimed).max() / (np.abs(exact).max() or 1.0))

    near = chosen_points.rescaled(box.x[part], BESIDE, subject.settings.seed or 0)
    if verdict in GOOD and min(map(gap_at, near), default=0.0) > ALIKE:
        return False
    rounded = all(surface.node.primitive.whole_steps for surface in subject.surfaces)
    if not subject.surfaces or (verdict in GOOD and rounded):
        return True
    survey, exact_at = surveyed(box, known, subject, outcome)
    if verdict == "DISAGREES":
        seen, exact = farthest_off(survey, exact_at, part)
        siding = (seen.seen.estimate.reason is None or seen.seen.still) and abs(seen.slope - exact) <= seen.slack
        return siding or (rounded and survey.seen_closer(seen, exact, seen.claimed))
    alone = np.zeros(box.x.size)
    alone[part] = 1.0
    findings = survey.along([alone * d for d in survey.directions(2)])
    if verdict in GOOD:
        return not all(map(contradicted, findings))
    return any(finding.seen.estimate.reason is not None or suspicious(finding.seen) for finding in findings)


def surveyed(box: BlackBox, known: Recorded, subject: Subject, outcome: Outcome) -> tuple[Survey, Floats]:
    """A survey of the function, in which nothing is measured, with what is judged as the claim; and the derivative.

    It is one of the point of the counterexample, where the outcome has one.
    """
    leaf, shown, x = str(subject.leaf), outcome.evidence.get("counterexample"), box.x.copy()
    part, claims = box.slices[leaf], np.zeros((1, x.size))
    place = np.asarray(shown["at"].get(leaf)) if isinstance(shown, dict) else np.empty(0)
    if place.dtype == x.dtype and place.size == part.stop - part.start:
        x[part] = place.reshape(-1)
    values = {**subject.values, leaf: x[part].reshape(box.shape_of(leaf))}
    exact, claims[0, part] = (y.reshape(-1) for y in evaluated(sides(subject), values))
    noise = np.array([known.unit * np.abs(known.weights) @ np.abs(box.value(x))])
    noise = noise if known.unit > EPSILON else np.zeros(1)
    seed, weights = subject.settings.seed or 0, known.weights[None]
    return Survey(box.values, x, box.slices, claims, seed, weights=weights, noise=noise), exact


def farthest_off(survey: Survey, exact: Floats, part: slice) -> tuple[SlopeFinding, float]:
    """What differences say of the entry that is farthest off, and its derivative."""
    at = int(np.argmax(np.abs(exact - survey.claims[0, part])))
    (seen,) = survey.along_entries([part.start + at])
    return seen, float(exact[at])


def as_sent(box: BlackBox, known: Recorded, subject: Subject, verdict: Outcome) -> Outcome:
    """A verdict on a formula as one on what is sent: IMPRECISE where that has fewer digits than the arguments.

    Or where it is off by little and scatters as finite differences do. Any other small difference is said.
    """
    off = known.sent[str(subject.leaf)]
    if verdict.verdict in GOOD and off and known.loses:
        text = f"the rule is right, but it is computed in {known.loses}: what is sent is off by a relative {off:.1g}"
        return verdict._replace(verdict="IMPRECISE", message=text, evidence={**verdict.evidence, "sent_off": off})
    if verdict.verdict != "DISAGREES":
        return verdict
    if not subject.surfaces and box.library.name != EAGER:
        seen, exact = farthest_off(*surveyed(box, known, subject, verdict), box.slices[str(subject.leaf)])
        if seen.seen.estimate.reason is None and abs(seen.slope - exact) > FAR * seen.slack:
            text = f"{verdict.message.partition('; ')[0]}; but finite differences give {seen.slope!r}"
            text += f" +- {seen.bound:.1g}: f is not smooth on the scale of its last digits"
            return verdict._replace(verdict="INCONCLUSIVE", message=text, diagnostics=())
    if not 0 < (gap := relative_gap(subject)) < ALIKE:
        return verdict
    text, error = verdict.message.partition("; ")[0], error_of_differences(known, subject)
    if error:
        text = f"{text}: a finite difference of f, which is off by a relative {gap:.1g}"
        return verdict._replace(verdict="IMPRECISE" if gap <= error else "INCONCLUSIVE", message=text, diagnostics=())
    if outcome := of_differences(box, gap, text):  # maybe, of a part of f
        return outcome._replace(verdict="INCONCLUSIVE", evidence=verdict.evidence)
    return verdict._replace(message=verdict.message + remark_on(gap))


def error_of_differences(known: Recorded, subject: Subject) -> float:
    """The relative error that what is judged may have as a finite difference: it contains f at places beside the point.

    0 where it is none. Steps both ways, and of several sizes, have a higher order.
    """
    assert subject.target is not None
    target, inside, nodes = subject.target, reachable([subject.judged]), reachable(known.outputs)
    outputs = [output for output in known.outputs if output in dependents(nodes, [target])]
    moved = [node for node in dependents(inside, [target]) if node.type == target.type and node is not target]
    with building(target.builder, [*inside, *nodes]) as builder:
        builder.simplifying = False  # as it was recorded
        copies = [(node, builder.substituted(outputs, {target: node})) for node in moved[:MOST_PLACES]]
    places = [node for node, copy in copies if not {*inside}.isdisjoint(copy)]
    at, *values = (value.reshape(-1) for value in evaluated([target, *places], subject.values))
    ways: dict[bytes, list[float]] = {}
    for way in (value - at for value in values):
        step = float(way[np.argmax(np.abs(way))])
        if 0 < abs(step) <= LONGEST * max(float(np.abs(at).max()), 1.0):
            ways.setdefault((way != 0).tobytes(), []).append(step)
    if not ways:
        return 0.0
    sizes = [{float(f"{abs(step):.3g}") for step in steps} for steps in ways.values()]
    both = all(abs(sum(steps)) < 1e-3 * max(map(abs, steps)) for steps in ways.values())
    longest, shortest = max(map(max, sizes)), min(map(min, sizes))
    return STEPPED * float(longest ** (2 * min(map(len, sizes)) if both else 1) + EPSILON / shortest)


def same_double(verdict: Outcome) -> bool:
    """Whether what is refuted is the nearest double of what is right: 0 for a number that no double can hold."""
    shown: Any = verdict.evidence.get("counterexample", {})
    exact, claimed = (str(shown.get(side)).rstrip(".") for side in ("exact", "claimed"))
    try:
        return float(exact) == float(claimed)
    except ValueError:
        return False


def of_dust(box: BlackBox, known: Recorded, subject: Subject) -> bool:
    """Whether what is judged is wrong in rounding alone: in numbers in place of 0, beside other entries or values."""
    exact, claimed = evaluated(sides(subject), subject.values)
    off = np.abs(claimed - exact) > ROUNDINGS * EPSILON * np.abs(exact)
    size = max(np.abs(exact).max(), np.abs(known.weights * box.value(box.x)).max())
    return bool(off.any() and (exact[off] == 0).all() and np.abs(claimed[off]).max() <= DUST * EPSILON * size)


def relative_gap(subject: Subject) -> float:
    """How far what is judged lies from the derivative, beside the largest entry."""
    exact, claimed = evaluated(sides(subject), subject.values)
    size = float(np.abs(exact).max(initial=0.0))
    return float(np.abs(exact - claimed).max(initial=0.0)) / size if size else np.inf


def sides(subject: Subject) -> list[Node]:
    """The derivative, and what is judged."""
    assert subject.output is not None and subject.target is not None
    return [*derivatives.grad(subject.output, [subject.target]), subject.judged]


def rule_of(rule: Message, nodes: Sequence[Node]) -> Subject:
    """A backward inside a function, on inputs of its own."""
    return Subject(
        "vjp",
        nodes[rule["judged"]],
        {str(name): np.asarray(value, dtype=np.float64) for name, value in rule["values"].items()},
        [str(name) for name in rule["moving"]],
        leaf=str(rule["leaf"]),
        line=None if rule["line"] is None else int(rule["line"]),
        text=str(rule["text"]),
        output=paired(nodes[rule["output"]], nodes[rule["cotangent"]]),
        target=nodes[rule["target"]],
        rule=str(rule["rule"]),
        file=None if rule["file"] is None else str(rule["file"]),
    )


def summed(outputs: Sequence[Node], seed: int) -> tuple[Node, str | None]:
    """A combination of all outputs, and what a report calls it."""
    _, note = combined(outputs[0], seed)
    total = added([combined(output, seed + k)[0] for k, output in enumerate(outputs)])
    return total, note if len(outputs) == 1 else "of a combination of all outputs"


def added(scalars: Sequence[Node]) -> Node:
    """The sum of some scalars."""
    total = scalars[0]
    for node in scalars[1:]:
        with building(node.builder, reachable([total, node])) as builder:
            total = builder.call("add", total, node)
    return total


def ran(box: BlackBox, record: Any) -> Any:
    """The recording of a function whose arguments are the ones that are judged."""
    names, tensors = box.names, box.arguments_at(box.x, False)

    @wraps(box.f)  # the scope in which tensors have names
    def named(*moved: Any) -> Any:
        return box.spread(box.f, {**box.arguments_at(box.x, False), **dict(zip(names, moved, strict=True))})

    parameter = inspect.Parameter
    if not all(name.isidentifier() for name in names) or len({*names}) < len(names):
        raise Opaque("")
    named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    try:
        with box.listener.hearing("f", False):
            program = record(named, *(tensors[name] for name in names))
    except Exception as problem:  # whatever the function of a user raises on stand-ins
        raise Opaque(describe(problem)) from None
    large(program, program.outputs)
    if {*names} - program.leaves.keys():
        raise Opaque("")
    return program


def large(program: Program, nodes: Sequence[Node]) -> None:
    """Opaque where a program is too large to be worth it."""
    order = reachable(nodes)
    entries = max((node.type.size for node in order), default=0)
    if len(order) > MOST_NODES or entries > MOST_ENTRIES:
        raise Opaque(f"it has more than {MOST_ENTRIES:,} entries" if entries > MOST_ENTRIES else "")


# --- whether it stands for the function ---------------------------------------------------------------------------


def reproduced(box: BlackBox, known: Recorded, seed: int) -> dict[str, float]:
    """How far what is sent lies from its recording at most, relatively, for each argument; NaN where it is not finite.

    Opaque unless the recording gives the function's values and gradients at the point, at points beside it and at one
    far away: entry by entry, to rounding in the formats that it computes in.
    """
    outputs, subjects, sent = known.outputs, known.subjects, dict.fromkeys(box.names, 0.0)
    evaluate = evaluator([*outputs, *(subject.judged for subject in subjects)])
    arriving = {name: subjects[0].values[name] for name in subjects[0].moving if name not in sent}

    def expected_at(x: Floats, factor: float) -> list[Floats]:
        cotangents = {name: factor * value for name, value in arriving.items()}
        parts = [part.reshape(-1) for part in evaluate({**subjects[0].values, **cotangents, **moved(box, x)})]
        return [np.concatenate(parts[: len(outputs)]), *parts[len(outputs) :]]

    ways = [np.zeros(box.x.size), *(0.01 * d for d in seeded_directions(box.x, BESIDE, seed))]
    for k, place in enumerate([*(box.x + way for way in ways), *far_away(box, known.weights, seed)]):
        x = place.astype(known.taken).astype(np.float64)
        factor = LONG if k and arriving else 1.0
        value = box.value(x)
        try:
            gradient = box.pullback(x, factor * known.weights, at_the_point=k == 0)
        except Failed as problem:
            raise Opaque(f"near the point {problem.reason}") from None
        real = [value, *(gradient[box.slices[name]] for name in sent)]
        near = [expected_at(x * (1.0 + way * known.unit), factor) for way in (-1.0, 1.0)]
        for name, own, expected, *both in zip((None, *sent), real, expected_at(x, factor), *near, strict=True):
            off = distance(own, expected, np.abs(np.subtract(*both)), known.unit)
            if off == np.inf:
                raise Opaque(f"its recording does not reproduce its {'gradient' if name else 'values'}")
            if off and not name and known.loses:
                raise Opaque(f"f computes in {known.loses}")
            if name:
                sent[name] = max(sent[name], off) if np.isfinite(own).all() or k else np.nan
    return sent


def distance(own: Floats, expected: Floats, spread: Floats, unit: float) -> float:
    """How far numbers lie apart, relatively: 0 within rounding in float64, inf beyond that in a format of this unit."""
    finite = np.isfinite(expected)
    if not np.array_equal(np.where(finite, 0.0, expected), np.where(np.isfinite(own), 0.0, own), equal_nan=True):
        return np.inf
    gap, size, spread = (np.abs(part[finite]) for part in (own - expected, expected, np.nan_to_num(spread)))
    largest = size.max(initial=0.0)

    def beyond(u: float) -> bool:
        rounding = ROUNDINGS * u * (largest + spread / unit)
        return bool((gap > max(SAME, ROUNDINGS * u) * size + rounding).any())

    if not beyond(EPSILON):
        return 0.0
    return np.inf if beyond(unit) else float((gap / np.where(size > 0, size, largest)).max())


def far_away(box: BlackBox, weights: Floats, seed: int) -> list[Floats]:
    """A point far from the given one where function and gradient are finite, as far as there is one.

    Its entries are all of about one size, and have other signs; else the same signs.
    """
    draw = np.random.default_rng(seed)
    sizes = draw.uniform(0.5, 1.5, box.x.size) * (np.sqrt(np.mean(box.x**2)) or 1.0)
    for x in (sizes * draw.choice([-1.0, 1.0], box.x.size), np.copysign(sizes, box.x), 1.75 * box.x):
        with suppress(Failed):
            if np.isfinite(box.value(x)).all() and np.isfinite(box.pullback(x, weights)).all():
                return [x]
    return []


def nonlinear_at(subjects: Sequence[Subject], cotangents: Sequence[str]) -> dict[str, Floats]:
    """The values that rules are judged at: where one clips what arrives, a cotangent at which that is wrong.

    A proof near one cotangent says nothing of those that are clipped.
    """
    usual = dict(subjects[0].values)
    for subject in subjects:
        pair = sides(subject)
        for scale in SCALES:
            values = {**usual, **{name: np.asarray(scale * usual[name]) for name in cotangents}}
            exact, claimed = (part.reshape(-1) for part in evaluated(pair, values))
            if not alike(claimed, exact, CLOSE):
                (base,) = evaluated([subject.judged], usual)
                if alike(claimed, scale * base.reshape(-1), CLOSE):
                    break  # wrong, but linear
                for other in subjects:
                    other.values, other.note = values, NONLINEAR
                return values
    return usual


# --- the verdicts -------------------------------------------------------------------------------------------------


@oracle_client.exclusive
def judged(box: BlackBox, known: Recorded, settings: Settings) -> list[tuple[Subject, Outcome]]:
    """The verdicts of the oracles; a subject that they cannot decide is left out."""
    subjects = [*known.subjects, *known.rules]
    oracle = oracle_client.shared()
    oracle.warm()
    ours = box.library.name == EAGER
    seconds = box.seconds if ours else box.seconds / 2  # the rest is for what values have to decide
    exact = Exact(oracle, [node for subject in subjects for node in subject.nodes()], seconds)
    verdicts = []
    for subject in subjects:
        subject.settings = settings
        _, outcome = verdict_on(exact, subject)
        if outcome.verdict == "DISAGREES" and box.kind == JACOBIAN and box.shape:
            outcome = by_entry(box, known, exact, subject, outcome)
        if outcome.verdict in DECIDED or (ours and "unanswered" in outcome.evidence):
            evidence = {**outcome.evidence, "graph": "recorded"}
            verdicts.append((subject, outcome._replace(evidence=evidence, diagnostics=())))
    return verdicts


def by_entry(box: BlackBox, known: Recorded, exact: Exact, subject: Subject, refuted: Outcome) -> Outcome:
    """The refutation of a Jacobian by its entry that is farthest off, instead of a combination of its rows."""
    leaf, arriving, (output,) = str(subject.leaf), subject.moving[-1], known.outputs
    both, units = evaluator(sides(subject)), np.eye(box.size).reshape(-1, *output.type.shape)
    near = chosen_points.rescaled(subject.values[leaf], BESIDE, box.size)
    points = [subject.values, *({**subject.values, leaf: x} for x in near)]
    rows = [[both({**point, arriving: unit}) for unit in units] for point in points]
    right, claimed = np.moveaxis(np.array(rows).reshape(len(rows), box.size, 2, -1), 2, 0)
    gaps, size = np.abs(right - claimed)[0], np.maximum(np.abs(right), np.abs(claimed))[0]
    row = int(np.argmax(gaps / np.where(size > 0, size, 1.0))) // gaps.shape[1]
    with building(output.builder, reachable([output, subject.judged])) as builder:
        entry = entries(builder, [output], np.array([row]), ())
        unit = {known.program.leaves[arriving].node: constant(builder, units[row])}
        (claim,) = builder.substituted([subject.judged], unit)
    about: dict[str, Any] = {"kind": "claim", "output": entry, "judged": claim, "surfaces": surfaces_of(entry)}
    alone = replace(subject, **about, moving=subject.moving[:-1])
    _, outcome = verdict_on(exact.beside(alone.nodes()), alone)
    if outcome.verdict != "DISAGREES":
        return refuted
    shown: Any = outcome.evidence["counterexample"]
    place = f"J{subscript(row, output.type.shape)}{shown['entry']}".replace("][", ", ")
    message = outcome.message.replace(f"the exact derivative{shown['entry']} is", f"{place} is", 1)
    evidence = {**outcome.evidence, "counterexample": {**shown, "entry": place}}
    causes = readings(Comparison(right, claimed), what="Jacobian")
    refutation = disagrees(message.partition("; ")[0], evidence, causes)
    return refutation if causes else Outcome("DISAGREES", message, evidence)


def notes_on(box: BlackBox, known: Recorded) -> list[str]:
    """Notes on the graph."""
    fewer = [name for name in dict.fromkeys(known.formats) if unit_of(name) > EPSILON]
    if fewer:
        note = f"it computes in {' and '.join(fewer)}: checked as a formula over the real numbers"
        off = max(known.sent.values())
        return [f"{note}; what is sent is right to {-math.ceil(math.log10(off))} digits" if 0 < off < 0.1 else note]
    held = sum(1 for node in reachable(known.program.outputs) if node.primitive.name == "detach")
    return ["f detaches a value: it is held constant here, as in backward"] if held else []


# --- small things -------------------------------------------------------------------------------------------------


def at_point(program: Program) -> dict[str, Floats]:
    """The values of a program's inputs as they were recorded."""
    return {name: np.asarray(leaf.default, dtype=np.float64) for name, leaf in program.leaves.items()}


def moved(box: BlackBox, x: Floats) -> dict[str, Floats]:
    """The arguments that are judged at a flat point of a box."""
    return {name: x[part].reshape(box.shape_of(name)) for name, part in box.slices.items()}
