"""`gradcli why` for scripts: why a gradient is zero, missing, NaN or huge, with the line and a fix.

A gradient is followed from the leaf to the output: it ends at a node that receives a cotangent and passes none on.
"""

from __future__ import annotations

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.base.results.findings import AtStep, Explanation, Finding
from gradcli.calculator.magnitudes import finite, holds_nan, largest_of, state, word
from gradcli.execution.evaluate import Tape
from gradcli.graph.exact import count_text
from gradcli.graph.node import LEAF
from gradcli.graph.node_text import kink_texts
from gradcli.primitives import catalogue
from gradcli.primitives.arithmetic import mul
from gradcli.primitives.comparison import detach
from gradcli.primitives.contraction import matmul
from gradcli.transforms.surfaces import surfaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gradcli.base.results.calculations import BackwardStep, Trace
    from gradcli.graph.primitive import Primitive
    from gradcli.lowering import Lowered


FIXES = {
    "const": "leave const out, or ask for another leaf",
    "no-path": "compute the output from it; what does not enter it has a gradient of zero",
    "detached": "take detach(...) out where the gradient is wanted",
    "branch": "this is right: a branch that is not taken does not count. Choose another point to see its gradient",
    "step-function": "use a smooth stand-in, such as sigmoid, or keep only the value of the step, and the slope of its "
    "argument u: u + detach(step(u) - u)",
    "kink": "any slope between the two sides is as good; choose another point, or a smooth function such as softplus",
    "saturated": "scale the argument down: far from zero this function is flat",
    "times-zero": "the other factor is zero here, so the product does not depend on it",
    "flat": "nothing is wrong: here the slope itself is zero",
    "cancels": "nothing is wrong: the contributions along the different paths add up to zero",
    "not-finite": "keep the operand away from the point: clip it, or use a stable form (log1p, hypot, logsumexp)",
    "vanishing": "scale the inputs, or compute in logarithms",
    "exploding": "scale the inputs, or move away from the pole",
}
SHARP = {
    "branch",
    "step-function",
    "flat",
}  # reasons that are not given where a kink at the same operation explains more


HUGE, TINY = 1e8, 1e-12


def explain(lowered: Lowered, result: Trace, wanted: str | None, values: Mapping[str, Any], dtype: str) -> Explanation:
    """The findings about the gradients of a trace; with `wanted` about one leaf, then minor findings too.

    Raises GradcliError (GC206) for a name that is not a leaf.
    """
    leaves = lowered.program.leaves
    if wanted is not None and wanted not in leaves:
        near = did_you_mean(wanted, list(leaves))
        hint = f"did you mean {near}?" if near else f"the leaves are {', '.join(leaves)}"
        raise error("GC206", f"{visible(wanted, 100)} is not a leaf of the script", help=hint)
    story = _Story(result)
    findings: list[Finding] = []
    if wanted is not None and leaves[wanted].const:
        span = leaves[wanted].span
        findings.append(_find("const", wanted, span[0] if span else None, "is not computed: it is const"))
    for name, value in result.gradient.items():
        if wanted is None or name == wanted:
            findings += _about(story, name, value, wanted is not None)
    kinks = list(_kinks(lowered, result, values, dtype, wanted))
    at_kinks = {kink.evidence for kink in kinks}
    findings = [each for each in findings if each.evidence not in at_kinks or each.reason not in SHARP] + kinks
    if not finite(result.value) and not any(finding.reason == "not-finite" for finding in findings):
        findings += list(_origin(story, None, None))
    gradients = {name: state(value) for name, value in result.gradient.items() if wanted in (None, name)}
    return Explanation(lowered.source.name, tuple(findings), gradients)


def _find(reason: str, subject: str | None, line: int | None, message: str, evidence: AtStep | None = None) -> Finding:
    phrase = message if subject is None else f"the gradient of {subject} {message}"
    return Finding(reason, subject, line, phrase, FIXES[reason], evidence)


class _Story:
    """A trace with its steps by number, and the contributions between them."""

    def __init__(self, result: Trace) -> None:
        self.result = result
        self.steps = {step.index: step for step in result.forward}
        self.backward = {step.index: step for step in result.backward}
        self.leaves = {str(step.params.get("name")): step.index for step in result.forward if step.primitive == "leaf"}
        self.senders: dict[int, list[tuple[BackwardStep, Any]]] = {}
        for step in result.backward:
            for sent in step.contributions:
                self.senders.setdefault(sent.to, []).append((step, sent.value))
        self.users: dict[int, list[int]] = {}
        for reader in result.forward:
            for read in reader.inputs:
                self.users.setdefault(read, []).append(reader.index)

    def operation(self, index: int) -> Primitive:
        """The declaration of a step's operation."""
        return catalogue().get(self.steps[index].primitive, LEAF)

    def at(self, index: int) -> str:
        """A step as people read it."""
        step = self.steps[index]
        iteration = "" if step.iteration is None else f"iteration {count_text(step.iteration)}"
        where = ", ".join([*([f"line {step.span[0]}"] if step.span else []), *([iteration] if iteration else [])])
        where = f"{where}: " if where else ""
        text = step.text if len(step.text) <= 60 else step.primitive
        return f"{where}`{text}`"

    def line(self, index: int) -> int | None:
        """The line of a step."""
        span = self.steps[index].span
        return span[0] if span else None


def _about(story: _Story, name: str, value: Any, asked: bool) -> Iterator[Finding]:
    """The findings about one leaf."""
    at = story.leaves.get(name)
    largest = largest_of(value)
    if largest != largest or largest == float("inf"):
        yield from _origin(story, name, at)
    elif largest == 0:
        yield from _zero(story, name, at, asked)
    elif largest > HUGE:
        yield _extreme(story, name, at, "exploding", largest)
    elif largest < TINY:
        yield _extreme(story, name, at, "vanishing", largest)


def _origin(story: _Story, name: str | None, at: int | None) -> Iterator[Finding]:
    """Where the first NaN or infinity appears, in the value or else on the way back."""
    lead = "is not finite: " if name else ""
    for step in story.result.forward:
        if not finite(step.value) and all(finite(story.steps[read].value) for read in step.inputs):
            if step.primitive in ("leaf", "constant", "data") or not _reaches(story, step.index):
                continue
            yield _find(
                "not-finite",
                name,
                story.line(step.index),
                f"{lead}the value of {story.at(step.index)} is {word(step.value)}{' already' if name else ''}",
                AtStep(step.primitive, step.index),
            )
            return
    for back in story.result.backward:
        for sent in back.contributions:
            if finite(back.cotangent) and not finite(sent.value):
                how = "an infinite slope times zero" if holds_nan(sent.value) else "the slope is infinite"
                yield _find(
                    "not-finite",
                    name,
                    story.line(back.index),
                    f"is not finite: on the way back {story.at(back.index)} sends {word(sent.value)} on ({how})",
                    AtStep(back.primitive, back.index),
                )
                return
    yield _find("not-finite", name, None if at is None else story.line(at), "is not finite, as the point itself is")


def _zero(story: _Story, name: str, at: int | None, asked: bool) -> Iterator[Finding]:
    """Where the gradient of a leaf ends."""
    if at is None or not story.users.get(at):
        yield _find("no-path", name, None, "is zero: nothing reads it")
        return
    explained: set[tuple[str, int]] = set()
    waiting, seen = [at], {at}
    while waiting:
        receiver = waiting.pop()
        for back, value in story.senders.get(receiver, []):
            if largest_of(back.cotangent) > 0 and largest_of(value) == 0:
                reason = _reason(story, back.index, receiver)
                if (reason, back.index) not in explained:
                    explained.add((reason, back.index))
                    what = f"{story.at(back.index)} passes nothing on to {story.at(receiver)}"
                    at_step = AtStep(back.primitive, back.index)
                    yield _find(reason, name, story.line(back.index), f"is zero: {what}", at_step)
            elif largest_of(back.cotangent) == 0 and back.index not in seen:
                seen.add(back.index)
                waiting.append(back.index)
    reached = _reached(story, at)
    stops = [end for end in reached if _stops(story.operation(end))]
    for index in sorted(reached & set(story.backward)):
        back, sent = story.backward[index], {part.to for part in story.backward[index].contributions}
        closed = [read for read in story.steps[index].inputs if read in reached and read not in sent]
        closed = [] if set(closed) & set(stops) else closed
        if closed and largest_of(back.cotangent) > 0 and not _is_truth(story, closed[0]):
            reason = _reason(story, index, closed[0])
            explained.add((reason, index))
            what = f"{story.at(index)} passes nothing on to {story.at(closed[0])}"
            yield _find(reason, name, story.line(index), f"is zero: {what}", AtStep(back.primitive, index))
    operations = {end: story.operation(end) for end in reached}
    blocked = {end for end, own in operations.items() if own.piecewise_constant or _stops(own)}
    blocked -= {index for _, index in explained}
    for end in sorted(blocked):
        primitive = story.steps[end].primitive
        reason = "detached" if primitive == "detach" else "step-function"
        if primitive == "detach" or not explained:
            explained.add((reason, end))
            what = f"no gradient passes {story.at(end)}"
            yield _find(reason, name, story.line(end), f"is zero: {what}", AtStep(primitive, end))
    if not explained:
        yield (
            _find("cancels", name, None, "is zero: the contributions along its paths cancel out")
            if story.senders.get(at)
            else _find("no-path", name, None, "is zero: the output does not depend on it")
        )


def _reason(story: _Story, index: int, towards: int) -> str:
    """The reason why an operation passes no gradient on."""
    operation = story.operation(index)
    if operation.piecewise_constant:
        return "step-function"
    if operation.saturates:
        return "saturated"
    if operation.chooses:
        return "branch"
    return "times-zero" if operation in (mul, matmul) else "flat"


def _stops(operation: Primitive) -> bool:
    """Whether it gives truth values or positions, or a constant: no gradient flows through it."""
    return bool(operation.compares) or operation.gives_positions or operation is detach


def _is_truth(story: _Story, index: int) -> bool:
    """Whether a step returns truth values or positions, through which no gradient flows."""
    return not story.steps[index].type.startswith(("f", "c"))


def _reached(story: _Story, at: int) -> set[int]:
    """Everything that was computed from a step."""
    seen, waiting = {at}, [at]
    while waiting:
        for user in story.users.get(waiting.pop(), ()):
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return seen


def _reaches(story: _Story, index: int) -> bool:
    """Whether a gradient that is not finite passes through a step; through a branch that is not taken, none does."""
    last = story.result.forward[-1].index
    return last in _reached(story, index) and not finite(story.steps[last].value)


def _extreme(story: _Story, name: str, at: int | None, reason: str, size: float) -> Finding:
    """Where a gradient shrinks or grows most."""
    steepest, where = 1.0, None
    way = set(story.steps) if at is None else _reached(story, at)
    for back in story.result.backward:
        for sent in back.contributions if back.index in way else ():
            if sent.to not in way:
                continue
            before, after = largest_of(back.cotangent), largest_of(sent.value)
            factor = after / before if before > 0 else 1.0
            factor = 1 / factor if reason == "vanishing" and factor > 0 else factor
            if factor > steepest:
                steepest, where = factor, back.index
    flat = where is not None and story.operation(where).saturates
    line = None if where is None else story.line(where)
    phrase = f"is {size:.3g}"
    if where is not None:
        change = "shrinks" if reason == "vanishing" else "grows"
        phrase += f": it {change} most in {story.at(where)}, by a factor of {steepest:.3g}"
    return _find("saturated" if flat and reason == "vanishing" else reason, name, line, phrase)


def _kinks(
    lowered: Lowered, result: Trace, values: Mapping[str, Any], dtype: str, wanted: str | None
) -> Iterator[Finding]:
    """The operations that are not smooth at this point and through which a gradient passes."""
    order = lowered.program.nodes()
    passed = {step.index for step in result.backward if largest_of(step.cotangent) != 0}
    places = {node: index for index, node in enumerate(order)}
    sharp = [(places[node], kink, zero) for node, zero, kink in surfaces(order) if kink in node.primitive.kinks]
    sharp = [surface for surface in sharp if surface[0] in passed]
    if not sharp:
        return
    known = Tape([*order, *[zero for _, _, zero in sharp]]).run_all(values, dtype=dtype)
    story = _Story(result)
    reachable = None if wanted is None or wanted not in story.leaves else _reached(story, story.leaves[wanted])
    for index, kink, zero in sharp:
        apart: Any = known[zero]
        if bool((apart == 0).any() if hasattr(apart, "any") else apart == 0) and (
            reachable is None or index in reachable
        ):
            what = "jumps" if kink.discontinuity else "has a kink"
            where, value = kink_texts(kink, [story.steps[read].text for read in story.steps[index].inputs])
            yield _find(
                "step-function" if kink.discontinuity else "kink",
                None,
                story.line(index),
                f"{story.at(index)} {what} here ({where}): its derivative is taken as {value}",
                AtStep(order[index].primitive.name, index),
            )
