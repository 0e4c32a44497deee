"""Finds the one change of the claim's own formula that makes it right."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.checks.diagnosis.diagnosis_context import CLOSE, Candidate
from gradcli.checks.diagnosis.error_model import FAMILIES
from gradcli.checks.diagnosis.formula_text import as_typed, readable
from gradcli.checks.diagnosis.ratios import Reading, span_of
from gradcli.checks.formatting import node_text
from gradcli.graph.node import CONSTANT, LEAF, Node, reachable
from gradcli.primitives.axes import reversed_along, stretched_back
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.movement import sum_
from gradcli.primitives.powers import sqrt
from gradcli.transforms.reverse import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case
    from gradcli.checks.diagnosis.diagnosis_context import Judgement


MOST_STEPS = 150
MOST_WORK = 15_000  # steps of all the formulas that are tried
LONGEST = 50  # characters of what to write instead
ENOUGH = 3  # numbers that must be equal
MULTIPLES = (1, 2, 3, 4, Fraction(1, 2), Fraction(1, 3), Fraction(1, 4))  # of a decimal, as derivatives bring them
MOST_DECIMALS = 8
DATA_COST = 5  # of a sentence about numbers that have no name
NAMELESS = re.compile(r"`data\[[\d,]*\]`")  # numbers that an edit may not be about
UNNAMED = ("name", "broadcast", "reshape", "unslice")  # what nobody writes down


class Edit(NamedTuple):
    """What should stand in place of a part of the claim, the sentence about it, and how unlikely it is.

    `written` says whether the sentence goes on with what to write; `also` are parts that change with it.
    """

    instead: Node
    told: str
    cost: int
    written: bool = False
    also: Mapping[Node, Node] = {}


def by_edits(judged: Judgement, rare: bool = False) -> list[Reading]:
    """The likeliest change of the claim's formula that makes it right, or a `rare` one: at most one reading."""
    builder, claimed, right = judged.builder, judged.claimed, judged.right
    order, known = reachable([claimed]), reachable([right])
    if len(order) > MOST_STEPS or claimed.shape != right.shape or len(judged.places) * right.type.size < ENOUGH:
        return []
    if judged.likeliest([Candidate(partial(Reading, "right", ""), claimed, right)]):
        return []  # too near for edits to be told apart
    output = judged.case.subject.output
    values = reachable([right if output is None else output])
    candidates, end = [], builder.count + MOST_WORK
    for part in order:
        for edit in _rare_edits(part, known, values) if rare else (*_edits(part), *_of_decimals(part, order, known)):
            if edit.instead.type == part.type and edit.instead is not part and not NAMELESS.search(edit.told):
                (changed,) = placed(builder, [claimed], {**edit.also, part: edit.instead})
                cost = edit.cost + DATA_COST * ("data[" in edit.told)
                candidates.append(Candidate(partial(_reading, judged.case, part, edit), changed, right, cost))
        if builder.count > end:
            break
    return judged.likeliest(candidates)


def _reading(case: Case, part: Node, edit: Edit) -> Reading:
    said = as_typed(case, readable(case), edit.instead, LONGEST) if edit.written else None
    text = f"consistent with a mistake in the claim: it is right if {edit.told}" + (f", `{said[0]}`" if said else "")
    span = span_of(part) if part.args else None  # a leaf's is where it was declared
    return Reading("mistake in the claim", text, node=node_text(part), span=span)


def _is_square(x: Node) -> bool:
    return len(x.shape) == 2 and x.shape[0] == x.shape[1] > 1


def _of(name: str, square: bool = False) -> Callable[[Node], bool]:
    return lambda x: x.primitive.name == name and (_is_square(x) or not square)


def _is_variable(x: Node) -> bool:
    return x.primitive is not CONSTANT


# which parts; what stands there instead; what the part then is; the cost; whether the text goes on with it
WAYS: tuple[tuple[Callable[[Node], bool], Callable[[Node], Node], str, int, bool], ...] = (
    (lambda x: _is_variable(x) and _is_square(x), lambda x: x.mT, "is transposed", 1, False),
    (_is_variable, lambda x: -x, "has the other sign", 1, False),
    (_is_variable, lambda x: 2 * x, "is doubled", 2, False),
    (_is_variable, lambda x: x / 2, "is halved", 2, False),
    (_is_variable, lambda x: x**2, "is squared", 2, False),
    (_is_variable, sqrt, "is under a root", 3, False),
    (_is_variable, lambda x: 1 / x, "divides", 3, False),
    (_is_variable, exp, "is the argument of exp", 3, False),
    (_is_variable, log, "is the argument of log", 3, False),
    (_of("exp", square=True), lambda x: x.builder.call("expm", x.args[0]), "is the matrix exponential, expm", 1, False),
    (lambda x: _of("power", square=True)(x) and x.params["n"] == 2, lambda x: x.args[0] @ x.args[0],
     "is a product of matrices", 1, False),
    (_of("mul", square=True), lambda x: x.args[0] @ x.args[1], "is a product of matrices", 1, False),
    (_of("add"), lambda x: x.args[0] * x.args[1], "is a product", 3, True),
    (_of("sub"), lambda x: x.args[0] * x.args[1], "is a product", 3, True),
    (_of("sub"), lambda x: x.args[0] / x.args[1], "is a quotient", 3, True),
    (_of("mul"), lambda x: x.args[0] + x.args[1], "is a sum", 3, True),
    (_of("mul"), lambda x: x.args[0] - x.args[1], "is a difference", 3, True),
    (_of("div"), lambda x: x.args[0] - x.args[1], "is a difference", 3, True),
    (lambda x: len(x.args) == 1 and not x.params, lambda x: x.args[0], "is its argument alone", 3, False),
)  # fmt: skip


def _edits(part: Node) -> Iterator[Edit]:
    """Other ways to write one part of a claim."""
    text, name = f"`{node_text(part, 50)}`", part.primitive.name
    if part.type.kind != "float" or isinstance(part.constant, str) or name in UNNAMED:
        return
    if isinstance(part.constant, int) and abs(part.constant) < 100:
        for near in (part.constant - 1, part.constant + 1):
            yield Edit(part.builder.constant(near, part.shape), f"{text} is {near}", 4)
    for possible, instead, told, cost, written in WAYS:
        if possible(part):
            yield Edit(instead(part), f"{text} {told}", cost, written)
    for n in (part.params["n"] - 1, part.params["n"] + 1) if name == "power" else ():
        if n:
            yield Edit(part.args[0] ** n, f"the exponent of {text} is {n}", 2)
    for x, y in (part.args, part.args[::-1]) if name == "mul" else ():
        for factor, change in ((1 - y, "subtracted from 1"), (y**2, "squared"), (y**3, "cubed")):
            yield Edit(x * factor, f"the factor `{node_text(y, 50)}` of {text} is {change}", 3, written=True)
        for own, left in (x.args, x.args[::-1]) if x.primitive.name == "mul" else ():
            yield Edit(own, f"`{node_text(left, 50)}` and `{node_text(y, 50)}` are left out of {text}", 2)
    for kept in {"mul": (0, 1), "add": (0, 1), "sub": (0,), "div": (0,), "matmul": (0,)}.get(name, ()):
        if part.args[kept].shape == part.shape:
            yield Edit(part.args[kept], f"`{node_text(part.args[1 - kept], 50)}` is left out of {text}", 2)
    for family in FAMILIES if len(part.args) == 1 and not part.params else ():
        for function in family if name in family else ():
            if function != name:
                yield Edit(part.builder.call(function, part.args[0]), f"{text} is {function} of the same", 2)


def _of_decimals(part: Node, order: Sequence[Node], known: Sequence[Node]) -> Iterator[Edit]:
    """A decimal that should be one of the right side, or a simple multiple of one: alone, or with its own multiples."""
    decimals = _decimals(order)
    number = decimals.pop(part, None)
    if number is None:
        return
    alike = {one: other for one, other in decimals.items() if _is_simple(float(other / number))}
    for right in sorted({*_decimals(known).values()})[:MOST_DECIMALS]:
        for multiple in MULTIPLES:
            instead = right * multiple
            told = f"`{node_text(part)}` is {float(instead):.6g}"
            yield Edit(part.builder.constant(instead, part.shape), told, 4)
            if alike:
                scaled = {one: other * instead / number for one, other in alike.items()}
                told += "".join(f", and `{node_text(one)}` is {float(x):.6g}" for one, x in scaled.items())
                also = {one: part.builder.constant(x, one.shape) for one, x in scaled.items()}
                yield Edit(part.builder.constant(instead, part.shape), told, 4, also=also)


def _is_simple(ratio: float) -> bool:
    return any(abs(ratio / float(multiple) - 1) < CLOSE for multiple in MULTIPLES)


def _decimals(order: Sequence[Node]) -> dict[Node, Fraction]:
    """The constants that are no whole numbers."""
    numbers = {node: node.constant for node in order if node.primitive is CONSTANT}
    return {node: number for node, number in numbers.items() if isinstance(number, Fraction)}


def _rare_edits(part: Node, known: Sequence[Node], values: Sequence[Node]) -> Iterator[Edit]:
    """A missing factor, one value taken for another, entries moved or added up the wrong way, a sum over other axes."""
    text, name, rank = f"`{node_text(part, 50)}`", part.primitive.name, part.type.rank
    if part.type.kind != "float":
        return
    for other in known:
        if part.primitive is not CONSTANT and other.primitive is LEAF and other.type == part.type:
            factor = f"`{node_text(other)}`"
            yield Edit(part * other, f"{text} is multiplied by {factor}", 1)
            for axis in range(-rank, 0):
                told = f"{text} is multiplied by the sum of {factor} along axis {axis}"
                yield Edit(part * _summed(other, axis), told, 2)
    for read in dict.fromkeys(part.args) if name not in UNNAMED else ():
        for other in values if read.primitive is not CONSTANT else ():
            if other.type == read.type and other is not read:
                args = tuple([other if one is read else one for one in part.args])
                told = f"{text} has `{node_text(other, 50)}` in place of `{node_text(read, 50)}`"
                yield Edit(part.builder.apply(part.primitive, args, part.params), told, 2)
    for axis in range(-rank, 0) if part.args else ():
        yield Edit(part / _summed(part, axis), f"{text} is divided by its sum along axis {axis}", 2)
    if name == "take_static" and sorted(part.params["indices"]) == list(range(part.type.size)):
        back = tuple(int(i) for i in np.argsort(part.params["indices"]))
        instead = part.builder.apply(part.primitive, part.args, {**part.params, "indices": back})
        inner = part.args[0].args[0] if part.args[0].primitive.name == "reshape" else part.args[0]
        yield Edit(instead, f"the entries of `{node_text(inner, 50)}` move the other way", 1)
    if name == "cumsum":
        turned = part.primitive(reversed_along(part.args[0], part.params["axis"]), **part.params)
        yield Edit(reversed_along(turned, part.params["axis"]), f"{text} runs from the other end", 1)
    total = part
    while total.primitive.name in ("broadcast", "reshape"):
        total = total.args[0]
    if total is not part and total.primitive.name == "sum" and total.args[0].type == part.type:
        for axis in range(-rank, 0):
            told = f"the sum of `{node_text(total.args[0], 50)}` runs along axis {axis} alone"
            yield Edit(_summed(total.args[0], axis), told, 1)


def _summed(x: Node, axis: int) -> Node:
    """The sums along an axis, in every entry along it."""
    found: Node = stretched_back(sum_(x, axis=(axis,)), x.shape, (axis,))
    return found
