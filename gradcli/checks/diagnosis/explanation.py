"""Explains a refuted claim: readings of its error, in the order in which a person would try them.

First the patterns of numbers, then branches, then the derivation with one mistake in it, then SEARCHES until one finds
a reading. Where nothing fits, the report says so. A reading is consistent with the claim at all points, never more.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.decide.sample_points import scattered
from gradcli.checks.diagnosis import ratios
from gradcli.checks.diagnosis.diagnosis_context import CLOSE, Candidate, Judgement
from gradcli.checks.diagnosis.formula_text import as_typed, correction, readable, room_to_build
from gradcli.checks.diagnosis.ratios import MOST, Comparison, Reading, span_of
from gradcli.checks.diagnosis.rederivation import MOST_NEW, single_mistakes
from gradcli.checks.diagnosis.source_edits import by_edits
from gradcli.checks.formatting import called, node_text
from gradcli.diagnostics import GradcliError
from gradcli.graph.node import DATA, LEAF, Node, dependents, reachable
from gradcli.primitives.axes import reversed_along
from gradcli.transforms import derivatives
from gradcli.transforms.reverse import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.decide.case import Case, Floats, Values

LONGEST = 100  # text of a subexpression that is worth reading
MOST_PARTS = 600  # subexpressions that ratios and differences are compared with
ENOUGH = 3  # numbers that a ratio must be the same for, and comparisons on each side of a surface


def explain(
    case: Case,
    known: Sequence[Values],
    exact: Sequence[Floats] = (),
    claimed: Sequence[Floats] = (),
    sizes: Sequence[int] = (),
) -> list[Reading]:
    """At most three readings of a wrong value or gradient; one that says so where nothing explains it.

    `exact` and `claimed` are the values at the `known` points. There is no reading where the exact values are all 0. If
    a search fails, the reading says so, and the verdict stands without it.
    """
    pairs = Comparison(*(np.stack(x) if len(x) else np.zeros((0, 1)) for x in (exact, claimed)))
    names = dict(case.subject.names)
    if case.subject.kind == "vjp":  # operands are called as the rule calls them
        leaves = [node for node in reachable(case.subject.nodes()) if node.primitive is LEAF]
        names |= {node: node.params["name"].rpartition(".")[2] for node in leaves}
    try:
        with called(names), np.errstate(all="ignore"):
            with room_to_build(case.subject, 4 * MOST_NEW):
                judged = Judgement(case)
                if judged.doubtful(known, exact):
                    return ratios.readings(pairs, sizes)
                found = _explained(judged, pairs, sizes)[:MOST]
                right = correction(case, judged.right) if found and case.subject.output is not None else None
                return [one._replace(correction=right) for one in found]
    except GradcliError:  # a limit of the script
        return ratios.readings(pairs, sizes)
    except (ArithmeticError, ValueError, LookupError) as failed:
        text = f"unexplained: the search for a mistake failed ({type(failed).__name__}: {failed})"
        return [Reading("unexplained", text)]


def _explained(judged: Judgement, pairs: Comparison, sizes: Sequence[int]) -> list[Reading]:
    """The readings of the first searches that find some."""
    cheap = by_ratios(judged, pairs, sizes)
    if cheap is None or any(one.name == "zero" for one in cheap):
        return cheap or []
    if branch := by_branch(judged):
        return branch
    factors = [one for one in cheap if one.name == "constant factor"]
    held = [one for one in factors if not judged.holds_elsewhere(Fraction(one.factor or 1))]
    cheap = [one for one in cheap if one not in held]
    whole = next((one for one in cheap if one.factor is not None), None)
    found = single_mistakes(judged)
    if held or whole is not None:  # a factor at held data would be another number for other data
        found = [one for one in found if one.name != "factor of a part"]
    if found and whole is not None:  # a factor of the whole and the mistake behind it are one reading
        text = f"{whole.text}; {found[0].text.removeprefix('consistent with ')}"
        merged = found[0]._replace(name=whole.name, text=text, factor=whole.factor, cause=found[0].name)
        return [*(merged if one is whole else one for one in cheap), *found[1:]]
    found = [*cheap, *found]
    gap, slack = np.abs(pairs.right - pairs.claimed), CLOSE / ratios.CLOSE * pairs.slack
    if not found and gap.size and (gap <= slack).all():  # nearer than the searches can distinguish
        return compared(judged)
    for search in SEARCHES:
        found = found or search(judged)
    text = "unexplained: none of the mistakes that were tried gives the claim"
    return found or [Reading("unexplained", text + (f" ({judged.note})" if judged.note else ""))]


def by_ratios(judged: Judgement, pairs: Comparison, sizes: Sequence[int]) -> list[Reading] | None:
    """Patterns of the numbers at the moved points, or at those of the check; None where everything is 0."""
    subject = judged.case.subject
    twins = judged.others()
    moved, values = judged.compared([*twins.values()])
    if not moved.right.any() and not pairs.right.any():
        return None
    what = "gradient" if subject.output is not None else "value"
    words = "cotangents: what is returned here belongs to" if subject.kind == "vjp" else ratios.LEAVES
    others = {name: Comparison(values[node], moved.claimed) for name, node in twins.items() if values}
    found = ratios.readings(moved, sizes, others, what, words)
    if moved.right.size < ENOUGH and len(pairs.right) < 2:
        return [one for one in found if one.factor is None or one.factor == "-1"]
    if not found and pairs.right.size >= ENOUGH:
        found = ratios.readings(pairs, sizes, what=what)
    return found


def compared(judged: Judgement) -> list[Reading]:
    """What single entries show, and ratios and differences beside the subexpressions."""
    case, nodes = judged.case, [judged.right, judged.claimed]
    shape = judged.right.type.shape
    order = reachable([*nodes, *([] if case.subject.output is None else [case.output])])
    parts = [node for node in order if node.type.kind == "float" and node.type.shape in ((), shape)]
    parts = [node for node in parts if node not in nodes and node.primitive is not DATA][:MOST_PARTS]
    known, values = judged.compared(parts)
    if len(known.right) < 2:
        return []
    if (rounded := ratios.rounded(known)) is not None:
        return [rounded]
    names = readable(case)

    def text(node: Node) -> str:  # only of what a script can say
        return "..." if as_typed(case, names, node, 6 * LONGEST) is None else node_text(node, LONGEST)

    written = [ratios.Part(partial(text, node), value) for node, value in values.items() if np.isfinite(value).all()]
    return ratios.of_entries(known) or ratios.of_parts(known.relative(CLOSE), written)


# --- right for special arrays, or on one side of a kink ------------------------------------------------------------

MOST_ARRAYS = 12


def by_statistics(judged: Judgement) -> list[Reading]:
    """Sums, as in a mean and a variance, that a claim takes for constants: at most one reading."""
    output, target = judged.case.subject.output, judged.case.subject.target
    if output is None or target is None:
        return []
    order = reachable([output])
    live = dependents(order, [target])
    sums = {node: None for node in order if node in live and node.primitive.name == "sum"}
    node, outer = output, [output]
    while len(outer) == 1:  # the sums of the result itself are none
        node = outer[0]
        sums.pop(node, None)
        outer = [arg for arg in node.args if arg in live]
    if not sums:
        return []
    fixed = [*sums, *(node for node in order if node in live and node.primitive.name in ("max", "min"))]
    (changed,) = placed(judged.builder, [output], {one: judged.builder.call("detach", one) for one in fixed})
    what = node_text(next(iter(sums)), 40)
    told = f"consistent with statistics taken for constants: no derivative goes through `{what}`"
    told += " and the other sums" if len(sums) > 1 else ""
    reading = Reading("constant statistics", told, node=what, span=span_of(next(iter(sums))))
    return judged.likeliest([Candidate(lambda: reading, derivatives.grad(changed, [target])[0], judged.claimed)])


def _is_matrix(x: Node) -> bool:
    return x.type.rank == 2 and x.shape[0] == x.shape[1]


def _is_kernel(x: Node) -> bool:
    return not x.args and max(x.shape[-2:]) > 2


def _evened(x: Node, axes: int = 2) -> Node:
    """An array that is the same read backwards along its last axes: the mean with itself in the opposite order."""
    turned = x
    for axis in range(-min(axes, x.type.rank), 0):
        turned = reversed_along(turned, axis)
    return (x + turned) / 2


BACKWARDS = "is the same read backwards: is a flip missing, or one too many?"
SHAPES: tuple[tuple[str, str, Callable[[Node], bool], Callable[[Node], Node]], ...] = (  # of which arrays, and how
    ("symmetric matrix", "is symmetric", _is_matrix, lambda x: (x + x.mT) / 2),
    ("diagonal matrix", "is diagonal", _is_matrix, lambda x: x.builder.call("diag", x.builder.call("diag", x))),
    ("reversed array", BACKWARDS, _is_kernel, _evened),
    ("reversed array", f"along its last axis {BACKWARDS}", _is_kernel, partial(_evened, axes=1)),
)


def by_structure(judged: Judgement) -> list[Reading]:
    """The array that a claim takes for a special one: at most one reading."""
    sides = [judged.right, judged.claimed]
    output = judged.case.subject.output
    paired_with = output.args[0].args if output is not None and output.args else ()
    arrays = [node for node in reachable(sides) if node.type.kind == "float" and node.type.size > 1]
    arrays = [node for node in arrays if node not in sides and (node.args or node.primitive is LEAF)]
    arrays.sort(key=lambda node: (len(node.args) > 0, node.serial))  # inputs first
    candidates: list[Candidate] = []
    for name, words, possible, change in SHAPES:
        fitting = [one for one in arrays if possible(one) and not (possible is _is_kernel and one in paired_with)]
        changes = {one: change(one) for one in fitting[:MOST_ARRAYS]}  # a cotangent is no kernel
        values = judged.values([*changes, *changes.values()]) or {}
        for array, changed in changes.items():
            if not any(map(np.array_equal, values.get(array, ()), values.get(changed, ()))):
                what = node_text(array, 40)
                told = f"consistent with one array mistaken for another: the claim is right where `{what}` {words}"
                reading = partial(Reading, name, told, node=what, span=span_of(array) if array.args else None)
                left, right = placed(judged.builder, sides, {array: changed})
                candidates.append(Candidate(reading, left, right, len(candidates)))
    return judged.likeliest(candidates)


DRAWN = 24
AROUND = 4.0  # sizes of an entry: as far as they are drawn, to lie on both sides of a surface
MOST_SURFACES = 12


def by_branch(judged: Judgement) -> list[Reading]:
    """The surface on one side of which the claim is right, and on the other side wrong: at most one reading."""
    case = judged.case
    surfaces = list({surface.zero: surface for surface in case.subject.surfaces}.values())[:MOST_SURFACES]
    if not surfaces or not judged.names:
        return []
    places = [*islice(scattered(case.values, judged.names, case.domains, AROUND, case.seed), DRAWN)]
    nodes = [judged.right, judged.claimed, *(surface.zero for surface in surfaces)]
    values = judged.values(nodes, places)
    if values is None:
        return []
    right, claimed = values[judged.right], values[judged.claimed]
    scale = np.maximum(np.abs(right), np.abs(claimed)).reshape(DRAWN, -1).max(axis=1, initial=0.0)
    same = np.abs(right - claimed) <= CLOSE * scale.reshape(-1, *(1,) * (right.ndim - 1))
    sound = np.isfinite(scale)
    for surface in surfaces:
        side, good = np.sign(values[surface.zero])[sound], same[sound]
        if side.shape != good.shape:  # all entries of a point together, where they are on one side
            side, good = (one.reshape(len(one), -1) for one in (side, good))
            one_side = (side == side[:, :1]).all(axis=1)
            side, good = side[one_side, 0], good[one_side].all(axis=1)
        above, below = good[side > 0], good[side < 0]
        for ours, theirs, words in ((above, below, "><"), (below, above, "<>")):
            if min(ours.size, theirs.size) >= ENOUGH and ours.all() and not theirs.any():
                text = node_text(surface.zero)
                told = f"consistent with a forgotten branch: the claim is right where {text} {words[0]} 0, "
                told += f"and wrong where {text} {words[1]} 0"
                return [Reading("right on one branch", told, node=text, span=span_of(surface.node))]
    return []


# what is tried where ratios and the derivation with one mistake explain nothing, until one finds a reading
SEARCHES: tuple[Callable[[Judgement], list[Reading]], ...] = (
    by_edits, by_statistics, by_structure, compared, partial(by_edits, rare=True),
)  # fmt: skip
