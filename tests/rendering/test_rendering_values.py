"""Numbers as text and as JSON: the shortest digits that read back, nothing cut, nothing that JSON does not know."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcli.graph.arrays import subscript
from gradcli.rendering.safe_text import visible, width
from gradcli.rendering.tabular import csv_cell, latex_cell
from gradcli.rendering.value_text import inline, jsonable, number, positions, summary


@given(st.floats(allow_nan=False))
def test_numbers_read_back(value: float) -> None:
    assert float(number(value)) == value
    assert float(number(np.float64(value))) == value
    assert math.copysign(1, float(number(value))) == math.copysign(1, value)


@given(st.floats(width=32, allow_nan=False))
def test_float32_reads_back_with_its_own_digits(value: float) -> None:
    text = number(np.float32(value))
    assert np.float32(text) == np.float32(value)
    assert len(text.strip("-.0")) <= len(repr(value).strip("-.0"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (64.0, "64.0"),
        (np.float32(0.1), "0.1"),
        (-0.0, "-0.0"),
        (float("nan"), "nan"),
        (1 + 2j, "1.0+2.0j"),
        (np.complex128(1 - 2j), "1.0-2.0j"),
        (True, "1"),
        (np.bool_(False), "0"),
        (np.int64(3), "3"),
        (1e-05, "1e-05"),
    ],
)
def test_number(value: object, text: str) -> None:
    assert number(value) == text


def test_digits() -> None:
    assert number(1 / 3, 3) == "0.333"
    assert number(np.float32(1 / 3), 3) == "0.333"
    assert number(2 / 3 + 1j / 3, 2) == "0.67+0.33j"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([[1.0, 2.0]]), [[1.0, 2.0]]),
        (np.array(2.5), 2.5),
        (np.array([True, False]), [1, 0]),
        (np.array([1, 2]), [1, 2]),
        (np.float64("inf"), "inf"),
        ([1.0, -math.inf, {"a": math.nan}], [1.0, "-inf", {"a": "nan"}]),
        (np.array([1j]), [[0.0, 1.0]]),
        (None, None),
        (True, True),
        (np.zeros((2, 0)), [[], []]),
    ],
)
def test_jsonable(value: object, expected: object) -> None:
    assert jsonable(value) == expected
    json.dumps(jsonable(value), allow_nan=False)


def test_arrays_on_one_line() -> None:
    assert inline(np.array([[1.0, 2.0], [3.0, 4.0]])) == "[[1.0, 2.0], [3.0, 4.0]]"
    assert inline(np.zeros((0, 2))) == "[]"
    assert inline(np.arange(6.0), limit=5) == "array 6, min 0, max 5, norm 7.4162"
    assert summary(np.array([1.0, np.nan, np.inf])) == "array 3, min 1, max 1, norm 1, 2 not finite"
    assert subscript(4, (2, 3)) == "[1, 1]"


@given(st.integers(0, 200), st.integers(3, 50))
def test_positions_show_the_ends(size: int, limit: int) -> None:
    shown = list(positions(size, limit))
    assert len(shown) <= limit
    if size:
        assert shown[0] == 0
        assert shown[-1] == size - 1
    assert shown.count(None) == (size > limit)


@given(st.text())
def test_visible_text_acts_on_nobody(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert width(shown) >= 0
    assert visible(shown) == shown


def test_hostile_text() -> None:
    assert visible("a\x1b[31mb\tc\u202e\u200b\n") == "a\\x1b[31mb    c\\u202e\\u200b\\x0a"
    assert width("界α\u0301") == 3


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("-1.5", "-1.5"),
        ("-x**2", "'-x**2"),
        ("=cmd()", "'=cmd()"),
        ("@a", "'@a"),
        ("+1e5", "+1e5"),
        ("a,b", '"a,b"'),
        ('say "x"', '"say ""x"""'),
        ("nan", "nan"),
    ],
)
def test_csv_cells(cell: str, safe: str) -> None:
    assert csv_cell(cell) == safe


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        ("number", "1e-05", r"$1 \times 10^{-5}$"),
        ("number", "-inf", r"$-\infty$"),
        ("number", "nan", r"$\text{nan}$"),
        ("code", "α_1 & β", r"\texttt{\ensuremath{\alpha}\_1 \& \ensuremath{\beta}}"),
        ("text", "50% {x}", r"50\% \{x\}"),
    ],
)
def test_latex_cells(kind: str, cell: str, text: str) -> None:
    assert latex_cell(kind, cell) == text
