"""The one change of a claim's own formula that makes it right, and the right formula as text."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.case import RIGHT
from gradcli.checks.decide.floats import LIMIT_ULPS, ulps
from gradcli.checks.diagnosis.diagnosis_context import all_dependents
from gradcli.checks.diagnosis.error_model import FAMILIES
from gradcli.checks.diagnosis.formula_text import Names, agreement, as_typed, moved_points, read_back, readable
from gradcli.checks.diagnosis.ratios import Reading, span_of
from gradcli.checks.formatting import node_text
from gradcli.formulas import formula_texts
from gradcli.graph.node import CONSTANT, LEAF, Node, reachable
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import reshape, sum_
from gradcli.primitives.powers import sqrt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.checks.decide.case import Case, Values
    from gradcli.checks.diagnosis.diagnosis_context import Judgement


LONGEST = 600  # characters of a formula that is worth reading
MOST_STEPS = 200  # nodes of a gradient that is written down: of a longer one no text is that short
BESIDE = 2  # points near the given one at which a formula must hold
MOST_ENTRIES = 64  # of a leaf: of a larger one evenly spaced entries are compared in balls, all of them in floats
FEWEST_ENTRIES, MOST_WORK = 2, 60_000  # so many, or as many as there are entries of all nodes for: a count, no clock
POOR = "  # right, but it loses digits in floating point here"


def correction(case: Case, gradient: Node) -> str | None:
    """The first text for the right gradient that holds; the builder of the case must be open."""
    if len(reachable([gradient])) > MOST_STEPS:
        return None
    names = readable(case)
    for text in formula_texts(gradient, {node: name for name, node in names.nodes.items()}):
        if len(text) <= LONGEST:
            shown = holding(case, text, gradient, names)
            if shown is not None:
                return shown
    return None


def holding(case: Case, text: str, gradient: Node, names: Names) -> str | None:
    """The text, if it is a formula for the gradient; with a remark where its floats are poor."""
    made = read_back(case, names, text, gradient)
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
    answers = []
    with case.exact.meanwhile(nodes) as exact:
        for place in places:
            name = exact.derive(case.output, case.target, subject.moving, place, entries, case.seed, subject.inner)
            answer = exact.compare(made, [place], name=name)
            if "problem" in answer:
                return None
            found = answer["points"][0]
            if not found["region"] or not found["relations"] or not set(found["relations"]) <= RIGHT:
                return None
            answers.append(found)
    return answers


def poor(made: Node, case: Case, answer: Any) -> bool:
    """Whether the floats of a formula are far from the exact values at the point of the check."""
    floats = case.floats([made], case.values)[0].reshape(-1)
    pairs = zip(answer["entries"], answer["exact"], strict=True)
    return any(
        exact is not None and ulps(float(floats[entry]), exact, case.dtype) > LIMIT_ULPS for entry, exact in pairs
    )


MOST_EDITED_STEPS = 150
MOST_EDITED_WORK = 12_000  # steps of all the formulas that are tried
LONGEST_EDIT = 50  # characters of what to write instead
CLOSE = 1e-9
ENOUGH = 3  # numbers that must be equal
OTHERWISE = {  # an operation for another one: which, and what it makes; a product for a quotient is 1/part
    "add": (("mul", "a product"),),
    "sub": (("mul", "a product"), ("div", "a quotient")),
    "mul": (("add", "a sum"), ("sub", "a difference")),
    "div": (("sub", "a difference"),),
}


class Edit(NamedTuple):
    """A part of the claim, what should stand there, how it is told, and the likelihood of the slip: small is likely."""

    part: Node
    instead: Node
    told: str
    cost: int
    written: bool = False  # whether the text goes on with what to write instead


def by_edits(judged: Judgement, rare: bool = False) -> list[Reading]:
    """The likeliest change of the claim's formula that makes it right, or a `rare` one: at most one reading."""
    order = reachable([judged.claimed])
    if len(order) > MOST_EDITED_STEPS or judged.claimed.shape != judged.right.shape:
        return []
    above = all_dependents(order)
    edits: dict[Node, list[Edit]] = {}
    work = 0
    leaves = [node for node in reachable([judged.right]) if node.primitive is LEAF]
    for part in order:
        ways = _rare_edits(part, leaves) if rare else _edits(part)
        possible = [edit for edit in ways if edit.instead.type == part.type and edit.instead is not part]
        edits[part] = [edit for edit in possible if "data[" not in edit.told]
        work += len(edits[part]) * len(above[part])
        if work > MOST_EDITED_WORK:
            break
    nodes = [judged.right, *order, *(edit.instead for tried in edits.values() for edit in tried)]
    values = judged.values(nodes)
    if values is None or values[judged.right].size < ENOUGH:
        return []
    right = values[judged.right]
    slack = CLOSE * np.maximum(np.abs(right), np.abs(right).max() * 1e-6)
    if (np.abs(values[judged.claimed] - right) <= slack).all():
        return []  # too near for edits to be told apart
    good: list[Edit] = []
    for part, tried in edits.items():
        changed = [values[edit.instead] for edit in tried]
        claims = judged.changed([judged.claimed], part, np.stack(changed), above[part], values) if tried else None
        if claims is not None:
            same = (np.abs(claims[0] - right) <= slack).reshape(len(tried), -1).all(axis=1)
            good += [edit for edit, holds in zip(tried, same.tolist(), strict=True) if holds]
    if not good:
        return []
    best = min(good, key=lambda edit: (edit.cost, edit.part.serial))
    span = span_of(best.part) if best.part.args else None  # a leaf's is where it was declared
    said = as_typed(judged.case, readable(judged.case), best.instead, LONGEST_EDIT) if best.written else None
    text = f"consistent with a mistake in the claim: it is right if {best.told}" + (f", `{said[0]}`" if said else "")
    return [Reading("mistake in the claim", text, node=node_text(best.part), span=span)]


def _edits(part: Node) -> Iterator[Edit]:
    """Other ways to write one part of a claim."""
    if part.type.kind != "float" or (part.constant is not None and isinstance(part.constant, str)):
        return
    text, name = f"`{node_text(part, 50)}`", part.primitive.name
    if name in ("name", "broadcast", "reshape", "unslice"):
        return
    if part.primitive is not CONSTANT:
        if len(part.shape) == 2 and part.shape[0] == part.shape[1] > 1:
            yield Edit(part, part.mT, f"{text} is transposed", 1)
        yield Edit(part, -part, f"{text} has the other sign", 1)
        yield Edit(part, 2 * part, f"{text} is doubled", 2)
        yield Edit(part, part / 2, f"{text} is halved", 2)
        yield Edit(part, part**2, f"{text} is squared", 2)
        yield Edit(part, sqrt(part), f"{text} is under a root", 3)
        yield Edit(part, 1 / part, f"{text} divides", 3)
    elif isinstance(part.constant, int) and abs(part.constant) < 100:
        for other in (part.constant - 1, part.constant + 1):
            yield Edit(part, _constant(part, other), f"{text} is {other}", 4)
    if len(part.shape) == 2 and part.shape[0] == part.shape[1] > 1:
        yield from _as_matrices(part, text)
    if name == "power":
        for n in (part.params["n"] - 1, part.params["n"] + 1):
            if n:
                yield Edit(part, part.args[0] ** n, f"the exponent of {text} is {n}", 2)
    if name in ("mul", "add", "sub", "div", "matmul"):
        for kept in (0, 1) if name in ("mul", "add") else (0,):
            if part.args[kept].shape == part.shape:
                told = f"`{node_text(part.args[1 - kept], 50)}` is left out of {text}"
                yield Edit(part, part.args[kept], told, 2)
    for operation, what in OTHERWISE.get(name, ()):
        made = part.builder.call(operation, *part.args)
        yield Edit(part, made, f"{text} is {what}", 3, written=True)
    if len(part.args) == 1 and not part.params:
        yield Edit(part, part.args[0], f"{text} is its argument alone", 3)
        for family in FAMILIES:
            if name in family:
                for function in (one for one in family if one != name):
                    made = part.builder.call(function, part.args[0])
                    yield Edit(part, made, f"{text} is {function} of the same", 2)


def _rare_edits(part: Node, leaves: Sequence[Node]) -> Iterator[Edit]:
    """A missing factor, entries that are moved or added up the wrong way, a sum over other axes."""
    text, name, rank = f"`{node_text(part, 50)}`", part.primitive.name, part.type.rank
    for leaf in leaves if part.primitive is not CONSTANT and part.type.kind == "float" else ():
        if leaf.type == part.type and leaf is not part:
            factor = f"`{node_text(leaf)}`"
            yield Edit(part, part * leaf, f"{text} is multiplied by {factor}", 1)
            for axis in range(-rank, 0):
                told = f"{text} is multiplied by the sum of {factor} along axis {axis}"
                yield Edit(part, part * _summed(leaf, axis), told, 2)
    for axis in range(-rank, 0) if part.args and part.type.kind == "float" else ():
        yield Edit(part, part / _summed(part, axis), f"{text} is divided by its sum along axis {axis}", 2)
    if name == "take_static" and sorted(part.params["indices"]) == list(range(part.type.size)):
        back = tuple(int(i) for i in np.argsort(part.params["indices"]))
        instead = part.builder.apply(part.primitive, part.args, {**part.params, "indices": back})
        inner = part.args[0].args[0] if part.args[0].primitive.name == "reshape" else part.args[0]
        yield Edit(part, instead, f"the entries of `{node_text(inner, 50)}` move the other way", 1)
    if name == "cumsum":
        turned = part.primitive(_reversed(part.args[0], part.params["axis"]), **part.params)
        yield Edit(part, _reversed(turned, part.params["axis"]), f"{text} runs from the other end", 1)
    total = part
    while total.primitive.name in ("broadcast", "reshape"):
        total = total.args[0]
    if total is not part and total.primitive.name == "sum" and total.args[0].type == part.type:
        for axis in range(-rank, 0):
            told = f"the sum of `{node_text(total.args[0], 50)}` runs along axis {axis} alone"
            yield Edit(part, _summed(total.args[0], axis), told, 1)


def _summed(x: Node, axis: int) -> Node:
    """The sums along an axis, in every entry along it."""
    kept = tuple(1 if i == axis % x.type.rank else n for i, n in enumerate(x.shape))
    found: Node = stretch(reshape(sum_(x, axis=(axis,)), shape=kept), x.shape)
    return found


def _reversed(x: Node, axis: int) -> Node:
    """The entries in reverse order along an axis."""
    order = np.flip(np.arange(x.type.size).reshape(x.shape), axis).reshape(-1).tolist()
    flat = x.builder.call("take_static", reshape(x, shape=(x.type.size,)), indices=tuple(order), axis=-1)
    found: Node = reshape(flat, shape=x.shape)
    return found


def _as_matrices(part: Node, text: str) -> Iterator[Edit]:
    """What works entry by entry, as the operation on matrices."""
    name = part.primitive.name
    if name == "exp":
        yield Edit(part, part.builder.call("expm", part.args[0]), f"{text} is the matrix exponential, expm", 1)
    if name == "power" and part.params["n"] == 2:
        yield Edit(part, part.args[0] @ part.args[0], f"{text} is a product of matrices", 1)
    if name == "mul":
        yield Edit(part, part.args[0] @ part.args[1], f"{text} is a product of matrices", 1)


def _constant(like: Node, value: Any) -> Node:
    made: Node = like.builder.constant(value, like.shape)
    return made
