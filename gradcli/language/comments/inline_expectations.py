"""Expected results inside scripts: comments such as `#> value = 64`, `#> grad x = 8`, `#> check x = PROVED`.

`sum(...)`, `norm(...)` and `moment(...)` around `value` or `grad x` describe a large array: its sum, its 2-norm, and
the sum of k/n times the k-th of its n entries in row-major order. Where a script has several outputs, `(output 2)`
after the name selects one.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, Span, did_you_mean, visible
from gradcli.language.comments.directives import directive_at, read_directive
from gradcli.language.syntax import Expected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MARK = "#>"
ITEMS = ("value", "grad", "check")
DIGESTS = ("sum", "norm", "moment")
SUBJECT = re.compile(r"(?:(\w+)\( ?)?(\w+)\b ?(.*?) ?(?:\(output ([1-9][0-9]{0,5})\))? ?(\))?\Z")
NUMBERS = re.compile(r"\s*(?:([\[\],])|([^\s\[\],]+))")
DEEPEST = 32  # lists in lists
EXAMPLE = "write #> value = 64, #> grad x = [64, 32] or #> check x = PROVED"


def read_expected(comment: str, line: int, column: int) -> tuple[Expected | None, list[Diagnostic]]:
    """Return the expected result in a comment line that begins with #>, and its errors."""
    end = directive_at(comment)
    body = (comment if end < 0 else comment[:end]).rstrip()
    span = Span(line, column, line, column + len(body))
    left, equals, right = body[len(MARK) :].partition("=")
    match = SUBJECT.match(" ".join(left.split()))
    digest, item, name, output, closing = match.groups() if match else (None, "", "", None, None)
    text = right.strip()
    message, hint = "", EXAMPLE
    if not equals or not match or (digest is None) != (closing is None):
        message = "this is not an expected result"
    elif item not in ITEMS or (digest is not None and digest not in DIGESTS):
        word, words = (item, ITEMS) if item not in ITEMS or digest is None else (digest, DIGESTS)
        guess = did_you_mean(word, words)
        message = f"`{visible(word)}` cannot be expected"
        hint = f"did you mean `{guess}`?" if guess else EXAMPLE
    elif (item == "value") != (not name):
        message = "a value has no name" if name else f"`{item}` of what?"
    elif item == "grad" and not name.isidentifier():
        message = f"`{visible(name)}` is not a name of a leaf"
    elif digest is not None and item == "check":
        message, hint = "a verdict has no sum", "write #> check x = PROVED"
    elif not text:
        message = "the expected result is missing"
    problems = [Diagnostic("GC136", message, span, (), hint)] if message else []
    expected = Expected(item, name, int(output) if output else None, digest, text, span)
    begin = len(body) - len(text)
    expected.columns = (column + begin, column + len(body))
    if not problems and item != "check":
        expected.value = read_numbers(text)
        if expected.value is None or (digest and isinstance(expected.value, list)):
            place = Span(line, expected.columns[0], line, expected.columns[1])
            what = "number" if digest else "number or rectangular list of numbers"
            problems.append(
                Diagnostic("GC136", f"`{visible(text)}` is no {what}", place, (), "write it as in [1, -2.5]")
            )
    if end >= 0:
        directive, wrong = read_directive(comment[end:], line, column + end)
        directive.first = directive.last = line
        for key in directive.settings:
            if key != "rtol":
                wrong.append(Diagnostic("GC134", f"`{key}` does not concern an expected result", directive.span))
        expected.directive = directive
        problems += wrong
    return (None if problems else expected), problems


def read_numbers(text: str) -> Any:
    """A number, or nested lists of numbers of one shape; None for anything else."""
    stack: list[list[Any]] = [[]]
    comma = True  # whether a value may come next
    position = 0
    while position < len(text):
        match = NUMBERS.match(text, position)
        if match is None:
            return None
        position = match.end()
        mark, number = match.groups()
        if mark == ",":
            if comma or len(stack) == 1:
                return None
            comma = True
        elif mark == "]":
            if comma or len(stack) == 1:
                return None
            stack.pop()
        elif not comma or len(stack) > DEEPEST:
            return None
        elif mark == "[":
            stack[-1].append([])
            stack.append(stack[-1][-1])
        else:
            value = read_number(number)
            if value is None:
                return None
            stack[-1].append(value)
            comma = False
    values = stack[0]
    return values[0] if len(stack) == 1 and len(values) == 1 and shape_of(values[0]) is not None else None


def read_number(text: str) -> float | complex | None:
    """A real or complex number, such as 1e-3, -inf, nan or 1+2j."""
    for kind in (float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of nested lists; None if they are not rectangular."""
    shape: list[int] = []
    level = [value]
    while isinstance(level[0], list):
        if not all(isinstance(item, list) and len(item) == len(level[0]) for item in level):
            return None
        shape.append(len(level[0]))
        level = [item for row in level for item in row]
    return None if any(isinstance(row, list) for row in level) else tuple(shape)
