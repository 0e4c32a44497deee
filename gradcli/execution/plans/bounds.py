"""A tape and values go in; each output comes out with how far another order of additions may move each of its entries.

Every `impl` runs on arrays that carry such a gap (`bounding.py`). It reads neither plans nor derivative rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.inputs import data_value, leaf_value
from gradcli.execution.namespaces import Unavailable
from gradcli.execution.plans import gaps, routines
from gradcli.execution.plans.bounder import Bounder
from gradcli.execution.plans.bounding import NONE, Bounded, Liberties
from gradcli.execution.plans.tracing import Trace, Unrecordable
from gradcli.execution.reports import PlanBound
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, DATA, LEAF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.graph.node import Node

SAFETY = 1.001  # for the roundings of the gaps themselves


class Remarks(NamedTuple):
    """The operations behind which nobody knows how far entries may move, and those taken to be exact nearby."""

    lost: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()


class Bound(NamedTuple):
    """An output, and how far each of its entries may be from it; 0 where no bit may differ, inf where nobody knows."""

    value: Any
    gap: Any
    remarks: Remarks = Remarks()

    def exact(self) -> bool:
        return not self.gap.any()


def bounds(tape: Tape, values: Mapping[str, Any], dtype: str = "float64", liberties: Liberties = NONE) -> list[Bound]:
    """The outputs of a tape as the evaluator gives them, each with its gap to what a plan of such liberties may give.

    Raises GradcliError as the evaluator does.
    """
    bounder = Bounder(dtype, liberties)
    xp = bounder.numpy
    given = dict(zip([node for node, _ in tape.inputs], tape.given(values), strict=True))
    last = {arg: node for node in tape.nodes for arg in node.args}
    kept = set(tape.outputs)
    found: dict[Node, Bounded] = {}
    remarks: dict[Node, Remarks] = {}
    with xp.arithmetic():
        for node in tape.nodes:
            if node.primitive is CONSTANT:
                number = xp.array(nearest_float(node.params["value"]), node.type.kind)
                found[node] = bounder.steps.number(number, node.type.shape)
            elif node.primitive is DATA:
                found[node] = bounder.steps.array(data_value(xp, node, tape.data[node.params["digest"]]))
            elif node.primitive is LEAF:
                found[node] = Bounded(np.asarray(leaf_value(xp, node, given[node])))
            else:
                args = [found[arg] for arg in node.args]
                bounder.trusted = False
                found[node] = _bounded(bounder, node, args)
                found[node].carried |= node in liberties.linear
                if found[node].gap is not None and (said := _remarks(bounder, node, args, found[node], remarks)):
                    remarks[node] = said
            for arg in set(node.args):
                if last[arg] is node and arg not in kept:
                    found.pop(arg, None)
        return [_bound(found[node], remarks.get(node, Remarks())) for node in tape.outputs]


def same(values: Sequence[Any]) -> list[Bound]:
    """Outputs that the evaluator itself gives."""
    return [Bound(np.asarray(value), np.zeros(np.shape(value))) for value in values]


def told(name: str, kind: str, found: Bound) -> PlanBound:
    """An output's bound, the largest over its entries."""
    size = np.abs(found.value)
    largest = float(np.max(size, initial=0))
    bound = float(np.max(found.gap, initial=0))
    if bound == 0:
        return PlanBound(name, kind, largest, "exact", 0.0, 0.0)
    moving = found.gap > 0
    with np.errstate(all="ignore"):
        relative = float(np.max(found.gap[moving] / size[moving]))
    known = np.isfinite(bound)
    lost, trusted = [tuple(sorted(names)) for names in found.remarks]
    return PlanBound(
        name,
        kind,
        largest,
        "bounded" if known else "unknown",
        bound,
        relative if np.isfinite(relative) else None,
        () if known else lost,
        trusted if known else (),
    )


def _bound(found: Bounded, remarks: Remarks) -> Bound:
    if found.gap is None:
        return Bound(found.value, np.zeros(found.shape))
    gap = np.nan_to_num(np.asarray(found.gap, np.float64) * SAFETY, nan=np.inf, posinf=np.inf)
    return Bound(found.value, np.broadcast_to(gap, found.shape), remarks)


def _remarks(
    bounder: Bounder, node: Node, args: Sequence[Bounded], found: Bounded, known: Mapping[Node, Remarks]
) -> Remarks | None:
    """What is to be said of a result: of its operands, and of the operation itself."""
    before = [known[arg] for arg in node.args if arg in known]
    own = Remarks(
        frozenset([node.primitive.name] if not _finite(found) and all(map(_finite, args)) else ()),
        frozenset([node.primitive.name] if bounder.trusted else ()),
    )
    if not before:
        return own if any(own) else None
    return Remarks(*[frozenset().union(*names) for names in zip(*before, own, strict=True)])


def _finite(one: Bounded) -> bool:
    return one.gap is None or bool(np.isfinite(one.gap).all())


def _bounded(bounder: Bounder, node: Node, args: list[Bounded]) -> Bounded:
    """What one operation gives: its `impl` on arrays with gaps, or a call of it, of which nothing is known."""
    primitive, params = node.primitive, node.params
    if not primitive.pointwise:
        params = {**params, "ranks": tuple([len(arg.type.shape) for arg in node.args])}
    assert primitive.impl is not None
    held: list[Any] = list(args)
    try:
        made: Any = primitive.impl(bounder, *[Trace(bounder, arg) for arg in held], **params)
    except (Unrecordable, Unavailable, TypeError, AttributeError):
        made = None
    if type(made) is Trace:
        known: Any = made.value
        found: Bounded = known
        full = found.shape == node.type.shape
        return found if full else found.moved(lambda part: np.broadcast_to(part, node.type.shape))
    value = np.asarray(primitive.impl(bounder.numpy, *[arg.value for arg in args], **params))
    if all(arg.gap is None for arg in args):
        return Bounded(value)
    rule = BY_NAME.get(primitive.name) if value.size else None
    moves = [np.zeros(arg.shape) if arg.gap is None else arg.gap for arg in args]
    if rule is None:
        return Bounded(value, np.full(value.shape, np.inf))
    return Bounded(value, rule(node, bounder, value, [arg.value for arg in args], moves))


def _recurrence(node: Node, bounder: Bounder, value: Any, xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return routines.recurrence(xs[0], xs[1], moves, value, bounder.steps.unit)


def _sinc(node: Node, bounder: Bounder, value: Any, xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return gaps.of_sinc(node.params.get("n", 0), moves[0], bounder.steps.unit)


def _polygamma(node: Node, bounder: Bounder, value: Any, xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    impl: Any = node.primitive.impl
    return gaps.of_gamma(
        "", lambda at: impl(bounder.numpy, at, **node.params), value, xs[0], moves[0], bounder.steps.unit
    )


def _cofactors(node: Node, bounder: Bounder, value: Any, xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    bounder.trusted = True
    return routines.cofactors(xs[0], moves[0], value, bounder.steps.unit)


BY_NAME = {"cof0": _cofactors, "recur": _recurrence, "sinc": _sinc, "sinc_derivative": _sinc, "polygamma": _polygamma}
