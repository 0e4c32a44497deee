"""Derivatives over shared parts equal SymPy's own; the normal form proves what is true and nothing else."""

from __future__ import annotations

import pytest
import sympy as sp

from gradcli.checks import calculus, derived, normal_form
from gradcli.checks.entries import Unsupported

x, y, z = (sp.Symbol(f"g:{name}", real=True) for name in "xyz")
POINT = {x: sp.Rational(13, 10), y: sp.Rational(2, 5), z: sp.Rational(21, 10)}
EXPRESSIONS = [
    x**2 * sp.sin(y),
    sp.exp(-x * y) / (1 + x**2),
    sp.sqrt(x**2 + y**2 + 1),
    x**y,
    sp.log(sp.exp(x) + y**2),
    sp.tanh(x * y) ** 3,
    sp.erf(x / y) + sp.gamma(x) + sp.loggamma(y),
    sp.atan2(y, x) * sp.asin(y / 2),
    2**x + x ** sp.Rational(-3, 2),
    sp.polygamma(1, x) + sp.digamma(x * y),
]


def sign(expression: sp.Expr) -> int:
    value = complex(expression.subs(POINT).evalf(40)).real
    return int(value > 0) - int(value < 0)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("symbol", [x, y])
def test_derivatives_are_sympys(expression: sp.Expr, symbol: sp.Symbol) -> None:
    ours = calculus.derivative(expression, symbol, {})
    theirs = sp.diff(expression, symbol)
    assert abs((ours - theirs).subs(POINT).evalf(30)) < 1e-25


def test_a_nest_stays_as_long_as_it_is() -> None:
    nest = x
    for _ in range(40):
        nest = sp.sin(nest) * nest + y
    found = calculus.derivative(nest, x, {})
    assert len(calculus.parts(found)) < 1000
    assert calculus.tree_size(nest, {}) > 2**40


def test_a_function_without_derivative_is_said() -> None:
    with pytest.raises(Unsupported):
        derived.accepted(calculus.derivative(sp.floor(x * y), x, {}))


def test_substitution_keeps_shared_parts() -> None:
    assert calculus.substituted(x + sp.sin(x * y), {x: z}) == z + sp.sin(z * y)


SIGMOID = 1 / (1 + sp.exp(-x * y))
TRUE = [
    (sp.sin(x) ** 2 + sp.cos(x) ** 2, 1),
    (sp.sin(x + y), sp.sin(x) * sp.cos(y) + sp.cos(x) * sp.sin(y)),
    (sp.diff(SIGMOID, x), y * SIGMOID * (1 - SIGMOID)),
    (sp.diff(sp.tanh(x), x), 1 / sp.cosh(x) ** 2),
    (sp.sqrt(x * y), sp.sqrt(x) * sp.sqrt(y)),
    (sp.sqrt(x**2 * y), x * sp.sqrt(y)),
    (sp.diff(x**y, x), y * x ** (y - 1)),
    (sp.log(x * y), sp.log(x) + sp.log(y)),
    (sp.exp(y * sp.log(x)), x**y),
    (sp.cosh(x) ** 2 - sp.sinh(x) ** 2, 1),
    (1 / sp.sqrt(x), sp.sqrt(x) / x),
    (sp.log(sp.exp(x) + 1) - x, sp.log(1 + sp.exp(-x))),
    (sp.tan(x), sp.sin(2 * x) / (1 + sp.cos(2 * x))),
    (sp.sqrt(8), 2 * sp.sqrt(2)),
    (sp.log(6) - sp.log(2), sp.log(3)),
    (sp.exp(1) * sp.exp(x), sp.exp(x + 1)),
    (sp.exp(x / (1 + y)) ** 2, sp.exp(2 * x / (1 + y))),
    ((x ** sp.Rational(1, 3)) ** 2 * x ** sp.Rational(1, 3), x),
]


@pytest.mark.parametrize(("one", "other"), TRUE, ids=lambda e: str(e)[:40])
def test_the_normal_form_proves(one: sp.Expr, other: sp.Expr) -> None:
    assert normal_form.vanishes(sp.sympify(one) - other, sign)


@pytest.mark.parametrize(("one", "other"), TRUE, ids=lambda e: str(e)[:40])
@pytest.mark.parametrize("off", [sp.Rational(1, 10**9), -sp.Rational(1, 10**30)])
def test_the_normal_form_proves_nothing_false(one: sp.Expr, other: sp.Expr, off: sp.Rational) -> None:
    for wrong in (one - other + off, one * (1 + off) - other, one + other):
        assert not normal_form.vanishes(wrong, sign)


def test_a_proof_depends_on_signs() -> None:
    assert normal_form.vanishes(sp.sqrt((x - 2) ** 2) - (2 - x), sign)
    assert not normal_form.vanishes(sp.sqrt((x - 2) ** 2) - (x - 2), sign)
    with pytest.raises(normal_form.NotFound):
        normal_form.vanishes(sp.sqrt(x - 3) - y, sign)


def test_budgets_are_kept() -> None:
    many = sp.Add(*[sp.Symbol(f"s{i}", real=True) for i in range(60)])
    with pytest.raises(normal_form.NotFound):
        normal_form.vanishes(many, sign)
    with pytest.raises(normal_form.NotFound):
        normal_form.vanishes((x + y + z + 1) ** 500 - x, sign)
