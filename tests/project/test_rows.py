"""Rows that are judged in one test: each of them runs, and each that fails is named."""

from __future__ import annotations

import pytest

from tests.support.rows import all_rows, judged

RUN: list[tuple[int, int]] = []


@all_rows("a, b", [(1, 1), (1, 2), (3, 3), (3, 4)])
def pairs(a: int, b: int) -> None:
    RUN.append((a, b))
    assert a == b


@all_rows("a", [1, 2])
@all_rows("b", "xy", ids=str.upper)
def both(a: int, b: str) -> None:
    if b == "y":
        pytest.skip("not y")
    with pytest.raises(ZeroDivisionError):
        a / (a - 1)


def test_every_row_runs_and_every_failure_is_named() -> None:
    RUN.clear()
    with pytest.raises(ExceptionGroup, match=r"2 of 4 rows fail: 1, 2; 3, 4") as caught:
        pairs()
    assert len(RUN) == 4
    assert [problem.__notes__ for problem in caught.value.exceptions] == [["the row: 1, 2"], ["the row: 3, 4"]]


def test_rows_of_rows() -> None:
    with pytest.raises(BaseExceptionGroup, match=r"1 of 2 rows fail: 2") as caught:
        both()
    (inner,) = caught.value.exceptions
    assert isinstance(inner, BaseExceptionGroup) and inner.message == "1 of 2 rows fail: X"


def test_a_test_is_skipped_if_all_of_its_rows_are() -> None:
    with pytest.raises(pytest.skip.Exception, match="not this"):
        judged([("one", lambda: pytest.skip("not this")), ("two", lambda: pytest.skip("nor this"))])
    judged([("one", lambda: pytest.skip("not this")), ("two", lambda: None)])


def test_no_rows_are_no_test() -> None:
    with pytest.raises(AssertionError, match="no rows"):
        judged([])
