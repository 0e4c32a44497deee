"""Finds simple patterns in a wrong gradient: zero, a factor, a sign, swapped leaves, a transpose, ratios to parts."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.formatting import node_text, position
from gradcli.graph.node import DATA, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

CLOSE = 1e-11
LARGEST = 1000  # numerators and denominators of a constant factor
MOST = 3
LEAVES = "leaves: the claim is the gradient in"


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


def span_of(node: Node) -> list[int] | None:
    """Where a node stands in the script, as plain data."""
    return None if node.span is None else list(node.span)


class Comparison:
    """What is right and what is claimed at one point, of one shape, and how far off a number may be from the right one.

    Without a `slack` both are exact up to rounding.
    """

    def __init__(self, right: Floats, claimed: Floats, slack: Floats | None = None) -> None:
        self.right = right
        self.claimed = claimed
        self.slack = CLOSE * np.abs(right).max(initial=1e-300) if slack is None else slack

    def misses(self, other: Floats) -> NDArray[np.bool_]:
        """Which of other numbers of the same shape are not the right ones."""
        return ~(np.abs(other - self.right) <= self.slack)

    def fits(self, other: Floats) -> bool:
        """Whether other numbers are the right ones."""
        return other.shape == self.right.shape and not bool(self.misses(other).any())


def undone(pairs: Sequence[Comparison], change: Callable[[Floats], Floats]) -> bool:
    """Whether a change of the claims makes all of them right."""
    return all(one.fits(change(one.claimed)) for one in pairs)


def readings(
    pairs: Sequence[Comparison],
    sizes: Sequence[int] = (),
    others: Mapping[str, Sequence[Floats]] | None = None,
    what: str = "gradient",
    swapped: str = LEAVES,
    largest: int = LARGEST,
) -> list[Reading]:
    """At most three readings of a wrong gradient, which hold at every point.

    `sizes` are counts that a factor may come from; `others` are the gradients of other leaves at the same points;
    `what` the two sides are: "gradient", "Jacobian" or "value"; `swapped` says what claims may be exchanged with;
    `largest` is that of a factor's numerator and denominator.
    """
    found: list[Reading] = []
    pairs = [one for one in pairs if np.isfinite(one.right).all() and np.isfinite(one.claimed).all()]
    if not any(one.right.any() for one in pairs) or all(one.fits(one.claimed) for one in pairs):
        return found
    if not any(one.claimed.any() for one in pairs):
        return [Reading("zero", f"the claim is zero, but the {'value' if what == 'value' else 'derivative'} is not")]
    factor = constant_factor(pairs, sizes, largest)
    if undone(pairs, np.negative):
        text = f"consistent with a wrong sign: the right {what} is minus the claim"
        found.append(Reading("wrong sign", text, "-1"))
    elif factor is not None:
        text = f"consistent with a constant factor: the right {what} is {factor} "
        text += f"{'times' if factor.denominator == 1 else 'of'} the claim"
        counts = [n for n in dict.fromkeys(sizes) if n > 2 and (abs(factor) == n or factor.denominator == n)]
        text += f" (there are {counts[0]} entries: should it be a mean or a sum?)" if counts else ""
        found.append(Reading("constant factor", text, str(factor)))
    if undone(pairs, np.transpose):
        text = f"consistent with a transpose: the right {what} is the claim's transpose"
        found.append(Reading("transposed", text))
    for name, gradients in (others or {}).items():
        near = [Comparison(other, one.claimed).fits(one.claimed) for other, one in zip(gradients, pairs, strict=False)]
        if near and all(near):
            found.append(Reading("swapped", f"consistent with swapped {swapped} `{name}`"))
    return found[:MOST]


def constant_factor(pairs: Sequence[Comparison], sizes: Sequence[int], largest: int) -> Fraction | None:
    """The simple fraction, other than 1, that all claims have to be multiplied with."""
    first = max(pairs, key=lambda one: float(np.abs(one.right).max(initial=0.0)))
    at = np.unravel_index(int(np.argmax(np.abs(first.right))), first.right.shape)
    if first.claimed[at] == 0:
        return None
    ratio = float(first.right[at] / first.claimed[at])
    if not 1e-6 < abs(ratio) < 1e6:
        return None
    counts = [Fraction(sign * n) for n in sizes if n for sign in (1, -1)]
    for factor in (Fraction(ratio).limit_denominator(largest), *counts, *(1 / count for count in counts)):
        if factor not in (0, 1) and abs(float(factor) / ratio - 1) < 1e-3:
            if all(one.fits(float(factor) * one.claimed) for one in pairs):
                return factor
    return None


EQUAL = 1e-9
SIMPLE = [Fraction(n) ** e * s for n in (1, 2, 3, 4, 5, 6, 8, 10) for e in (1, -1) for s in (1, -1)]
PAIRED = 24  # short subexpressions whose products and quotients are tried too
LISTED = 4
DIGITS = 4  # a claim that is right to so many digits, and no further, holds a rounded constant
DIGITS_OF_DOUBLES = 15  # and so right is a claim that no float tells from what is right
LONGEST = 100  # text of a subexpression that is worth reading
MOST_NUMBERS = 10_000_000  # entries of all candidates


class Pair(NamedTuple):
    """The product or quotient of two subexpressions."""

    left: Node
    sign: str
    right: Node


def of_parts(right: Floats, claimed: Floats, values: Mapping[Node, Floats]) -> list[Reading]:
    """The shortest subexpression that a claim lacks as a factor or as a term, and the shortest factor too many.

    Products and quotients of two are tried where no single one fits. Points are the first axis of everything.
    """
    parts: list[tuple[Node | Pair, Floats]] = []
    for node, value in values.items():  # of numbers, or of arrays like the gradient
        lifted = value if value.shape == right.shape else value.reshape(-1, *(1,) * (right.ndim - 1))
        if node.primitive is not DATA and np.isfinite(lifted).all() and (lifted != 0).any():
            parts.append((node, lifted))
    with np.errstate(all="ignore"):
        found = _tried(right, claimed, parts)
        if not found:
            short = [(x, value) for x, value in parts if isinstance(x, Node) and varies(value)][:PAIRED]
            pairs: list[tuple[Node | Pair, Floats]] = []
            for i, (x, ours) in enumerate(short):
                pairs += [(Pair(x, "*", y), ours * theirs) for y, theirs in short[i:]]
                pairs += [(Pair(x, "/", y), ours / theirs) for y, theirs in short if x is not y]
            found = _tried(right, claimed, [(pair, value) for pair, value in pairs if np.isfinite(value).all()])
    return found


def _tried(right: Floats, claimed: Floats, parts: Sequence[tuple[Node | Pair, Floats]]) -> list[Reading]:
    found: list[tuple[int, Reading]] = []
    counts = ~((right == 0) & (claimed == 0))
    ways = (
        ("missing factor", "a factor: the claim lacks the factor", right / claimed),
        ("extra factor", "a factor: the claim has an extra factor", claimed / right),
        ("missing term", "a term: the claim lacks the term", right - claimed),
    )
    for part, value in parts[: MOST_NUMBERS // right.size]:
        for name, words, number in ways:
            factor = _simple(number / value, counts)
            if factor is None or (name == "extra factor" and isinstance(part, Pair) and part.sign == "/"):
                continue  # what has an extra quotient lacks the other one
            text, moves = _text(part), varies(value)
            if "..." in text or (text == "1" and factor == 1) or (name == "missing term" and not moves):
                continue  # what cannot be written down is no reading, and what is right lacks nothing
            told = f"{'-' if factor < 0 else ''}`{text}`" if abs(factor) == 1 else f"{factor} times `{text}`"
            weight = len(text) + (0 if moves else 20)  # what does not vary explains little
            found.append((weight, Reading(name, f"consistent with {words} {told}", node=text)))
    shortest: dict[str, Reading] = {}
    for _, reading in sorted(found, key=lambda one: one[0]):  # what lacks the same factor is equal to it at all points
        shortest.setdefault(reading.name, reading)
    return list(shortest.values())


def varies(value: Floats) -> bool:
    """Whether a value is another one at another point."""
    return bool((value != value[:1]).any())


def _text(part: Node | Pair) -> str:
    if not isinstance(part, Pair):
        return node_text(part, LONGEST)
    left, right = (node_text(node, 50) for node in (part.left, part.right))
    left, right = (text if text.isidentifier() else f"({text})" for text in (left, right))
    return f"{left}{part.sign}{right}"


def _simple(quotient: Floats, counts: NDArray[np.bool_]) -> Fraction | None:
    """The simple number that a quotient is wherever it counts."""
    seen = quotient[counts]
    if not seen.size or not (np.abs(seen - seen[0]) <= EQUAL * abs(seen[0])).all():  # so it is where it is not finite
        return None
    return next((n for n in SIMPLE if abs(float(n) - seen[0]) <= EQUAL * abs(seen[0])), None)


# --- entries ------------------------------------------------------------------------------------------------


def of_entries(pairs: Sequence[Comparison], what: str = "gradient") -> list[Reading]:
    """The reading of an array in which entries stand elsewhere, were added up or cut off, or some are wrong."""
    shape = pairs[0].right.shape if what != "Jacobian" else ()
    for told, change in orders(shape):
        if undone(pairs, change):
            return [Reading("wrong order", f"consistent with a wrong order: entries {told}")]
    for axis, size in enumerate(shape):
        for word, mix in (("summed", np.sum), ("averaged", np.mean)) if size > 1 else ():
            if all(_mixed(one, mix, axis) for one in pairs):
                return [Reading("wrong axis", f"consistent with a gradient {word} over axis {axis} that should not be")]
    for word, cut in (("cut off", np.trunc), ("rounded", np.round)) if shape else ():
        if all((one.claimed == cut(one.right)).all() and np.abs(one.claimed).max() >= 1 for one in pairs):
            told = f"consistent with decimals that were {word}: is the array of an integer type?"
            return [Reading("whole numbers", told)]
    wrong = np.any([one.misses(one.claimed) for one in pairs], axis=0)
    if not wrong.all():
        return [_some(pairs, wrong)] if wrong.any() else []
    off = [one.right - one.claimed for one in pairs]
    if all(gap.size > 1 and np.ptp(gap) <= 4 * np.max(one.slack) for gap, one in zip(off, pairs, strict=True)):
        told = f"consistent with an offset: every entry is off by the same {float(off[0].mean()):.6g}"
        return [Reading("offset", told)]
    return []


def orders(shape: Sequence[int]) -> Iterator[tuple[str, Callable[[Floats], Floats]]]:
    """Other orders of the entries of an array, each with the way back."""
    for axis, size in enumerate(shape):
        if size > 1:
            yield f"in reverse order along axis {axis}", partial(np.flip, axis=axis)
        for shift in (1, -1) if size > 2 else ():
            yield f"shifted by one along axis {axis}", partial(np.roll, shift=shift, axis=axis)
    if len(shape) > 1:
        yield "in reverse order along every axis: a kernel flipped?", np.flip
    if len(shape) > 2:
        last = (len(shape) - 2, len(shape) - 1)
        yield "in reverse order along the last two axes: a kernel flipped?", partial(np.flip, axis=last)
        yield "with the last two axes exchanged", lambda x: np.swapaxes(x, -1, -2)


def _mixed(one: Comparison, mixed: Callable[..., Floats], axis: int) -> bool:
    """Whether a claim is the sum or the mean of the right entries along an axis, everywhere on it."""
    along = np.broadcast_to(mixed(one.right, axis=axis, keepdims=True), one.right.shape)
    return Comparison(along, one.claimed, one.slack * one.right.shape[axis]).fits(one.claimed)


def _some(pairs: Sequence[Comparison], wrong: NDArray[np.bool_]) -> Reading:
    """Entries that are wrong, where the others are right."""
    with np.errstate(all="ignore"):
        ratio = np.array([(one.right / one.claimed)[wrong] for one in pairs])
    factor = _simple(ratio, np.ones(ratio.shape, bool))
    zero = not any(one.claimed[wrong].any() for one in pairs)
    how = "is zero" if zero else "has a wrong sign" if factor == -1 else "is wrong"
    text = f"consistent with a mistake in some entries: the claim is right except {_where(wrong)}, where it {how}"
    if factor is not None and factor != -1:
        text += f"; the right entries are {factor} times as large"
    return Reading("some entries", text, factor=None if factor is None else str(factor))


def _where(wrong: NDArray[np.bool_]) -> str:
    """The phrase for the entries that are wrong."""
    shape = wrong.shape
    if wrong.ndim == 2 and shape[0] == shape[1]:
        diagonal = np.eye(shape[0], dtype=bool)
        for entries, words in ((diagonal, "on the diagonal"), (~diagonal, "off the diagonal")):
            if (wrong == entries).all():
                return words
    at = [position(int(i), shape) for i in np.flatnonzero(wrong.reshape(-1))]
    return f"in {', '.join(at[:LISTED])}{', ...' if len(at) > LISTED else ''}"


def rounded(right: Floats, claimed: Floats) -> Reading | None:
    """A claim that is right to some digits everywhere, but not exactly: it holds a rounded constant."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(right), np.abs(claimed))
        off = float(np.max(np.where(size > 0, np.abs(right - claimed) / size, 0.0)))
    digits = DIGITS_OF_DOUBLES if off == 0 else min(int(-np.log10(off)), DIGITS_OF_DOUBLES)
    if digits < DIGITS:
        return None
    return Reading("rounded constant", f"consistent with a rounded constant: the claim is right to {digits} digits")
