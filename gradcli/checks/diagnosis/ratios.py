"""Finds simple patterns in a wrong gradient: zero, a factor, a sign, swapped leaves, a transpose, ratios to parts."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.arrays import subscript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]

CLOSE = 1e-11
LARGEST = 1000  # numerators and denominators of a constant factor
MOST = 3
LEAVES = "leaves: the claim is the gradient in"


class ErrorReading(NamedTuple):
    """One way to read an error: its name, a sentence, and the factor that corrects it, where there is one.

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
    """What is right and what is claimed at some points, which are the first axis of all arrays.

    `slack` is how far off a number may be from the right one; without it both are exact up to rounding. Points at which
    a number is not finite are left out: `sound` says which are not.
    """

    def __init__(self, right: Floats, claimed: Floats, slack: Floats | None = None) -> None:
        axes = tuple(range(1, right.ndim))
        self.sound: NDArray[np.bool_] = np.asarray(np.isfinite(right + claimed).all(axis=axes))
        if slack is None:
            slack = np.broadcast_to(CLOSE * np.abs(right).max(axis=axes, initial=1e-300, keepdims=True), right.shape)
        self.right, self.claimed, self.slack = right[self.sound], claimed[self.sound], slack[self.sound]
        self.largest = int(np.argmax(np.abs(self.right))) if self.right.size else 0

    def misses(self, other: Floats) -> NDArray[np.bool_]:
        """Which of other numbers of the same shape are not the right ones."""
        return ~(np.abs(other - self.right) <= self.slack)

    def fits(self, other: Floats) -> bool:
        """Whether other numbers are the right ones."""
        return other.shape == self.right.shape and not bool(self.misses(other).any())

    def factor_of(self, other: Floats, largest: int, counts: Sequence[Fraction] = ()) -> Fraction | None:
        """The simple fraction, or count, that other numbers have to be multiplied with to be the right ones.

        `largest` is that of its numerator and denominator.
        """
        beside = float(other.flat[self.largest])
        ratio = float(self.right.flat[self.largest]) / beside if beside else 0.0
        last, slack = float(self.right.flat[-1]), float(self.slack.flat[-1])
        if not 1e-6 < abs(ratio) < 1e6 or abs(ratio * float(other.flat[-1]) - last) > 1e-2 * abs(last) + 2 * slack:
            return None
        for factor in (Fraction(ratio).limit_denominator(largest), *counts):
            if factor and abs(float(factor) / ratio - 1) < 1e-3 and self.fits(float(factor) * other):
                return factor
        return None


def readings(
    known: Comparison,
    sizes: Sequence[int] = (),
    others: Mapping[str, Comparison] | None = None,
    what: str = "gradient",
    swapped: str = LEAVES,
    largest: int = LARGEST,
) -> list[ErrorReading]:
    """At most three readings of a wrong gradient, which hold at every point.

    `sizes` are counts that a factor may come from; `others` compare the claim with the gradients of other leaves;
    `what` the two sides are: "gradient", "Jacobian" or "value"; `swapped` says what claims may be exchanged with;
    `largest` is that of a factor's numerator and denominator.
    """
    patterns: list[ErrorReading] = []
    claimed = known.claimed
    if not known.right.any() or known.fits(claimed):
        return patterns
    if not claimed.any():
        side = "value" if what == "value" else "derivative"
        return [ErrorReading("zero", f"the claim is zero, but the {side} is not")]
    counts = [Fraction(sign * n) for n in sizes if n for sign in (1, -1)]
    factor = known.factor_of(claimed, largest, [*counts, *(1 / count for count in counts)])
    if known.fits(-claimed):
        text = f"consistent with a wrong sign: the right {what} is minus the claim"
        text += " (a force, or a direction of descent?)" if what == "gradient" else ""
        patterns.append(ErrorReading("wrong sign", text, "-1"))
    elif factor is not None:
        text = f"consistent with a constant factor: the right {what} is {factor} "
        text += f"{'times' if factor.denominator == 1 else 'of'} the claim"
        counted = [n for n in dict.fromkeys(sizes) if n > 2 and (abs(factor) == n or factor.denominator == n)]
        text += f" (there are {counted[0]} entries: should it be a mean or a sum?)" if counted else ""
        patterns.append(ErrorReading("constant factor", text, str(factor)))
    if known.fits(claimed.transpose(0, *range(claimed.ndim - 1, 0, -1))):
        text = f"consistent with a transpose: the right {what} is the claim's transpose"
        patterns.append(ErrorReading("transposed", text))
    for name, other in (others or {}).items():
        if other.right.size and other.fits(other.claimed):
            patterns.append(ErrorReading("swapped", f"consistent with swapped {swapped} `{name}`"))
    return patterns[:MOST]


# --- factors and terms ------------------------------------------------------------------------------------------------

SIMPLE = {Fraction(n) ** e * s for n in (1, 2, 3, 4, 5, 6, 8, 10) for e in (1, -1) for s in (1, -1)}
LARGEST_SIMPLE = 10  # numerators and denominators of these
LONGEST = 50  # characters of one of a pair
PAIRED = 24  # short subexpressions whose products and quotients are tried too
DIGITS_OF_DOUBLES = 15  # and so right is a claim that no float tells from what is right
MOST_NUMBERS = 10_000_000  # entries of all candidates


class Subexpression(NamedTuple):
    """A subexpression that a claim may lack: its values, and its text, which has "..." where it cannot be written."""

    text: Callable[[], str]
    value: Floats
    sign: str = ""  # of a product or quotient of two

    @property
    def varies(self) -> bool:
        """Whether it has another value at another point."""
        return bool((self.value != self.value[:1]).any())

    def combined(self, sign: str, other: Subexpression) -> Subexpression:
        """The product with another part, or the quotient by it."""
        value = self.value * other.value if sign == "*" else self.value / other.value
        return Subexpression(lambda: f"{_bracketed(self.text())}{sign}{_bracketed(other.text())}", value, sign)


def _bracketed(text: str) -> str:
    return text if text.isidentifier() else f"({text})" if len(text) <= LONGEST else "..."


def of_parts(known: Comparison, parts: Sequence[Subexpression]) -> list[ErrorReading]:
    """The shortest subexpression that a claim lacks as a factor or as a term, and the shortest factor too many.

    Products and quotients of two are tried where no single one fits. What does not vary explains little. A part is an
    array like the claim, or a number for each point.
    """
    alike = known.claimed.shape
    values = [part.value.reshape(*part.value.shape, *(1,) * (len(alike) - part.value.ndim)) for part in parts]
    known_parts = [(part.text, x) for part, x in zip(parts, values, strict=True) if x.any()]
    lifted = [Subexpression(text, np.broadcast_to(x, alike)) for text, x in known_parts]
    with np.errstate(all="ignore"):
        single = _tried(known, lifted)
        short = [] if single else [part for part in lifted if part.varies][:PAIRED]
        pairs = [part.combined("*", other) for i, part in enumerate(short) for other in short[i:]]
        pairs += [part.combined("/", other) for part in short for other in short if part is not other]
        return single or _tried(known, pairs)


def _tried(known: Comparison, parts: Sequence[Subexpression]) -> list[ErrorReading]:
    fitting: list[tuple[int, ErrorReading]] = []
    claimed, off = known.claimed, known.right - known.claimed
    gap = Comparison(off, claimed, known.slack * np.minimum(1, np.abs(off / known.right)))
    for part in parts[: MOST_NUMBERS // known.right.size]:
        text, moves = "", part.varies
        for name, words, target, other in (
            ("missing factor", "a factor: the claim lacks the factor", known, claimed * part.value),
            ("extra factor", "a factor: the claim has an extra factor", known, claimed / part.value),
            ("missing term", "a term: the claim lacks the term", gap, part.value),
        ):
            if name == "extra factor" and part.sign == "/":
                continue  # what has an extra quotient lacks the other part
            factor = target.factor_of(other, LARGEST_SIMPLE)
            if factor not in SIMPLE or (name == "missing term" and not moves):
                continue
            text = text or part.text()
            if "..." in text or (text == "1" and factor == 1):
                continue  # what cannot be written down is no reading, and what is right lacks nothing
            factor = 1 / factor if name == "extra factor" else factor
            sentence = f"{'-' if factor < 0 else ''}`{text}`" if abs(factor) == 1 else f"{factor} times `{text}`"
            weight = len(text) + (0 if moves else 20)
            fitting.append((weight, ErrorReading(name, f"consistent with {words} {sentence}", node=text)))
    shortest: dict[str, ErrorReading] = {}
    for _, reading in sorted(fitting, key=lambda pair: pair[0]):  # what lacks one factor is equal to it at all points
        shortest.setdefault(reading.name, reading)
    return list(shortest.values())


def rounded(known: Comparison, fewest: int) -> list[ErrorReading]:
    """The reading of a claim that is right to so many digits or more everywhere, but not exactly."""
    if not known.right.size:
        return []
    size = np.maximum(np.abs(known.right), np.abs(known.claimed))
    off = float(np.max(np.abs(known.right - known.claimed) / np.where(size > 0, size, 1.0)))
    digits = DIGITS_OF_DOUBLES if off == 0 else min(int(-np.log10(off)), DIGITS_OF_DOUBLES)
    text = f"consistent with a rounded constant: the claim is right to {digits} digits"
    return [ErrorReading("rounded constant", text)] if digits >= fewest else []


# --- entries ----------------------------------------------------------------------------------------------------------

LISTED = 4  # wrong entries that are named


def of_entries(known: Comparison, what: str = "gradient") -> list[ErrorReading]:
    """The reading of an array in which entries stand elsewhere, were added up or cut off, or some are wrong."""
    right, claimed = known.right, known.claimed
    shape = right.shape[1:] if what != "Jacobian" else ()
    for sentence, change in orders(shape):
        if known.fits(change(claimed)):
            return [ErrorReading("wrong order", f"consistent with a wrong order: entries {sentence}")]
    for axis, size in enumerate(shape):
        for word, mix in (("summed", np.sum), ("averaged", np.mean)) if size > 1 else ():
            mixed = np.broadcast_to(mix(right, axis=axis + 1, keepdims=True), right.shape)
            if Comparison(mixed, claimed, known.slack * size).fits(claimed):
                text = f"consistent with a gradient {word} over axis {axis} that should not be"
                return [ErrorReading("wrong axis", text)]
    for axes, shift in product([*([axis] for axis in range(-len(shape), 0)), [-2, -1]], (1, -1, 2, -2)):
        if len(axes) <= len(shape) and _is_shifted(known, axes, shift):
            along = f"axis {len(shape) + axes[0]}" if len(axes) == 1 else "the last two axes"
            how = f"shifted by {'one' if abs(shift) == 1 else 'two'} along {along}: is the padding wrong?"
            return [ErrorReading("wrong order", f"consistent with a wrong order: entries {how}")]
    for word, cut in (("cut off", np.trunc), ("rounded", np.round)) if shape else ():
        if (claimed == cut(right)).all() and all(np.abs(x).max() >= 1 for x in claimed):
            sentence = f"consistent with decimals that were {word}: is the array of an integer type?"
            return [ErrorReading("whole numbers", sentence)]
    wrong: NDArray[np.bool_] = np.asarray(known.misses(claimed).any(axis=0))
    if not wrong.all():
        return [_some(known, wrong)] if wrong.any() else []
    gaps = right - claimed
    if gaps[0].size > 1 and all(np.ptp(gap) <= 4 * slack.max() for gap, slack in zip(gaps, known.slack, strict=True)):
        sentence = f"consistent with an offset: every entry is off by the same {float(gaps[0].mean()):.6g}"
        return [ErrorReading("offset", sentence)]
    return []


def _is_shifted(known: Comparison, axes: Sequence[int], shift: int) -> bool:
    """Whether a claim, wrong in most entries, has the right ones so many places further, but for those at the ends."""
    moved, slack = (np.roll(x, [shift] * len(axes), axes) for x in (known.right, known.slack))
    inner = np.ones(moved.shape, bool)
    for axis in axes:
        np.moveaxis(inner, axis, 0)[slice(shift) if shift > 0 else slice(shift, None)] = False
    near = (np.abs(moved - known.claimed) <= slack)[inner]
    return near.size > len(moved) and bool(near.all()) and bool(known.misses(known.claimed).mean() > 0.5)


def orders(shape: Sequence[int]) -> Iterator[tuple[str, Callable[[Floats], Floats]]]:
    """Other orders of the entries of an array, each with the way back; points are the first axis."""
    for axis, size in enumerate(shape):
        if size > 1:
            yield f"in reverse order along axis {axis}", partial(np.flip, axis=axis + 1)
        for shift in (1, -1) if size > 2 else ():
            yield f"shifted by one along axis {axis}", partial(np.roll, shift=shift, axis=axis + 1)
    if len(shape) > 1:
        every = tuple(range(1, len(shape) + 1))
        yield "in reverse order along every axis: a kernel flipped?", partial(np.flip, axis=every)
    if len(shape) > 2:
        yield "in reverse order along the last two axes: a kernel flipped?", partial(np.flip, axis=(-2, -1))
        yield "with the last two axes exchanged", lambda x: np.swapaxes(x, -1, -2)


def _some(known: Comparison, wrong: NDArray[np.bool_]) -> ErrorReading:
    """Entries that are wrong, where the others are right."""
    only = Comparison(known.right[:, wrong], known.claimed[:, wrong], known.slack[:, wrong])
    factor = only.factor_of(only.claimed, LARGEST_SIMPLE)
    how = "is zero" if not only.claimed.any() else "has a wrong sign" if factor == -1 else "is wrong"
    text = "consistent with a mistake in some entries: the claim is right except"
    if factor in SIMPLE:
        more = f"; the right entries are {factor} times as large" if factor != -1 else ""
        return ErrorReading("some entries", f"{text} {_where(wrong)}, where it {how}{more}", factor=str(factor))
    gaps = only.claimed - only.right
    gap = Fraction(float(gaps[0, 0])).limit_denominator(LARGEST)
    if len(gaps) < 2 or not gap or (np.abs(gaps - abs(gap) * np.sign(gaps[0])) > 4 * only.slack).any():
        return ErrorReading("some entries", f"{text} {_where(wrong)}, where it {how}")
    parts = []
    for word, side in (("large", gaps[0] > 0), ("small", gaps[0] < 0)):
        entries = wrong.copy()
        entries[wrong] = side
        parts += [f"{_where(entries)}, where it is {abs(gap)} too {word}"] if side.any() else []
    guess = "does something belong elsewhere?" if len(parts) > 1 else "is a one-hot label or an identity missing?"
    return ErrorReading("offset", f"{text} {', and '.join(parts)}: {guess}")


def _where(wrong: NDArray[np.bool_]) -> str:
    """The phrase for the entries that are wrong."""
    shape = wrong.shape
    if wrong.ndim == 2 and shape[0] == shape[1]:
        diagonal = np.eye(shape[0], dtype=bool)
        for entries, words in ((diagonal, "on the diagonal"), (~diagonal, "off the diagonal")):
            if (wrong == entries).all():
                return words
    at = [subscript(int(i), shape) for i in np.flatnonzero(wrong.reshape(-1))]
    return f"in {', '.join(at[:LISTED])}{', ...' if len(at) > LISTED else ''}"
