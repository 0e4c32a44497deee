"""Results of a script as the comment lines that expect them, `#> value = 64`: what `gradcli freeze` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.checks.expectations import numbered
from gradcli.language.directives import MARK as DIRECTIVE
from gradcli.language.inline_expectations import DIGESTS, MARK, read_expected
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower

if TYPE_CHECKING:
    from gradcli.checks.report import Check, Report
    from gradcli.language.limits import LimitsLike
    from gradcli.lowering import Lowered

MOST_ENTRIES = 40  # of an array that is recorded entry by entry; a larger one by its sum, norm and moment


def with_blanks(source: Source, limits: LimitsLike = None) -> tuple[Source, int]:
    """A script with a line behind its last statement for every result to be recorded, in place of those there.

    Returns it with the number of its last statement's line. `updated` fills in the values. Raises GradcliError for a
    script that cannot be read.
    """
    script = parse(source, limits_of(limits))
    last = script.statements[-1].span.end_line
    old = {one.line: one for one in script.expected if one.line > last}
    kept = [text for line, text in enumerate(source.lines(), 1) if line not in old]
    ending = "\r\n" if kept[0].endswith("\r\n") else "\n"
    text = "".join(kept)
    if not text.endswith(("\n", "\r")):
        text += ending
    remarks = {one.title: remark(source.line(line)) for line, one in old.items()}
    lowered = lower(parse(Source(text, source.name, source.path), limits_of(limits)), limits=limits_of(limits))
    lines = [f"{MARK} {title} = {blank}{remarks.get(title, '')}{ending}" for title, blank in titles(lowered)]
    return Source(text + "".join(lines), source.name, source.path), last


def remark(line: str) -> str:
    """The directive behind an expected result, with the space in front of it."""
    match = DIRECTIVE.search(line)
    return line[len(line[: match.start()].rstrip()) :].rstrip() if match else ""


def titles(lowered: Lowered) -> list[tuple[str, str]]:
    """What can be recorded of a script, each with a value that stands for the one that is not known yet."""
    found: list[tuple[str, str]] = []
    gradients: list[tuple[str, str]] = []
    checks: list[str] = []
    outputs = lowered.program.outputs
    for position, output in enumerate(outputs, 1):
        which = f" (output {position})" if len(outputs) > 1 else ""
        found += sized(f"value{which}", output.type.size)
        for name in lowered.wrt:
            if not output.type.shape and output.type.kind == "float":
                gradients += sized(f"grad {name}{which}", lowered.program.leaves[name].node.type.size)
            checks.append(f"{name}{which}")
    checks += [f"claim {number}" for number in range(1, len(lowered.claims) + 1)]
    checks += numbered(f"{rule.title} by {leaf.name}" for rule in lowered.rules for leaf in rule.leaves)
    return [*found, *gradients, *((f"check {name}", "PROVED") for name in checks)]


def sized(title: str, size: int) -> list[tuple[str, str]]:
    """The lines for an array of so many entries."""
    if size > MOST_ENTRIES:
        return [(f"{digest}({title})", "0") for digest in DIGESTS]
    return [(title, "0")] if size else []


def updated(source: Source, report: Report, *, last: int = 0) -> str:
    """The text of a script with the computed value in each line that expects another one; nothing else changes.

    Lines behind line `last`, if it is given, get the computed value whatever they expect, and those go for which there
    is none.

    >>> report = check_script("x = 3; x**2\\n#> value = 8\\n#> check x = PROVED")  # doctest: +SKIP
    >>> updated(Source("x = 3; x**2\\n#> value = 8\\n#> check x = PROVED"), report)  # doctest: +SKIP
    'x = 3; x**2\\n#> value = 9\\n#> check x = PROVED'
    """
    lines = source.lines()
    for one in report.checks:
        line = one.line or 0
        if one.kind != "expectation" or not 0 < line <= len(lines):
            continue
        frozen = 0 < last < line
        if frozen or (one.verdict == "DISAGREES" and not one.passed):
            lines[line - 1] = refilled(lines[line - 1], one, frozen)
    return "".join(lines)


def refilled(text: str, check: Check, frozen: bool) -> str:
    """An expected result with the computed value; the line as it is where it is not the one that was checked."""
    computed: Any = check.evidence.get("computed")
    comment = text.lstrip(" \t")
    column = len(text) - len(comment) + 1
    expected, _ = read_expected(comment.rstrip("\r\n"), 1, column) if comment.startswith(MARK) else (None, [])
    if expected is None or expected.text != check.evidence.get("expected"):
        return text
    if not isinstance(computed, str) or computed.startswith("an array"):
        return "" if frozen else text
    start, end = expected.columns
    return text[: start - 1] + computed + text[end - 1 :]
