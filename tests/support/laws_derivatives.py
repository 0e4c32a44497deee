"""Laws of derivatives: a gradient program against differences of the value, and against SymPy; no rule is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import sympy

from gradcli.execution.evaluate import Tape
from gradcli.primitives import catalogue
from tests.support.cases import Case, cases
from tests.support.oracles import Silent
from tests.support.reference import Missing
from tests.support.study import close, need, study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.study import Study

TOLERANCE = {1: 1e-11, 2: 1e-9, 3: 1e-7}
NOISE = {"expm": 128, "frechet": 128}  # rounding of a value in units of eps; 32 of other operations. SciPy's routine
# adds up terms that are larger than their sum, and how many digits that costs depends on its version.


def derivatives_to_80_digits(case: Case) -> None:
    """Gradient programs of orders 1 to 3, in every order of modes = differences of the 80-digit value."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    u, v = it.directions
    try:
        expected = it.references
    except Missing as row:
        pytest.skip(f"no row in tests/support/reference.py: {row}")
    for value, name in zip(it.found["gradient"], it.leaves, strict=True):
        close(value[0], expected[0]["gradient"][name], TOLERANCE[1], f"gradient in {name}")
    size = np.max([np.abs(g).max(axis=tuple(range(1, g.ndim)), initial=1) for g in it.found["gradient"]], axis=0)
    for label, values, order in (
        ("u", it.found["u"][0], 1),
        ("u", it.dotted("gradient", u), 1),
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
    """The gradient program = `sympy.diff` of the value in symbols, at one point; the trials of test_sabotage.py at more."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    for position, name in enumerate(it.leaves):
        try:
            found = sympy_gradient(it, 0, name)
        except Silent as reason:
            pytest.skip(f"no derivative in symbols: {reason}")
        close(it.found["gradient"][position][0], found, TOLERANCE[1], f"gradient in {name}")


def sympy_gradient(it: Study, number: int, name: str) -> np.ndarray:
    """The gradient of the loss in one leaf, by SymPy; raises Silent where it has nothing to say."""
    made = it.symbolic(number)
    return np.reshape([made.number(entry) for entry in made.gradient(name)], it.leaves[name].shape)


def higher_by_sympy(case: Case) -> None:
    """Second and third derivatives of functions of numbers = `sympy.diff`, twice and three times."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    need(
        all(leaf.shape == () for leaf in it.leaves.values()),
        "done for functions of numbers; arrays by 80 digits",
    )
    u, v = it.directions
    second = third = 0.0
    try:
        made = it.symbolic(0)
        for first in it.leaves:
            once = made.gradient(first)[0]
            for other in it.leaves:
                twice = sympy.diff(once, made.named[other][0])
                second += float(u[first] * v[other]) * made.number(twice)
                for last in it.leaves:
                    thrice = sympy.diff(twice, made.named[last][0])
                    third += float(u[first] * v[other] * v[last]) * made.number(thrice)
    except Silent as reason:
        pytest.skip(f"no derivative in symbols: {reason}")
    close(it.found["uv forward"][0][0], second, TOLERANCE[2], "second derivative")
    close(it.found["uvv forward"][0][0], third, TOLERANCE[3], "third derivative")


def float_difference(it: Study, direction: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of the loss along a direction at every point by five values each, and its error bound.

    Of a ladder of steps, the one whose neighbour agrees best; the bound is that distance plus rounding. Where finer
    steps see another slope, beyond their own rounding, a kink lies within the coarse ones: that counts against them.
    """
    steps = 2.0 ** -np.arange(4, 20)
    offsets = np.array([-2.0, -1.0, 1.0, 2.0])
    by = (steps[:, None] * offsets).reshape(-1)
    values = {}
    for name, at in it.points.items():
        way = direction.get(name)
        moved = at[None] if way is None else at[None] + by.reshape((-1,) + (1,) * at.ndim) * way
        values[name] = np.broadcast_to(moved, (len(by), *at.shape))
    found = np.asarray(Tape(it.loss).run(values, backend="numpy")[0], float)
    found = np.broadcast_to(found, (len(by), it.count)).reshape(len(steps), 4, it.count)
    with np.errstate(all="ignore"):
        slopes = (found[:, 0] - 8 * found[:, 1] + 8 * found[:, 2] - found[:, 3]) / (12 * steps[:, None])
        unit = NOISE.get(it.case.name, 32) * np.finfo(float).eps
        rounding = unit * np.abs(found).max(axis=1) / steps[:, None]
        gaps = (np.abs(slopes[k + 1 :] - slopes[k]) - 2 * rounding[k + 1 :] for k in range(1, len(steps)))
        finer = np.stack([np.max(gap, axis=0, initial=0.0) for gap in gaps])
        away = np.abs(slopes[1:] - slopes[:-1]) + rounding[1:] + finer
    away = np.where(np.isfinite(away), away, np.inf)
    best = np.argmin(away, axis=0)
    pick = np.arange(it.count)
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


# Operands written in a roundabout way: what a local rewrite could look through.
ROUNDABOUT = ("(-(-{}))", "(0 - (0 - {}))", "(({} + 0)*1)", "(({}/-1)/-1)", "(1/(1/{}))")
ROUNDABOUT_ARRAYS = ("reshape(flatten({}), {shape})", "({}.T.T)", "((-({}.T)).T*(-1))", "where(1 > 0, {}, 0)")


def operands_are_opaque(case: Case) -> None:
    """Operands written in a roundabout way have the same gradient: no rewrite may look below an operand.

    The cases of an operation take turns: each form is written once at least, and each case in one form at least.
    """
    it = study(case)
    need(type(case) is Case, "no script can call it")
    need(it.differentiable, "no float output depends on a leaf")
    shapes = [leaf.shape for leaf in it.leaves.values()]
    forms = [*ROUNDABOUT, *(ROUNDABOUT_ARRAYS if any(shapes) else ())]
    point = it.point(0)
    alike = [one for one in cases(case.name) if type(one) is Case]
    own = alike.index(case) if case in alike else 0
    for turn in range(max(len(forms), len(alike))):
        if turn % len(alike) != own:
            continue
        form = forms[turn % len(forms)]
        if "(1/(1/" in form and any((value == 0).any() for value in point.values()):
            continue

        def written(found: re.Match[str], form: str = form) -> str:
            shape = it.leaves[found[0]].shape
            return form.format(found[0], shape=shape) if shape or form in ROUNDABOUT else found[0]

        text = re.sub(r"\bx\d\b", written, case.text)
        other = study(Case(case.name, text, case.leaves))
        other.weights = it.weights
        other.points, other.directions = it.points, it.directions
        for label in ("gradient", "u", "·u reverse over reverse", "uvv forward"):
            for mine, theirs in zip(other.found[label], it.found[label], strict=True):
                close(mine[0], theirs[0], 1e-9 if "v" in label else 1e-11, f"{label} of {text}")


def adjoint(case: Case) -> None:
    """<ct, jvp(t)> = <vjp(ct), t>. It says nothing of an elementwise rule, which both modes share."""
    primitive = catalogue()[case.name]
    need(primitive.kind != "elementwise", "both modes read the same partials, so this could not fail")
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    forward, back = it.found["u"][0], it.dotted("gradient", it.directions[0])
    close(back, forward, 1e-10 if case.name in NOISE else 1e-12, "reverse and forward mode")
