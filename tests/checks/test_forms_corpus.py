"""The claims of the corpus are proved by normal forms; with an error planted in them none is."""

from __future__ import annotations

from statistics import median

import pytest

from tests.support.corpus import Formula, corpus
from tests.support.proofs import WRONG, Proof, proofs


def attempts(formula: Formula, place: int, wrong: str = "({})") -> list[Proof]:
    """The attempts at all claims of a formula at one of its points."""
    claims = [(leaf, wrong.format(claim)) for leaf, claim in formula.claims.items()]
    return proofs(formula.script(formula.points(place + 1)[place], claims), {})


SOME = pytest.mark.parametrize("step", [pytest.param(3, id="some"), pytest.param(1, id="all", marks=pytest.mark.deep)])


@SOME
def test_the_corpus_is_proved(step: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = [(formula, one) for formula in [*corpus()][::step] for one in attempts(formula, 0)]
    open_ones = [(repr(formula), one.text, one.answer["reason"]) for formula, one in found if not one.proved]
    typical = median(one.seconds for _, one in found)
    share = 1 - len(open_ones) / len(found)
    with capsys.disabled():
        print(f"\n  proved {share:.2%} of {len(found)} claims of the corpus, {typical * 1e3:.1f} ms each (median)")
    assert len(found) >= 500 / step
    assert share >= 0.95, open_ones


@SOME
def test_planted_errors_are_not_proved(step: int) -> None:
    for number, formula in enumerate([*corpus()][::step]):
        for one in attempts(formula, 0, WRONG[number % len(WRONG)]):
            assert not one.proved, (formula, one.text)


@pytest.mark.deep
@pytest.mark.parametrize("place", range(1, 4))
def test_the_corpus_elsewhere(place: int) -> None:
    found = [one for formula in corpus() for one in attempts(formula, place)]
    assert sum(one.proved for one in found) >= 0.95 * len(found)
    for wrong in (*WRONG, "({})*(1 - 1e-12)", "({}) + exp(-1000)"):
        for formula in corpus():
            for one in attempts(formula, place, wrong):
                assert not one.proved, (formula, one.text)
