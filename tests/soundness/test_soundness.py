"""The law of verdicts: no wrong claim passes, and no right one is refuted.

What is right is computed apart, from values alone (`truth.py`); no rule of gradcli takes part.
"""

from __future__ import annotations

import pytest

from tests.soundness.cases import tally, undiagnosed

FEW = 125  # cases of a test of the normal suite: each takes some 30 ms
MANY = 250  # of one of the deep suite, which is run in parts with -k or several processes


def law(seeds: range) -> None:
    counts, faults = tally(seeds)
    undecided = sum(number for (_, _, verdict), number in counts.items() if verdict == "INCONCLUSIVE")
    assert not faults, "\n".join(faults)
    assert undecided <= 0.25 * counts.total(), counts


@pytest.mark.parametrize("first", range(0, 250, FEW))
def test_no_wrong_claim_passes_and_no_right_one_is_refuted(first: int) -> None:
    law(range(first, first + FEW))


@pytest.mark.deep
@pytest.mark.parametrize("first", range(250, 20_500, MANY))
def test_the_law_holds_for_many_cases(first: int) -> None:
    with undiagnosed():
        law(range(first, first + MANY))
