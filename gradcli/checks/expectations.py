"""What the caller and a script require and expect of checks, and whether they pass.

Settings stand in comments, `# gradcli: rtol=1e-6`: a pragma of the line takes precedence over one of the file, and
that over the caller's; what the caller requires always holds. An expectation that is not met is a failure, also where
the check is better than expected: remove a pragma that has become wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.base.diagnostics import NOTE, WARNING, Diagnostic
from gradcli.checks.report import CODE_OF_VERDICT, GOOD, NONSMOOTH, NOT_AS_REQUIRED, Check, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.base.diagnostics import GradcliError
    from gradcli.checks.decide.case import Outcome
    from gradcli.checks.subjects import Subject
    from gradcli.language.source import Source
    from gradcli.lowering import Lowered

MEETS = {
    "kink": NONSMOOTH,
    "boundary": ("BOUNDARY",),
    "discontinuous": ("DISCONTINUOUS",),
    "fail": ("DISAGREES",),
    "undefined": ("UNDEFINED", "BOUNDARY"),
    "inconclusive": ("INCONCLUSIVE",),
    "imprecise": ("IMPRECISE",),
}
LOOSER = ("rtol", "allow-kink")  # settings with which a check may pass that fails without them


def settled(outcomes: Sequence[tuple[Subject, Outcome]], lowered: Lowered) -> list[Check]:
    """The checks, each with whether it passed.

    A pragma at the output is about the point: it holds where the gradient in one leaf is as expected and the others
    are that or good.
    """
    met = {x.group for x, outcome in outcomes if outcome.verdict in MEETS.get(x.expect or "", ())} - {None}
    checks: list[Check] = []
    whole, source = lowered.script.expect, lowered.source
    fails = any(outcome.verdict in MEETS["fail"] for _, outcome in outcomes)
    for name, (subject, outcome) in zip(check_ids(subject for subject, _ in outcomes), outcomes, strict=True):
        passed, message = acceptable(outcome, subject.settings), outcome.message
        of_line = whole is None or (subject.expect is not None and subject.group is None)
        expected = subject.expect if of_line else whole
        if whole == "fail" and expected == whole:
            passed = fails and (passed or outcome.verdict in MEETS["fail"])
            message = message if fails else f"expected the script to fail, but: {message}"
        elif whole is not None and whole.startswith("error "):
            passed, message = False, f"expected {whole}, but the script has no error"
        elif expected is not None:
            tied = expected == "kink" and outcome.inside  # at a kink the value must lie between the slopes
            passed = tied if outcome.verdict == "KINK" else outcome.verdict in MEETS.get(expected, ())
            passed = passed or (subject.group in met and outcome.verdict in GOOD)
            message = message if passed else f"expected {expected}, but: {message}"
        claimed = {"claim": subject.text} if subject.kind == "claim" and not passed else {}
        where = (name, subject.file or source.path, subject.line, subject.kind, subject.leaf)
        diagnostics = tuple(diagnostic.with_source(source) for diagnostic in outcome.diagnostics)
        evidence = {**claimed, **outcome.evidence}
        checks.append(Check(*where, outcome.verdict, evidence, message, diagnostics, expected, passed, outcome.later))
    return checks


def check_ids(subjects: Iterable[Subject]) -> list[str]:
    """The ids of the checks of a script: `gradient:x`, `claim:3` by its line; equal ones get a number."""
    names: list[str] = []
    for subject in subjects:
        name = subject.text if subject.kind != "claim" else subject.line
        if subject.kind == "claim" and subject.leaf and subject.line == 1:
            name = subject.leaf
        names.append(f"{subject.kind}:{name}")
    return numbered(names)


def numbered(names: Iterable[str]) -> list[str]:
    """The names, with `#2`, `#3` ... behind those that have come before.

    >>> numbered(["x", "y", "x"])
    ['x', 'y', 'x#2']
    """
    counts: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return unique


def acceptable(outcome: Outcome, settings: Settings) -> bool:
    """Whether a verdict passes when the script says nothing of it."""
    verdict, require = outcome.verdict, settings.require
    if verdict == "KINK":
        return settings.allow_kink and outcome.inside
    if verdict == "INCONCLUSIVE":
        return settings.lenient
    if (verdict == "AGREES" and "certified" in require) or (verdict == "IMPRECISE" and "precise" in require):
        return False
    return verdict in GOOD


def expected_error(source: Source, problem: GradcliError) -> Check | None:
    """The check of a script whose first line expects an error, passed if it is this one; None where it expects none."""
    codes = list(dict.fromkeys(diagnostic.code for diagnostic in problem.diagnostics if diagnostic.severity == "error"))
    head, _, rest = source.line(source.first_line).strip().partition("expect:")
    expected = rest.strip()
    if head.strip() != "#" or not expected.startswith("error "):
        return None
    wanted = expected.removeprefix("error ").strip()
    met = codes == [wanted]
    message = f"fails with {wanted}, as expected" if met else f"expected {wanted}, but it fails with {', '.join(codes)}"
    span = problem.diagnostics[0].span
    where = ("error", source.path, None if span is None else span.line, "gradient", None)
    return Check(*where, "ERROR", {"codes": codes}, message, problem.diagnostics, expected, met)


def suppressed(
    lowered: Lowered, placed: Sequence[tuple[Check, int | None]], require: str | None, warn: bool
) -> tuple[list[Check], list[Diagnostic]]:
    """The checks, those that a pragma of their line suppresses passed, and diagnostics about pragmas.

    A suppression that suppresses nothing gets a warning, if `warn`; and one that permits more than the caller requires
    a note.
    """
    checks = [check for check, _ in placed]
    expected = {expectation.line for expectation in lowered.script.expected}
    diagnostics: list[Diagnostic] = []
    for directive in lowered.script.directives:
        used: set[str] = set()
        for i, (check, line) in enumerate(zip(checks, [line for _, line in placed], strict=True)):
            if not directive.covers(line) or (check.passed and "suppressed" not in check.evidence):
                continue
            rule = CODE_OF_VERDICT.get(check.verdict, NOT_AS_REQUIRED)  # that the check has broken
            codes = {rule, *(diagnostic.code for diagnostic in check.diagnostics)} & set(directive.codes)
            used |= codes
            if codes and not check.passed:
                evidence = {**check.evidence, "suppressed": directive.reason}
                message = f"{check.message}; suppressed: {directive.reason}"
                checks[i] = replace(check, passed=True, evidence=evidence, message=message)
        unused = [code for code in directive.codes if code not in used]
        if unused and warn:
            message = f"nothing to suppress here: {', '.join(unused)}"
            diagnostics.append(Diagnostic("GC811", message, directive.span, (), "remove it", WARNING))
        looser = [key for key in LOOSER if key in directive.settings] + ["ignore"] * bool(used)
        if looser and require is not None and directive.line not in expected:
            message = f"this pragma permits more than --require {require} alone: {', '.join(looser)}"
            diagnostics.append(Diagnostic("GC727", message, directive.span, severity=NOTE))
    return checks, [diagnostic.with_source(lowered.source) for diagnostic in diagnostics]
