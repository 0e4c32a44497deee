"""The gradient of a compiled script as a formula in the script language.

A formula is returned only if it runs and reproduces the numbers of the gradient at several points.
"""

from __future__ import annotations

from math import isfinite, prod
from random import Random

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.calculator.formula_values import CLOSE, TINY, entries_at, flat
from gradcli.calculator.questions import gradient_question, prepare, scalar_output
from gradcli.formulas import formula_texts
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.lowering.points import read_point
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gradcli.graph.types import Shape
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source
    from gradcli.lowering import Lowered

LONGEST = 2000  # characters of a formula that is worth reading
WANTED = 2  # points at which a formula must give the gradient
RANGES = ((0.25, 0.75), (1.25, 1.75), (-1.75, 1.75), (0.25, 1.75), (2.0, 4.0), (-0.75, 0.75))  # of random numbers


def gradient_text(source: Source, leaf: str, leaves: Mapping[str, Any], limits: Limits | None = None) -> str:
    """The formula of the gradient in one leaf; raises GradcliError GC511 if there is none."""
    lowered = prepare(source, read_point(leaves)[0], [leaf], limits)
    node = derivatives.grad(scalar_output(lowered), [lowered.program.leaves[leaf].node])[0]
    with building(node.builder, reachable([node])):
        for text in formula_texts(node):
            if len(text) <= LONGEST and confirmed(lowered, text, limits):
                return text
    raise error(
        "GC511",
        f"the gradient in `{visible(leaf)}` has no formula of readable length",
        help="`gradcli trace` shows the steps that compute it",
    )


def confirmed(lowered: Lowered, text: str, limits: Limits | None = None) -> bool:
    """Whether a text runs and gives the gradient of a script at random points."""
    right = gradient_question(lowered)
    statics = lowered.program.statics
    agreeing = 0
    for place in points({name: leaf.node.shape for name, leaf in lowered.program.leaves.items()}, statics):
        try:
            wanted = flat(right.run(right.values(place), "auto", "float64")[1])
        except GradcliError:
            continue
        scale = max(map(abs, wanted), default=0.0)
        if not isfinite(scale):
            continue
        entries = entries_at(text, place, limits)
        if entries is None or len(entries) != len(wanted):
            return False
        near = TINY if not any(entries) else CLOSE * scale
        if not all(abs(x - y) <= near for x, y in zip(entries, wanted, strict=True)):
            return False
        agreeing += 1
        if agreeing == WANTED:
            return True
    return False


def points(shapes: Mapping[str, Shape], fixed: Mapping[str, Any], first: int = 0) -> Iterator[dict[str, Any]]:
    """Random values for leaves of these shapes, the same in every run: fractions with so many digits hardly tie."""
    for seed in range(first, first + 12):
        generator = Random(seed)
        low, high = RANGES[seed % len(RANGES)]
        place: dict[str, Any] = {}
        for name, shape in shapes.items():
            entries = [round(generator.uniform(low, high) * 2**20) / 2**20 for _ in range(prod(shape))]
            place[name] = fixed[name] if name in fixed else nested(entries, shape)
        yield place


def nested(entries: list[float], shape: Shape) -> Any:
    """Numbers as nested lists of a shape."""
    if not shape:
        return entries[0]
    if len(shape) == 1:
        return entries
    size = len(entries) // shape[0]
    return [nested(entries[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]
