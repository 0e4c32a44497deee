"""Settings inside scripts: comments such as `# gradcli: rtol=1e-6, ignore[GC803] reason`.

On a line of its own before the first statement a pragma holds for the whole file. After a statement, or on a line of
its own directly above one, it holds for the checks of the lines of that statement; for a block, of all its lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from gradcli.base.diagnostics import WARNING, Diagnostic, Span, did_you_mean, visible
from gradcli.language.syntax import (
    Append,
    Assert,
    Assign,
    Directive,
    ExpressionStatement,
    For,
    FunctionDef,
    If,
    Statement,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from gradcli.language.source import Source

MARK = re.compile(r"(?<!\S)#\s*gradcli\s*:")  # a quoted one, `# gradcli: ...`, is text
PART = re.compile(r"\s*(ignore\b\s*(?:\[(?P<codes>[^\]]*)\])?(?P<reason>.*)|[^,]*)")
CODE = re.compile(r"GC[0-9]{3}\Z")
NOT_IGNORED = {
    "GC808": "a script that cannot be run is not checked; # expect: error GC301 on the first line expects an error",
    "GC809": "a crash is not a verdict on the script",
    "GC811": "remove the suppression that it reports",
}
WHOLE_FILE = ("dtype", "seed")  # keys that cannot differ from line to line
MOST_SAMPLES = 1_000
MOST_SECONDS = 3_600.0


def positive(text: str, most: float = float("inf")) -> float | None:
    """A positive finite number of at most `most`, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 < value <= most and value != float("inf") else None


def whole_number(text: str, most: int) -> int | None:
    """A whole number from 0 to `most`, or None."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) and int(text) <= most else None


def choice(*words: str) -> Callable[[str], str | None]:
    """One of some words, or None."""
    return lambda text: text if text in words else None


SAMPLES = (lambda text: whole_number(text, MOST_SAMPLES), f"a whole number up to {MOST_SAMPLES}, such as samples=5")
# key: what reads its value (None: it has none), and what the value has to be, in words
KEYS: dict[str, tuple[Callable[[str], Any] | None, str]] = {
    "rtol": (positive, "a positive number, such as rtol=1e-6"),
    "samples": SAMPLES,
    "points": SAMPLES,
    "timeout": (lambda text: positive(text, MOST_SECONDS), "seconds up to an hour, such as timeout=10"),
    "dtype": (choice("float64", "float32", "complex128"), "float64, float32 or complex128"),
    "require": (choice("certified", "precise"), "certified or precise"),
    "allow-kink": (None, ""),
    "seed": (lambda text: whole_number(text, 10**18), "a whole number, such as seed=1"),
}
SAME = {"points": "samples"}  # other names of keys


def directive_at(comment: str) -> int:
    """The offset of a pragma in a comment, or -1."""
    match = MARK.search(comment)
    return match.start() if match else -1


def read_directive(comment: str, line: int, column: int) -> tuple[Directive, list[Diagnostic]]:
    """Return the pragma in a comment (which starts with #), and its errors."""
    directive = Directive(Span(line, column, line, column + len(comment)))
    problems: list[Diagnostic] = []
    match = MARK.match(comment)
    position = match.end() if match else 0

    def problem(message: str, hint: str, part: re.Match[str]) -> None:
        start, end = part.span(1)
        end = start + len(part[1].rstrip())
        span = Span(line, column + start, line, column + max(end, start + 1))
        problems.append(Diagnostic("GC134", message, span if part[1].strip() else directive.span, (), hint))

    while True:
        part = PART.match(comment, position)
        assert part is not None  # it matches the empty text
        text = part[1].strip()
        if text == "ignore" or text.startswith(("ignore[", "ignore ")):
            read_suppression(directive, part, problem)
            break
        key, equals, value = (piece.strip() for piece in text.partition("="))
        key = key.replace("_", "-")
        reader, expected = KEYS.get(key, (None, ""))
        if not text:
            problem("a setting is missing here", "write one or more, such as # gradcli: rtol=1e-6, samples=5", part)
        elif key not in KEYS:
            guess = did_you_mean(key, [*KEYS, "ignore"])
            hint = f"did you mean `{guess}`?" if guess else f"the keys are {', '.join(KEYS)} and ignore[CODE] reason"
            problem(f"unknown setting `{visible(key)}`", hint, part)
        elif SAME.get(key, key) in directive.settings:
            problem(f"`{SAME.get(key, key)}` is set twice", "keep one of them", part)
        elif reader is None:
            directive.settings[key] = True
            if equals:
                problem(f"`{key}` has no value", f"write {key} alone", part)
        else:
            read = reader(value)
            if read is None:
                wrong = f"`{visible(value)}` is not a value of `{key}`" if value else f"`{key}` needs a value"
                problem(wrong, f"write {expected}", part)
            directive.settings[SAME.get(key, key)] = read
        position = part.end() + 1
        if position > len(comment):
            break
    return directive, problems


def read_suppression(
    directive: Directive, part: re.Match[str], problem: Callable[[str, str, re.Match[str]], None]
) -> None:
    """Read `ignore[GC803,GC412] reason`; the reason extends to the end of the comment."""
    example = "write what is ignored and why: ignore[GC803] the minimum is a kink on purpose"
    codes = [code.strip().upper() for code in (part["codes"] or "").split(",")]
    wrong = next((code for code in codes if not CODE.match(code) or code in NOT_IGNORED), None)
    directive.reason = part["reason"].strip().lstrip(":-").strip()
    if part["codes"] is None or codes == [""]:
        problem("a suppression names the codes that it ignores", example, part)
    elif wrong is not None and wrong in NOT_IGNORED:
        problem(f"{wrong} cannot be ignored", NOT_IGNORED[wrong], part)
    elif wrong is not None:
        problem(f"`{visible(wrong)}` is not a code", example, part)
    elif not directive.reason:
        problem("a suppression has a reason", example, part)
    directive.codes = tuple(dict.fromkeys(codes))


class StatementLines:
    """The lines of a script's statements: where each begins and ends, and which of them are checked."""

    __slots__ = ("ends", "first", "judged", "source", "starts", "under")

    def __init__(self, statements: Sequence[Statement], source: Source) -> None:
        self.source = source
        self.first = statements[0].span.line
        self.starts: dict[int, int] = {}  # line: the first line of the statement that it belongs to
        self.ends: dict[int, int] = {}  # first line: the last line, of a block that of its last statement
        self.under: dict[int, int] = {}  # line of a comment: the line below it and all comments that follow
        judged = {output_line(statements)}
        for statement in flattened(statements):
            start, block = statement.span.line, isinstance(statement, (FunctionDef, For, If))
            for line in range(start, start + 1 if block else statement.span.end_line + 1):
                self.starts[line] = max(start, self.starts.get(line, 0))
            self.ends[start] = max(statement.span.end_line, self.ends.get(start, 0))
            if isinstance(statement, Assert) or (isinstance(statement, FunctionDef) and statement.rule is not None):
                judged.add(start)
        self.judged = sorted(judged)

    def below(self, line: int) -> int:
        """The first line below a comment that is not a comment."""
        walked: list[int] = []
        while line not in self.under and (not walked or self.source.line(line).lstrip().startswith("#")):
            walked.append(line)
            line += 1
        line = self.under.get(line, line)
        self.under.update(dict.fromkeys(walked, line))
        return line

    def place(self, directive: Directive, alone: bool, problems: list[Diagnostic]) -> None:
        """Find the lines that a pragma holds for, and report settings that are not possible there."""
        line = directive.line
        if alone and line < self.first:
            return
        start = self.starts.get(line)
        if start is None and alone:
            start = self.starts.get(below := self.below(line))
            start = start if start == below else None
        directive.first = line if start is None else start
        directive.last = line if start is None else self.ends[start]
        for key in WHOLE_FILE:
            if key in directive.settings:
                hint = "write it on a line of its own before the first statement"
                problems.append(Diagnostic("GC134", f"`{key}` holds for a whole file", directive.span, (), hint))
        nearest = bisect_left(self.judged, directive.first)
        if not problems and not any(directive.covers(line) for line in self.judged[nearest : nearest + 1]):
            message = "this pragma is placed where nothing is checked"
            hint = "write it beside an assert, the output or a rule; before the first statement it holds for the file"
            problems.append(Diagnostic("GC135", message, directive.span, (), hint, WARNING))


def flattened(statements: Sequence[Statement]) -> Iterator[Statement]:
    """All statements in pre-order: each before those of its block."""
    pending = list(statements)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        if isinstance(statement, (FunctionDef, For)):
            pending.extend(reversed(statement.body))
        elif isinstance(statement, If):
            pending.extend(reversed((*statement.body, *statement.orelse)))


def output_line(statements: Sequence[Statement]) -> int:
    """The first line of the statement that gives the output: the last expression, else the last assignment."""
    for kinds in ((ExpressionStatement,), (Append, Assign, For, If)):
        for statement in reversed(statements):
            if isinstance(statement, kinds):
                return statement.span.line
    return statements[-1].span.line


def longest_timeout(text: str) -> float:
    """The longest timeout in the pragmas of a text, in seconds; 0.0 if there is none.

    The text is not parsed, so a timeout in a string or in a malformed pragma counts too: it is an upper bound for
    the time that a check may take.
    """
    lines = [match[0] for match in re.finditer(r"#\s*gradcli\s*:[^\r\n]*", text)]
    timeouts = [positive(word, MOST_SECONDS) for line in lines for word in re.findall(r"timeout\s*=\s*([^\s,]+)", line)]
    return max([seconds for seconds in timeouts if seconds is not None], default=0.0)
