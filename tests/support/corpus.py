"""The files in corpus/ go in, formulas come out: text, points, hand-derived claims, and the truth to 40 digits.

The truth is a difference of values to 80 digits, read from the text by `numpy_reading` and computed by mpmath: no
graph, no derivative rule, no oracle of the checker takes part. A formula knows nothing of verdicts.
"""

from __future__ import annotations

import tomllib
import zlib
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests.support import numpy_reading, reference
from tests.support.reference_arrays import CALLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path(__file__).parents[1] / "corpus"
mp = reference.mp
STEP = mp.mpf(2) ** -67  # relative; a central difference is then good to some 40 digits of the 80
DIGITS = 25  # a claim must meet the truth to so many
DRAWN = 3  # digits of a drawn point

Point = dict[str, Any]


class Leaf(NamedTuple):
    """A leaf: its value in the book, and the box in which the formula is smooth."""

    value: Any
    low: float
    high: float

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)


class Formula:
    """One formula with what a textbook says of its derivatives; `claims` are texts, `data` is never differentiated."""

    def __init__(self, name: str, theme: str, row: Mapping[str, Any]) -> None:
        self.name = name
        self.theme = theme
        self.source: str = row["source"]
        self.text: str = row["text"]
        self.leaves = {leaf: Leaf(*told) for leaf, told in row["leaves"].items()}
        self.data: Mapping[str, Any] = row.get("data", {})
        self.claims: dict[str, str] = row.get("claims", {})
        unknown = set(row) - {"source", "text", "leaves", "data", "claims"}
        assert not unknown, f"{name}: {unknown}"
        assert set(self.claims) <= set(self.leaves), name
        for leaf in self.leaves.values():
            inside = (np.asarray(leaf.value) >= leaf.low) & (np.asarray(leaf.value) <= leaf.high)
            assert inside.all(), f"{name}: {leaf}"

    def __repr__(self) -> str:
        return f"{self.theme}/{self.name}"

    @cached_property
    def steps(self) -> list[str]:
        """The statements before the output."""
        return [step.strip() for step in self.text.split(";")[:-1]]

    @cached_property
    def output(self) -> str:
        """The expression of the output."""
        return self.text.split(";")[-1].strip()

    def points(self, count: int = 2) -> list[Point]:
        """The point of the book, then points drawn in the box: the same ones on every machine."""
        random = np.random.default_rng(zlib.crc32(repr(self).encode()))
        found = [{name: leaf.value for name, leaf in self.leaves.items()}]
        for _ in range(count - 1):
            found.append({name: drawn(random, leaf) for name, leaf in self.leaves.items()})
        return found

    def script(self, point: Point, claims: Sequence[tuple[str, str]] = ()) -> str:
        """The formula as a file: data, leaves with their box, the output `out`, and claims about its gradient."""
        lines = [f"const {name} = {told(value)}" for name, value in self.data.items()]
        for name, leaf in self.leaves.items():
            shape = f"[{', '.join(map(str, leaf.shape))}]" if leaf.shape else ""
            lines.append(f"{name}{shape} in [{told(leaf.low)}, {told(leaf.high)}] = {told(point[name])}")
        lines += [*self.steps, f"out = {self.output}"]
        lines += [f"assert grad(out, {leaf}) == {claim}" for leaf, claim in claims]
        return "\n".join([*lines, "out"]) + "\n"

    # --- the truth ----------------------------------------------------------------------------------------

    def read(self, expression: str, point: Mapping[str, Any]) -> Any:
        """The value of an expression that may use the names of the text, to 80 digits."""
        text = "\n".join([*self.steps, expression])
        exact = {"pi": reference.number("pi"), "e": reference.number("e")}
        exact |= {name: reference.exact(decimals(value)) for name, value in self.data.items()}
        exact |= {name: reference.exact(np.asarray(value)) for name, value in point.items()}
        return np.asarray(numpy_reading.read(text, exact, CALLS, reference.number), dtype=object)

    def value(self, point: Mapping[str, Any]) -> Any:
        return self.read(self.output, point)[()]

    def gradient(self, point: Point, leaf: str) -> Any:
        """The partial derivatives of the output by the entries of a leaf, to some 40 digits."""
        base = reference.exact(np.asarray(point[leaf], dtype=float))
        found = np.empty(base.shape, dtype=object)
        for place in np.ndindex(*base.shape):
            step = STEP * (abs(base[place]) or 1)
            ends = []
            for side in (1, -1):
                moved = base.copy()
                moved[place] += side * step
                ends.append(self.value({**point, leaf: moved}))
            found[place] = (ends[0] - ends[1]) / (2 * step)
        return found

    def claimed(self, point: Point, leaf: str, claim: str | None = None) -> Any:
        """What a claim says, to 80 digits, in the shape of its leaf."""
        found = self.read(self.claims[leaf] if claim is None else claim, point)
        return np.broadcast_to(found, self.leaves[leaf].shape)


def drawn(random: Any, leaf: Leaf) -> Any:
    """A value in the middle of the box of a leaf, by decimals of few digits."""
    low, high = leaf.low, leaf.high
    along = random.uniform(0.15, 0.85, leaf.shape)
    if low > 0 and high / low > 100:
        values = np.exp(np.log(low) + along * (np.log(high) - np.log(low)))
    else:
        values = low + along * (high - low)
    short = np.vectorize(lambda x: float(f"{x:.{DRAWN - 1}e}"), otypes=[float])(values)
    return short.tolist()


def decimals(value: Any) -> Any:
    """Numbers as they are written: a literal of a script is the decimal, not the nearest double."""
    return np.vectorize(lambda x: Fraction(repr(x)), otypes=[object])(np.asarray(value, dtype=object))


def told(value: Any) -> str:
    """A number or nested list as a script spells it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(told(one) for one in value)}]"
    return repr(value)


def same(found: Any, truth: Any, digits: float = DIGITS) -> bool:
    """Whether all entries agree to so many digits; what is 0 beside the largest entry is 0 in both."""
    found, truth = np.asarray(found, dtype=object), np.asarray(truth, dtype=object)
    largest = max((abs(x) for x in truth.reshape(-1)), default=mp.zero)
    floor = mp.mpf(10) ** -34 * (largest or 1)
    tolerance = mp.mpf(10) ** -digits
    return all(
        abs(a - b) <= max(tolerance * abs(b), floor) for a, b in zip(found.reshape(-1), truth.reshape(-1), strict=True)
    )


@cache
def corpus() -> tuple[Formula, ...]:
    """All formulas, by file and in the order in which they stand there."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        found += [Formula(name, path.stem, row) for name, row in table.items()]
    return tuple(found)
