"""Shards, the cases that failed last, and filters of verdicts."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.discovery.selection import last_failed, parse_verdicts, sharded
from gradcli.checks.report import VERDICTS

CASES = [BatchCase(f"{number:03}.grad") for number in range(300)]


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(1, 40))
def test_the_shards_are_everything_once(size: int, count: int) -> None:
    parts = [sharded(CASES[:size], f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(case for part in parts for case in part) == CASES[:size]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for number, part in enumerate(parts, 1):
        assert all(CASES.index(case) % count == (number - 1) % count for case in part[:5])


@pytest.mark.parametrize(
    "text", ["0/5", "6/5", "x", "", "1", "1/", "/5", "1/0", "-1/5", "1/5/2", "1.5/2", "²/3", "1/" + "9" * 99]
)
def test_no_such_shard(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        sharded(CASES, text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "GC721"
    assert problem.help is not None
    if text in ("0/5", "6/5"):
        assert problem.help == "the shards are --shard 1/5 to --shard 5/5"


def test_what_failed_last() -> None:
    documents = [BatchCase("a.grad"), BatchCase("g.md", 1, "x"), BatchCase("g.md", 3, "y", 9)]
    assert last_failed(documents, {(os.path.abspath("g.md"), 3), (os.path.abspath("gone.grad"), 0)}) == (
        [documents[2]],
        "",
    )
    everything, note = last_failed(documents, {(os.path.abspath("gone.grad"), 0), (os.path.abspath("g.md"), 2)})
    assert everything == documents
    assert "none of what failed last" in note
    everything, note = last_failed(documents, frozenset())
    assert everything == documents
    assert "nothing is known to have failed" in note


def test_verdicts() -> None:
    assert parse_verdicts("kink, Disagrees,KINK") == {"KINK", "DISAGREES"}
    assert parse_verdicts(",".join(VERDICTS)) == set(VERDICTS)
    for text, hint in (
        ("KINKS", "did you mean `KINK`?"),
        ("", "the verdicts are PROVED,"),
        ("KINK,", "the verdicts"),
        ("a\x1b", "the"),
    ):
        with pytest.raises(GradcliError) as caught:
            parse_verdicts(text)
        (problem,) = caught.value.diagnostics
        assert problem.code == "GC721"
        assert problem.help is not None
        assert problem.help.startswith(hint)
        assert "\x1b" not in problem.message
