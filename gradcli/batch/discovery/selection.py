"""Selects the cases of a run - a shard, those that failed last, keywords - and the verdicts to show."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.checks.report import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gradcli.batch.discovery.cases import BatchCase
    from gradcli.checks.report import Report


def sharded(cases: Sequence[BatchCase], shard: str) -> list[BatchCase]:
    """Every N-th case from the K-th on, for a shard "K/N".

    All shards together are all cases, each once, and their sizes differ by one at most.
    Raises GradcliError GC721 for a text that is not "K/N" with 1 <= K <= N.

    >>> from gradcli.batch.discovery.cases import BatchCase
    >>> [case.path for case in sharded([BatchCase("a"), BatchCase("b"), BatchCase("c")], "1/2")]
    ['a', 'c']
    """
    parts = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", shard)
    number, count = map(int, parts.groups()) if parts else (0, 0)
    if not 1 <= number <= count:
        hint = f"the shards are --shard 1/{count} to --shard {count}/{count}" if count else "write --shard 2/5"
        raise error("GC721", f"`{visible(shard)}` is not a shard", help=hint)
    return list(cases[number - 1 :: count])


class Selected(NamedTuple):
    """The cases of a run, and a note to the user if they are not those that were requested."""

    cases: list[BatchCase]
    note: str = ""


def last_failed(cases: Sequence[BatchCase], failed: Collection[tuple[str, int]]) -> Selected:
    """The cases that failed last, given as (absolute path, block); all cases if none is known to have failed.

    >>> from gradcli.batch.discovery.cases import BatchCase
    >>> last_failed([BatchCase("/a.grad"), BatchCase("/b.grad")], {("/b.grad", 0)}).cases
    [BatchCase(path='/b.grad', block=0, text=None, line=1)]
    >>> last_failed([BatchCase("a.grad")], set()).note
    'nothing is known to have failed, so everything is checked'
    """
    chosen = [case for case in cases if (os.path.abspath(case.path), case.block) in failed]
    if chosen:
        return Selected(chosen)
    what = "none of what failed last is among these files" if failed else "nothing is known to have failed"
    return Selected(list(cases), f"{what}, so everything is checked")


class Keywords:
    """What `-k` selects: checks whose file, kind or name contains words, in lower or upper case, as in pytest.

    Raises GradcliError GC721 for a text that is not words with `and`, `or` and `not` between them.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.lower().split())
        self.alternatives = [  # words that are all wanted, or not wanted
            [(term.removeprefix("not "), not term.startswith("not ")) for term in part.split(" and ")]
            for part in self.text.split(" or ")
        ]
        words = [word for terms in self.alternatives for word, _ in terms]
        if not all(re.fullmatch(r"(?!(and|or|not)$)[^\s()]+", word) for word in words):
            hint = 'write a word, or words with and, or, not between them: -k "loss and not w"'
            raise error("GC721", f"-k cannot read `{visible(text, 200)}`", help=hint)

    def select(self, text: str) -> bool:
        """Whether a text contains the words.

        >>> Keywords("loss and not w or b").select("Loss.grad claim x")
        True
        """
        text = text.lower()
        return any(all((word in text) == wanted for word, wanted in terms) for terms in self.alternatives)

    def cases(self, cases: Sequence[BatchCase]) -> list[BatchCase]:
        """The cases that may have such checks: with `not`, all; else those whose path or text has the words."""
        if not all(wanted for terms in self.alternatives for _, wanted in terms):
            return list(cases)
        return [case for case in cases if self.select(f"{case.name} gradient claim expectation {case.source().text}")]

    def checks(self, report: Report) -> Report:
        """A report with these checks alone, and those that could not be judged."""
        kept = [
            check
            for check in report.checks
            if check.verdict in ("ERROR", "CRASHED") or self.select(f"{report.file} {check.kind} {check.leaf}")
        ]
        return replace(report, checks=tuple(kept))


def parse_verdicts(text: str, others: tuple[str, ...] = ()) -> frozenset[str]:
    """The verdicts of a text such as "DISAGREES,KINK", in upper or lower case.

    Raises GradcliError GC721 for a word that is not a verdict; `others` are words that it could have been instead.

    >>> sorted(parse_verdicts("kink, disagrees"))
    ['DISAGREES', 'KINK']
    """
    words = [word.strip().upper() for word in text.split(",")]
    for word in words:
        if word not in VERDICTS:
            guess = did_you_mean(word, VERDICTS) or did_you_mean(word.lower(), others)
            known = f"the verdicts are {', '.join(VERDICTS)}{'; other words are ' if others else ''}{', '.join(others)}"
            hint = f"did you mean `{guess}`?" if guess else known
            raise error("GC721", f"unknown verdict `{visible(word)}`", help=hint)
    return frozenset(words)
