"""Laws of derivatives: a gradient program against differences of the value, and against SymPy; no rule is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.checks import symbolic
from gradcli.checks.entries import Undecided, Unsupported
from gradcli.execution.evaluate import Tape
from gradcli.primitives import catalogue
from tests.reference import Missing
from tests.study import POINTS, close, need, place_of, study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.graph.node import Node
    from tests.cases import Case
    from tests.study import Study

TOLERANCE = {1: 1e-11, 2: 1e-9, 3: 1e-7}


def derivatives_to_80_digits(case: Case) -> None:
    """Gradient programs of orders 1 to 3, in every order of modes = differences of the 80-digit value."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    u, v = it.directions
    try:
        expected = it.references
    except Missing as row:
        pytest.skip(f"no row in tests/reference.py: {row}")
    for number, right in enumerate(expected):
        for value, name in zip(it.found["gradient"], it.leaves, strict=True):
            close(value[number], right["gradient"][name], TOLERANCE[1], f"gradient in {name}")
    size = np.array([max(1.0, *(np.abs(g).max(initial=0) for g in right["gradient"].values())) for right in expected])
    for label, values, order in (
        ("u", it.found["u"][0], 1),
        ("uv", it.found["uv forward"][0], 2),
        ("uv", it.dotted("·v forward over reverse", u), 2),
        ("uv", it.dotted("·u reverse over forward", v), 2),
        ("uv", it.dotted("·u reverse over reverse", v), 2),
        ("uvv", it.found["uvv forward"][0], 3),
        ("uvv", it.dotted("·vv forward over reverse", u), 3),
        ("uvv", it.dotted("·uv reverse over forward", v), 3),
    ):
        right = np.array([one[label] for one in expected])
        close(values / size, right / size, TOLERANCE[order], f"order {order}, {label}")


def gradient_by_sympy(case: Case) -> None:
    """The gradient program = `sympy.diff` of the value in symbols; of numbers also the second and third derivatives."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    for number in range(POINTS):
        for position, (name, leaf) in enumerate(it.leaves.items()):
            found = sympy_gradient(it, number, leaf)
            need(found is not None, f"no derivative in symbols: {REASONS.get(case, '')}")
            close(it.found["gradient"][position][number], found, TOLERANCE[1], f"gradient in {name}")


REASONS: dict[Case, str] = {}


def sympy_gradient(it: Study, number: int, leaf: Node) -> np.ndarray | None:
    """The gradient of the loss in one leaf, by SymPy; None where it has nothing to say."""
    place = symbolic.Place(place_of(it.point(number)))
    try:
        made = symbolic.derive(it.loss, leaf, list(it.leaves), place)
        entries = [float(made.symbols.value(made.entries[i], place, 256).mid()) for i in range(leaf.type.size)]
    except (Unsupported, Undecided, symbolic.UndefinedAt, symbolic.Tie) as reason:
        REASONS[it.case] = f"{type(reason).__name__}: {reason}"
        return None
    return np.reshape(entries, leaf.shape)


def higher_by_sympy(case: Case) -> None:
    """Second and third derivatives of functions of numbers = `sympy.diff`, twice and three times."""
    import sympy

    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    need(all(leaf.shape == () for leaf in it.leaves.values()), "done for functions of numbers; arrays by 80 digits")
    u, v = it.directions
    for number in range(POINTS):
        place = symbolic.Place(place_of(it.point(number)))
        second = third = 0.0
        for first, leaf in it.leaves.items():
            try:
                made = symbolic.derive(it.loss, leaf, list(it.leaves), place)
            except (Unsupported, symbolic.Tie) as reason:
                pytest.skip(f"no derivative in symbols: {reason}")
            names = {meaning[1].params["name"]: symbol for symbol, meaning in made.symbols.meaning.items()
                     if meaning[0] == "node" and meaning[1].name}  # fmt: skip
            for other, symbol in names.items():
                twice = sympy.diff(made.entries[0], symbol)
                second += float(u[first] * v[other]) * _ball(made, twice, place)
                for last, another in names.items():
                    thrice = sympy.diff(twice, another)
                    third += float(u[first] * v[other] * v[last]) * _ball(made, thrice, place)
        close(it.found["uv forward"][0][number], second, TOLERANCE[2], "second derivative")
        close(it.found["uvv forward"][0][number], third, TOLERANCE[3], "third derivative")


def _ball(made: Any, expression: Any, place: Any) -> float:
    try:
        return float(made.symbols.value(symbolic.accepted(expression), place, 256).mid())
    except Unsupported as reason:
        pytest.skip(f"no derivative in symbols: {reason}")


def float_difference(it: Study, direction: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of the loss along a direction at every point by five values each, and its error bound.

    Of a ladder of steps, the one whose neighbour agrees best; the bound is that distance plus rounding.
    """
    steps = 2.0 ** -np.arange(4, 14)
    offsets = np.array([-2.0, -1.0, 1.0, 2.0])
    by = (steps[:, None] * offsets).reshape(-1)
    values = {}
    for name, at in it.points.items():
        way = direction.get(name)
        moved = at[None] if way is None else at[None] + by.reshape((-1,) + (1,) * at.ndim) * way
        values[name] = np.broadcast_to(moved, (len(by), *at.shape))
    found = np.asarray(Tape(it.loss).run(values, backend="numpy")[0], float)
    found = np.broadcast_to(found, (len(by), POINTS)).reshape(len(steps), 4, POINTS)
    with np.errstate(all="ignore"):
        slopes = (found[:, 0] - 8 * found[:, 1] + 8 * found[:, 2] - found[:, 3]) / (12 * steps[:, None])
        rounding = 32 * np.finfo(float).eps * np.abs(found).max(axis=1) / steps[:, None]
        away = np.abs(slopes[1:] - slopes[:-1]) + rounding[1:]
    away = np.where(np.isfinite(away), away, np.inf)
    best = np.argmin(away, axis=0)
    pick = np.arange(POINTS)
    return slopes[1:][best, pick], 2 * away[best, pick]


def jvp_by_differences(case: Case) -> None:
    """Forward mode = a difference of float values, within the difference's own error bound."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    slope, bound = float_difference(it, it.directions[0])
    need(np.isfinite(slope).all(), "the value is not finite around the point")
    found = it.found["u"][0]
    assert np.all(np.abs(found - slope) <= bound), f"{found} and {slope} are more than {bound} apart"
    assert np.all(bound <= 1e-6 * np.maximum(1, np.abs(slope))), f"a bound of {bound} decides nothing"


def adjoint(case: Case) -> None:
    """<ct, jvp(t)> = <vjp(ct), t>. It says nothing of an elementwise rule, which both modes share."""
    primitive = catalogue()[case.name]
    need(primitive.kind != "elementwise", "both modes read the same partials, so this could not fail")
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    forward, back = it.found["u"][0], it.dotted("gradient", it.directions[0])
    close(back, forward, 1e-12, "reverse and forward mode")
