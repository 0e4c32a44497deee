"""Derivatives over shared parts equal SymPy's own."""

from __future__ import annotations

import pytest
import sympy as sp

from gradcli.checks import calculus, derived
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
