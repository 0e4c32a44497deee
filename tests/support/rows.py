"""Rows of tables as tests: which belong to the normal suite, and which are judged together in one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import pytest

Law = TypeVar("Law", bound=Callable[..., None])


def every(step: int, rows: Iterable[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """The rows as parameters: the first of each `step` belong to the normal suite, the others are marked deep.

    For laws whose rows differ in their data alone, so that a fault in the code under test shows in most of them.
    """
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=pytest.mark.deep if at % step else (),
            id=None if ids is None else ids[at],
        )
        for at, row in enumerate(rows)
    ]


def all_rows(names: str | Sequence[str], rows: Iterable[Any], ids: Any = None) -> Callable[[Law], Law]:
    """`parametrize` in one test: every row is judged, and the failure names all rows that fail, with their tracebacks.

    For rows that take milliseconds: a test of its own costs pytest and its workers 3.5 ms. Rows share the fixtures.
    """
    parameters = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    cases = []
    for at, row in enumerate(rows):
        marks, own = getattr(row, "marks", ()), getattr(row, "id", None)
        assert not marks, "a row with a mark needs a test of its own"
        values = row.values if hasattr(row, "marks") else tuple(row) if len(parameters) > 1 else (row,)
        words = [str(ids(value)) if callable(ids) else repr(value) for value in values]
        label = own or (", ".join(words) if ids is None or callable(ids) else str(ids[at]))
        cases.append((label, dict(zip(parameters, values, strict=True))))

    def decorated(law: Law) -> Law:
        signature = inspect.signature(law)

        @wraps(law)
        def test(**fixtures: Any) -> None:
            judged(((label, partial(law, **row, **fixtures)) for label, row in cases))

        rest = [one for one in signature.parameters.values() if one.name not in parameters]
        test.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return test  # type: ignore[return-value]

    return decorated


def judged(rows: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Run named rows; raise the problems of all that fail, and skip if there is nothing but reasons to skip."""
    problems: list[BaseException] = []
    labels, reasons, count = [], [], 0
    for label, row in rows:
        count += 1
        try:
            row()
        except pytest.skip.Exception as reason:
            reasons.append(str(reason))
        except (Exception, pytest.fail.Exception, BaseExceptionGroup) as problem:
            problem.add_note(f"the row: {label}")
            problems.append(problem)
            labels.append(label)
    assert count, "no rows"
    if problems:
        raise BaseExceptionGroup(f"{len(problems)} of {count} rows fail: {'; '.join(labels)}", problems)
    if reasons and len(reasons) == count:
        pytest.skip(reasons[0])
