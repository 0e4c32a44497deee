"""Exact and claimed gradients at some points go in, short readings of what may be wrong come out, cheapest first.

Only ratios and exchanges are tried here. A reading is "consistent with" the numbers at all points, never more, and
nothing is read where the exact derivative is zero everywhere.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

CLOSE = 1e-11
LARGEST = 1000  # numerators and denominators of a constant factor
MOST = 3


class Reading(NamedTuple):
    """One way to read an error: its name, a sentence, and the factor that mends it, where there is one.

    `node` is the subexpression at which the slip sits and `span` where it stands, `rule` the right local derivative,
    `correction` the right formula, `cause` the slip behind a factor, `confirmed` whether balls agree,
    `places` where else the same slip would have the same effect.
    """

    name: str
    text: str
    factor: str | None = None
    node: str | None = None
    span: list[int] | None = None
    rule: str | None = None
    correction: str | None = None
    cause: str | None = None
    confirmed: bool | None = None
    places: list[dict[str, Any]] | None = None


def readings(
    exact: Sequence[Floats],
    claimed: Sequence[Floats],
    sizes: Sequence[int] = (),
    others: Mapping[str, Sequence[Floats]] | None = None,
    what: str = "gradient",
) -> list[Reading]:
    """At most three readings of a wrong gradient; both sides are arrays in the leaf's shape, one pair per point.

    `sizes` are counts that a factor may come from; `others` are the gradients of other leaves at the same points;
    `what` the two sides are: "gradient" or "value".
    """
    found: list[Reading] = []
    pairs = [(e, c) for e, c in zip(exact, claimed, strict=True) if np.isfinite(e).all() and np.isfinite(c).all()]
    if not pairs or not any((e != 0).any() for e, _ in pairs):
        return found
    if all((c == 0).all() for _, c in pairs):
        return [Reading("zero", f"the claim is zero, the {'derivative' if what == 'gradient' else what} is not")]
    factor = _constant_ratio(pairs)
    if factor == -1:
        found.append(Reading("wrong sign", f"consistent with a wrong sign: the right {what} is minus the claim", "-1"))
    elif factor is not None:
        found.append(_factor(factor, sizes, what))
    if _all_close(pairs, lambda e: e.T) and any(e.ndim == 2 and not np.array_equal(e, e.T) for e, _ in pairs):
        found.append(Reading("transposed", f"consistent with a transpose: the right {what} is the claim's transpose"))
    for name, gradients in (others or {}).items():
        same = [g.shape == c.shape and _close(g, c) for g, (_, c) in zip(gradients, pairs, strict=False)]
        if same and all(same):
            found.append(Reading("swapped", f"consistent with swapped leaves: the claim is the gradient in `{name}`"))
    flipped = any((e * c < 0).any() for e, c in pairs)
    if not found and flipped and all(_close(abs(e), abs(c)) for e, c in pairs):
        found.append(Reading("some signs", "consistent with a wrong sign in some entries"))
    return found[:MOST]


def _constant_ratio(pairs: Sequence[tuple[Floats, Floats]]) -> Fraction | None:
    """The simple fraction exact/claimed that all entries at all points share, other than 1."""
    ratios = []
    for e, c in pairs:
        if ((e == 0) != (c == 0)).any():
            return None
        ratios.extend((e[c != 0] / c[c != 0]).reshape(-1).tolist())
    if not ratios:
        return None
    first = ratios[0]
    if any(abs(ratio - first) > CLOSE * abs(first) for ratio in ratios) or not 1e-6 < abs(first) < 1e6:
        return None
    simple = Fraction(first).limit_denominator(LARGEST)
    if simple in (0, 1) or abs(float(simple) - first) > CLOSE * abs(first):
        return None
    return simple


def _factor(factor: Fraction, sizes: Sequence[int], what: str) -> Reading:
    text = f"consistent with a constant factor: the right {what} is {factor} of the claim"
    if factor.denominator == 1:
        text = f"consistent with a constant factor: the right {what} is {factor} times the claim"
    counts = [n for n in dict.fromkeys(sizes) if n > 2 and n in (factor.numerator, factor.denominator)]
    if counts:
        text += f" (there are {counts[0]} entries: is a mean or a sum meant?)"
    return Reading("constant factor", text, str(factor))


def _all_close(pairs: Sequence[tuple[Floats, Floats]], change: Any) -> bool:
    return all(e.ndim == 2 and e.shape[0] == e.shape[1] and _close(change(e), c) for e, c in pairs)


def _close(one: Floats, other: Floats) -> bool:
    scale = float(np.abs(one).max(initial=0.0))
    return bool((np.abs(one - other) <= CLOSE * max(scale, 1e-300)).all())
