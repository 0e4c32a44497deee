"""Reads pragmas, the comments that state a tolerance or an expectation. Other comments are free text.

`# rtol=1e-8` sets the tolerance of the assert on its line. `# expect: kink` says what a check will find
there; on the first line of a file, `# expect: error GC301` says that the file must fail with that code.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import did_you_mean, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.source import Source

EXPECTATIONS = (
    "kink",
    "boundary",
    "discontinuous",
    "undefined",
    "inconclusive",
    "imprecise",
    "fail",
    "error",
)
RTOL = r"rtol\s*=\s*([^\s,;]*)"  # compiled when first needed
EXPECT = r"expect\s*:\s*([A-Za-z]*)(?:[ \t]+(GC[0-9]{3})\b)?"


class Remark:
    """The content of one comment: `rtol`, `expect`, or a `problem` (headline, help) with its wording."""

    __slots__ = ("expect", "problem", "rtol")

    def __init__(self) -> None:
        self.rtol: float | None = None
        self.expect: str | None = None
        self.problem: tuple[str, str] | None = None

    @property
    def empty(self) -> bool:
        """Whether the comment is free text."""
        return self.rtol is None and self.expect is None and self.problem is None


def read_remark(comment: str) -> Remark:
    """Return the pragma in a comment, which has its leading #."""
    remark = Remark()
    for piece in comment.split("#"):
        piece = piece.strip()
        if match := re.match(RTOL, piece):
            read_rtol(match[1], remark)
            piece = piece[match.end() :].lstrip(" \t,;")
        if match := re.match(EXPECT, piece):
            read_expectation(match[1].lower(), match[2], remark)
            piece = piece[match.end() :].lstrip(" \t,;")
            if match := re.match(RTOL, piece):
                read_rtol(match[1], remark)
    return remark


def read_rtol(text: str, remark: Remark) -> None:
    """Set the tolerance of a pragma: a positive finite number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0.0 < value < float("inf"):
        remark.rtol = value
    else:
        remark.problem = (f"`{visible(text)}` is not a tolerance", "write a positive number: # rtol=1e-8")


def read_expectation(word: str, code: str | None, remark: Remark) -> None:
    """Set the expectation of a pragma."""
    if word not in EXPECTATIONS:
        guess = did_you_mean(word, EXPECTATIONS)
        choice = f"did you mean `{guess}`?" if guess else f"write one of {', '.join(EXPECTATIONS)}"
        remark.problem = (f"`{visible(word)}` cannot be expected" if word else "nothing is expected here", choice)
    elif (word == "error") != (code is not None):
        remark.problem = (
            "an expected error has a code, and only an error has one",
            "write # expect: error GC301",
        )
    else:
        remark.expect = word if code is None else f"error {code}"


def file_expectation(source: Source) -> str | None:
    """Return the expectation in the first line of a file, such as "error GC301", without parsing the file.

    A comment alone on the first line applies to the file; next to a statement, only `expect: error` does.
    """
    first = source.line(source.first_line).strip()
    start = first.find("#")
    if start < 0 or "expect" not in first:
        return None
    expect = read_remark(first[start:]).expect
    return expect if expect is not None and (start == 0 or expect.startswith("error")) else None
