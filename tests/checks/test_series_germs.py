"""Sides of points with poles and logarithms: limits and slopes, and expansions against values to 300 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from gradcli.checks import check_script
from gradcli.checks.derivatives.jets import Sides
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import Failure
from gradcli.checks.expansions.log_puiseux import Expansion
from tests.support.rows import all_rows
from tests.support.series_lines import exact_lines, lines

INF = math.inf


def seen(text: str, x: float) -> Sides:
    with ball_numbers.precision(128):
        return exact_lines(text, {"x": x}).sides({0: 1})


TIES = [
    ("where(x > 0, log(x), 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, 1/x, 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, -1/x**2, 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, x*log(x), 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, x**2*log(x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, 1/log(x), 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, exp(-1/x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x == 0, 0, exp(-1/x**2))", 0.0, "smooth", [0, 0]),
    ("where(x > 0, x**x, 1)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, x**(1 + x), 0)", 0.0, "KINK", [0, 1]),
    ("where(x > 0, gamma(x), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, x*gamma(x), 1)", 0.0, "KINK", [0, -0.5772156649015329]),
    ("where(x > 0, lgamma(x) + log(x), 0)", 0.0, "KINK", [0, -0.5772156649015329]),
    ("where(x > 0, digamma(x) + 1/x, 0)", 0.0, "DISCONTINUOUS", [0, math.pi**2 / 6]),
    ("where(x > 0, atan(1/x), pi/2)", 0.0, "KINK", [0, -1]),
    ("where(x > 0, atan(1/x), -pi/2)", 0.0, "DISCONTINUOUS", [0, -1]),
    ("where(x > 0, tanh(1/x), 1)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, 1/(1 + exp(1/x)), 0)", 0.0, "smooth", [0, 0]),
    ("where(x == 0, 0, x/(1 + exp(1/x)))", 0.0, "KINK", [1, 0]),
    ("where(x > 0, x*log1p(exp(1/x)), 1)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, log(x) - log(2*x), -log(2))", 0.0, "smooth", [0, 0]),
    ("where(x > 0, log(sin(x)) - log(x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, 1/x - 1/sin(x), 0)", 0.0, "KINK", [0, -1 / 6]),
    ("where(x > 0, sqrt(x**2 + x) - sqrt(x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, 1/sqrt(x), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, erf(1/x), 1)", 0.0, "smooth", [0, 0]),
    ("where(x < 1, -log(1 - x), 5)", 1.0, "BOUNDARY", [-INF, 0]),
    ("where(x < 1, atanh(x), 0)", 1.0, "BOUNDARY", [-INF, 0]),
    ("where(x == 0, 0, x*log(abs(x)))", 0.0, "BOUNDARY", [-INF, -INF]),
    ("where(x == 0, 0, x**3*log(abs(x)))", 0.0, "smooth", [0, 0]),
    ("where(x > 0, log(x)*sqrt(x), 0)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, exp(x*log(x)*log(x)) - 1, 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, x*sin(1/x), 0)", 0.0, "BOUNDARY", [0, None]),
    ("where(x > 0, x**2*sin(1/x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, asinh(1/x) + log(x), log(2))", 0.0, "smooth", [0, 0]),
    ("where(x > 0, cosh(1/x), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, x*floor(1 - x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x == 0, 0, x*log(abs(log(abs(x)))))", 0.0, "BOUNDARY", [INF, INF]),
    ("where(x == 0, 0, abs(x)/log(abs(log(abs(x)))))", 0.0, "smooth", [0, 0]),
    ("where(x == 0, 0, x/log(abs(log(abs(x)))) + 3*x)", 0.0, "smooth", [3, 3]),
    ("where(x == 0, 0, abs(x)*log(abs(x))/log(abs(log(abs(x)))))", 0.0, "BOUNDARY", [INF, -INF]),
    ("where(x == 0, 0, x*sqrt(abs(log(abs(x)))))", 0.0, "BOUNDARY", [INF, INF]),
    ("where(x == 0, 0, x/sqrt(abs(log(abs(x)))))", 0.0, "smooth", [0, 0]),
    ("where(x > 0, log(abs(log(x))), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, 1/log(abs(log(x))), 0)", 0.0, "BOUNDARY", [0, INF]),
    ("where(x > 0, exp(log(abs(log(x)))) + log(x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, x*erf(sqrt(abs(log(x)))), 0)", 0.0, "KINK", [0, 1]),
    ("where(x > 0, x*log(log(abs(log(x)))), 0)", 0.0, "unknown", [0, None]),
    ("where(x > 0, x*log(abs(log(x)))*sin(1/x), 0)", 0.0, "BOUNDARY", [0, None]),
    ("where(x > 0, x*exp(-sqrt(abs(log(x)))), 0)", 0.0, "unknown", [0, None]),
    ("where(x > 0, x*erf(log(abs(log(x)))), 0)", 0.0, "unknown", [0, None]),
    ("where(x > 0, x*erfc(log(abs(log(x)))), 0)", 0.0, "unknown", [0, None]),
    ("where(x > 0, x**(x**x), 0)", 0.0, "KINK", [0, 1]),
    ("where(x > 0, x**(x**(x**x)), 1)", 0.0, "BOUNDARY", [0, -INF]),
    ("where(x > 0, 1/(1 + exp(1/x)**2), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, x*(exp(1/x)*exp(2/x))**-0.5 + x, 0)", 0.0, "KINK", [0, 1]),
    ("where(x > 0, x**2*polygamma(1, x), 1)", 0.0, "smooth", [0, 0]),
    ("abs(x)**0.3", 0.0, "BOUNDARY", [-INF, INF]),
    ("abs(x)**(1/3)", 0.0, "BOUNDARY", [-INF, INF]),
    ("abs(x)**0.3*abs(x)**0.7", 0.0, "KINK", [-1, 1]),
    ("where(x > 0, x**(0.1 + 0.2)*x**0.7, 0)", 0.0, "KINK", [0, 1]),
    ("abs(x)**where(x < 2, e, 3)/abs(x)**(e - 0.3)", 1.0, "smooth", [0.3, 0.3]),
    ("where(x == 0, 0, abs(x)**(e - 2))", 0.0, "unknown", [None, None]),
    ("where(x == 0, 0, abs(x)**(pi - 2)/abs(x)**(pi - 3))", 0.0, "unknown", [None, None]),
    ("gammainc(0.5, x**2)", 0.0, "KINK", [-2 / math.pi**0.5, 2 / math.pi**0.5]),
    ("where(x > 0, gammainc(1.5, x), 0)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, gammaincc(0.5, x), 1)", 0.0, "BOUNDARY", [0, -INF]),
    ("gammainc(1.5, x)", 0.0, "BOUNDARY", [None, 0]),
    ("gammainc(2, x)", 0.0, "BOUNDARY", [None, 0]),
    ("gammaincc(1, 2*x)", 0.0, "BOUNDARY", [None, -2]),
    ("gammainc(2, x**2)", 0.0, "smooth", [0, 0]),
    ("where(x > 0, gammainc(2, x), 0)", 0.0, "smooth", [0, 0]),
    ("betainc(2, 3, x)", 0.0, "BOUNDARY", [None, 0]),
    ("betainc(3, 2, x)", 1.0, "BOUNDARY", [0, None]),
    ("betainc(2, 2, 1 - x**2)", 0.0, "smooth", [0, 0]),
    ("betainc(0.5, 2, x**2)", 0.0, "KINK", [-1.5, 1.5]),
    ("betainc(2, 1.5, x)", 1.0, "BOUNDARY", [0, None]),
    ("where(x < 1, betainc(2, 0.5, x), 1)", 1.0, "BOUNDARY", [INF, 0]),
]  # fmt: skip


@all_rows(("text", "x", "kind", "expected"), TIES, ids=[text for text, *_ in TIES])
def test_both_sides(text: str, x: float, kind: str, expected: list[float | None]) -> None:
    found = seen(text, x)
    assert found.kind == kind, found
    for one, slope in zip((found.left, found.right), expected, strict=True):
        told = None if one.slope is None else float(one.slope)
        assert told == slope or (told is not None and slope is not None and told == pytest.approx(slope, rel=1e-15)), (
            one
        )


def log(x: Any) -> Any:
    return mpmath.log(x)


def size(key: Any, x: Any) -> Any:
    """The term of a key, without its coefficient."""
    power, turned, twice = (mpmath.mpf(part.numerator) / part.denominator for part in key)
    return x**power * log(1 / x) ** -turned * log(log(1 / x)) ** -twice


EXPANSIONS: list[tuple[str, Callable[[Any], Any]]] = [
    ("log(x)/x + 1/x**2", lambda x: log(x) / x + 1 / x**2),
    ("1/(log(x) + 1)", lambda x: 1 / (log(x) + 1)),
    ("exp(x*log(x))", lambda x: x**x),
    ("(1/sin(x) + log(x))**3", lambda x: (1 / mpmath.sin(x) + log(x)) ** 3),
    ("sqrt(1/x + log(x)**2)", lambda x: mpmath.sqrt(1 / x + log(x) ** 2)),
    ("log(1/x + 3)*cos(x)", lambda x: log(1 / x + 3) * mpmath.cos(x)),
    ("gamma(x)*tanh(x)**2", lambda x: mpmath.gamma(x) * mpmath.tanh(x) ** 2),
    ("digamma(x)*x", lambda x: mpmath.digamma(x) * x),
    ("atan(log(x))", lambda x: mpmath.atan(log(x))),
    ("acosh(1/x)", lambda x: mpmath.acosh(1 / x)),
    ("log1p(sqrt(x))/x", lambda x: mpmath.log1p(mpmath.sqrt(x)) / x),
    ("x**0.25*log(x)**2", lambda x: x ** mpmath.mpf(0.25) * log(x) ** 2),
    ("acos(1 - x)", lambda x: mpmath.acos(1 - x)),
    ("sinc(x)/x", lambda x: mpmath.sincpi(x) / x),
    ("1/(exp(x) - 1) - 1/x", lambda x: 1 / mpmath.expm1(x) - 1 / x),
    ("cbrt(x)/(1 + sqrt(x))", lambda x: mpmath.cbrt(x) / (1 + mpmath.sqrt(x))),
    ("lgamma(x)**2", lambda x: mpmath.loggamma(x) ** 2),
    ("erf(log(x)) + x", lambda x: mpmath.erf(log(x)) + x),
    ("log(abs(log(x)))", lambda x: log(-log(x))),
    ("1/(log(abs(log(x))) + 2)", lambda x: 1 / (log(-log(x)) + 2)),
    ("log(log(x)**2 + 1/x)*log(log(x)**2)", lambda x: log(log(x) ** 2 + 1 / x) * log(log(x) ** 2)),
    ("log(1 - log(x) + x)", lambda x: log(1 - log(x) + x)),
    ("log(log(1/x) + sqrt(log(1/x)))", lambda x: log(log(1 / x) + mpmath.sqrt(log(1 / x)))),
    ("sqrt(abs(log(x)))/(1 + log(x))", lambda x: mpmath.sqrt(-log(x)) / (1 + log(x))),
    ("exp(2*log(abs(log(x))) - 0.5*log(x))", lambda x: log(x) ** 2 / mpmath.sqrt(x)),
    ("erfc(sqrt(abs(log(x))))", lambda x: mpmath.erfc(mpmath.sqrt(-log(x)))),
    ("abs(log(x))**0.75", lambda x: (-log(x)) ** 0.75),
    ("tanh(log(abs(log(x))))", lambda x: mpmath.tanh(log(-log(x)))),
    ("atan2(1, x) + atan2(x, -1)", lambda x: mpmath.atan2(1, x) + mpmath.atan2(x, -1)),
    ("(x + x**2)**(1/3)*log(x)", lambda x: mpmath.cbrt(x + x**2) * log(x)),
    ("gammainc(1.5, sin(x))", lambda x: mpmath.gammainc(1.5, 0, mpmath.sin(x), regularized=True)),
    ("gammaincc(0.25, x + x**2)", lambda x: mpmath.gammainc(0.25, x + x**2, mpmath.inf, regularized=True)),
    ("betainc(0.5, 2.5, sinh(x))", lambda x: mpmath.betainc(0.5, 2.5, 0, mpmath.sinh(x), regularized=True)),
    ("betainc(2, 0.75, 1 - x)", lambda x: mpmath.betainc(2, 0.75, 0, 1 - x, regularized=True)),
]


@all_rows(("text", "f"), EXPANSIONS, ids=[text for text, _ in EXPANSIONS])
def test_an_expansion_is_the_function(text: str, f: Callable[[Any], Any]) -> None:
    """What the terms leave over shrinks like the remainder that is stated, at two steps far apart."""
    with ball_numbers.precision(1024):
        whole = lines(f"where(x > 0, {text}, 0)", {"x": 0.0})
        found = whole.beside({0: 1})
        assert isinstance(found, Expansion), found if not isinstance(found, Failure) else found.reason
        terms = {key: mpmath.mpf(0) for key in found.terms}
        with mpmath.workdps(330):
            for key, c in found.terms.items():
                terms[key] = mpmath.mpf(c.mid().str(300, radius=False))
            for exponent in (20, 30):
                x = mpmath.mpf(10) ** -exponent
                total = sum(c * size(key, x) for key, c in terms.items())
                gap = abs(f(x) - total)
                bound = mpmath.mpf(10) ** -280 * max((size(key, x) for key in terms), default=mpmath.mpf(1))
                if found.rest is not None and found.rest[0] < 10**5:
                    bound += 10**6 * size(found.rest, x)
                assert gap <= bound, (text, exponent, mpmath.nstr(gap, 5), mpmath.nstr(bound, 5), found.rest)


def test_a_lost_term_would_be_seen() -> None:
    """The comparison above fails for an expansion without one of its terms."""
    with ball_numbers.precision(256):
        found = lines("where(x > 0, log(x)/x + 1/x**2, 0)", {"x": 0.0}).beside({0: 1})
    assert isinstance(found, Expansion)
    assert len(found.terms) == 2 and found.rest is None


def test_verdicts_name_the_limit() -> None:
    found = check_script("where(x > 0, log(x), 0)", at={"x": 0.0}).checks[0]
    assert found.verdict == "BOUNDARY"
    assert found.evidence["basis"] == "series"
    assert "tends to -inf" in found.message
    swinging = check_script("where(x > 0, x*sin(1/x), 0)", at={"x": 0.0}).checks[0]
    assert swinging.verdict == "BOUNDARY" and swinging.message.endswith("the slope has no limit")
    assert check_script("where(x > 0, x*log(x), 0)", at={"x": 0.0}).checks[0].verdict == "BOUNDARY"


@pytest.mark.parametrize("text", ["gammainc(0.5, x**2)", "gammaincc(0.5, x**2)", "betainc(0.5, 2, x**2)"])
def test_an_inner_slope_of_0_hides_no_cusp(text: str) -> None:
    """At 0 each is about |x|: python-flint's series gives the slope 0, as the inner function has."""
    found = check_script(text, at={"x": 0.0}, claims={"x": "0"}).checks[0]
    assert (found.verdict, found.passed) == ("KINK", False), found.message


def test_a_power_of_a_negative_number_is_defined_at_whole_exponents_only() -> None:
    found = check_script("x**y", at={"x": -2.0, "y": 3.0}, wrt=["y"]).checks[0]
    assert found.verdict == "BOUNDARY", found.message
    assert found.message.startswith("x**y has no finite derivative here: slopes undefined from below, undefined from")
    assert check_script("x**y", at={"x": -2.0, "y": 3.0}, wrt=["x"]).checks[0].verdict == "PROVED"


NASTY: list[tuple[str, float | None]] = [  # at 0, with the derivative there (None: there is none)
    ("x*log(abs(log(abs(x))))", None),
    ("abs(x)/log(abs(log(abs(x))))", 0.0),
    ("x*log(log(abs(log(abs(x)))))", None),
    ("abs(x)/log(log(abs(log(abs(x)))))", 0.0),
    ("2*x + x/log(log(abs(log(abs(x)))))", 2.0),
    ("2*x + x/log(abs(log(abs(x))))", 2.0),
    ("x*log(abs(log(abs(x))))/sqrt(log(abs(log(abs(x)))))", None),
    ("x*log(abs(log(abs(x))))**2/abs(log(abs(x)))", 0.0),
    ("abs(x)**abs(x)*x", 1.0),
    ("abs(x)**(abs(x)**abs(x))", None),
    ("x*abs(x)**(abs(x)**abs(x))", 0.0),
    ("exp(-1/x**2)", 0.0),
    ("exp(-1/x**2)/x**9 - x", -1.0),
    ("exp(-1/abs(x))*sin(1/x)", 0.0),
    ("sin(1/x)*x**2", 0.0),
    ("x*sin(1/x)", None),
    ("x + x**2*sin(1/x**3)", 1.0),
    ("sin(1/x)", None),
    ("x*sin(log(abs(x)))", None),
    ("x**2*sin(1/x)*log(abs(log(abs(x))))", 0.0),
    ("x*log(abs(log(abs(x)))) + x*sin(1/x)", None),
    ("x*cos(log(abs(log(abs(x)))))", None),
    ("x*tanh(log(abs(log(abs(x)))))", 1.0),
    ("x*exp(-sqrt(abs(log(abs(x)))))", 0.0),
    ("x*exp(sqrt(abs(log(abs(x)))))", None),
    ("x*erf(log(abs(log(abs(x)))))", 1.0),
    ("abs(x)*erfc(log(abs(log(abs(x)))))", 0.0),
    ("x*floor(log(abs(log(abs(x)))))", None),
    ("x*atan(1/x)*log(abs(log(abs(x))))", None),
    ("x**3*exp(exp(1/x**2))", None),
    ("maximum(x**2, abs(x)**0.3)", None),
    ("max([x**2, abs(x)**0.3])", None),
    ("minimum(x**2, abs(x)**2.3)", 0.0),
    ("maximum(x, x + abs(x)**2.3)", 1.0),
]  # fmt: skip


@all_rows(("text", "slope"), NASTY, ids=[text for text, _ in NASTY])
def test_no_wrong_verdict_where_expansions_end(text: str, slope: float | None) -> None:
    """A tie that stays open is INCONCLUSIVE: differences neither pass a claim there nor refute one."""
    script = f"where(x == 0, 0, {text})"
    right = ("PROVED", "CERTIFIED", "INCONCLUSIVE")
    wrong = ("BOUNDARY", "DISCONTINUOUS", "KINK", "INCONCLUSIVE")
    for claim in (0.0, 3.0, 0.5, -1.0, 1.0, 2.0, slope):
        if claim is not None:
            found = check_script(script, at={"x": 0.0}, claims={"x": f"{claim}"}).checks[-1]
            if slope is None:
                assert found.verdict in wrong, (claim, found.message)
            elif claim == slope:
                assert found.verdict in right, (claim, found.message)
            else:
                assert found.verdict in ("DISAGREES", "INCONCLUSIVE"), (claim, found.message)


def test_ties_of_many_entries_are_all_looked_at() -> None:
    for count in (65, 200):
        found = check_script("sum(x*abs(x)) + 0*y", at={"x": np.zeros(count), "y": 1.0}, wrt=["x"]).checks[0]
        assert found.verdict == "PROVED", found.message
