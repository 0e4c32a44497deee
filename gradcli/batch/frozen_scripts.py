"""Scripts with lines for the results that `gradcli freeze` records in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.checks.inline_results import labels, of_output
from gradcli.language.comments.directives import MARK as DIRECTIVE
from gradcli.language.comments.inline_expectations import DIGESTS, MARK
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower

if TYPE_CHECKING:
    from gradcli.language.limits import LimitsLike
    from gradcli.lowering import Lowered

MOST_ENTRIES = 40  # of an array that is recorded entry by entry; a larger one by its sum, norm and moment


def with_blanks(source: Source, limits: LimitsLike = None) -> tuple[Source, int]:
    """A script with a line behind its last statement for every result to be recorded, in place of those there.

    Returns it with the number of its last statement's line; a check of it computes the values. Raises GradcliError for
    a script that cannot be read.
    """
    script = parse(source, limits_of(limits))
    last = script.statements[-1].span.end_line
    old = {old_result.line: old_result for old_result in script.expected if old_result.line > last}
    kept = [text for line, text in enumerate(source.lines(), 1) if line not in old]
    ending = "\r\n" if kept[0].endswith("\r\n") else "\n"
    text = "".join(kept)
    if not text.endswith(("\n", "\r")):
        text += ending
    remarks = {}  # pragmas behind expected results, with the space in front of them
    for number, result in old.items():
        line = source.line(number)
        if match := DIRECTIVE.search(line):
            remarks[result.title] = line[len(line[: match.start()].rstrip()) :].rstrip()
    lowered = lower(parse(Source(text, source.name, source.path), limits_of(limits)), limits=limits_of(limits))
    lines = [f"{MARK} {title} = {blank}{remarks.get(title, '')}{ending}" for title, blank in titles(lowered)]
    return Source(text + "".join(lines), source.name, source.path), last


def titles(lowered: Lowered) -> list[tuple[str, str]]:
    """What can be recorded of a script, each with a value that stands for the one that is not known yet."""
    values: list[tuple[str, str]] = []
    gradients: list[tuple[str, str]] = []
    for number, output in enumerate(lowered.program.outputs, 1):
        which = of_output(number, lowered)
        values += sized(f"value{which}", output.type.size)
        if not output.type.shape and output.type.kind == "float":
            for name in lowered.wrt:
                gradients += sized(f"grad {name}{which}", lowered.program.leaves[name].node.type.size)
    return [*values, *gradients, *((f"check {name}", "PROVED") for name in labels(lowered))]


def sized(title: str, size: int) -> list[tuple[str, str]]:
    """The lines for an array of so many entries."""
    if size > MOST_ENTRIES:
        return [(f"{digest}({title})", "0") for digest in DIGESTS]
    return [(title, "0")] if size else []
