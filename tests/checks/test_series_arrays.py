"""Arrays of many entries: random directions cover all of them, and an error of one part in 10**12 in one is found."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

from gradcli.checks import check_script
from gradcli.checks.derivatives.claim_comparison import ClaimComparison, Wholesale
from gradcli.checks.derivatives.derivative_query import DerivativeQuery, PointEvaluation
from gradcli.checks.derivatives.jets import DirectionalJets
from gradcli.checks.evaluate import ball_numbers
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.transforms import derivatives
from tests.support.series_lines import lowered

SIZE = 1200


def wholesale(text: str, at: dict[str, Any], error: Any = None, seed: int = 3) -> dict[str, Any]:
    """The comparison of the engine's gradient with respect to w, times 1 + error, with series along random directions."""
    program, point = lowered(text, at)
    output, target = program.outputs[0], program.leaves["w"].node
    judged = derivatives.grad(output, [target])[0]
    if error is not None:
        with building(output.builder, reachable([judged])) as builder:
            factor = builder.array("planted", 1 + np.asarray(error), target.type)
            judged = builder.call("mul", judged, factor)
    asked = DerivativeQuery(output, target, ["w"], seed=seed)
    assert asked.wholesale
    with ball_numbers.precision(128):
        here = PointEvaluation(asked, point)
        return Wholesale(here, partial(here.claimed, judged), None).compared()


def values(seed: int = 0, size: int = SIZE) -> list[float]:
    return list(np.random.default_rng(seed).normal(size=size))


def test_a_right_gradient_of_many_entries_agrees() -> None:
    found = wholesale("sum(sin(w)*w)", {"w": values()})
    assert set(found["relations"]) == {"="}
    assert found["chance"] < 1e-20


@pytest.mark.parametrize("seed", range(6))
def test_one_part_in_a_trillion_in_one_entry_is_found_and_named(seed: int) -> None:
    """Half of the time in the entry that is the smallest by far."""
    w = np.array(values(seed))
    at = int(np.random.default_rng(100 + seed).integers(SIZE))
    if seed % 2:
        w[at] = 1e-17
    error = np.zeros(SIZE)
    error[at] = 2.0**-40
    found = wholesale("sum(w**2 + w**3)", {"w": list(w)}, error, seed)
    assert found["relations"][at] == "!"
    assert found["relations"].count("!") == 1
    assert found["details"][0]["entry"] == at


def test_a_wrong_zero_is_found() -> None:
    error = np.zeros(SIZE)
    error[7] = -1.0
    found = wholesale("sum(exp(w))", {"w": values()}, error)
    assert found["relations"][7] == "!"


def test_right_zeros_agree() -> None:
    found = wholesale("sum(relu(w)**2)", {"w": values()})
    assert set(found["relations"]) == {"="}


def test_a_check_says_how_many_entries_it_covers() -> None:
    found = check_script("sum(sin(w)*w) + sum(cumprod(w[2:9]))", at={"w": values()}).checks[0]
    assert found.verdict == "CERTIFIED"
    assert found.evidence["covered"] == "all 1,200 entries by random directions"
    assert found.evidence["chance"] < 1e-20  # type: ignore[operator]
    assert "1,200 entries" in found.message


def test_one_entry_on_a_kink_among_many() -> None:
    w = values()
    w[5] = 0.0
    found = check_script("sum(relu(w)*3)", at={"w": w}).checks[0]
    assert found.verdict == "KINK"
    assert (found.evidence["left"], found.evidence["right"]) == ([0.0], [3.0])


def test_a_program_of_many_steps_is_covered_by_directions_too() -> None:
    """Fewer entries, but each of them would take a series through the whole program."""
    rng = np.random.default_rng(1)
    at = {"w": rng.normal(size=(20, 20)).tolist(), "x": rng.normal(size=(10, 20)).tolist()}
    program, _ = lowered("sum(tanh(x@w@w)**2)", at)
    asked = DerivativeQuery(program.outputs[0], program.leaves["w"].node, ["w"])
    assert asked.wholesale
    assert check_script("sum(tanh(x@w@w)**2)", at=at, wrt=["w"]).checks[0].verdict in ("PROVED", "IMPRECISE")


def test_the_region_of_many_entries_takes_no_series_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    program, point = lowered("sum(relu(w)**2)", {"w": values()})
    output, target = program.outputs[0], program.leaves["w"].node
    comparison = ClaimComparison(DerivativeQuery(output, target, ["w"]), derivatives.grad(output, [target])[0])
    slopes, along = [], DirectionalJets.slope
    monkeypatch.setattr(DirectionalJets, "slope", lambda self, way: [slopes.append(way), along(self, way)][1])
    found = comparison.beside(comparison.region(point), point)
    assert set(found["relations"]) == {"="}
    assert len(slopes) == 2  # of entries that are claimed to be 0, and of the others; the region needs no more
    _, other = lowered("sum(relu(w)**2)", {"w": values(1)})
    assert not comparison.beside(comparison.region(point), other)["region"]


def test_a_proof_ends_the_search_for_other_points() -> None:
    """Of many entries and steps: each point would take long, and a proof holds at all of them."""
    rng = np.random.default_rng(1)
    at = {"w": rng.normal(size=(20, 20)).tolist(), "x": rng.normal(size=(10, 20)).tolist()}
    claim = {"w": "2*(x.T@(tanh(x@w)*(1 - tanh(x@w)**2)))"}
    right = check_script("sum(tanh(x@w)**2)", at=at, wrt=["w"], claims=claim).checks[-1]
    assert right.verdict == "PROVED"
    assert right.evidence["oracles"] == {"algebra": "proved (index notation)", "series": "both sides agree at 1 point"}
    wrong = check_script("sum(tanh(x@w)**2)", at=at, wrt=["w"], claims={"w": claim["w"][2:]}).checks[-1]
    assert wrong.verdict == "DISAGREES"


def test_the_same_seed_gives_the_same_answer() -> None:
    one, other = (wholesale("sum(sin(w)*w)", {"w": values()}) for _ in range(2))
    assert one == other


def test_a_gap_that_says_nothing_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along the entries that are not 0 the enclosure is too wide; exact zeros elsewhere do not make up for it."""
    wide, none = arb(0, 1e30), arb(0)
    monkeypatch.setattr(Wholesale, "_gap", lambda self, way: none if self.claims[min(way)].is_zero() else wide)
    found = wholesale("sum(relu(w)**2)", {"w": values()})
    assert set(found["relations"]) == {"?"} and found["chance"] > 1
