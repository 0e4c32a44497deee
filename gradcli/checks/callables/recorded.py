"""Rigorous verdicts for functions whose graph can be recorded, of NumPy, PyTorch, JAX or gradcli's tensors.

The function runs on values that record what is done with them, and what it computes becomes a program that every oracle
can read: its gradient, written by hand or the library's own, is then judged as a script's is. A recording counts only
where it gives the function's own values, at the point and beside it, and the function's own gradient there. It is a
table of plain data (`graph/flat.py`): a function may run in another process than the one that judges it. Nothing here
imports a library of tensors: its caller has imported it.
"""

from __future__ import annotations

import inspect
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.floats import LIMIT_ULPS, evaluated
from gradcli.checks.decide.numerical import ALIKE
from gradcli.checks.decide.refutation import blaming
from gradcli.checks.differences.step_sequences import seeded_directions
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import Settings
from gradcli.checks.scripts import verdict_on
from gradcli.checks.subjects import Subject, combined, cotangent, of_rule, paired, surfaces_of
from gradcli.diagnostics import GradcliError
from gradcli.frameworks.box import OWN
from gradcli.frameworks.failures import OutOfTime, describe
from gradcli.frameworks.gradient_libraries import EAGER, JAX, NUMPY, TORCH, is_function_class
from gradcli.frameworks.operations import Opaque
from gradcli.frameworks.traced_rule import alike, by_usage, is_rule, traced_rule
from gradcli.graph.builder import building
from gradcli.graph.flat import Table, restore_nodes
from gradcli.graph.node import reachable
from gradcli.graph.program import Leaf, cotangent_name
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from gradcli.transforms.reverse import placed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.frameworks.box import Box
    from gradcli.graph.node import Node
    from gradcli.graph.program import Program

    Floats = NDArray[np.floating[Any]]
    Message = dict[str, Any]

MOST_NODES, MOST_ENTRIES = 3_000, 5_000  # of a program that is worth it: what is larger is judged by values
CLOSE = 1e-12  # two evaluations of the same operations, beside the largest value
LOOSE = 1e-3  # the same where the function computes in float32 or less
CONSTANT = 2.0**-50  # a relative error of the constants of a graph, each of which may have been rounded a few times
ROUNDED = 1e-5  # a relative error that numbers of float32 may make
NONLINEAR = "the backward pass is not linear in its cotangent: checked at a cotangent that shows it"
SCALES = (1.0, -1.0, 2.0**20, 2.0**-20)  # of a cotangent, which a rule must be linear in
BESIDE = 3  # points at which the recording has to give the function's values
ABOUT = ("moving", "leaf", "line", "text", "rule", "file", "values")  # of a rule inside the function
DECIDED = ("PROVED", "CERTIFIED", "IMPRECISE", "DISAGREES", "KINK", "BOUNDARY", "DISCONTINUOUS")


class Rigorous(NamedTuple):
    """A verdict for each argument that the oracles decide, those on the rules of Functions inside, and notes."""

    arguments: dict[str, Outcome]
    rules: list[tuple[Subject, Outcome]]
    notes: list[str]


def by_recording(box: Box, recorded: Message, seed: int, settings: Settings) -> Rigorous:
    """What the oracles decide of what `recording` found; no verdict where only values can.

    The recording may come from another process, so all of it is verified: the combination of outputs is built here, and
    values and gradients must be those that the function itself gives.
    """
    other_use = {str(name): Outcome("DISAGREES", str(text), {}) for name, text in recorded.pop("used", {}).items()}
    undecided = Rigorous(other_use, [], [])
    if not recorded:
        return undecided
    try:
        if "unfit" in recorded:
            raise Opaque(str(recorded["unfit"]))
        program, subjects, rules = read(box, recorded, seed)
        verdicts = judged(box, [*subjects, *rules], Settings(settings.samples, seed=seed, witnesses=settings.witnesses))
        if box.library.name != EAGER:
            verdicts = [(x, with_size(x, verdict)) for x, verdict in verdicts if stands(recorded, x, verdict)]
    except (OutOfTime, GradcliError):
        return undecided
    except Opaque as problem:
        return undecided._replace(notes=[f"checked by its values alone: {problem}"] if str(problem) else [])
    inside = [pair for pair in verdicts if pair[0].file is not None]
    own = {str(subject.leaf): blaming(verdict, inside) for subject, verdict in verdicts if subject.file is None}
    notes, left = notes_on(program, recorded, box), [name for name in box.names if name not in own]
    if any(subject.note == NONLINEAR for subject in subjects):
        notes.append(NONLINEAR)
    if left and recorded.get("rule"):
        notes.append(f"{', '.join(left)}: checked by values, since the exact oracles cannot decide below rounding")
    return Rigorous({**own, **other_use}, inside, notes)


# --- recording: beside the function -----------------------------------------------------------------------------


def recording(box: Box, seed: int) -> Message:
    """The program of a function, its gradients and the rules inside it as plain data; empty where there is none.

    Of a `Function` the forward is the program, and its backward the gradients. `used` tells how these depend on which
    arguments and results are used.
    """
    used = by_usage(box, seed)
    recorded: Message = {"used": used} if used else {}
    try:
        return {**recorded, **(of_framework if box.library.name in (TORCH, JAX, NUMPY) else of_tensors)(box, seed)}
    except Opaque as problem:
        return {**recorded, "unfit": str(problem)}
    except GradcliError:
        return recorded


def of_tensors(box: Box, seed: int) -> Message:
    """The recording of a function of gradcli's tensors, or of a `Function` of theirs."""
    record = getattr(sys.modules.get(EAGER), "record", None)
    if record is None or box.kind != OWN or box.float32 or not np.isfinite(box.x).all() or single(box):
        return {}
    program = ran(box, record)
    return (of_class if is_function_class(owner(box)) else of_function)(box, program, seed)


def of_function(box: Box, program: Any, seed: int) -> Message:
    """The recording of a function, with its gradients: those of a combination of its outputs."""
    outputs = list(program.outputs)
    if any(node.type.kind != "float" for node in outputs):
        raise Opaque("")
    total, _ = summed(outputs, seed)
    gradients = derivatives.grad(total, [program.leaves[name].node for name in box.names])
    return message(program, outputs, dict(zip(box.names, gradients, strict=True)), seed)


def of_class(box: Box, program: Any, seed: int) -> Message:
    """The recording of a `Function`'s forward, and of its backward, which is a rule written by hand."""
    rule = next((other for other in program.rules if other.name == owner(box).__name__), None)
    if box.shape is None or rule is None or {*box.names} - {leaf.name for leaf in rule.leaves}:
        raise Opaque("")
    program.rules = tuple(other for other in program.rules if other is not rule)
    name = cotangent_name(box.names)
    arriving = program.builder.leaf(name, rule.cotangent.type.shape)
    program.leaves[name] = Leaf(name, arriving, np.zeros(arriving.type.shape))
    operands = {leaf.node: node for leaf, node in zip(rule.leaves, rule.args, strict=True)}
    output, *sent = placed(program.builder, [rule.output, *rule.results], {**operands, rule.cotangent: arriving})
    sent_to = dict(zip([leaf.name for leaf in rule.leaves], sent, strict=True))
    recorded = message(program, [output], {name: sent_to[name] for name in box.names}, seed)
    return {**recorded, "by hand": True, "cotangents": {"0": name}}


def of_framework(box: Box, seed: int) -> Message:
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


def read(box: Box, recorded: Message, seed: int) -> tuple[Program, list[Subject], list[Subject]]:
    """The program of a recording, the gradients with respect to the arguments, and the rules inside it."""
    try:
        program, nodes = restore_nodes(recorded["flat"], catalogue())
        outputs = [nodes[row] for row in recorded["outputs"]]
        gradients = {str(name): nodes[row] for name, row in recorded["gradients"].items()}
        rules = [rule_of(row, nodes) for row in recorded["rules"]]
        unknown = {*box.names} - program.leaves.keys()
    except Exception:  # a table that nothing of ours wrote
        raise Opaque("its recording cannot be read") from None
    if unknown or gradients.keys() != {*box.names}:
        raise Opaque("its recording cannot be read")
    values = at_point(program, box, box.x)
    formats = [str(name) for name in recorded.get("formats", ())]
    loose = bool(formats) or box.float32 or single(box)
    same_values(box, program, outputs, seed, loose)
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
        reason = "its backward pass gives another result when it is recorded"
        same_sent(box, subjects, pieces, LOOSE if loose else CLOSE, reason)
    else:
        weights = evaluated(derivatives.grad(total, list(outputs)), subjects[0].values)
        same_sent(box, subjects, weights, 0.0, "its backward pass differs from the derivative of its operations")
    for rule in rules:
        assert rule.output is not None
        rule.surfaces = surfaces_of(rule.output)
    return program, subjects, rules


def stands(recorded: Message, subject: Subject, verdict: Outcome) -> bool:
    """Whether a verdict on a graph of PyTorch or JAX holds for the function.

    Such a graph does not show what is detached, or computed under no_grad. Inside a rule nothing else is expected; of
    any other function only what is right counts. Where it computes in float32 or less, its constants are rounded to as
    many digits, and a difference that this makes refutes nothing; nor does one that no double shows.
    """
    if verdict.verdict in ("PROVED", "CERTIFIED", "IMPRECISE"):
        return True
    if not recorded.get("rule"):
        return False
    if verdict.verdict != "DISAGREES":
        return True
    if recorded.get("formats"):
        return relative_gap(subject) > ROUNDED
    return relative_gap(subject) > CLOSE or not same_double(verdict)


def same_double(verdict: Outcome) -> bool:
    """Whether what is refuted is the nearest double of what is right: 0 for a number that no double can hold."""
    shown: Any = verdict.evidence.get("counterexample", {})
    exact, claimed = (str(shown.get(side)).rstrip(".") for side in ("exact", "claimed"))
    try:
        return float(exact) == float(claimed)
    except ValueError:
        return False


def with_size(subject: Subject, verdict: Outcome) -> Outcome:
    """A refutation by a small difference says how large it is: a solver or an iteration may make it."""
    if verdict.verdict != "DISAGREES" or not 0 < (gap := relative_gap(subject)) < ALIKE:
        return verdict
    remark = f" (a relative {gap:.0g}: if f is computed approximately, rtol= allows for it)"
    return verdict._replace(message=verdict.message + remark)


def relative_gap(subject: Subject) -> float:
    """How far what is judged lies from the derivative, beside the largest entry."""
    exact, claimed = evaluated(sides(subject), subject.values)
    size = float(np.abs(exact).max(initial=0.0))
    return float(np.abs(exact - claimed).max(initial=0.0)) / size if size else np.inf


def sides(subject: Subject) -> list[Node]:
    """The derivative, and what is judged."""
    assert subject.output is not None and subject.target is not None
    return [*derivatives.grad(subject.output, [subject.target]), subject.judged]


def single(box: Box) -> bool:
    """Whether some argument has fewer digits than float64."""
    return any(arg.array is not None and np.asarray(arg.array).dtype != np.float64 for arg in box.arguments)


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


def ran(box: Box, record: Any) -> Any:
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


def same_values(box: Box, program: Program, outputs: Sequence[Node], seed: int, loose: bool = False) -> None:
    """Opaque unless the recording gives the function's values at the point and at points beside it."""
    ways = [np.zeros(box.x.size), *(0.01 * d for d in seeded_directions(box.x, BESIDE, seed))]
    for way in ways:
        x = box.x + way
        own = box.value(x)
        values = np.concatenate([part.reshape(-1) for part in evaluated(outputs, at_point(program, box, x))])
        if not alike(values, own, LOOSE if loose else CLOSE):
            raise Opaque("its recording does not reproduce its values")


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


def same_sent(box: Box, subjects: Sequence[Subject], weights: Sequence[Floats], close: float, reason: str) -> None:
    """Opaque unless the real backward pass sends what the recording gives, entry by entry or beside the largest."""
    sent = box.pullback(box.x, np.concatenate([part.reshape(-1) for part in weights]), at_the_point=True)
    for subject in subjects:
        returned = sent[box.slices[str(subject.leaf)]]
        expected = evaluated([subject.judged], subject.values)[0].reshape(-1)
        with np.errstate(invalid="ignore"):  # inf - inf
            near = np.abs(expected - returned) <= LIMIT_ULPS * np.spacing(np.abs(returned))
        equal = bool((near | (expected == returned) | (np.isnan(expected) & np.isnan(returned))).all())
        if not equal and not (close and alike(expected, returned, close)):
            raise Opaque(reason)


# --- the verdicts -------------------------------------------------------------------------------------------------


@oracle_client.exclusive
def judged(box: Box, subjects: Sequence[Subject], settings: Settings) -> list[tuple[Subject, Outcome]]:
    """The verdicts of the oracles; a subject that they cannot decide is left out."""
    oracle = oracle_client.shared()
    oracle.warm()
    ours = box.library.name == EAGER
    seconds = box.seconds if ours else box.seconds / 2  # the rest is for what values have to decide
    exact = Exact(oracle, [node for subject in subjects for node in subject.nodes()], seconds)
    verdicts = []
    for subject in subjects:
        subject.settings = settings
        _, outcome = verdict_on(exact, subject)
        if outcome.verdict in DECIDED or (ours and "unanswered" in outcome.evidence):
            evidence = {**outcome.evidence, "graph": "recorded"}
            verdicts.append((subject, outcome._replace(evidence=evidence, diagnostics=())))
    return verdicts


def notes_on(program: Program, recorded: Message, box: Box) -> list[str]:
    """Notes on the graph."""
    if box.library.name != EAGER:
        formats = [*recorded.get("formats", ()), *(["float32"] if box.float32 or single(box) else [])]
        note = f"it computes in {' and '.join(dict.fromkeys(formats))}: checked as a formula over the real numbers"
        return [note] if formats else []
    held = sum(1 for node in reachable(program.outputs) if node.primitive.name == "detach")
    return ["f detaches a value: it is held constant here, as in backward"] if held else []


# --- small things -------------------------------------------------------------------------------------------------


def owner(box: Box) -> Any:
    """The class whose `apply` is judged, or None."""
    return getattr(box.f, "__self__", None)


def at_point(program: Program, box: Box | None = None, x: Any = None) -> dict[str, Floats]:
    """The values of a program's inputs as they were recorded, those that are judged of a flat point of a box."""
    values = {name: np.asarray(leaf.default, dtype=np.float64) for name, leaf in program.leaves.items()}
    moved = {} if box is None else {name: x[box.slices[name]].reshape(box.shape_of(name)) for name in box.names}
    return {**values, **moved}
