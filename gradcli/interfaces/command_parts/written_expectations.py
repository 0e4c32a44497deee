"""Expected results of scripts, rewritten where they differ: `gradcli check --update` and `--diff`, `gradcli freeze`."""

from __future__ import annotations

import os

from gradcli.base.diagnostics import error, visible
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.language import source
    from gradcli.language.comments import inline_expectations
else:
    inline_expectations, source = room("inline_expectations"), room("source")

BYTE_ORDER_MARK = "\ufeff"


def refreshed(output: CommandOutput, checked: Any, diff: bool) -> Any:
    """Rewrite the expected results of the script that a report is about, or print the difference instead.

    Returns the report, in which rewritten results have passed. Raises GradcliError if the file cannot be read (GC601)
    or written (GC690), and for a script without a file (GC721).
    """
    if checked.file is None:
        hint = "give the path of a .grad file"
        raise error("GC721", f"{'--diff' if diff else '--update'} needs a file", help=hint)
    if all(check.passed for check in checked.checks if check.kind == "expectation"):
        return checked
    mark, before = text_of(checked.file)
    after = source.Source(updated(source.Source(before), checked))
    if after.text == before:
        return checked
    if diff:
        output.line(difference(before, after.text, checked.file))
        return checked
    output.save(checked.file, (mark, after.text))
    from dataclasses import replace

    old = source.Source(before)
    checks = [
        replace(check, verdict="AGREES", message=f"{check.message}; updated", passed=True)
        if check.kind == "expectation" and not check.passed and old.line(check.line) != after.line(check.line)
        else check
        for check in checked.checks
    ]
    return replace(checked, checks=tuple(checks))


def updated(script: source.Source, checked: Any, *, last: int = 0) -> str:
    """The text of a script with the computed value in each line that expects another one; nothing else changes.

    Lines behind line `last`, if it is given, get the computed value whatever they expect, and those go for which there
    is none.
    """
    lines = script.lines()
    for check in checked.checks:
        line = check.line or 0
        frozen = 0 < last < line <= len(lines)
        wrong = check.verdict == "DISAGREES" and not check.passed
        if check.kind == "expectation" and 0 < line <= len(lines) and (frozen or wrong):
            lines[line - 1] = refilled(lines[line - 1], check, frozen)
    return "".join(lines)


def refilled(text: str, check: Any, frozen: bool) -> str:
    """An expected result with the computed value; the line as it is where it is not the one that was checked."""
    computed: Any = check.evidence.get("computed")
    comment = text.lstrip(" \t")
    if not comment.startswith(inline_expectations.MARK):
        return text
    expected, _ = inline_expectations.read_expected(comment.rstrip("\r\n"), 1, len(text) - len(comment) + 1)
    if expected is None or expected.text != check.evidence.get("expected"):
        return text
    if not isinstance(computed, str) or computed.startswith("an array"):
        return "" if frozen else text
    start, end = expected.columns
    return text[: start - 1] + computed + text[end - 1 :]


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
    for line in unified_diff(old, new, quoted(f"a/{name}"), quoted(f"b/{name}")):
        lines.append(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines).removesuffix("\n")


def quoted(name: str) -> str:
    """The name of a file as git writes it: in quotes, if a character of it could be misread."""
    if name.isprintable() and not set('"\\#') & set(name):
        return name
    letters = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\#' else f"\\{byte:03o}" for byte in os.fsencode(name))
    return f'"{"".join(letters)}"'
