"""Simple patterns in a wrong gradient: zero, a factor, a sign, exchanged leaves, a transpose, ratios to its parts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.formatting import node_text, position
from gradcli.graph.node import DATA, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

CLOSE = 1e-11
LARGEST = 1000  # numerators and denominators of a constant factor
MOST = 3


class Reading(NamedTuple):
    """One way to read an error: its name, a sentence, and the factor that mends it, where there is one.

    `node` is the subexpression at which the mistake sits and `span` where it stands, `rule` the right local derivative,
    `correction` the right formula, `cause` the mistake behind a factor, `confirmed` whether balls agree,
    `places` where else the same mistake would have the same effect.
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


EQUAL = 1e-9
SIMPLE = [Fraction(n) ** e * s for n in (1, 2, 3, 4, 5, 6, 8, 10) for e in (1, -1) for s in (1, -1)]
PAIRED = 24  # short subexpressions whose products and quotients are tried too
LISTED = 4
DIGITS = 4  # a claim that is right to so many digits, and no further, holds a rounded constant
LONGEST = 100  # text of a subexpression that is worth reading
MOST_TOGETHER = 100_000  # numbers that are compared at once
NEAR = 0.01  # what is nearer than this everywhere is an approximation


def against(right: Floats, claimed: Floats, values: Mapping[Node, Floats]) -> list[Reading]:
    """Readings from subexpressions, the shortest first; places are the first axis of everything."""
    parts: dict[Node | Pair, Floats] = {}
    for node, value in values.items():
        lifted = _lifted(value, right)
        if lifted is not None and node.primitive is not DATA and np.isfinite(lifted).all() and (lifted != 0).any():
            parts[node] = lifted
    found = _tried(right, claimed, parts)
    if not found:
        short = [node for node, value in parts.items() if isinstance(node, Node) and (value != value[:1]).any()][
            :PAIRED
        ]
        pairs: dict[Node | Pair, Floats] = {}
        with np.errstate(all="ignore"):
            for i, x in enumerate(short):
                for y in short[i:]:
                    pairs[Pair(x, "*", y)] = parts[x] * parts[y]
                for y in short:
                    if x is not y:
                        pairs[Pair(x, "/", y)] = parts[x] / parts[y]
        found = _tried(right, claimed, {pair: value for pair, value in pairs.items() if np.isfinite(value).all()})
    return found


class Pair(NamedTuple):
    """The product or quotient of two subexpressions."""

    left: Node
    sign: str
    right: Node


def _text(part: Node | Pair) -> str:
    if isinstance(part, Pair):
        return f"{_bracketed(part.left)}{part.sign}{_bracketed(part.right)}"
    return node_text(part, LONGEST)


def _bracketed(node: Node) -> str:
    text = node_text(node, 50)
    return text if text.isidentifier() else f"({text})"


def _tried(right: Floats, claimed: Floats, parts: Mapping[Node | Pair, Floats]) -> list[Reading]:
    found: list[tuple[int, Reading]] = []
    with np.errstate(all="ignore"):
        ratio = right / claimed
        gap = claimed - right
        counts = ~((right == 0) & (claimed == 0))
        for (part, value), lacks, extra, away in _simple_factors(ratio, gap, counts, parts):
            text = _text(part)
            if "..." in text:
                continue  # what cannot be written down is no reading
            weight = len(text) + (0 if (value != value[:1]).any() else 20)  # what does not vary explains little
            if lacks is not None:
                told = f"consistent with a factor: the claim lacks the factor {_times(lacks, text)}"
                found.append((weight, Reading("missing factor", told, node=text)))
            if extra is not None:
                told = f"consistent with a factor: the claim has the factor {_times(1 / extra, text)} too much"
                found.append((weight, Reading("extra factor", told, node=text)))
            if away is not None:
                found.append((weight + 2, _difference(away, text)))
    found.sort(key=lambda one: one[0])
    shortest: dict[str, Reading] = {}
    for _, reading in found:  # whatever else lacks the same factor is equal to it at all points
        shortest.setdefault(reading.name, reading)
    return list(shortest.values())


def _lifted(value: Floats, like: Floats) -> Floats | None:
    """Values of a node in the shape of a gradient; None where they do not fit."""
    if value.shape == like.shape:
        return value
    if value.ndim == 1:
        return value.reshape(-1, *(1,) * (like.ndim - 1))
    return None


def _simple_factors(
    ratio: Floats, gap: Floats, counts: NDArray[np.bool_], parts: Mapping[Node | Pair, Floats]
) -> Iterator[tuple[tuple[Node | Pair, Floats], Fraction | None, Fraction | None, Fraction | None]]:
    """Parts with the simple numbers that ratio/part, ratio*part and gap/part are; not those that give none."""
    items = list(parts.items())
    rows = max(1, MOST_TOGETHER // max(ratio.size, 1))
    for start in range(0, len(items), rows):
        some = items[start : start + rows]
        values = np.stack([np.broadcast_to(value, ratio.shape) for _, value in some])
        lacking, extra = _simple(ratio / values, counts), _simple(ratio * values, counts)
        away = _simple(gap / values, (gap != 0) | (values != 0))
        for item, lacks, has, parted in zip(some, lacking, extra, away, strict=True):
            has = None if isinstance(item[0], Pair) and item[0].sign == "/" else has  # the other quotient lacks it
            if not (lacks is None and has is None and parted is None):
                yield item, lacks, has, parted


def _simple(quotients: Floats, counts: NDArray[np.bool_]) -> list[Fraction | None]:
    """The simple number that each quotient, of which there is one a row, is everywhere where it counts."""
    if not quotients.size:
        return [None] * len(quotients)
    flat = quotients.reshape(len(quotients), -1)
    counted = np.broadcast_to(counts, quotients.shape).reshape(flat.shape)
    first = flat[np.arange(len(flat)), counted.argmax(axis=1)]
    same = (np.abs(flat - first[:, None]) <= EQUAL * np.abs(first)[:, None]) | ~counted  # never of what is not finite
    found: list[Fraction | None] = [None] * len(flat)
    for row in np.flatnonzero(same.all(axis=1) & counted.any(axis=1) & np.isfinite(first)).tolist():
        number = float(first[row])
        found[row] = next((n for n in SIMPLE if abs(float(n) - number) <= EQUAL * abs(number)), None)
    return found


def _times(factor: Fraction, text: str) -> str:
    sign = "-" if factor < 0 else ""
    return f"{sign}`{text}`" if abs(factor) == 1 else f"{factor} times `{text}`"


def _difference(factor: Fraction, text: str) -> Reading:
    told = {
        -1: ("missing term", f"the term `{text}` is missing"),
        1: ("extra term", f"the term `{text}` is too much"),
        2: ("wrong sign", f"the sign of the term `{text}` is wrong: it is to be subtracted"),
        -2: ("wrong sign", f"the sign of the term `{text}` is wrong: it is to be added"),
    }.get(int(factor) if factor.denominator == 1 else 0)
    name, words = told or ("difference", f"the claim is the right value plus {_times(factor, text)}")
    return Reading(name, f"consistent with a term: {words}", node=text)


# --- entries ------------------------------------------------------------------------------------------------


def of_entries(right: Floats, claimed: Floats) -> list[Reading]:
    """Readings of an array in which some entries are wrong, or all stand elsewhere; places are the first axis."""
    shape = right.shape[1:]
    if not shape or right[0].size < 2:
        return []
    order = _order(right.reshape(len(right), -1), claimed.reshape(len(right), -1))
    if order is not None:
        return [order]
    size = np.abs(right).max(axis=tuple(range(1, right.ndim)), keepdims=True)
    off = np.abs(claimed - right) > EQUAL * np.maximum(size, 1e-300)
    wrong = off.any(axis=0)
    if wrong.all() or not wrong.any():
        return []
    ratio = np.divide(right, claimed, out=np.full(right.shape, np.nan), where=claimed != 0)[:, wrong]
    (factor,) = _simple(ratio[None], np.ones(ratio.shape, bool))
    zero = bool((claimed[:, wrong] == 0).all())
    where, name = _where(wrong)
    how = "is zero" if zero else "has a wrong sign" if factor == -1 else "is wrong"
    text = f"consistent with a mistake in some entries: the claim is right except {where}, where it {how}"
    if factor is not None and factor != -1:
        text += f"; the right entries are {factor} times as large"
    return [Reading(name, text, factor=None if factor is None else str(factor))]


def _where(wrong: NDArray[np.bool_]) -> tuple[str, str]:
    """Which entries are wrong, in words, and the name of the pattern."""
    shape = wrong.shape
    if wrong.ndim == 2 and shape[0] == shape[1]:
        diagonal = np.eye(shape[0], dtype=bool)
        if (wrong == diagonal).all():
            return "on the diagonal", "wrong diagonal"
        if (wrong == ~diagonal).all():
            return "off the diagonal", "wrong off the diagonal"
    if wrong.ndim == 2:
        for axis, word in ((1, "row"), (0, "column")):
            lines = wrong.all(axis=axis)
            if lines.any() and (wrong.any(axis=axis) == lines).all():
                at = [str(i) for i in np.flatnonzero(lines).tolist()]
                return f"in {word}{'s' * (len(at) > 1)} {', '.join(at[:LISTED])}", f"one {word}"
    at = [position(int(i), shape) for i in np.flatnonzero(wrong.reshape(-1))]
    more = ", ..." if len(at) > LISTED else ""
    return f"in {', '.join(at[:LISTED])}{more}", "some entries"


def _order(right: Floats, claimed: Floats) -> Reading | None:
    """Whether the claim holds the right entries in another order, the same at every place."""
    ways = {"in the opposite order": np.arange(right.shape[1])[::-1]}
    for step in (1, -1):
        ways[f"shifted by {'one place' if step == 1 else 'one place backwards'}"] = np.roll(
            np.arange(right.shape[1]), step
        )
    match = [np.flatnonzero(_near(right[0], entry)) for entry in claimed[0]]
    if all(len(one) == 1 for one in match):
        ways["in another order"] = np.array([int(one[0]) for one in match])
    for words, order in ways.items():
        if _near(right[:, order], claimed).all() and not _near(right, claimed).all():
            if len(set(order.tolist())) == right.shape[1]:
                text = f"consistent with a wrong order: the claim holds the right entries {words}"
                return Reading("wrong order", text)
    return None


def _near(one: Floats, other: Floats) -> NDArray[np.bool_]:
    near: NDArray[np.bool_] = np.abs(one - other) <= EQUAL * np.maximum(np.abs(one), np.abs(other))
    return near


def rounded(right: Floats, claimed: Floats) -> Reading | None:
    """A claim that is right to some digits everywhere, but not exactly: a rounded constant, or an approximation."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(right), np.abs(claimed))
        off = float(np.max(np.where(size > 0, np.abs(right - claimed) / size, 0.0)))
    if not 0 < off < NEAR:
        return None
    digits = int(-np.log10(off))
    if digits >= DIGITS:
        return Reading("rounded constant", f"consistent with a rounded constant: the claim is right to {digits} digits")
    text = f"consistent with an approximation: the claim is near, right to {digits} digits, and not equal"
    return Reading("approximation", text)
