"""The right formula of a refuted gradient, as text in the script language that has been checked like a claim.

A text is shown only if it parses, reads nothing but the leaves of the script, calls nothing but library functions,
and is equal to the exact derivative in balls at the point of the check and at others where every leaf has moved.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.case import RIGHT
from gradcli.checks.floats import LIMIT_ULPS, evaluated, ulps
from gradcli.checks.script_text import Names, agreement, moved_points, on_leaves, readable
from gradcli.diagnostics import GradcliError
from gradcli.formulas import formula_texts
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.checks.case import Case, Values

LONGEST = 600  # characters of a formula that is worth reading
MOST_STEPS = 600  # nodes of a gradient that is written down
BESIDE = 2  # points beside the given one at which a formula must hold
MOST_ENTRIES = 64  # of a leaf: of a larger one evenly spaced entries are compared in balls, all of them in floats
FEWEST_ENTRIES, MOST_WORK = 2, 60_000  # so many, or as many as there are entries of all nodes for: a count, no clock
POOR = "  # right, but it loses digits in floating point here"


def correction(case: Case, gradient: Node) -> str | None:
    """The first text for the right gradient that holds; the builder of the case must be open."""
    if len(reachable([gradient])) > MOST_STEPS:
        return None
    names = readable(case)
    for text in candidates(gradient, names):
        if len(text) <= LONGEST:
            shown = holding(case, text, gradient, names)
            if shown is not None:
                return shown
    return None


def candidates(gradient: Node, names: Names) -> Iterator[str]:
    """Texts for a gradient, the best first; none of them is known to be right."""
    return formula_texts(gradient, {node: name for name, node in names.nodes.items()})


def holding(case: Case, text: str, gradient: Node, names: Names) -> str | None:
    """The text, if it is a formula for the gradient; with a remark where its floats are poor."""
    builder = gradient.builder
    values = dict(zip(names.nodes, evaluated(list(names.nodes.values()), case.values), strict=True))
    try:
        made = on_leaves(text, values, names, builder, gradient)
    except (GradcliError, ArithmeticError, ValueError, LookupError):
        return None
    if made is None:
        return None
    agrees = agreement(made, gradient)
    moved = list(islice(filter(agrees, moved_points(case)), BESIDE))
    if len(moved) < BESIDE or not agrees(case.values):
        return None
    answers = compared(case, made, [case.values, *moved])
    if answers is None:
        return None
    return text + (POOR if poor(made, case, answers[0]) else "")


def compared(case: Case, made: Node, places: Sequence[Values]) -> list[Any] | None:
    """The comparisons of a formula with the exact derivative at some points; None where one does not confirm it."""
    subject = case.subject
    size = case.target.type.size
    nodes = [made, case.output, case.target, *(subject.inner or ())]
    work = sum(node.type.size for node in reachable(nodes))
    count = max(FEWEST_ENTRIES, min(MOST_ENTRIES, MOST_WORK // work))
    entries = None if size <= count else sorted({int(i) for i in np.linspace(0, size - 1, count)})
    exact = case.exact.beside(nodes)
    answers = []
    try:
        exact.begin()
        for place in places:
            name = exact.derive(case.output, case.target, subject.moving, place, entries, case.seed, subject.inner)
            answer = exact.compare(made, [place], name=name)
            if "problem" in answer:
                return None
            found = answer["points"][0]
            if not found["region"] or not found["relations"] or not set(found["relations"]) <= RIGHT:
                return None
            answers.append(found)
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return answers


def poor(made: Node, case: Case, answer: Any) -> bool:
    """Whether the floats of a formula are far from the exact values at the point of the check."""
    floats = case.floats([made], case.values)[0].reshape(-1)
    pairs = zip(answer["entries"], answer["exact"], strict=True)
    return any(
        exact is not None and ulps(float(floats[entry]), exact, case.dtype) > LIMIT_ULPS for entry, exact in pairs
    )


__all__ = ["correction"]
