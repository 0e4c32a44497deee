"""Right and claimed values at several points go in; what their ratio or difference is made of comes out.

A ratio or difference that is a subexpression, times a simple number, at every point. Entries that alone are wrong, or
stand in another order. It is what is left when no single slip explains a claim.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.shown import node_text, position
from gradcli.graph.node import DATA, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

CLOSE = 1e-9
SIMPLE = [Fraction(n) ** e * s for n in (1, 2, 3, 4, 5, 6, 8, 10) for e in (1, -1) for s in (1, -1)]
PAIRED = 24  # short subexpressions whose products and quotients are tried too
LISTED = 4
DIGITS = 4  # a claim that is right to so many digits, and no further, holds a rounded constant
LONGEST = 100  # text of a subexpression that is worth reading
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
        differs = gap != 0
        for part, value in parts.items():
            lacks = _simple(ratio / value, counts)
            both_ways = isinstance(part, Pair) and part.sign == "/"
            extra = None if both_ways else _simple(ratio * value, counts)
            away = _simple(gap / value, differs | (value != 0))
            if lacks is None and extra is None and away is None:
                continue
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


def _simple(quotient: Floats, counts: Floats) -> Fraction | None:
    """The simple number that a quotient is everywhere where it counts."""
    flat = np.broadcast_to(quotient, counts.shape)[counts]
    if not flat.size or not np.isfinite(flat).all():
        return None
    first = float(flat[0])
    if (np.abs(flat - first) > CLOSE * abs(first)).any():
        return None
    return next((n for n in SIMPLE if abs(float(n) - first) <= CLOSE * abs(first)), None)


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
    off = np.abs(claimed - right) > CLOSE * np.maximum(size, 1e-300)
    wrong = off.any(axis=0)
    if wrong.all() or not wrong.any():
        return []
    ratio = np.divide(right, claimed, out=np.full(right.shape, np.nan), where=claimed != 0)[:, wrong]
    factor = _simple(ratio, np.ones(ratio.shape, bool))
    zero = bool((claimed[:, wrong] == 0).all())
    where, name = _where(wrong)
    how = "is zero" if zero else "has a wrong sign" if factor == -1 else "is wrong"
    text = f"consistent with a slip in some entries: the claim is right except {where}, where it {how}"
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
    near: NDArray[np.bool_] = np.abs(one - other) <= CLOSE * np.maximum(np.abs(one), np.abs(other))
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
