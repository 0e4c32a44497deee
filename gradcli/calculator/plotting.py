"""Data for plots: a function with its gradient along one leaf or two, a claim, finite differences by step."""

from __future__ import annotations

import math

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.base.results.curves import Curves
from gradcli.calculator.answers import point_of
from gradcli.calculator.questions import prepare
from gradcli.calculator.repeated.compiled import CompiledScript
from gradcli.language.limits import limits_of
from gradcli.lowering.points import read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.language.limits import LimitsLike
    from gradcli.language.source import Source

    Ranges = Mapping[str, tuple[float, float]]

ALONG, GRID = 401, 41  # points of a curve, and of each side of a contour plot
AROUND = 3.0  # from the middle to the ends of a range that is not given


def plot(
    script: str | Source,
    *,
    at: Mapping[str, Any] | Sequence[str] = (),
    wrt: Sequence[str] | None = None,
    ranges: Ranges | None = None,
    claim: str | None = None,
    steps: bool = False,
    limits: LimitsLike = None,
) -> Curves:
    """The function with its derivatives over a range of one leaf, or over ranges of two.

    `claim`, a script for the derivative with respect to the only leaf, is computed too. With `steps`, central
    differences at the point are computed for a sequence of steps instead. The default range of a leaf is 3 to both
    sides of the point.

    Raises GradcliError GC721 unless there are one or two leaves that are numbers, GC206 for a range of what is no leaf,
    and as `grad` does.

    >>> found = plot("x**2", ranges={"x": (0, 1)})
    >>> found.value[-1], found.gradient["x"][-1]
    (1.0, 2.0)
    """
    point, _ = read_point(at, limits_of(limits))
    ranges = dict(ranges or {})
    lowered = prepare(script, {**dict.fromkeys(ranges, 0.0), **point}, wrt, limits_of(limits))
    known = {**lowered.values, **{name: value for name, value in point.items() if name in lowered.program.leaves}}
    for name in ranges:
        if name not in lowered.program.leaves:
            guess = did_you_mean(name, lowered.program.leaves)
            hint = f"did you mean `{guess}`?" if guess else f"the leaves are {', '.join(lowered.program.leaves)}"
            raise error("GC206", f"unknown leaf `{visible(name)}` for a range", help=hint)
    leaves = list(ranges) if ranges and wrt is None else list(lowered.wrt)
    leaves = [name for name in leaves if wrt is not None or not lowered.program.leaves[name].node.type.shape]
    most = 1 if claim is not None or steps else 2
    if not 0 < len(leaves) <= most:
        phrase = ", ".join(map(visible, leaves)) or "none"
        few = "one leaf that is a number" if most == 1 else "one or two leaves that are numbers"
        raise error(
            "GC721", f"a plot is along {few}; here: {phrase}", help="choose with --wrt x; --at gives the others"
        )
    function = CompiledScript(script, leaves, limits=limits)
    rest = {name: value for name, value in known.items() if name not in leaves}
    shown = point_of(lowered, {**rest, **({leaves[0]: known[leaves[0]]} if steps and leaves[0] in known else {})})
    if steps:
        if leaves[0] not in known:
            raise error("GC721", f"the point lacks {visible(leaves[0])}", help=f"write --at {leaves[0]}=2")
        return by_step(lowered.text, function, leaves[0], float(known[leaves[0]]), rest, shown)
    points = {}
    for name in leaves:
        middle = float(known.get(name, 0.0))
        low, high = ranges.get(name, (middle - AROUND, middle + AROUND))
        count = ALONG if len(leaves) == 1 else GRID
        points[name] = [low + (high - low) * at / (count - 1) for at in range(count)]
    first, *second = points.values()
    columns = (
        dict(zip(leaves, zip(*[(a, b) for a in first for b in second[0]], strict=True), strict=True))
        if second
        else {leaves[0]: first}
    )
    columns = {name: list(column) for name, column in columns.items()}
    shared = [name for name, value in rest.items() if getattr(value, "shape", ())]
    named_values: dict[str, Any] = {**rest, **columns}
    values, gradient = function.at_points(shared=shared, **named_values)
    stated = None
    if claim is not None:  # it sees the names of the script
        stated = evaluated(f"{lowered.source.text}\n{claim}", named_values, shared, len(first), limits)
    slopes = {name: defined(gradient[name].tolist(), values.tolist()) for name in leaves}
    return Curves(lowered.text, shown, points, values.tolist(), slopes, stated, claim or "")


def defined(slopes: list[float], values: list[float]) -> list[float]:
    """The slopes where the function has a value: log(x) has none below 0, although 1/x has."""
    return [slope if value == value else math.nan for slope, value in zip(slopes, values, strict=True)]


def evaluated(
    claim: str, known: Mapping[str, Any], shared: Sequence[str], count: int, limits: LimitsLike
) -> list[float]:
    """A claim at the points of a curve."""
    used = prepare(claim, known, None, limits_of(limits)).program.leaves
    taken = {name: value for name, value in known.items() if name in used}
    stated: Any = CompiledScript(claim, limits=limits)
    if not any(isinstance(value, list) for value in taken.values()):
        return [float(stated(**taken))] * count
    common = [name for name in shared if name in taken]
    entries: list[float] = stated.at_points(shared=common, gradient=False, **taken)[0].tolist()
    return entries


def by_step(
    expression: str, function: Any, leaf: str, middle: float, rest: Mapping[str, Any], shown: dict[str, Any]
) -> Curves:
    """Central differences at a point for a sequence of steps, and the derivative."""
    from gradcli.checks.differences.step_sequences import Neighbourhood, sides, suspicious  # other plots need none

    def values(points: Any) -> Any:
        return [float(function(**{leaf: x}, **rest)) for x in points[:, 0].tolist()]

    slope = float(function.value_and_grad(**{leaf: middle}, **rest)[1][leaf])
    near = Neighbourhood(values, [middle])
    ((seen,),) = near.differences([near.axis(0)])
    both = sides(seen)
    bent = both.verdict == "KINK" and suspicious(seen)
    sequence = seen.convergence(f"d/d{leaf}", slope, None if bent else slope)
    if bent:
        sequence = sequence._replace(below=both.left[0], above=both.right[0])
    return Curves(expression, shown, {leaf: [*sequence.steps]}, [*sequence.slopes], {leaf: [slope]}, steps=sequence)
