"""Applies the expectations of a script and of its caller to outcomes, which gives finished checks.

An expectation that is not met is a failure, also where the check is better than expected: remove a remark that has
become wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.report import Check

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gradcli.checks.decide.case import Outcome
    from gradcli.checks.subjects import Subject
    from gradcli.diagnostics import GradcliError
    from gradcli.language.source import Source
    from gradcli.lowering import Lowered

GOOD = ("PROVED", "CERTIFIED", "AGREES", "IMPRECISE")
MEETS = {
    "kink": ("KINK", "BOUNDARY", "DISCONTINUOUS"),
    "boundary": ("BOUNDARY",),
    "discontinuous": ("DISCONTINUOUS",),
    "fail": ("DISAGREES",),
    "undefined": ("UNDEFINED", "BOUNDARY"),
    "inconclusive": ("INCONCLUSIVE",),
    "imprecise": ("IMPRECISE",),
}


def settled(
    outcomes: Sequence[tuple[Subject, Outcome]],
    lowered: Lowered,
    source: Source,
    *,
    require: str | None,
    allow_kink: bool,
    lenient: bool,
) -> list[Check]:
    """The checks, each with whether it passed.

    A remark at the output speaks of the point: it is met where the gradient in one leaf is as expected and the
    others are that or good.
    """
    met = {
        subject.group
        for subject, outcome in outcomes
        if subject.group is not None and subject.expect and outcome.verdict in MEETS.get(subject.expect, ())
    }
    found: list[Check] = []
    whole = lowered.script.expect
    fails = any(outcome.verdict in MEETS["fail"] for _, outcome in outcomes)
    for name, (subject, outcome) in zip(check_ids(subject for subject, _ in outcomes), outcomes, strict=True):
        own = subject.settings
        required = own.require if own is not None else frozenset([require] if require else ())
        passed = acceptable(outcome, required, allow_kink if own is None else own.allow_kink, lenient)
        message = outcome.message
        expected = whole if subject.expect is None or subject.group is not None else subject.expect
        expected = subject.expect if whole is None else expected
        if whole == "fail" and expected == whole:
            passed = fails and (passed or outcome.verdict in MEETS["fail"])
            message = message if fails else f"expected the script to fail, but: {message}"
        elif whole is not None and whole.startswith("error "):
            passed, message = False, f"expected {whole}, but the script has no error"
        elif expected is not None:
            passed = meets(expected, outcome) or (subject.group in met and outcome.verdict in GOOD)
            if not passed:
                message = f"expected {expected}, but: {message}"
        claimed = {"claim": subject.text} if subject.kind == "claim" and not passed else {}
        where = (name, subject.file or source.path, subject.line, subject.kind, subject.leaf)
        diagnostics = tuple(one.with_source(source) for one in outcome.diagnostics)
        evidence = {**claimed, **outcome.evidence}
        found.append(Check(*where, outcome.verdict, evidence, message, diagnostics, expected, passed))
    return found


def check_ids(subjects: Iterable[Subject]) -> list[str]:
    """The ids of the checks of a script: `gradient:x`, `claim:3` by its line; equal ones get a number."""
    names: list[str] = []
    for subject in subjects:
        name = f"{subject.kind}:{subject.text if subject.kind != 'claim' else subject.line}"
        if subject.kind == "claim" and subject.leaf and subject.line == 1:
            name = f"claim:{subject.leaf}"
        names.append(name)
    return numbered(names)


def numbered(names: Iterable[str]) -> list[str]:
    """The names, with `#2`, `#3` ... behind those that have come before.

    >>> numbered(["x", "y", "x"])
    ['x', 'y', 'x#2']
    """
    counts: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return found


def acceptable(outcome: Outcome, require: Collection[str | None], allow_kink: bool, lenient: bool) -> bool:
    """Whether a verdict passes when the script says nothing of it."""
    verdict = outcome.verdict
    if verdict == "KINK":
        return allow_kink and outcome.inside
    if verdict == "INCONCLUSIVE":
        return lenient
    if (verdict == "AGREES" and "certified" in require) or (verdict == "IMPRECISE" and "precise" in require):
        return False
    return verdict in GOOD


def meets(expected: str, outcome: Outcome) -> bool:
    """Whether a verdict is what a remark says; at a kink the value must lie between the slopes."""
    if outcome.verdict == "KINK":
        return expected == "kink" and outcome.inside
    return outcome.verdict in MEETS.get(expected, ())


def expected_error(source: Source, problem: GradcliError) -> Check | None:
    """The check of a script whose first line expects an error, passed if it is this one; None where it expects none."""
    codes = list(dict.fromkeys(one.code for one in problem.diagnostics if one.severity == "error"))
    head, _, rest = source.line(source.first_line).strip().partition("expect:")
    expected = rest.strip()
    if head.strip() != "#" or not expected.startswith("error "):
        return None
    wanted = expected.removeprefix("error ").strip()
    met = codes == [wanted]
    told = f"fails with {wanted}, as expected" if met else f"expected {wanted}, but it fails with {', '.join(codes)}"
    span = problem.diagnostics[0].span
    where = ("error", source.path, None if span is None else span.line, "gradient", None)
    return Check(*where, "ERROR", {"codes": codes}, told, problem.diagnostics, expected, met)
