"""Laws of special points: the edges of a domain, the kinks, the examples of a declaration."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import LEAF, reachable
from gradcli.graph.primitive import signature_of
from gradcli.transforms import derivatives
from tests.support import numpy_reading, reference
from tests.support.cases import REFUSED, cases
from tests.support.study import need, study, ulps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Kink, Primitive
    from tests.support.cases import Case


def finite_inside(case: Case) -> None:
    """Value and gradient are finite at points of the domain."""
    it = study(case)
    assert all(np.isfinite(value).all() for value in it.values), "the value"
    if it.differentiable:
        assert all(np.isfinite(value).all() for value in it.found["gradient"]), "the gradient"


def outside_is_diagnosed(primitive: Primitive) -> None:
    """Outside its domain an operation has the IEEE value, NaN or infinite, and a diagnostic with a span says so."""
    need(not primitive.internal, "no script can call it")
    need(any(math.isfinite(x) for d in primitive.domain for x in (d.low, d.high)), "its domain is every number")
    case = next((c for c in cases(primitive.name) if c.leaves), None)
    need(case is not None and len(case.leaves) == len(primitive.domain), "no case with all of its operands")
    assert case is not None
    for name, domain in zip(case.leaves, primitive.domain, strict=True):
        for end, way in ((domain.low, -1), (domain.high, 1)):
            if not math.isfinite(end):
                continue
            at = {n: v.tolist() for n, v in case.one().items()}
            at[name] = np.full(case.leaves[name].shape, end + way * 0.625).tolist()
            answer = calculator.evaluate(case.text, at=at)
            assert not np.isfinite(answer.value).any(), f"{answer.value} outside the domain {domain}, at {end}"
            said = [one for one in answer.diagnostics if one.code in ("GC401", "GC402", "GC403")]
            assert said, "no diagnostic"
            assert said[0].span is not None, said[0].message
            open_end = domain.low_open if way < 0 else domain.high_open
            on_edge = [calculator.evaluate(case.text, at={**other, name: np.full(case.leaves[name].shape, end).tolist()})
                       for other in (at, *({n: np.full(leaf.shape, k).tolist() for n, leaf in case.leaves.items()}
                                           for k in (0.0, 1.0)))]  # fmt: skip
            reached = any(np.isfinite(one.value).all() for one in on_edge)
            assert reached == (not open_end), f"{[one.value for one in on_edge]} on the edge {end} of {domain}"


# --- kinks --------------------------------------------------------------------------------------------------------

FILLS = (0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, 4.0)

# What `Kink.value` says in words: (operation, where) -> calls with points, and the gradient that it means.
WORDS: dict[tuple[str, str], list[tuple[str, dict[str, Any], dict[str, Any]]]] = {
    ("pow", "x = 0"): [
        ("pow(x, y)", {"x": 0.0, "y": 2.0}, {"x": 0.0, "y": 0.0}),
        ("pow(x, y)", {"x": 0.0, "y": 1.0}, {"x": 1.0, "y": 0.0}),
        ("pow(x, y)", {"x": 0.0, "y": 0.5}, {"x": math.inf, "y": 0.0}),
        ("pow(x, y)", {"x": 0.0, "y": 0.0}, {"x": 0.0, "y": 0.0}),
        ("pow(x, y)", {"x": 0.0, "y": -1.0}, {"x": -math.inf, "y": -math.inf}),
    ],
    ("atan2", "y = 0 and x < 0"): [("atan2(y, x)", {"y": 0.0, "x": -2.0}, {"y": -0.5, "x": 0.0})],
    ("max", "where the two best entries tie"): [
        ("max(x)", {"x": [1.0, 3.0, 3.0]}, {"x": [0.0, 0.5, 0.5]}),
        ("max(x)", {"x": [2.0, 2.0, 2.0, 2.0]}, {"x": [0.25] * 4}),
        ("sum(max(x, axis=0))", {"x": [[1.0, 2.0], [1.0, 0.0]]}, {"x": [[0.5, 1.0], [0.5, 0.0]]}),
        ("max(x, y)", {"x": 1.0, "y": 1.0}, {"x": 0.5, "y": 0.5}),
    ],
    ("min", "where the two best entries tie"): [
        ("min(x)", {"x": [1.0, 1.0, 3.0]}, {"x": [0.5, 0.5, 0.0]}),
        ("min(x, y)", {"x": 1.0, "y": 1.0}, {"x": 0.5, "y": 0.5}),
    ],
    ("sort", "where two entries tie"): [
        ("sum(sort(x)*[1, 10, 100])", {"x": [2.0, 1.0, 2.0]}, {"x": [10.0, 1.0, 100.0]}),
    ],
    ("argmax", "where the two best entries tie"): [
        ("sum(take(x, argmax(x, keepdims=True)))", {"x": [1.0, 3.0, 3.0]}, {"x": [0.0, 1.0, 0.0]}),
    ],
    ("argmin", "where the two best entries tie"): [
        ("sum(take(x, argmin(x, keepdims=True)))", {"x": [1.0, 1.0, 3.0]}, {"x": [1.0, 0.0, 0.0]}),
    ],
    ("clamp", "x = low"): [
        ("clamp(x, a, b)", {"x": 1.0, "a": 1.0, "b": 2.0}, {"x": 1.0, "a": 0.0, "b": 0.0}),
        ("clamp(x, 1, 1)", {"x": 1.0}, {"x": 1.0}),
    ],
    ("clamp", "x = high"): [("clamp(x, a, b)", {"x": 2.0, "a": 1.0, "b": 2.0}, {"x": 1.0, "a": 0.0, "b": 0.0})],
    ("argsort", "where two entries tie"): [
        ("sum(take(x, argsort(x))*[1, 10, 100])", {"x": [2.0, 1.0, 2.0]}, {"x": [10.0, 1.0, 100.0]}),
    ],
    ("median", "where a middle entry ties with its neighbour"): [
        ("median(x)", {"x": [2.0, 1.0, 2.0]}, {"x": [1.0, 0.0, 0.0]}),
    ],
    ("eigvalsh", "where two eigenvalues are equal"): [  # what does not depend on the choice is right
        ("sum(eigvalsh(x))", {"x": [[2.0, 0.0], [0.0, 2.0]]}, {"x": [[1.0, 0.0], [0.0, 1.0]]}),
    ],
    ("pinv", "where the rank drops"): [
        ("sum(pinv(x))", {"x": [[0.0, 0.0], [0.0, 0.0]]}, {"x": [[0.0, 0.0], [0.0, 0.0]]}),
    ],
    ("svdvals", "where two singular values are equal, or one is 0"): [
        ("sum(svdvals(x))", {"x": [[2.0, 0.0], [0.0, 2.0]]}, {"x": [[1.0, 0.0], [0.0, 1.0]]}),
    ],
}


def kinks(primitive: Primitive) -> None:
    """At a kink the gradient is the declared one; where the value is continuous it lies between the slopes beside it."""
    need(primitive.kinks, "it has no kink")
    for kink in primitive.kinks:
        rows = WORDS.get((primitive.name, kink.where))
        if rows is not None:
            for text, at, expected in rows:
                found = calculator.grad(text, at=at).gradient
                for name, right in expected.items():
                    assert np.array_equal(found[name], right), f"{text} at {at}: {found}"
            continue
        case, nodes, point = _on_kink(primitive, kink)
        gradient = _gradient(nodes, case, point)
        for (name, value), right in zip(gradient.items(), _declared(primitive, kink, point), strict=True):
            assert math.isnan(right) or np.all(value == right), f"{value} in {name} at {point}, declared {right}"
        if not kink.discontinuity:
            _between_slopes(case, point, gradient)


def _on_kink(primitive: Primitive, kink: Kink) -> tuple[Case, list[Node], dict[str, np.ndarray]]:
    """A case, its outputs, and a point where the surface of the kink vanishes."""
    for case in sorted(cases(primitive.name), key=lambda one: sum(leaf.shape != () for leaf in one.leaves.values())):
        outputs, leaves = case.nodes()
        calls = [node for node in reachable(outputs) if node.primitive is primitive]
        operands, params = (calls[0].args, calls[0].params) if calls else (tuple(leaves.values()), {})
        with building(outputs[0].builder, reachable([*outputs, *leaves.values()])):
            surface = kink.surface(*operands, **params)
        grid = sorted(itertools.product(FILLS, repeat=len(leaves)), key=lambda fills: -len(set(fills)))
        given = {
            name: np.stack([np.full(leaf.shape, fills[i]) for fills in grid])
            for i, (name, leaf) in enumerate(case.leaves.items())
        }
        found = np.broadcast_to(Tape(surface).run(given, backend="numpy")[0], (len(grid), *surface.shape))
        for row, values in enumerate(found.reshape(len(grid), -1)):
            if (values == 0).any():
                return case, outputs, {name: value[row] for name, value in given.items()}
    raise AssertionError(f"no point found where {kink.where}: give a row in WORDS")


def _gradient(outputs: Sequence[Node], case: Case, point: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    leaves = {node.params["name"]: node for node in reachable(outputs) if node.primitive is LEAF}
    targets = [leaves[name] for name in case.leaves]
    with building(outputs[0].builder, reachable(outputs)) as builder:
        seeds = [builder.constant(1, output.shape) for output in outputs]
        found = derivatives.vjp(outputs, seeds, targets)
    values = Tape(found).run(point, backend="numpy")
    return dict(zip(case.leaves, map(np.asarray, values), strict=True))


def _declared(primitive: Primitive, kink: Kink, point: Mapping[str, np.ndarray]) -> list[float]:
    """What `Kink.value` means for each operand: "0", "1/2 each", "0, 1", "slope in x", "1 in x, 0 in the bounds"."""
    names = [name for name in signature_of(primitive).names if name not in primitive.static][: len(point)]
    values = {name: np.ravel(value)[0] for name, value in zip(names, point.values(), strict=True)}

    def number(text: str) -> float:
        return float(numpy_reading.read(text, values))

    parts = kink.value.removesuffix(" each").split(", ")
    if " in " not in kink.value:
        found = [number(part) for part in parts]
        return found if len(found) == len(names) else found * len(names)
    told = dict(part.split(" in ")[::-1] for part in parts)
    other = next((told[name] for name in told if name not in names), None)
    missing = [name for name in names if name not in told and other is None]
    return [math.nan if name in missing else number(told.get(name, other)) for name in names]


def _between_slopes(case: Case, point: Mapping[str, np.ndarray], gradient: Mapping[str, np.ndarray]) -> None:
    it = study(case)
    try:
        here = it.total(point)
        for name, value in gradient.items():
            for place in np.ndindex(*value.shape):
                unit = np.zeros(value.shape)
                unit[place] = 1
                slopes = [
                    float((it.total(reference.moved(point, [{name: unit}], [by])) - here) / by)
                    for by in (-reference.STEP, reference.STEP)
                ]
                if all(map(math.isfinite, slopes)) and math.isfinite(value[place]):
                    low, high = min(slopes) - 1e-9, max(slopes) + 1e-9
                    assert low <= value[place] <= high, f"{value[place]} in {name} is not between {slopes}"
    except reference.Missing:
        return


# --- declarations ---------------------------------------------------------------------------------------------------


def examples(primitive: Primitive) -> None:
    """The examples of a declaration, executed by the library call of `gradcli eval`."""
    need(not primitive.internal or primitive.examples, "no script can call it")
    assert primitive.examples, "a function without an example"
    for text, expected in primitive.examples:
        answer = calculator.evaluate(text)
        assert np.shape(answer.value) == np.shape(expected), text
        assert np.all(ulps(answer.value, expected) <= 4), f"{text} is {answer.value}, not {expected}"
        assert not answer.diagnostics, answer.diagnostics


def refuses_what_numpy_refuses(primitive: Primitive) -> None:
    """A static argument that NumPy does not take is an error with a span, never read as something else."""
    cases(primitive.name)
    refused = REFUSED.get(primitive.name, [])
    need(refused, "NumPy takes all of the static arguments that are tried")
    for case in refused:
        with pytest.raises(GradcliError) as problem:
            case.lowered()
        assert problem.value.diagnostics[0].span is not None, case.text


def documented(primitive: Primitive) -> None:
    """What a script can call has a summary, a formula, a domain for each operand and an example."""
    need(not primitive.internal, "no script can call it")
    assert primitive.summary.endswith((".", "?")), primitive.summary
    assert primitive.formula
    assert primitive.examples
    counted = [leaf for case in cases(primitive.name) for leaf in case.leaves]
    assert primitive.domain or not counted, "no domain"
