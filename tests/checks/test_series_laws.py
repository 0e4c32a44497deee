"""Every operation, at the points of its cases: series of orders 1 to 3 enclose the 80-digit differences of its value.

The reference is mpmath's, from the text of the script or a table of names; neither a rule of ours nor python-flint takes
part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from flint import arb

from gradcli.checks.derivatives.jets import DependencyCone, DirectionalJets, coefficient
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Failure, Unsupported
from gradcli.primitives import catalogue
from tests.support import reference
from tests.support.cases import cases
from tests.support.reference import Missing, mp
from tests.support.study import POINTS, Study, study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.support.cases import Case

NAMES = [name for name in catalogue() if cases(name)]
DIGITS = {1: 28, 2: 26, 3: 20}  # that the differences of the reference are good for
SILENT = {
    "eigvalsh": "no closed form beyond 2 by 2",
    "svdvals": "no closed form beyond 2 by 2",
    "expm": "no closed form beyond 2 by 2",
    "frechet": "no closed form beyond 2 by 2",
    "norm": "a norm that is a largest singular value",
}
ORDERS = {"u": (1,), "uv": (1, 1), "uvv": (1, 2)}
_HELD = "its derivative is 0 by its meaning, not as a limit of differences"
_SIGN = "a vector of norm 1 is known up to its sign, and the exact forms choose another sign"
SKIPPED = {
    **dict.fromkeys(("detach", "peak", "magnitude"), _HELD),
    **dict.fromkeys(("eigvecs", "svd_u", "svd_v"), _SIGN),
}


def place(it: Study, number: int) -> dict[str, Any]:
    return {
        name: (np.asarray(value, dtype=float).reshape(-1).tolist(), np.shape(value))
        for name, value in it.point(number).items()
    }


def flat(it: Study, direction: dict[str, np.ndarray]) -> list[float]:
    return [float(x) for name in it.leaves for x in np.reshape(direction[name], -1)]


def moving(it: Study, number: int, label: str) -> Callable[[Any], Any]:
    """The 80-digit loss as a function of steps along the directions of a label."""
    ways = [it.directions["uv".index(letter)] for letter in dict.fromkeys(label)]
    point = it.point(number)
    moved = reference.moving(point, ways)
    return lambda by: it.exact_loss(moved(by))


def enclosed(lines: DirectionalJets, u: list[float], v: list[float]) -> dict[str, tuple[Any, int]]:
    """The derivatives of orders 1, 2 and 3 along u, u v and u v v, by polarisation."""

    def along(a: int, b: int) -> Any:
        way = {i: a * x + b * y for i, (x, y) in enumerate(zip(u, v, strict=True))}
        found = lines.along(way, 3)[0]
        if isinstance(found, Failure):
            raise Unsupported(repr(found))
        return found

    ways = {(a, b): along(a, b) for a, b in ((1, 0), (0, 1), (1, 1), (1, -1))}
    c = {(way, k): coefficient(found, k) for way, found in ways.items() for k in (1, 2, 3)}
    return {
        "u": (c[(1, 0), 1], 1),
        "uv": (c[(1, 1), 2] - c[(1, 0), 2] - c[(0, 1), 2], 2),
        "uvv": (c[(1, 1), 3] + c[(1, -1), 3] - 2 * c[(1, 0), 3], 3),
    }


def compared(case: Case, points: Iterable[int]) -> int:
    """How many enclosures of a case were found to hold the reference."""
    it = study(case)
    if not it.differentiable:
        return 0
    paths = DependencyCone([it.loss], *it.leaves.values())
    u, v = (flat(it, direction) for direction in it.directions)
    done = 0
    for number in points:
        with ball_numbers.precision(256):
            lines = DirectionalJets(balls.BallField(), paths, place(it, number))
            for label, (found, order) in enclosed(lines, u, v).items():
                right = reference.along(moving(it, number, label), *ORDERS[label])
                size = max(abs(right), mp.mpf(1))
                slack = arb(mp.nstr(size * mp.mpf(10) ** -DIGITS[order], 5))
                gap = abs(found - arb(mp.nstr(right, 60)))
                assert gap <= slack + found.rad() * 2, f"{case!r}, {label}: {found} is not {mp.nstr(right, 40)}"
                assert found.rad() <= 1e-20 * (abs(found) + 1), f"{case!r}, {label}: {found} is too wide"
                done += 1
    return done


@pytest.mark.parametrize("name", NAMES)
def test_series_enclose_differences_to_80_digits(name: str) -> None:
    if name in SKIPPED:
        pytest.skip(SKIPPED[name])
    done, why = 0, ""
    found = cases(name)
    for at, case in enumerate(found):  # three cases and more take turns
        try:
            done += compared(case, range(POINTS) if len(found) < POINTS else [at % POINTS])
        except Missing as row:
            why = f"no row in tests/support/reference.py: {row}"
        except Unsupported as reason:
            assert name in SILENT, f"{case!r}: {reason}"
            why = str(reason)
    if not done:
        pytest.skip(why or "no float output depends on a leaf")
