"""The corpus goes in: right gradients and claims pass, planted errors do not, and evidence alone leads to each verdict.

Each formula is judged at two points of its box, with its claims, and for each claim ten errors from 1e-12 relative to a
flipped sign. A slice runs always; `pytest -m deep` takes everything and prints a table by theme.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from gradcli.checks import check_script
from tests.support.corpus import Formula, corpus, same
from tests.support.rederive import rederive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.checks import Check
    from tests.support.corpus import Point

GOOD = ("PROVED", "CERTIFIED", "IMPRECISE", "AGREES")
EXACT = ("PROVED", "CERTIFIED", "IMPRECISE")  # what says that a rule is right; a planted error may have none of these
FACTORS = ("(1 + 1e-12)", "(1 + 1e-9)", "(1 + 1e-6)", "(1 + 1e-3)", "2", "0.5", "(-1)", "0")
RATES = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 0.5, 2.0, 1.0)  # how wrong they are
SEEN = 1e-13  # a smaller relative error at the point may be that of a decimal against its double
ROUNDED = 13  # digits
EVERY = 120  # of the formulas in the normal suite
OFFSET = 7

TABLE: dict[str, Counter[str]] = {}  # theme -> counts, for the summary of a deep run


class Planted(NamedTuple):
    """A claim in the script: its leaf, its text, what it is, and how wrong it is where that is known beforehand."""

    leaf: str
    text: str
    kind: str
    rate: float | None


def claims_of(formula: Formula, point: Point) -> list[Planted]:
    """Every claim, right and then damaged in ten ways."""
    found = []
    for leaf, claim in formula.claims.items():
        found.append(Planted(leaf, claim, "claim", 0.0))
        for factor, rate in zip(FACTORS, RATES, strict=True):
            found.append(Planted(leaf, f"{factor}*({claim})", "planted", rate))
        found.append(Planted(leaf, without_a_term(claim), "planted", None))
        found.append(Planted(leaf, swapped(formula, point, leaf, claim), "planted", None))
    return found


def without_a_term(claim: str) -> str:
    """The claim without the last term of its sum; where it is no sum, 1e-12 is added."""
    depth, cut = 0, 0
    for place, sign in enumerate(claim):
        depth += (sign in "([") - (sign in ")]")
        if depth == 0 and claim[place : place + 3] in (" + ", " - "):
            cut = place
    return claim[:cut] if cut else f"({claim}) + 1e-12"


def swapped(formula: Formula, point: Point, leaf: str, claim: str) -> str:
    """The claim with its leaf and another one exchanged; without another one, a claim right at the point only."""
    shape = formula.leaves[leaf].shape
    twins = [name for name, other in formula.leaves.items() if name != leaf and other.shape == shape]
    twins = [name for name in twins if re.search(rf"\b{name}\b", claim)] or twins
    if twins:
        exchange = {leaf: twins[0], twins[0]: leaf}
        return re.sub(r"[A-Za-z_]\w*", lambda found: exchange.get(found[0], found[0]), claim)
    if len(shape) == 2:
        return f"({claim})*(1 + {leaf}[0, 0] - {point[leaf][0][0]!r})"
    return f"({claim})*(1 + {leaf}{'[0]' if shape else ''} - {point[leaf][0] if shape else point[leaf]!r})"


# --- one formula at one point ----------------------------------------------------------------------------------


def judge(formula: Formula, point: Point) -> Iterator[str]:
    """What is wrong with the checks of a formula at a point, in words; counts go into the table of its theme."""
    wanted = claims_of(formula, point)
    start = time.perf_counter()
    report = check_script(formula.script(point, [(one.leaf, one.text) for one in wanted]))
    spent = time.perf_counter() - start
    gradients, claims = report.checks[: len(formula.leaves)], report.checks[len(formula.leaves) :]
    assert [check.leaf for check in claims] == [one.leaf for one in wanted]
    counts = TABLE.setdefault(formula.theme, Counter())
    counts["microseconds"] += round(1e6 * spent)
    truth = {leaf: formula.gradient(point, leaf) for leaf in formula.claims}
    for check in gradients:
        counts[f"gradient {check.verdict}"] += 1
        if check.verdict not in (*GOOD, "INCONCLUSIVE"):
            yield f"the gradient with respect to {check.leaf} is {check.verdict}: {check.message}"
    for check, one in zip(claims, wanted, strict=True):
        counts[f"{one.kind} {check.verdict}"] += 1
        if one.kind == "claim":
            if not same(formula.claimed(point, one.leaf), truth[one.leaf]):
                yield f"the claim {one.text} is wrong"
            if check.verdict not in (*GOOD, "INCONCLUSIVE"):
                yield f"the claim by {one.leaf} is {check.verdict}: {check.message}"
        else:
            yield from judged_plant(formula, point, one, check, truth[one.leaf])
    for check in report.checks:
        derived = rederive(check)
        counts["checks"] += 1
        if derived != check.verdict:
            yield f"{check.id} is {check.verdict}, but its evidence says {derived}: {check.evidence}"


def judged_plant(formula: Formula, point: Point, one: Planted, check: Check, truth: Any) -> Iterator[str]:
    """What is wrong with the verdict on a planted error."""
    told = f"planted {one.text} by {one.leaf} is {check.verdict}: {check.message}"
    rate = one.rate if any(truth.reshape(-1)) else 0.0
    if rate is None:
        try:
            made = formula.claimed(point, one.leaf, one.text)
        except Exception:  # a logarithm of a negative number, a division by zero: the claim has no value
            rate = float("nan")
        else:
            rate = worst_rate(made, truth)
    if rate > SEEN and (check.verdict in EXACT or (check.verdict == "AGREES" and rate > loosest(check))):
        yield told
    if rate == 0 and check.verdict in (*EXACT, "DISAGREES"):  # right at the point: what is beside it decides
        beside = beside_it_is_wrong(formula, point, one)
        if beside is not None and beside == (check.verdict in EXACT):
            yield told


def worst_rate(made: Any, truth: Any) -> float:
    """The largest relative error of an entry; 0 where none is larger than what a double can hold of the point."""
    pairs = list(zip(made.reshape(-1), truth.reshape(-1), strict=True))
    if same(made, truth, ROUNDED):
        return 0.0
    return max(float(abs(a - b) / abs(b)) if b else float("inf") for a, b in pairs)


def loosest(check: Check) -> float:
    """What a numerical agreement allows."""
    bound: Any = check.evidence.get("bound", 0.0)
    return 64 * float(bound)


def beside_it_is_wrong(formula: Formula, point: Point, one: Planted) -> bool | None:
    """Whether a claim that is right at a point is wrong where its leaf has moved; None where it is nearly right."""
    rates = []
    for move in (1.0625, 0.96875):
        value = np.asarray(point[one.leaf], dtype=float) * move + (move - 1) * (np.asarray(point[one.leaf]) == 0)
        moved = {**point, one.leaf: value.tolist()}
        truth = formula.gradient(moved, one.leaf)
        rates.append(worst_rate(formula.claimed(moved, one.leaf, one.text), truth))
    made, truth = formula.claimed(point, one.leaf, one.text), formula.gradient(point, one.leaf)
    if max(rates) > SEEN:
        return True
    right = formula.claimed(point, one.leaf)  # to 80 digits, where the truth has 40: 1e-12 beside 1e29 is an error
    exact = all(abs(a - b) <= 1e-60 * abs(b) for a, b in zip(made.reshape(-1), right.reshape(-1), strict=True))
    return False if exact and same(made, truth, 33) else None


def run(formulas: list[Formula]) -> list[str]:
    found = []
    for formula in formulas:
        for point in formula.points(2):
            found += [f"{formula} at {point}: {wrong}" for wrong in judge(formula, point)]
    return found


def shares() -> tuple[float, float]:
    """The share of inconclusive checks, and of true claims that are proved, in percent."""
    total = sum(TABLE.values(), Counter())
    claims = sum(count for key, count in total.items() if key.startswith("claim "))
    silent = sum(count for key, count in total.items() if key.endswith(" INCONCLUSIVE"))
    return 100 * silent / total["checks"], 100 * total["claim PROVED"] / claims


# --- the tests -------------------------------------------------------------------------------------------------


def test_the_corpus_is_large_and_names_its_sources() -> None:
    formulas = corpus()
    assert len(formulas) >= 500
    assert len({(formula.theme, formula.name) for formula in formulas}) == len(formulas)
    assert sum(bool(formula.claims) for formula in formulas) >= 300
    assert all(len(formula.source) > 5 for formula in formulas)
    texts = Counter((formula.text, str(formula.data)) for formula in formulas)
    assert sum(count - 1 for count in texts.values()) <= 6  # the same formula under two names


def test_every_claim_of_a_slice_is_true() -> None:
    """Claims against differences of the value to 80 digits; all of them with -m deep."""
    assert wrong_claims(list(corpus())[OFFSET::5]) == []


def wrong_claims(formulas: list[Formula]) -> list[str]:
    return [
        f"{formula}: {leaf} at {point}"
        for formula in formulas
        for point in formula.points(3)
        for leaf in formula.claims
        if not same(formula.claimed(point, leaf), formula.gradient(point, leaf))
    ]


def test_a_false_claim_would_be_noticed() -> None:
    formula = next(one for one in corpus() if one.name == "kepler_equation_residual")
    point = formula.points(1)[0]
    truth = formula.gradient(point, "E")
    assert same(formula.claimed(point, "E"), truth)
    assert not same(formula.claimed(point, "E", "1 - q*cos(E) + 1e-24"), truth)
    assert not same(formula.claimed(point, "E", "1 + q*cos(E)"), truth)


def test_a_slice_of_the_corpus() -> None:
    wrong = run(list(corpus())[OFFSET::EVERY])
    assert not wrong, "\n".join(wrong)
    silent, proved = shares()
    assert silent < 1
    assert proved > 90


@pytest.mark.deep
def test_every_claim_of_the_corpus_is_true() -> None:
    assert wrong_claims(list(corpus())) == []


@pytest.mark.deep
@pytest.mark.parametrize("theme", sorted({formula.theme for formula in corpus()}))
def test_all_of_the_corpus(theme: str) -> None:
    TABLE.pop(theme, None)
    wrong = run([formula for formula in corpus() if formula.theme == theme])
    assert not wrong, "\n".join(wrong)


@pytest.mark.deep
def test_hardly_anything_is_inconclusive() -> None:
    """After the themes: fewer than 1 % of all checks have no verdict, and 95 % of the true claims are proved."""
    if not TABLE:
        pytest.skip("no theme has run")
    silent, proved = shares()
    assert silent < 1
    assert proved > 95


def table() -> list[str]:
    """The counts by theme as lines of text."""
    verdicts = ("PROVED", "CERTIFIED", "IMPRECISE", "AGREES", "DISAGREES", "INCONCLUSIVE")
    kinds = ("gradient", "claim", "planted")
    head = (
        f"{'theme':24}{'checks':>7}"
        + "".join(f"{kind:>32}" for kind in kinds)
        + f"{'silent %':>10}{'proved %':>9}{'ms':>7}"
    )
    lines = ["verdicts: " + " ".join(f"{v[:4].lower()}" for v in verdicts) + " other", head]
    for theme, counts in [*sorted(TABLE.items()), ("all", sum(TABLE.values(), Counter()))]:
        if not counts["checks"]:
            continue
        cells = []
        for kind in kinds:
            row = [counts[f"{kind} {verdict}"] for verdict in verdicts]
            other = sum(n for key, n in counts.items() if key.startswith(f"{kind} ")) - sum(row)
            cells.append("/".join(map(str, [*row, other])))
        claims = sum(n for key, n in counts.items() if key.startswith("claim "))
        silent = 100 * sum(n for key, n in counts.items() if key.endswith(" INCONCLUSIVE")) / counts["checks"]
        proved = 100 * counts["claim PROVED"] / max(1, claims)
        ms = counts["microseconds"] / 1000 / counts["checks"]
        lines.append(
            f"{theme:24}{counts['checks']:7}" + "".join(f"{cell:>32}" for cell in cells)
            + f"{silent:10.2f}{proved:9.1f}{ms:7.1f}"
        )  # fmt: skip
    return lines
