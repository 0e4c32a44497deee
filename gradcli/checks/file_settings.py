"""Settings that a script states in its comments, `# gradcli: rtol=1e-6`, applied to what is judged.

The nearest counts: a directive of the line, then one of the file, then the caller. `require` is the exception: what the
caller requires holds beside what the script requires. Whatever in a script may let a check pass although the caller
requires something is named in a note.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.report import CODE_OF_VERDICT, NOT_AS_REQUIRED
from gradcli.diagnostics import NOTE, WARNING, Diagnostic
from gradcli.language.directives import output_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.checks.report import Check
    from gradcli.checks.subjects import Subject
    from gradcli.language.directives import Directive
    from gradcli.lowering import Lowered

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
    """Give each subject the line by which directives speak of it, and the settings that hold there.

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
    """The checks, those that a directive of their line suppresses passed, and what is to be said about directives.

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
