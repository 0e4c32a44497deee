"""The results that a script expects in its comments, `#> grad x = [64, 32]`, compared with what is computed.

Numbers are the engine's floats at the point of the check. They agree within the relative tolerance of a pragma
(else 1e-9), and a few units in the last place of the largest entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.checks.decide.floats import evaluated, kind_of
from gradcli.checks.expectations import numbered
from gradcli.checks.formatting import plain, point_text
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.report import VERDICTS, Check
from gradcli.graph.arrays import subscript
from gradcli.language.comments.directives import output_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.checks.report import Settings
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node
    from gradcli.language.syntax import Expected, Script
    from gradcli.lowering import Lowered

    Values = Mapping[str, NDArray[Any]]

RTOL = 1e-9
ULPS = 64  # of the largest entry: libraries differ in the last digits
MOST_WRITTEN = 1_000  # entries of an array that are written out


class Stated(NamedTuple):
    """An expected result, and what it is about: a node, or the position of a check."""

    expected: Expected
    node: Node | None = None
    check: int | None = None
    leaf: str | None = None


def text_without(script: Script) -> str:
    """The text of a script without its expected results: recording them moves no random point of a check."""
    lines = {expected.line for expected in script.expected}
    kept = (line for number, line in enumerate(script.source.lines(), 1) if number not in lines)
    return "".join(kept) if lines else script.source.text


def expected_results(lowered: Lowered, subjects: Sequence[Subject], wrt: Sequence[str] | None) -> list[Stated]:
    """What the expected results of a script are about, without those by leaves that `wrt` leaves out.

    Raises GradcliError (GC136) with every one that names what the script does not have.
    """
    stated: list[Stated] = []
    problems: list[Diagnostic] = []
    for expected in lowered.script.expected:
        if wrt is not None and expected.name in lowered.program.leaves and expected.name not in lowered.wrt:
            continue  # not requested
        try:
            stated.append(subject_of(expected, lowered, subjects))
        except GradcliError as problem:
            problems += problem.diagnostics
    if problems:
        raise GradcliError(*problems)
    return stated


def subject_of(expected: Expected, lowered: Lowered, subjects: Sequence[Subject]) -> Stated:
    """What one expected result is about; raises GradcliError GC136 where the script does not have it."""

    def problem(message: str, help: str) -> GradcliError:
        return error("GC136", message, expected.span, help=help)

    outputs = lowered.program.outputs
    if expected.output is not None and expected.output > len(outputs):
        raise problem(f"output {expected.output} does not exist", f"the script has {len(outputs)}")
    if expected.item == "value" and expected.output is None and len(outputs) > 1:
        raise problem(f"there are {len(outputs)} outputs", "write #> value (output 1) = ...")
    if expected.item == "value":
        return Stated(expected, outputs[(expected.output or 1) - 1])
    if expected.item == "check" and expected.text not in VERDICTS:
        guess = did_you_mean(expected.text, VERDICTS)
        hint = f"did you mean {guess}?" if guess else f"write one of {', '.join(VERDICTS)}"
        raise problem(f"`{visible(expected.text)}` is not a verdict", hint)
    name = expected.name if expected.output is None else f"{expected.name}{of_output(expected.output, lowered)}"
    wanted = {
        label: i
        for i, (label, subject) in enumerate(zip(labels(lowered), subjects, strict=True))
        # a claim of the caller has no place
        if (subject.kind == "gradient" if expected.item == "grad" else subject.place is not None)
    }
    if name not in wanted:
        guess = did_you_mean(name, wanted)
        hint = f"did you mean `{guess}`?" if guess else f"there are: {', '.join(wanted) or 'none'}"
        what = "gradient with respect to" if expected.item == "grad" else "check of"
        raise problem(f"no {what} `{visible(name)}`", hint)
    subject = subjects[wanted[name]]
    if expected.item == "check":
        return Stated(expected, check=wanted[name], leaf=subject.leaf)
    if subject.note is not None:
        raise problem("the output is an array, so it has no gradient", "record the value")
    return Stated(expected, subject.judged, leaf=subject.leaf)


def of_output(number: int, lowered: Lowered) -> str:
    """What is written behind a name to choose one of several outputs."""
    return f" (output {number})" if len(lowered.program.outputs) > 1 else ""


def labels(lowered: Lowered) -> list[str]:
    """What subjects are called behind `#> check`, in their order: `x`, `claim 2`, `f.vjp by a`."""
    numbers = range(1, len(lowered.program.outputs) + 1)
    names = [f"{name}{of_output(number, lowered)}" for number in numbers for name in lowered.wrt]
    names += [f"claim {number}" for number in range(1, len(lowered.claims) + 1)]
    return numbered([*names, *(f"{rule.title} by {leaf.name}" for rule in lowered.rules for leaf in rule.leaves)])


def result_ids(stated: Iterable[Stated]) -> list[str]:
    """The ids of the checks of expected results, such as `expectation:grad x`."""
    return numbered(f"expectation:{result.expected.title}" for result in stated)


def compared(
    lowered: Lowered, stated: Sequence[Stated], verdicts: Sequence[str], values: Values, settings: Settings
) -> list[Check]:
    """A check for each expected result; `verdicts` are those of all subjects."""
    nodes = [result.node for result in stated if result.node is not None]
    arrays = iter(evaluated(nodes, values, settings.dtype, settings.backend) if nodes else ())
    results: list[Check] = []
    for name, (expected, node, check, leaf) in zip(result_ids(stated), stated, strict=True):
        if node is not None:
            verdict, message, evidence = numbers(lowered, expected, node, next(arrays), values, settings)
        else:
            assert check is not None
            computed = verdicts[check]
            verdict = "AGREES" if computed == expected.text else "DISAGREES"
            message = f"expected {expected.text}, but it is {computed}" if verdict == "DISAGREES" else computed
            evidence = {"expected": expected.text, "computed": computed}
        about = (name, lowered.source.path, expected.line, "expectation", leaf, verdict, plain(evidence))
        results.append(Check(*about, f"{expected.title}: {message}", passed=verdict == "AGREES"))
    return results


def numbers(
    lowered: Lowered, expected: Expected, node: Node, array: NDArray[Any], values: Values, settings: Settings
) -> tuple[str, str, dict[str, Any]]:
    """The verdict on expected numbers, why, and the evidence."""
    used = leaf_names([node])
    unset = [name for name in lowered.program.leaves if name in used and name not in lowered.values]
    if unset:
        message = f"{', '.join(unset)} has no value, so there is no result to expect: give it one in the script"
        return "INCONCLUSIVE", message, {"expected": expected.text}
    near = settings.at_lines(lowered, output_line(lowered.script.statements), expected.line)
    rtol = RTOL if near.rtol is None else near.rtol
    scale = np.abs(array).max(initial=0.0, where=np.isfinite(array))
    floor = ULPS * float(kind_of(settings.dtype).eps) * float(scale)
    if expected.digest is not None:
        array, terms = digested(array, expected.digest)
        floor = (rtol + ULPS * float(kind_of("float64").eps)) * float(terms)  # of a sum: terms may cancel
        floor = floor if np.isfinite(floor) else 0.0
    wanted = np.asarray(expected.value)
    evidence: dict[str, Any] = {"expected": expected.text, "computed": written(array), "at": point_text(values, used)}
    evidence |= {"tolerance": rtol, "basis": "numerical"}
    if wanted.shape != array.shape:
        return "DISAGREES", f"expected {shape_text(wanted)}, but it is {shape_text(array)}", evidence
    with np.errstate(all="ignore"):
        close = np.abs(wanted - array) <= np.maximum(rtol * np.abs(wanted), floor)
    finite = np.isfinite(wanted) & np.isfinite(array)
    wrong = np.flatnonzero(~((wanted == array) | (np.isnan(wanted) & np.isnan(array)) | (close & finite)))
    if not wrong.size:
        return "AGREES", f"as expected, within {rtol:g}", evidence
    where = subscript(int(wrong[0]), array.shape)
    wanted_text, text = written(wanted.reshape(-1)[wrong[0]]), written(array.reshape(-1)[wrong[0]])
    return "DISAGREES", f"expected {wanted_text}, but {f'entry {where}' if where else 'it'} is {text}", evidence


def shape_text(array: NDArray[Any]) -> str:
    return f"an array of shape {list(array.shape)}" if array.shape else "a number"


def digested(array: NDArray[Any], digest: str) -> tuple[NDArray[Any], Any]:
    """The sum, the 2-norm or the first moment of an array, and the size of what was added up."""
    flat = array.reshape(-1)
    if digest == "norm":
        norm = np.asarray(np.linalg.norm(flat))
        return norm, norm
    terms = flat if digest == "sum" else flat * (np.arange(1, flat.size + 1) / max(flat.size, 1))
    return np.asarray(terms.sum()), np.abs(terms).sum()


def written(array: Any) -> str:
    """Numbers as they are written in a script's comment, with the fewest digits that read back as the same floats."""
    array = np.asarray(array)
    if array.size > MOST_WRITTEN:
        return shape_text(array)
    if array.shape:
        return f"[{', '.join(map(written, array))}]"
    value = array.item()
    if isinstance(value, complex):
        return f"{value.real!r}{value.imag:+}j"
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(float(value))
