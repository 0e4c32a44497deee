"""Explains a refuted claim: readings of its error, in the order in which a person would try them.

First the patterns of numbers and the digits that are right, then branches, then the derivation with one mistake in it,
then changes of formulas, until something is found. Where nothing fits, the report says so. A reading is consistent with
the claim at all points, never more.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.case import Case
from gradcli.checks.decide.chosen_points import scattered
from gradcli.checks.diagnosis import ratios
from gradcli.checks.diagnosis.diagnosis_context import CLOSE, RefutedClaim
from gradcli.checks.diagnosis.error_model import MOST_NEW, repeated_mistakes, single_mistakes
from gradcli.checks.diagnosis.formula_text import as_typed, correction, readable, room_to_build
from gradcli.checks.diagnosis.ratios import MOST, Comparison, ErrorReading, span_of
from gradcli.checks.diagnosis.source_edits import edits, other_variables, outputs, special_arrays, symmetric_convention
from gradcli.checks.formatting import called, node_text
from gradcli.checks.subjects import surfaces_of
from gradcli.graph.node import DATA, LEAF, Node, reachable
from gradcli.language.parser import parse
from gradcli.language.syntax import List
from gradcli.language.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.checks.decide.case import Floats, Values

LONG_CORRECTION = 160  # characters, from which on it is that of a wrong entry alone
LONGEST = 100  # text of a subexpression that is worth reading
MOST_PARTS = 600  # subexpressions that ratios and differences are compared with
SURE_DIGITS, DIGITS = 6, 4  # a claim that is right to so many holds a rounded constant: surely, or if no change fits
ALSO_OF_A_VARIABLE = ("exponent not lowered", "inner derivative dropped")  # by a logarithm, or by an angle in radians
ONE_BRANCH = "right on one branch"  # farther off it explains nothing
ENOUGH = 3  # numbers that a ratio must be the same for, and comparisons on each side of a surface


def conjugated(case: Case) -> list[ErrorReading]:
    """That a claim at complex points is the conjugate of what it should state, where it is at all compared ones."""
    entries = [triple for _, a in case.compared for triple in zip(a["entries"], a["exact"], a["claimed"], strict=True)]
    known = all(None not in triple for triple in entries)
    turned = known and all(abs(claimed - exact * (-1) ** i) <= CLOSE * abs(exact) for i, exact, claimed in entries)
    text = "consistent with the conjugate: a claim states dL/dx - i*dL/dy, and `grad` shows dL/dx + i*dL/dy"
    return [ErrorReading("conjugate", text)] if turned else []


def explain(
    case: Case,
    refuting: Values,
    known: Sequence[Values] = (),
    exact: Sequence[Floats] = (),
    claimed: Sequence[Floats] = (),
    sizes: Sequence[int] = (),
) -> list[ErrorReading]:
    """At most three readings of a wrong value or gradient; one that says so where nothing explains it.

    `exact` and `claimed` are the values at the `known` points; at the `refuting` one both sides differ. There is no
    reading where the exact values are all 0. If a search fails, the reading says so, and the verdict stands without it.
    """
    pairs = Comparison(*(np.stack(x) if len(x) else np.zeros((0, 1)) for x in (exact, claimed)))
    names = dict(case.subject.names)
    if case.subject.kind == "vjp":  # operands are called as the rule calls them
        leaves = [node for node in reachable(case.subject.nodes()) if node.primitive is LEAF]
        names |= {node: node.params["name"].rpartition(".")[2] for node in leaves}
    try:
        with called(names), np.errstate(all="ignore"):
            with room_to_build(case.subject, 4 * MOST_NEW):
                judged = RefutedClaim(case, refuting)
                if judged.doubtful(known, exact):
                    return ratios.readings(pairs, sizes)
                causes = _explained(judged, pairs, sizes)[:MOST]
                right = correction(case, judged.right) if causes and case.subject.output is not None else None
                if right is not None and len(right) > LONG_CORRECTION:
                    right = wrong_entry(right, judged.known)
                return [reading._replace(correction=right) for reading in causes]
    except GradcliError:  # a limit of the script
        return ratios.readings(pairs, sizes)
    except (ArithmeticError, ValueError, LookupError) as failed:
        text = f"unexplained: the search for a mistake failed ({type(failed).__name__}: {failed})"
        return [ErrorReading("unexplained", text)]


def _explained(judged: RefutedClaim, pairs: Comparison, sizes: Sequence[int], far: bool = False) -> list[ErrorReading]:
    """The readings of the first searches that find some; those of one that is `far` off."""
    cheap = by_ratios(judged, pairs, sizes)
    if cheap is None or any(reading.name == "zero" for reading in cheap):
        return cheap or []
    if near := [] if cheap else ratios.rounded(judged.known, SURE_DIGITS):
        other = farther_off(judged)
        causes = [] if other is None else _explained(other, other.known, sizes, far=True)
        return causes if causes and causes[0].name not in ("unexplained", ONE_BRANCH) else near
    surfaces = {surface.zero: surface.node for surface in judged.case.subject.surfaces}
    sides = [] if far else [judged.right, judged.claimed]
    leaves = {node: node for node in reachable(sides) if node.primitive is LEAF}
    turned = any(reading.name == "wrong sign" for reading in cheap)
    if branch := by_branch(judged, surfaces | leaves if turned else surfaces):
        causes = [] if "a forgotten branch" in branch[0].text else single_mistakes(judged)[:1]
        behind = "".join(f"; {cause.text.removeprefix('consistent with ')}" for cause in causes)
        return [reading._replace(text=reading.text + behind) for reading in branch]
    factors = [reading for reading in cheap if reading.name == "constant factor"]
    held = [reading for reading in factors if not judged.holds_elsewhere(Fraction(reading.factor or 1))]
    cheap = [reading for reading in cheap if reading not in held]
    whole = next((reading for reading in cheap if reading.factor is not None), None)
    if convention := judged.likeliest(symmetric_convention(judged)):
        return convention
    causes = single_mistakes(judged)
    variable = judged.likeliest(other_variables(judged)) if not causes or causes[0].name in ALSO_OF_A_VARIABLE else []
    if causes and variable:
        text = f"{causes[0].text}; or {variable[0].text.removeprefix('consistent ')}"
        causes = [causes[0]._replace(text=text), *causes[1:]]
    causes = causes or variable
    if held or whole is not None:  # a factor at held data would be another number for other data
        causes = [reading for reading in causes if reading.name != "factor of a part"]
    if causes and whole is not None:  # a factor of the whole and the mistake behind it are one reading
        text = f"{whole.text}; {causes[0].text.removeprefix('consistent with ')}"
        merged = causes[0]._replace(name=whole.name, text=text, factor=whole.factor, cause=causes[0].name)
        return [*(merged if reading is whole else reading for reading in cheap), *causes[1:]]
    causes = [*cheap, *causes]
    for search in (edits, outputs, special_arrays, repeated_mistakes):
        causes = causes or judged.likeliest(search(judged))
    causes = causes or compared(judged) or judged.likeliest(edits(judged, rare=True)) or by_branch(judged, leaves)
    text = "unexplained: none of the mistakes that were tried gives the claim"
    return causes or [ErrorReading("unexplained", text + (f" ({judged.note})" if judged.note else ""))]


def by_ratios(judged: RefutedClaim, pairs: Comparison, sizes: Sequence[int]) -> list[ErrorReading] | None:
    """Patterns of the numbers at the moved points, or at those of the check; None where everything is 0."""
    subject = judged.case.subject
    twins, moved = judged.others(), judged.known
    if not moved.right.any() and not pairs.right.any():
        return None
    what = "gradient" if subject.output is not None else "value"
    words = "cotangents: what is returned here belongs to" if subject.kind == "vjp" else ratios.LEAVES
    values = (twins and judged.values(twins.values())) or {}
    others = {name: Comparison(values[node][moved.sound], moved.claimed) for name, node in twins.items() if values}
    patterns = ratios.readings(moved, sizes, others, what, words)
    if moved.right.size < ENOUGH and len(pairs.right) < 2:
        return [reading for reading in patterns if reading.factor is None or reading.factor == "-1"]
    if not patterns and pairs.right.size >= ENOUGH:
        patterns = ratios.readings(pairs, sizes, what=what)
    return patterns


def farther_off(judged: RefutedClaim) -> RefutedClaim | None:
    """A claim that is nearly right, at a point where it is not: a mistake of little effect is no rounded constant."""
    case = judged.case
    places = [*islice(scattered(case.values, judged.names, case.domains, AROUND, case.seed), DRAWN)]
    places += [{**case.values, **{name: k * case.values[name] for name in judged.names}} for k in (0.1, -0.1)]
    values = (judged.names and judged.values([judged.right, judged.claimed], places)) or None
    if values is None:
        return None
    right, claimed = (values[node].reshape(len(places), -1) for node in (judged.right, judged.claimed))
    size = np.abs(right).max(axis=1, initial=0.0)
    off = np.nan_to_num(np.abs(right - claimed).max(axis=1, initial=0.0) / size, posinf=0.0)
    if off.max() <= 10.0 ** (2 - SURE_DIGITS):
        return None
    place = places[int(off.argmax())]
    return RefutedClaim(Case(case.exact, case.subject.at(place)), place)


def wrong_entry(text: str, known: Comparison) -> str:
    """Of an array that is written entry by entry the first entry that is wrong, behind its place."""
    item: Any = getattr(parse(text).statements[-1], "value", None)
    place = next(iter(np.argwhere(known.misses(known.claimed).any(axis=0)).tolist()), ())
    for i in place:
        item = item.items[i] if isinstance(item, List) else None
    return text if item is None or not place else f"{place}: {unparse(item)}"


def compared(judged: RefutedClaim) -> list[ErrorReading]:
    """What single entries show, and ratios and differences beside the subexpressions."""
    case, nodes = judged.case, [judged.right, judged.claimed]
    shape = judged.right.type.shape
    order = reachable([*nodes, *([] if case.subject.output is None else [case.output])])
    parts = [node for node in order if node.type.kind == "float" and node.type.shape in ((), shape)]
    parts = [node for node in parts if node not in nodes and node.primitive is not DATA][:MOST_PARTS]
    known, values = judged.known, judged.values(parts) or {}
    if len(known.right) < 2:
        return []
    if rounded := ratios.rounded(known, DIGITS):
        return rounded
    names = readable(case)

    def text(node: Node) -> str:  # only of what a script can say
        return "..." if as_typed(case, names, node, 6 * LONGEST) is None else node_text(node, LONGEST)

    sound = {node: value[known.sound] for node, value in values.items()}
    finite = {node: value for node, value in sound.items() if np.isfinite(value).all()}
    written = [ratios.Subexpression(partial(text, node), value) for node, value in finite.items()]
    relative = Comparison(known.right, known.claimed, CLOSE * np.abs(known.right))
    return ratios.of_entries(known) or ratios.of_parts(relative, written)


# --- right on one side of a kink --------------------------------------------------------------------------------------

DRAWN = 24
AROUND = 4.0  # sizes of an entry: as far as they are drawn, to lie on both sides of a surface
MOST_SURFACES = 12


def by_branch(judged: RefutedClaim, zeros: Mapping[Node, Node]) -> list[ErrorReading]:
    """The node on one side of whose zero the claim is right, and on the other wrong: at most one reading."""
    case, sides = judged.case, [judged.right, judged.claimed]
    zeros = dict(islice(zeros.items(), MOST_SURFACES))
    names = [node.params["name"] for node in reachable(sides) if node.primitive is LEAF]
    inside = [name for name in names if chosen_points.inside(case.domains.get(name), -case.values[name]).all()]
    mirrored = {**case.values, **{name: -case.values[name] for name in inside}}
    ways = ((case.values, 1.0), (case.values, AROUND), (mirrored, 1.0))  # two leaves may have to change their signs
    clouds = [scattered(center, names, case.domains, width, case.seed) for center, width in ways]
    places = [place for cloud in clouds for place in islice(cloud, DRAWN)]
    values = judged.values([*sides, *zeros], places) if zeros else None
    if values is None:
        return []
    right, claimed = values[judged.right], values[judged.claimed]
    scale = np.maximum(np.abs(right), np.abs(claimed)).reshape(len(places), -1).max(axis=1, initial=0.0)
    same = np.abs(right - claimed) <= CLOSE * scale.reshape(-1, *(1,) * (right.ndim - 1))
    sound = np.isfinite(scale)
    for zero, node in zeros.items():
        side, good = np.sign(values[zero])[sound], same[sound]
        if side.shape != good.shape:  # all entries of a point together, where they are on one side
            side, good = (x.reshape(len(x), -1) for x in (side, good))
            one_side = (side == side[:, :1]).all(axis=1)
            side, good = side[one_side, 0], good[one_side].all(axis=1)
        above, below = good[side > 0], good[side < 0]
        for ours, theirs, words in ((above, below, "><"), (below, above, "<>")):
            if min(ours.size, theirs.size) >= ENOUGH and ours.all() and not theirs.any():
                text = node_text(zero)
                both = all(any(surface.zero is zero for surface in surfaces_of(each)) for each in sides)
                what = "a mistake on one of its branches" if both else "a forgotten branch"
                sentence = f"consistent with {what}: the claim is right where {text} {words[0]} 0, "
                sentence += f"and wrong where {text} {words[1]} 0"
                return [ErrorReading(ONE_BRANCH, sentence, node=text, span=span_of(node))]
    return []
