"""Verdicts and evidence of the corpus, the samples and the kinks, against a table that was recorded before.

Whoever changes how a verdict is reached sees here which ones change. A line of snapshots/verdicts.txt is a script: its
name, then for each check a letter for the verdict (of a proof: how it was found) and a checksum of the exact part of
the evidence, which is the same on every machine. A few scripts run always, all of them with `pytest -m deep`. After a
change on purpose: `UPDATE_SNAPSHOTS=1 pytest -n 0 -m deep tests/checks/test_frozen_verdicts.py` (one process: they would write
over each other), then explain every changed line.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.checks import check_script
from gradcli.language import read_source
from tests.checks import test_series_germs, test_series_sides, test_verdicts
from tests.checks.test_corpus import claims_of
from tests.checks.test_traps import TRAPS
from tests.project.test_samples import FOLDER, NAMES
from tests.support.corpus import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.checks import Check
    from tests.support.corpus import Formula

TABLE = Path(__file__).parents[1] / "snapshots" / "verdicts.txt"
LETTERS = {
    "CERTIFIED": "C", "AGREES": "A", "IMPRECISE": "I", "DISAGREES": "D", "KINK": "K", "BOUNDARY": "B",
    "DISCONTINUOUS": "J", "UNDEFINED": "U", "INCONCLUSIVE": "?",
}  # fmt: skip
PROOFS = {"structure": "S", "normal form": "N", "sympy": "Y"}  # of PROVED: how; anything else is P
# what two machines may see differently, or how it was found out
LEFT_OUT = (
    "oracles", "seed", "float", "float_value", "ulps", "ulps_of_the_largest_entry", "agree_bits", "digits_lost",
    "rewrite", "not_proved", "ill_conditioned", "bound", "returned",
)  # fmt: skip
IN_FLOATS = ("IMPRECISE", "AGREES")  # their messages have digits of floats
PLANTED = (0, 3, 9)  # of the claims of a leaf at the drawn point: the right one, 1e-6, a term dropped
THEMES = sorted({formula.theme for formula in corpus()})
SAMPLED = ("astronomy_biology", "thermodynamics_chemistry")  # themes of which the normal suite takes one formula


def line(name: str, checks: tuple[Check, ...]) -> str:
    """The line of a script."""
    return " ".join([name, *(f"{letter(check)}{checksum(check):04x}" for check in checks)])


def letter(check: Check) -> str:
    oracles: Any = check.evidence.get("oracles", {})
    if check.verdict != "PROVED":
        return LETTERS[check.verdict]
    return PROOFS.get(oracles.get("algebra", "").removeprefix("proved (").removesuffix(")"), "P")


def checksum(check: Check) -> int:
    kept: dict[str, Any] = {key: value for key, value in check.evidence.items() if key not in LEFT_OUT}
    kept["message"] = "" if check.verdict in IN_FLOATS else check.message
    return zlib.crc32(json.dumps([check.id, kept], sort_keys=True).encode()) % 2**16


@cache
def table() -> dict[str, str]:
    """The recorded lines by the names of their scripts."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {text.partition(" ")[0]: text for text in lines}


def compare(found: list[str]) -> None:
    """Whether lines are as recorded; with UPDATE_SNAPSHOTS they are recorded."""
    if os.environ.get("UPDATE_SNAPSHOTS"):
        merged = table() | {text.partition(" ")[0]: text for text in found}
        TABLE.write_text("".join(f"{merged[name]}\n" for name in sorted(merged)), encoding="utf-8")
        table.cache_clear()
    changed = [
        f"{table().get(name)} is now {text}" for text in found if table().get(name := text.split(" ")[0]) != text
    ]
    assert not changed, "\n".join(changed)


# --- what is frozen -----------------------------------------------------------------------------------------------


def of_formulas(formulas: list[Formula]) -> Iterator[str]:
    """Each formula with its claims at the point of the book, and with planted errors too at a drawn point."""
    for formula in formulas:
        for i, point in enumerate(formula.points(2)):
            wanted = [one for j, one in enumerate(claims_of(formula, point)) if j % 11 in (PLANTED if i else (0,))]
            script = formula.script(point, [(one.leaf, one.text) for one in wanted])
            yield line(f"{formula!r}@{i}", check_script(script).checks)


def of_samples(names: list[str]) -> Iterator[str]:
    for name in names:
        yield line(f"samples/{name}", check_script(read_source(str(FOLDER / name))).checks)


KINKS: dict[str, tuple[str, Any, str | None]] = {
    **{f"trap:{trap.name}".replace(" ", "_"): (trap.text, trap.at, trap.right) for trap in TRAPS},
    **{f"verdict:{i}": (text, at, None) for i, (text, at, _) in enumerate(test_verdicts.VERDICTS)},
    **{f"sides:{i}": (text, at, None) for i, (text, at, *_) in enumerate(test_series_sides.TIES)},
    **{f"expansion:{i}": (text, at, None) for i, (text, at, *_) in enumerate(test_series_germs.TIES)},
    **{f"nasty:{i}": (text, 0.0, None) for i, (text, _) in enumerate(test_series_germs.NASTY)},
}


def of_kinks(names: list[str]) -> Iterator[str]:
    for name in names:
        text, at, claim = KINKS[name]
        point = at if isinstance(at, dict) else {"x": at}
        yield line(name, check_script(text, at=point, claims=None if claim is None else {"x": claim}).checks)


# --- the tests ----------------------------------------------------------------------------------------------------


def test_a_sample_of_the_verdicts_is_as_recorded() -> None:
    chosen = [next(formula for formula in corpus() if formula.theme == theme) for theme in SAMPLED]
    compare(
        [
            *of_formulas(chosen),
            *of_samples([name for name in NAMES if f"samples/{name}" in table()][5::60]),
            *of_kinks(list(KINKS)[3::40]),
        ]
    )


@pytest.mark.deep
@pytest.mark.parametrize("theme", THEMES)
def test_verdicts_of_the_corpus_are_as_recorded(theme: str) -> None:
    compare(list(of_formulas([formula for formula in corpus() if formula.theme == theme])))


@pytest.mark.deep
def test_verdicts_of_the_samples_are_as_recorded() -> None:
    compare(list(of_samples(NAMES)))


@pytest.mark.deep
def test_verdicts_of_the_kinks_are_as_recorded() -> None:
    compare(list(of_kinks(list(KINKS))))


def test_the_table_has_a_line_for_every_formula_and_kink_and_none_without_a_script() -> None:
    """A new sample is missed by the deep run alone: it is recorded by the command above."""
    formulas = {f"{formula!r}@{i}" for formula in corpus() for i in range(2)}
    assert {*formulas, *KINKS} <= set(table()) <= {*formulas, *(f"samples/{name}" for name in NAMES), *KINKS}


def test_another_verdict_or_other_evidence_is_seen() -> None:
    check = check_script("x**2", at={"x": 3}).checks[0]
    proved = line("square", (check,))
    assert line("square", (replace(check, verdict="CERTIFIED"),)) != proved
    assert line("square", (replace(check, evidence={**check.evidence, "exact": ["7"]}),)) != proved
    assert line("square", (replace(check, evidence={**check.evidence, "ulps": 0.5}),)) == proved
