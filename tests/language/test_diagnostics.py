"""Codes, messages and suggestions: every code is documented and triggered, no message carries raw text."""

from __future__ import annotations

import doctest
import importlib
import random
import re
import time
from pathlib import Path

import pytest

from gradcli.base.codes import CODES, FAMILIES, CodeDoc
from gradcli.base.diagnostics import (
    Diagnostic,
    GradcliError,
    Span,
    cover,
    did_you_mean,
    edit_distance,
    error,
    visible,
)
from gradcli.language import Source, parse, parse_at, parse_limits, read_source
from tests.support.rows import all_rows

LANGUAGE = Path(__file__).parents[2] / "gradcli" / "language"
OWN = sorted(
    {code for path in LANGUAGE.rglob("*.py") for code in re.findall(r"\"(GC\d{3})\"", path.read_text(encoding="utf-8"))}
    - {"GC808", "GC809", "GC811"}  # verdicts that a remark cannot suppress
)


@all_rows("code", CODES)
def test_codes_are_documented(code: str) -> None:
    doc = CODES[code]
    assert isinstance(doc, CodeDoc)
    assert re.fullmatch(r"GC\d{3}", code)
    assert code[:3] in FAMILIES
    for text in (doc.title, doc.what, doc.why, doc.example, doc.instead):
        assert text.strip() == text
        assert text
    assert not doc.title.endswith(".")
    for text in (doc.what, doc.why, doc.instead):
        assert text.endswith("."), text


def test_codes_are_in_order() -> None:
    assert list(CODES) == sorted(CODES)


@all_rows("code", OWN)
def test_examples_trigger_their_code(code: str) -> None:
    """The option that an example needs stands in its trailing remark; others are commands, or calls in Python."""
    text = CODES[code].example
    command = re.fullmatch(r"gradcli eval (\S+)", text)
    option = re.search(r"# with --(\w+) (\S+)$", text)
    name, value = (option[1], option[2]) if option else ("", "")
    try:
        if command:
            script = parse(read_source(command[1]))
        elif text == "gradcli.grad(3)  # in Python":
            script = parse(3)  # type: ignore[arg-type]
        elif name == "at":
            parse_at(value)
            script = parse(text)
        else:
            script = parse(text, parse_limits(value) if name == "limit" else parse_limits("text=1MiB"))
        found = list(script.diagnostics)
    except GradcliError as failure:
        found = list(failure.diagnostics)
    assert [diagnostic.code for diagnostic in found] == [code]


def test_a_name_with_two_readings_is_marked_as_a_whole() -> None:
    with pytest.raises(GradcliError) as problem:
        parse(Source("2*πrh + 1"))
    (found,) = problem.value.diagnostics
    assert (found.code, found.span) == ("GC139", Span(1, 3, 1, 6))


def test_every_code_of_text_and_limits_is_used() -> None:
    assert {code for code in CODES if code.startswith("GC1")} <= set(OWN)
    assert {"GC501", "GC502", "GC503", "GC504", "GC601", "GC701", "GC702"} <= set(OWN)


def test_diagnostic() -> None:
    span = Span(1, 2, 3, 4)
    diagnostic = Diagnostic("GC112", "a value is missing", span, help="add it")
    assert diagnostic.as_json() == {"code": "GC112", "message": "a value is missing", "span": [1, 2, 3, 4]}
    assert Diagnostic("GC501", "long").as_json()["span"] is None
    assert str(diagnostic) == "error[GC112] at 1:2: a value is missing\nhelp: add it"
    assert span.end_line == 3
    assert cover(Span(1, 2, 1, 3), Span(2, 1, 2, 9)) == (1, 2, 2, 9)
    source = Source("x")
    assert diagnostic.with_source(source).source is source
    assert diagnostic.with_source(source).with_source(Source("y")).source is source
    failure = error("GC112", "m", span, help="h", labels=((span, "here"),))
    assert failure.diagnostics[0].labels == ((span, "here"),)
    assert failure.with_source(source).diagnostics[0].source is source
    assert str(failure) == "error[GC112] at 1:2: m\nhelp: h"
    with pytest.raises(ValueError, match="at least one"):
        GradcliError()


def test_visible() -> None:
    assert visible("abc α ü") == "abc α ü"
    assert visible("a\x1b[31m\u202e\u200b\n\r\t\x00\udc80\U000e0001") == (
        "a\\x1b[31m\\u202e\\u200b\\x0a\\x0d\\x09\\x00\\udc80\\U000e0001"
    )
    assert visible("x" * 10**6, 9) == "xxxx…xxxx"
    assert visible("abcdef", 6) == "abcdef"
    assert visible("abcdefg", 6) == "abc…fg"
    for limit in range(2, 20):
        assert len(visible("x" * 50, limit)) == limit


SUGGESTIONS = {
    ("sine", "sin sinh sinc asin"): "sin",
    ("tahn", "tan tanh"): "tanh",
    ("sqaure", "square sqrt"): "square",
    ("logsoftmax", "softmax log_softmax"): "log_softmax",
    ("Relu", "relu elu"): "relu",
    ("X", "x y"): "x",
    ("z", "x y"): None,
    ("ab", "xy"): None,
    ("concatinate", "concatenate concat"): "concatenate",
    ("whatever", "sin cos"): None,
    ("", "x"): None,
    ("sin", "sin"): None,
}


@pytest.mark.parametrize(("name", "candidates"), SUGGESTIONS)
def test_did_you_mean(name: str, candidates: str) -> None:
    assert did_you_mean(name, candidates.split()) == SUGGESTIONS[name, candidates]
    assert did_you_mean(name, reversed(candidates.split())) == SUGGESTIONS[name, candidates]


def slow_distance(left: str, right: str) -> int:
    """The textbook recurrence, in full."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (left[i - 1] != right[j - 1]),
            )
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def test_edit_distance() -> None:
    generator = random.Random(1)
    for _ in range(3000):
        left, right = ("".join(generator.choices("abc", k=generator.randint(0, 6))) for _ in range(2))
        full = slow_distance(left, right)
        for allowed in range(4):
            assert edit_distance(left, right, allowed) == min(full, allowed + 1), (left, right)


def test_long_names_are_never_compared() -> None:
    start = time.process_time()
    assert did_you_mean("x" * 10**6, ["x" * 10**6 + "y"] * 100) is None
    assert did_you_mean("sine", ["y" * 10**6] * 100) is None
    assert time.process_time() - start < 0.5


NASTY = list("xy12+-*/()[]=,.:;\"'#\\ \n\t") + [
    *("\x00", "\x07", "\x1b[31m", "\r", "\x0b", "\x7f", "\x85", "\xa0", "\xad"),
    *("\u200b", "\u202e", "\u2066", "\u2028", "\ufeff", "\ufff9", "\udc80", "\U000e0001"),
    *("é", "х", "א", "\u0301", "😀", "²", "def ", "for ", "in ", "assert ", "# expect: \x1b"),
]


def test_messages_never_carry_raw_text() -> None:
    generator = random.Random(2)
    failures = 0
    for _ in range(3000):
        text = "".join(generator.choices(NASTY, k=generator.randint(1, 12)))
        for call in (parse, parse_at):
            try:
                call(text)
            except GradcliError as failure:
                failures += 1
                for diagnostic in failure.diagnostics:
                    words = [
                        diagnostic.message,
                        diagnostic.help or "",
                        *(label for _, label in diagnostic.labels),
                    ]
                    assert all(word.isprintable() for word in words), words
                    assert diagnostic.span is not None
                    line, column, end_line, end_column = diagnostic.span
                    assert (1, 1) <= (line, column) <= (end_line, end_column)
                    assert diagnostic.source is not None
                    assert end_line <= diagnostic.source.line_count  # type: ignore[attr-defined]
    assert failures > 3000


@pytest.mark.parametrize(
    "module", ["base.diagnostics", "language.source", "language.limits", "language.parser", "language.unparse"]
)
def test_examples_in_docstrings(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"gradcli.{module}"))
    assert result.failed == 0
    assert result.attempted > 0
