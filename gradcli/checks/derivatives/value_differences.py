"""Derivatives to some 60 digits from differences of values alone.

The value is enclosed at four places along a line. The error that remains is estimated by a second pair of steps, so
this is an estimate, not an enclosure: a series that it contradicts is not to be believed.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.derivatives.derivative_query import PointEvaluation

BITS = 512
STEP = 110  # a step is 2**-110 of each entry's size: its square is below 60 digits


def difference(here: PointEvaluation, direction: Mapping[int, Any]) -> Any:
    """The derivative along a direction, with its estimated error as a radius; a Failure where values are missing."""
    with ball_numbers.precision(BITS):
        lines = here.lines(BITS)
        found: list[Any] = []
        signs: list[list[int]] = []  # that decided branches, at each place
        for times in (1, 2):
            h = arb(2) ** -STEP * times
            ends = []
            for side in (1, -1):
                moves = {i: side * h * speed for i, speed in direction.items()}
                value, decided = lines.moved_value(moves)
                ends.append(value)
                signs.append(decided)
            failed = next((end for end in ends if type(end) is not arb), None)
            if failed is not None:
                return failed if isinstance(failed, Failure) else Failure("undecided", None, "no number")
            found.append((ends[0] - ends[1]) / (2 * h))
        if any(decided != signs[0] for decided in signs):
            return Failure("tie", None, "a branch changes within a step")
        fine, coarse = found
        return fine + arb(0, 1) * abs(fine - coarse).abs_upper()


def agrees(here: PointEvaluation, partials: Mapping[int, Any]) -> bool | None:
    """Whether partial derivatives and differences give the same slope along a line; None where one has nothing to say.

    All entries move at once, each at a speed of its own.
    """
    generator = Random(here.query.seed)
    if any(isinstance(x, Failure) for x in partials.values()):
        return None
    with ball_numbers.precision(BITS):
        center = here.lines(BITS).center
        if any(isinstance(center[i], Failure) for i in partials):
            return None
        way = {i: arb(generator.randrange(1025, 4096, 2)) / 1024 * size(center[i]) for i in partials}
        found = difference(here, way)
        if isinstance(found, Failure):
            return None
        expected = sum((partials[i] * speed for i, speed in way.items()), arb(0))
        return bool(found.overlaps(expected))


def size(x: Any) -> Any:
    """A power of 2 near a number that is below 1; 1 for a larger one, and for 0."""
    middle = x.mid()
    if middle.is_zero() or abs(middle) >= 1:
        return arb(1)
    mantissa, exponent = middle.man_exp()
    return arb(2) ** (int(exponent) + int(abs(mantissa)).bit_length())
