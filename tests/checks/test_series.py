"""Series of balls: what python-flint gets wrong is guarded, enclosures hold, edges and ties are never read through."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from flint import arb, arb_series, ctx

from gradcli.checks.derivatives.claim_comparison import ClaimComparison
from gradcli.checks.derivatives.derivative_query import DerivativeQuery
from gradcli.checks.derivatives.higher_orders import HigherDerivative
from gradcli.checks.derivatives.jets import DirectionalJets, coefficient
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.interpretation import Failure, Tie, Undefined
from gradcli.checks.expansions.power_series import Series, capacity
from tests.support.rows import all_rows
from tests.support.series_lines import lines, lowered

if TYPE_CHECKING:
    from collections.abc import Callable


def partial(text: str, at: dict[str, Any], i: int = 0, bits: int = 128) -> Any:
    with ball_numbers.precision(bits):
        return lines(text, at).partial(i)


# --- what python-flint gets wrong --------------------------------------------------------------------------


def test_python_flint_is_unsound_at_an_exact_zero() -> None:
    """The reason for the guards; should these ever change, the guards may be thought over."""
    with capacity(2), ball_numbers.precision(128):
        x = arb_series([0, 1], 2)
        assert str((x * x) / x) == "0 + O(x^2)"
        assert ((x.exp() - 1) / x).prec == 1
    assert np.array([x, x], dtype=object).shape == (2, 2)


def test_a_square_over_its_root_is_no_series_at_zero() -> None:
    with capacity(2), ball_numbers.precision(128):
        x = Series(arb_series([0, 1], 2))
        with pytest.raises(Undefined):
            (x * x) / x
        with pytest.raises(Undefined):
            (x.exp() - 1) / x
        with pytest.raises(Tie):
            (x * x).sqrt()
        with pytest.raises(Undefined):
            x.log()
        with pytest.raises(Tie):
            x.sign()


@pytest.mark.parametrize(
    ("text", "kind"),
    [("(x*x)/x", "undefined"), ("(exp(x) - 1)/x", "undefined"), ("(x*x)**0.5", "tie"), ("sqrt(x*x)", "tie")],
)
def test_the_traps_at_zero(text: str, kind: str) -> None:
    found = partial(text, {"x": 0.0})
    assert isinstance(found, Failure)
    assert found.kind == kind


def test_an_infinite_leaf_is_no_number() -> None:
    found = partial("x*0 + x", {"x": float("inf")})
    assert isinstance(found, Failure)
    assert found.kind == "undefined"


def test_a_vector_keeps_its_series_apart() -> None:
    with ball_numbers.precision(128):
        at = lines("sum(x**2*[1, 10])", {"x": [3.0, 5.0]})
        assert [float(at.partial(i)) for i in range(2)] == [6.0, 100.0]


def test_a_coefficient_that_is_not_known_is_not_read() -> None:
    with capacity(2), ball_numbers.precision(128):
        found = coefficient(Series(arb_series([1], 1)), 1)
    assert found.kind == "unclear" and "coefficient 1" in found.reason


def test_precision_and_capacity_are_given_back() -> None:
    before = ctx.prec, ctx.cap
    partial("digamma(x) + erfinv(x/9) + polygamma(2, x)", {"x": 1.3}, bits=256)
    assert (ctx.prec, ctx.cap) == before


# --- enclosures ----------------------------------------------------------------------------------------------


@all_rows("x", [1e-300, -1e-300, 1e-20, 1e-8])
@all_rows("name", ["expm1", "log1p", "sinh", "cosh", "tanh", "asinh", "atanh", "sin", "atan", "erf", "asin"])
def test_tiny_arguments_need_no_more_bits(name: str, x: float) -> None:
    """The constant term comes from the function on balls, so nothing cancels in it."""
    with ball_numbers.precision(128):
        at = lines(f"{name}(x)", {"x": x})
        assert at.value.rel_accuracy_bits() > 100
        assert at.partial(0).rel_accuracy_bits() > 100


FUNCTIONS: dict[str, tuple[Any, tuple[float, float]]] = {
    "exp": (mpmath.exp, (-3, 3)),
    "expm1": (mpmath.expm1, (-3, 3)),
    "log": (mpmath.log, (0.1, 9)),
    "log1p": (mpmath.log1p, (-0.9, 9)),
    "sin": (mpmath.sin, (-7, 7)),
    "cos": (mpmath.cos, (-7, 7)),
    "tan": (mpmath.tan, (-1.5, 1.5)),
    "asin": (mpmath.asin, (-0.99, 0.99)),
    "acos": (mpmath.acos, (-0.99, 0.99)),
    "atan": (mpmath.atan, (-9, 9)),
    "sinh": (mpmath.sinh, (-5, 5)),
    "cosh": (mpmath.cosh, (-5, 5)),
    "tanh": (mpmath.tanh, (-5, 5)),
    "asinh": (mpmath.asinh, (-9, 9)),
    "acosh": (mpmath.acosh, (1.01, 9)),
    "atanh": (mpmath.atanh, (-0.99, 0.99)),
    "sqrt": (mpmath.sqrt, (0.01, 9)),
    "erf": (mpmath.erf, (-3, 3)),
    "erfc": (mpmath.erfc, (-3, 3)),
    "erfinv": (mpmath.erfinv, (-0.9, 0.9)),
    "gamma": (mpmath.gamma, (0.2, 6)),
    "lgamma": (mpmath.loggamma, (0.2, 9)),
    "digamma": (mpmath.digamma, (0.2, 9)),
    "sinc_pi": (lambda x: mpmath.sincpi(x), (0.1, 5)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wide_balls_enclose_every_number_in_them(name: str) -> None:
    """Coefficients at points inside an input ball lie in the coefficients of the ball; mpmath's Taylor is the witness."""
    function, (low, high) = FUNCTIONS[name]
    drawn = random.Random(name)
    for _ in range(12):
        middle = drawn.uniform(low, high)
        radius = min(middle - low, high - middle) * drawn.choice([0.0, 1e-12, 1e-3, 0.3])
        with ball_numbers.precision(160), capacity(4):
            found = getattr(Series(arb_series([arb(middle, radius), 1], 4)), name)().s
        for share in (-1.0, -0.37, 0.0, 0.81):
            with mpmath.workdps(40):
                inside = mpmath.mpf(middle) + mpmath.mpf(radius) * mpmath.mpf(share) * mpmath.mpf("0.99999")
                right = mpmath.taylor(function, inside, 3)
            with ball_numbers.precision(160):
                for k in range(4):
                    slack = arb(0, 1e-22) * (1 + abs(found[k]))
                    exact = arb(mpmath.nstr(mpmath.re(right[k]), 36))
                    assert (found[k] + slack).contains(exact), (name, middle, radius, k)


@pytest.mark.parametrize(
    ("text", "at", "slope"),
    [
        ("lgamma(x)", -1.5, lambda x: mpmath.digamma(x)),
        ("lgamma(x)", 4.0, lambda x: mpmath.digamma(x)),
        ("digamma(x)", -1.5, lambda x: mpmath.psi(1, x)),
        ("digamma(x)", 1.0, lambda x: mpmath.psi(1, x)),
        ("polygamma(1, x)", -1.5, lambda x: mpmath.psi(2, x)),
        ("polygamma(3, x)", 2.5, lambda x: mpmath.psi(4, x)),
        ("erfinv(x)", -0.75, lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(mpmath.erfinv(x) ** 2)),
        ("atan2(x, -2)", 1.0, lambda x: mpmath.mpf(-2) / (4 + x**2)),
        ("atan2(x, 2)", -1.0, lambda x: mpmath.mpf(2) / (4 + x**2)),
        ("atan2(3, x)", 0.0, lambda x: mpmath.mpf(-3) / (9 + x**2)),
        ("atan2(-3, x)", -2.0, lambda x: mpmath.mpf(3) / (9 + x**2)),
        ("x**x", 2.0, lambda x: x**x * (mpmath.log(x) + 1)),
        ("x**100", 0.5, lambda x: 100 * x**99),
        ("(-x)**3", 2.0, lambda x: -3 * x**2),
        ("x**(-3)", -2.0, lambda x: -3 * x**-4),
        ("cbrt(x)", -8.0, lambda x: mpmath.mpf(1) / 12),
        ("beta(x, 2.5)", 1.5, lambda x: mpmath.diff(lambda y: mpmath.beta(y, 2.5), x)),
    ],
)
def test_compositions(text: str, at: float, slope: Callable[[Any], Any]) -> None:
    found = partial(text, {"x": at})
    with mpmath.workdps(50):
        right = mpmath.nstr(mpmath.re(slope(mpmath.mpf(at))), 35)
    with ball_numbers.precision(128):
        assert abs(found - arb(right)) <= abs(arb(right)) * arb(10) ** -24, found
        assert found.rel_accuracy_bits() > 90


def test_a_negative_base_has_a_slope_in_itself_only() -> None:
    text, at = "x**y", {"x": -2.0, "y": 3.0}
    with ball_numbers.precision(128):
        assert float(lines(text, at, "x").partial(0)) == 12.0
        found = lines(text, at, "y").partial(0)
    assert isinstance(found, Failure)
    assert found.kind == "tie"  # whose sides are both undefined


def test_a_singular_determinant_needs_no_pivot() -> None:
    with ball_numbers.precision(128):
        at = lines("det(X)", {"X": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]]})
        assert at.value.is_zero()
        assert [float(at.partial(i)) for i in range(9)] == [4, 4, -4, -2, -2, 2, 0, 0, 0]


def test_what_does_not_move_is_computed_once_and_shared() -> None:
    with ball_numbers.precision(128):
        at = lines("sum(exp(w)*exp(y))", {"w": [1.0, 2.0, 3.0], "y": 1.0}, "w")
        first = at.along({0: 1})[0]
        assert isinstance(first, Series)
        assert len(at.paths.order) == 3  # exp(w), the product and the sum; not exp(y)


def test_an_output_that_does_not_depend_on_the_target_has_slope_zero() -> None:
    with ball_numbers.precision(128):
        assert lines("0*x + y", {"x": 1.0, "y": 2.0}).partial(0).is_zero()
        assert lines("y**2", {"y": 2.0, "x": 1.0}, "y").partial(0) == 4


def test_values_that_are_held() -> None:
    assert float(partial("detach(x)*x", {"x": 1.5})) == 1.5
    assert float(partial("ste(round(x), x)**2", {"x": 1.75})) == 4.0


# --- second derivatives, radii --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("x[0]**2*x[1] + sin(x[1])", [3.0, 0.5], [[1.0, 6.0], [6.0, -0.479425538604203]]),
        ("prod(x)", [0.0, 2.0, 3.0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]),
        ("sum(cumprod(x))", [0.0, 2.0, 3.0], [[0, 4, 2], [4, 0, 0], [2, 0, 0]]),
        ("det(reshape(x, (2, 2)))", [1.0, 2.0, 2.0, 4.0], [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]),
    ],
)
def test_hessians_by_polarisation(text: str, at: list[float], expected: Any) -> None:
    with ball_numbers.precision(128):
        program, point = lowered(text, {"x": at})
        leaf = program.leaves["x"].node
        slots = [("axis", leaf, leaf)] * 2
        (output,) = program.outputs
        flat = iter(HigherDerivative(balls.BallField(), point, output, slots).entries().flat)
        for (i, j), x in zip(product(range(len(at)), repeat=2), flat, strict=True):
            assert abs(float(x) - expected[i][j]) < 1e-14, (i, j, x)
            assert x.rel_accuracy_bits() > 90 or x.contains(0)


def test_a_box_encloses_the_gradient_at_all_of_its_points() -> None:
    program, point = lowered("sin(x)*x**2", {"x": 1.0})
    wide = {"x": ([arb(1.0, 0.01)], ())}
    at = lines("sin(x)*x**2", {"x": 1.0})
    with ball_numbers.precision(128):
        box = type(at)(balls.BallField(), at.paths, wide).partial(0)
        for x in np.linspace(0.99, 1.01, 9):
            one = type(at)(balls.BallField(), at.paths, {"x": ([float(x)], ())}).partial(0)
            assert box.contains(one)


# --- what is read once -----------------------------------------------------------------------------------------------


def test_claims_about_one_derivative_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second claim walks no line again, at a point where the first one has; elsewhere it does."""
    program, point = lowered("exp(x)*sin(x*y)", {"x": 2.0, "y": 3.0})
    target = program.leaves["x"].node
    query = DerivativeQuery(program.outputs[0], target, ("x", "y"))
    walks = []
    walk = DirectionalJets.along
    monkeypatch.setattr(DirectionalJets, "along", lambda *args: walks.append(args) or walk(*args))
    comparison = ClaimComparison(query, target)
    first = comparison.at_given_point(point)[1]
    assert len(walks) == 1
    again = ClaimComparison(query, target).at_given_point(point)[1]
    assert first["given"] == again["given"]
    assert len(walks) == 1 and len(query.known) == 1
    comparison.beside(None, {**point, "x": ([2.5], ())})
    assert len(walks) == 2 and len(query.known) == 2
