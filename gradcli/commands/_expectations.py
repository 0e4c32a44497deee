"""Expected results of scripts, rewritten where they differ: `gradcli check --update` and `--diff`, `gradcli freeze`."""

from __future__ import annotations

from gradcli.commands import room
from gradcli.diagnostics import error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.checks import inline_results, report
    from gradcli.commands._shared import Output
    from gradcli.language import source
else:
    inline_results, report, source = room("inline_results"), room("report"), room("source")

BYTE_ORDER_MARK = "\ufeff"


def refreshed(output: Output, checked: Any, diff: bool) -> Any:
    """Rewrite the expected results of the script that a report is about, or print the difference instead.

    Returns the report, in which rewritten results have passed. Raises GradcliError if the file cannot be read (GC601)
    or written (GC690), and for a script without a file (GC721).
    """
    if checked.file is None:
        hint = "give the path of a .grad file"
        raise error("GC721", f"{'--diff' if diff else '--update'} needs a file", help=hint)
    if all(one.passed for one in checked.checks if one.kind == "expectation"):
        return checked
    mark, before = text_of(checked.file)
    after = source.Source(inline_results.updated(source.Source(before), checked))
    if after.text == before:
        return checked
    if diff:
        output.line(difference(before, after.text, checked.file))
        return checked
    output.rewrite(checked.file, mark + after.text)
    from dataclasses import replace

    old = source.Source(before)
    checks = [
        replace(one, verdict="AGREES", message=f"{one.message}; updated", passed=True)
        if one.kind == "expectation" and not one.passed and old.line(one.line) != after.line(one.line)
        else one
        for one in checked.checks
    ]
    return report.with_checks(checked, checks)


def text_of(path: str) -> tuple[str, str]:
    """The byte order mark of a file, if it has one, and its text with the line endings as they are."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8")
    except OSError as problem:
        reason = (problem.strerror or "").lower()
        raise error("GC601", f"cannot read {visible(path, 200)}: {reason}") from None
    return ("", text) if not text.startswith(BYTE_ORDER_MARK) else (BYTE_ORDER_MARK, text[1:])


def difference(before: str, after: str, name: str) -> str:
    """The unified difference of two texts of a file, as `diff -u` and `git apply` write it."""
    from difflib import unified_diff

    lines: list[str] = []
    old, new = source.Source(before).lines(), source.Source(after).lines()
    for line in unified_diff(old, new, f"a/{name}", f"b/{name}"):
        lines.append(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines).removesuffix("\n")
