"""Changes that make a claim right: of its formula, an array that both sides read, the output, or the variable.

Each function yields candidates, and `RefutedClaim.likeliest` tries them.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial, reduce
from itertools import chain, combinations, islice, product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.diagnosis.diagnosis_context import CLOSE, Candidate, agree
from gradcli.checks.diagnosis.error_model import FAMILIES
from gradcli.checks.diagnosis.formula_text import as_typed, readable
from gradcli.checks.diagnosis.ratios import ErrorReading, span_of
from gradcli.checks.formatting import node_text
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, dependents, reachable
from gradcli.primitives.axes import reversed_along, stretched_back
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.gamma_functions import erf
from gradcli.primitives.hyperbolic import tanh
from gradcli.primitives.movement import slice_, sum_
from gradcli.primitives.powers import sqrt
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case
    from gradcli.checks.diagnosis.diagnosis_context import RefutedClaim

MOST_STEPS = 150
MOST_WORK = 15_000  # steps of all the formulas that are tried
LONGEST = 50  # characters of what to write instead
ENOUGH = 3  # numbers that must be equal
MULTIPLES = (1, 2, 3, 4, Fraction(1, 2), Fraction(1, 3), Fraction(1, 4))  # of a decimal, as derivatives bring them
MOST_DECIMALS = 8
STRIDES = (2, 3)
DATA_COST = 5  # of a sentence about numbers that have no name
NAMELESS = re.compile(r"`(data)?\[[^`]*\]`")  # numbers that an edit may not be about
UNNAMED = ("named", "broadcast", "reshape", "unslice")  # what nobody writes down


# --- the claim's own formula ------------------------------------------------------------------------------------------


class ClaimEdit(NamedTuple):
    """What should stand in place of a part of the claim, the sentence about it, and how unlikely it is.

    `written` says whether the sentence goes on with what to write; `also` are parts that change with it.
    """

    instead: Node
    sentence: str
    cost: int
    written: bool = False
    also: Mapping[Node, Node] = {}


def edits(judged: RefutedClaim, rare: bool = False) -> Iterator[Candidate]:
    """Changes of one part of the claim's formula, or the `rare` ones."""
    builder, claimed, right = judged.builder, judged.claimed, judged.right
    order, known = reachable([claimed]), reachable([right])
    if len(order) > MOST_STEPS or claimed.shape != right.shape or len(judged.places) * right.type.size < ENOUGH:
        return
    output = judged.case.subject.output
    values = reachable([right if output is None else output])
    end = builder.count + MOST_WORK
    for part in order:
        common = chain(_edits(part), _numbers(part, order, known), _strides(part, order))
        for edit in _rare_edits(part, known, values) if rare else common:
            if edit.instead.type == part.type and edit.instead is not part and not NAMELESS.search(edit.sentence):
                (changed,) = builder.substituted([claimed], {**edit.also, part: edit.instead})
                reads = sum(part in node.args for node in order) if part.primitive is DATA else 0
                cost = edit.cost + reads + DATA_COST * ("data[" in edit.sentence)
                yield Candidate(partial(_reading, judged.case, part, edit), changed, right, cost)
        if builder.count > end:
            return


def _reading(case: Case, part: Node, edit: ClaimEdit) -> ErrorReading:
    text = f"consistent with a mistake in the claim: it is right if {edit.sentence}"
    if edit.written and (said := as_typed(case, readable(case), edit.instead, LONGEST)):
        text += f", `{said[0]}`"
    span = span_of(part) if part.args else None  # a leaf's is where it was declared
    return ErrorReading("mistake in the claim", text, node=node_text(part), span=span)


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
    (_is_variable, lambda x: x**2, "is squared", 2, False),
    (_is_variable, lambda x: 1 / x, "divides", 3, False),
    (_is_variable, exp, "is the argument of exp", 3, False),
    (_is_variable, log, "is the argument of log", 3, False),
    (_of("exp", square=True), lambda x: x.builder.call("expm", x.args[0]), "is the matrix exponential, expm", 1, False),
    (lambda x: _of("power", square=True)(x) and x.params["n"] == 2, lambda x: x.args[0] @ x.args[0],
     "is a product of matrices", 1, False),
    (_of("mul", square=True), lambda x: x.args[0] @ x.args[1], "is a product of matrices", 1, False),
    (_of("add"), lambda x: x.args[0] * x.args[1], "is a product", 3, True),
    (lambda x: len(x.args) == 1 and not x.params, lambda x: x.args[0], "is its argument alone", 3, False),
)  # fmt: skip


def _edits(part: Node) -> Iterator[ClaimEdit]:
    """Other ways to write one part of a claim."""
    text, name = f"`{node_text(part, 50)}`", part.primitive.name
    if part.type.kind != "float" or isinstance(part.constant, str) or name in UNNAMED:
        return
    yield from _over_other_axes(part)
    for possible, instead, is_then, cost, written in WAYS:
        if possible(part):
            yield ClaimEdit(instead(part), f"{text} {is_then}", cost, written)
    for n in (part.params["n"] - 1, part.params["n"] + 1) if name == "power" else ():
        if n:
            yield ClaimEdit(part.args[0] ** n, f"the exponent of {text} is {n}", 2)
    for x, y in (part.args, part.args[::-1]) if name == "mul" else ():
        yield ClaimEdit(x * (1 - y), f"the factor `{node_text(y, 50)}` of {text} is subtracted from 1", 3, written=True)
        for own, left in (x.args, x.args[::-1]) if x.primitive.name == "mul" else ():
            yield ClaimEdit(own, f"`{node_text(left, 50)}` and `{node_text(y, 50)}` are left out of {text}", 2)
    for kept in {"mul": (0, 1), "add": (0, 1), "sub": (0,), "div": (0,), "matmul": (0,)}.get(name, ()):
        if part.args[kept].shape == part.shape:
            yield ClaimEdit(part.args[kept], f"`{node_text(part.args[1 - kept], 50)}` is left out of {text}", 2)
    for family in FAMILIES if len(part.args) == 1 and not part.params else ():
        for function in family if name in family else ():
            if function not in (name, "erf"):  # which loads SciPy, and is seldom meant
                yield ClaimEdit(part.builder.call(function, part.args[0]), f"{text} is {function} of the same", 2)


def _over_other_axes(part: Node) -> Iterator[ClaimEdit]:
    """The same sum, softmax, cumulative sum or the like over as many other axes of its operand."""
    axes = part.params.get("axis")
    if len(part.args) != 1 or not isinstance(axes, int | tuple):
        return
    rank, own = part.args[0].type.rank, (axes,) if isinstance(axes, int) else axes
    for other in combinations(range(-rank, 0), len(own)):
        if other != own:
            params = {**part.params, "axis": other[0] if isinstance(axes, int) else other}
            right, wrong = (", ".join(str(rank + axis) for axis in some) for some in (other, own))
            sentence = f"`{node_text(part, 50)}` runs over {'axis' if len(own) == 1 else 'axes'} {right}, not {wrong}"
            yield ClaimEdit(part.builder.apply(part.primitive, part.args, params), sentence, 0)


def _strides(part: Node, order: Sequence[Node]) -> Iterator[ClaimEdit]:
    """All slices of one array with a stride: in what each takes, or between their beginnings."""
    slices = [node for node in order if node.primitive.name == "slice" and node.args == part.args]
    if len(slices) < 2 or part is not slices[0]:
        return
    for axis, k, name in product(range(part.type.rank), STRIDES, ("step", "start")):
        changed = {}
        for node in slices:
            scaled = tuple([n * k if i == axis else n for i, n in enumerate(node.params[name])])
            params = {**node.params, name: scaled}
            if params["start"][axis] + params["step"][axis] * (node.shape[axis] - 1) < node.args[0].shape[axis]:
                changed[node] = node.builder.apply(node.primitive, node.args, params)
        if len(changed) == len(slices):
            how = f"have the step {k}" if name == "step" else f"begin {k} times as far"
            sentence = f"the slices of `{node_text(part.args[0], 50)}` {how} along axis {axis}: is a stride missing?"
            yield ClaimEdit(changed[part], sentence, 1, also=changed)


def _numbers(part: Node, order: Sequence[Node], known: Sequence[Node]) -> Iterator[ClaimEdit]:
    """Another number: a whole one beside it, or for a decimal one of the right side or a simple multiple of that.

    Numbers change alone, or together with what is equal to a whole one, and with the multiples of a decimal.
    """
    number, constants = part.constant, {node: node.constant for node in order if node is not part}
    if isinstance(number, int) and 0 < abs(number) < 100:
        tried = [Fraction(number - 1), Fraction(number + 1)]
        alike = {node: Fraction(1) for node, value in constants.items() if value == number}
    elif isinstance(number, Fraction):
        right = sorted({node.constant for node in known if isinstance(node.constant, Fraction)})[:MOST_DECIMALS]
        tried = [decimal * multiple for decimal in right for multiple in MULTIPLES]
        ratios = {node: value / number for node, value in constants.items() if isinstance(value, Fraction)}
        alike = {n: x for n, x in ratios.items() if any(abs(float(x / m) - 1) < CLOSE for m in MULTIPLES)}
    else:
        return
    for instead, others in product(tried, ({}, alike) if alike else ({},)):
        numbers = {node: instead * ratio for node, ratio in {part: Fraction(1), **others}.items()}
        sentence = dict.fromkeys(f"`{node_text(node)}` is {float(x):.6g}" for node, x in numbers.items())
        changed = {node: part.builder.constant(x, node.shape) for node, x in numbers.items()}
        yield ClaimEdit(changed[part], ", and ".join(sentence), 4, also=changed)


def _rare_edits(part: Node, known: Sequence[Node], values: Sequence[Node]) -> Iterator[ClaimEdit]:
    """A missing factor, one value taken for another, entries moved or added up the wrong way, a sum over other axes."""
    text, name, rank = f"`{node_text(part, 50)}`", part.primitive.name, part.type.rank
    if part.type.kind != "float":
        return
    for other in known:
        if part.primitive is not CONSTANT and other.primitive is LEAF and other.type == part.type:
            factor = f"`{node_text(other)}`"
            yield ClaimEdit(part * other, f"{text} is multiplied by {factor}", 1)
            for axis in range(-rank, 0):
                sentence = f"{text} is multiplied by the sum of {factor} along axis {axis}"
                yield ClaimEdit(part * _summed(other, axis), sentence, 2)
    for read in dict.fromkeys(part.args) if name not in UNNAMED else ():
        for other in values if read.primitive is not CONSTANT else ():
            if other.type == read.type and other is not read:
                args = tuple([other if arg is read else arg for arg in part.args])
                sentence = f"{text} has `{node_text(other, 50)}` in place of `{node_text(read, 50)}`"
                yield ClaimEdit(part.builder.apply(part.primitive, args, part.params), sentence, 2)
    if name == "take_static" and sorted(part.params["indices"]) == list(range(part.type.size)):
        back = tuple(int(i) for i in np.argsort(part.params["indices"]))
        instead = part.builder.apply(part.primitive, part.args, {**part.params, "indices": back})
        inner = part.args[0].args[0] if part.args[0].primitive.name == "reshape" else part.args[0]
        yield ClaimEdit(instead, f"the entries of `{node_text(inner, 50)}` move the other way", 1)
    if name == "cumsum":
        turned = part.primitive(reversed_along(part.args[0], part.params["axis"]), **part.params)
        yield ClaimEdit(reversed_along(turned, part.params["axis"]), f"{text} runs from the other end", 1)
    total = part
    while total.primitive.name in ("broadcast", "reshape"):
        total = total.args[0]
    if total is not part and total.primitive.name == "sum" and total.args[0].type == part.type:
        for axis in range(-rank, 0):
            sentence = f"the sum of `{node_text(total.args[0], 50)}` runs along axis {axis} alone"
            yield ClaimEdit(_summed(total.args[0], axis), sentence, 1)


def _summed(x: Node, axis: int) -> Any:
    """The sums along an axis, in every entry along it."""
    return stretched_back(sum_(x, axis=(axis,)), x.shape, (axis,))


# --- the output, and arrays that both sides read ----------------------------------------------------------------------


def outputs(judged: RefutedClaim) -> Iterator[Candidate]:
    """Other outputs, of which the claim would be the gradient."""
    output, target = judged.case.subject.output, judged.case.subject.target
    if output is None or target is None:
        return
    order = reachable([output])
    active = dependents(order, [target])
    live = dict.fromkeys(node for node in order if node in active)
    changes = chain(_statistics(output, live), _one_entry(output, live), _counterparts(live))
    for node, name, sentence, instead in islice(changes, MOST_OUTPUTS):
        (changed,) = judged.builder.substituted([output], instead)
        text = f"consistent with {sentence}"
        reading = partial(ErrorReading, name, text, node=node_text(node, 40), span=span_of(node))
        yield Candidate(reading, derivatives.grad(changed, [target])[0], judged.claimed)


MOST_OUTPUTS = 24
Change = tuple[Node, str, str, dict[Node, Node]]  # where, the name of the mistake, the sentence, what stands there


def _own_sums(output: Node, live: Collection[Node]) -> list[Node]:
    """The sums of a result itself: nothing else depends on the target beside them."""
    sums, outer = [], [output]
    while len(outer) == 1:
        sums += [node for node in outer if node.primitive.name == "sum"]
        outer = [arg for arg in outer[0].args if arg in live]
    return sums


def _statistics(output: Node, live: Collection[Node]) -> Iterator[Change]:
    """Sums, as in a mean and a variance, that a claim takes for constants."""
    own = _own_sums(output, live)
    sums = [node for node in live if node.primitive.name == "sum" and node not in own]
    fixed = [*sums, *(node for node in live if node.primitive.name in ("max", "min"))]
    if sums:
        sentence = f"statistics taken for constants: no derivative goes through `{node_text(sums[0], 40)}`"
        sentence += " and the other sums" if len(sums) > 1 else ""
        yield sums[0], "constant statistics", sentence, {node: node.builder.call("detach", node) for node in fixed}


def _one_entry(output: Node, live: Collection[Node]) -> Iterator[Change]:
    """Sums and means of which a claim has one term only, as where `=` stands for `+=` in a loop, or for one sample."""
    for node in _own_sums(output, live):
        means = [x for x in live if x.primitive.name == "div" and x.args[0] is node]
        (whole,) = node.args
        for axis, size in enumerate(whole.shape):
            for place, word in ((size - 1, "last"), (0, "first")) if size > 1 else ():
                start = tuple(place * (i == axis) for i in range(len(whole.shape)))
                sizes = tuple(1 if i == axis else n for i, n in enumerate(whole.shape))
                term = slice_(whole, start=start, step=(1,) * len(start), size=sizes)
                sentence = f"a missing sum over axis {axis}: the claim is right for the {word} entry"
                sentence += f" of `{node_text(whole, 40)}`"
                alone = node.primitive(term, **node.params)
                yield node, "missing sum", sentence, {node: alone}
                for mean in means:
                    yield node, "one sample", sentence.replace("sum", "mean", 1), {mean: alone}


def _counterparts(live: Collection[Node]) -> Iterator[Change]:
    """GELU with tanh for the one with erf, and the other way round."""
    for node in live:
        name, two, pi = node.primitive.name, *(node.builder.constant(x, node.shape) for x in (2, "pi"))
        others: list[Node] = []
        if name in ("erf", "erfc"):
            x = sqrt(two) * node.args[0]
            fitted = tanh(sqrt(two / pi) * (x + Fraction("0.044715") * x**3))
            others = [fitted if name == "erf" else 1 - fitted]
        elif name in ("tanh", "sigmoid"):
            exact = [erf(x / sqrt(two)) for x in reachable(node.args) if x in live and x.type == node.type]
            others = exact if name == "tanh" else [(1 + x) / 2 for x in exact]
        for other in others:
            sentence = f"the gradient of GELU by another formula than with `{node_text(node, 60)}`"
            yield node, "another formula", sentence, {node: other}


def _is_kernel(x: Node) -> bool:
    return not x.args and prod(x.shape[-2:]) > 2


def _evened(x: Node) -> Node:
    """An array that is the same read backwards along its last axes: the mean with itself in the opposite order."""
    return (x + reduce(reversed_along, range(-min(2, x.type.rank), 0), x)) / 2


# of which arrays, and how
SHAPES: tuple[tuple[str, str, Callable[[Node], bool], Callable[[Node], Node]], ...] = (
    ("symmetric matrix", "is symmetric", _is_square, lambda x: (x + x.mT) / 2),
    ("diagonal matrix", "is diagonal", _is_square, lambda x: x.builder.call("diag", x.builder.call("diag", x))),
    ("reversed array", "is the same read backwards: is a flip missing, or one too many?", _is_kernel, _evened),
)
MOST_ARRAYS = 12


# --- what the derivative is taken by ----------------------------------------------------------------------------------

# the two entries of a pair as one variable: how it is written, and the gradient G of independent entries made so
SYMMETRIC: tuple[tuple[str, Callable[[Node], Node]], ...] = (
    ("G + G.T - diag(diag(G))", lambda g: g + g.mT - g.builder.call("diag", g.builder.call("diag", g))),
    ("(G + G.T)/2", lambda g: (g + g.mT) / 2),
    ("G + G.T", lambda g: g + g.mT),
)
# another variable in place of x; by what the claim then differs, as text; the derivative of x by that variable
VARIABLES: tuple[tuple[str, str, Callable[[Node], Node]], ...] = (
    ("log({0})", "`{0}` times the right one", lambda x: exp(log(x))),  # nan where there is no logarithm
    ("{0}**2", "the right one over `2*{0}`", lambda x: 1 / (2 * x)),
    ("sqrt({0})", "`2*sqrt({0})` times the right one", lambda x: 2 * sqrt(x)),
    ("1/{0}", "`-{0}**2` times the right one", lambda x: -(x**2)),
    ("1/{0}**2", "`-{0}**3/2` times the right one", lambda x: -(x**3) / 2),
    ("1/sqrt({0})", "`-2*{0}*sqrt({0})` times the right one", lambda x: -2 * x * sqrt(x)),
    ("exp({0})", "the right one over `exp({0})`", lambda x: exp(-x)),
    ("the logit of {0}", "`{0}*(1 - {0})` times the right one", lambda x: x * (1 - x)),
    ("{0} in degrees", "`pi/180` times the right one", lambda x: x.builder.constant("pi", x.shape) / 180),
    ("{0} in radians", "`180/pi` times the right one", lambda x: 180 / x.builder.constant("pi", x.shape)),
)


def symmetric_convention(judged: RefutedClaim) -> Iterator[Candidate]:
    """Claims that count the entries [i, j] and [j, i] of a matrix as one variable, or as two of a symmetric leaf."""
    target = judged.by
    if target is None or not _is_square(target):
        return
    paired = "symmetric" in target.params
    even = target if paired else (target + target.mT) / 2
    right, claimed = judged.builder.substituted([judged.right, judged.claimed], {target: even})
    values = judged.values([right, claimed])
    if values is None or agree(values[right], values[claimed]):
        return  # right at symmetric matrices
    for cost, (formula, change) in enumerate(SYMMETRIC[:1] if paired else SYMMETRIC):
        text = f"consistent with the convention for a symmetric `{node_text(target)}`: the claim is {formula} "
        text += "where G is the right gradient; here every entry is a variable of its own"
        if paired:  # the other way round
            text = f"consistent with a gradient G by independent entries; by a symmetric matrix it is {formula}"
        reading = partial(ErrorReading, "symmetric convention", text, node=node_text(target))
        yield Candidate(reading, *((right, change(claimed)) if paired else (change(right), claimed)), cost)


def other_variables(judged: RefutedClaim) -> Iterator[Candidate]:
    """Claims that are the derivative by a function of the leaf, such as its logarithm."""
    target = judged.by
    if target is None:
        return
    name = node_text(target)
    for cost, (variable, relation, factor) in enumerate(VARIABLES):
        text = f"consistent with the derivative by {variable.format(name)}: the claim is {relation.format(name)}"
        reading = partial(ErrorReading, "another variable", text, node=name)
        yield Candidate(reading, judged.right * factor(target), judged.claimed, cost)


def special_arrays(judged: RefutedClaim) -> Iterator[Candidate]:
    """Arrays that a claim takes for special ones: inputs before what is computed from them."""
    sides = [judged.right, judged.claimed]
    output = judged.case.subject.output
    paired_with = output.args[0].args if output is not None and output.args else ()
    arrays = [x for x in reachable(sides) if x.type.kind == "float" and x.type.size > 1 and x not in sides]
    arrays = [x for x in arrays if x.primitive is LEAF or (x.args and x.primitive.name not in ("broadcast", "reshape"))]
    arrays.sort(key=lambda node: (len(node.args) > 0, node.serial))
    for name, words, possible, change in SHAPES:
        fitting = [x for x in arrays if possible(x) and not (possible is _is_kernel and x in paired_with)]
        changes = {x: change(x) for x in fitting[:MOST_ARRAYS]}  # a cotangent is no kernel
        values = judged.values([*changes, *changes.values()]) or {}
        for array, changed in changes.items():
            if not any(map(np.array_equal, values.get(array, ()), values.get(changed, ()))):
                what = node_text(array, 40)
                sentence = f"consistent with one array mistaken for another: the claim is right where `{what}` {words}"
                reading = partial(ErrorReading, name, sentence, node=what, span=span_of(array) if array.args else None)
                left, right = judged.builder.substituted(sides, {array: changed})
                yield Candidate(reading, left, right)
