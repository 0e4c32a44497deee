"""Formulas that no other table holds: special functions, matrices, ties, branches, complex points; a verdict must not be wrong.

Exact derivatives come from mpmath's differences with 60 digits, from formulas written in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp

from gradcli.checks import check_script
from tests.support.rows import all_rows

SMOOTH: list[tuple[str, float, Callable[[Any], Any]]] = [
    ("erf(log(x + 2))*digamma(x + 1.5)", 0.37, lambda x: mp.erf(mp.log(x + 2)) * mp.digamma(x + 1.5)),
    ("lgamma(x**2 + 0.25) - x*log(x)", 1.3, lambda x: mp.loggamma(x**2 + 0.25) - x * mp.log(x)),
    ("gamma(sin(x) + 1.5)**cos(x)", 0.81, lambda x: mp.gamma(mp.sin(x) + 1.5) ** mp.cos(x)),
    ("lgamma(x)", -2.3, lambda x: mp.log(abs(mp.gamma(x)))),
    ("digamma(x)*x", -1.7, lambda x: mp.digamma(x) * x),
    ("polygamma(2, x + 0.5)", 1.9, lambda x: mp.polygamma(2, x + 0.5)),
    ("beta(x, 2.5)*erfc(x)", 0.6, lambda x: mp.beta(x, 2.5) * mp.erfc(x)),
    ("erfinv(tanh(x/3))", 0.9, lambda x: mp.erfinv(mp.tanh(x / 3))),
    ("sinc(x**2 - 0.5)", 1.1, lambda x: mp.sincpi(x**2 - mp.mpf("0.5"))),
    ("atan2(sin(3*x), cos(x) - 2)", 0.7, lambda x: mp.atan2(mp.sin(3 * x), mp.cos(x) - 2)),
    ("hypot(x, exp(-x))/cbrt(x)", 0.45, lambda x: mp.hypot(x, mp.exp(-x)) / mp.cbrt(x)),
    ("xlogy(x, 1 - x) + xlogy(1 - x, x)", 0.31, lambda x: x * mp.log(1 - x) + (1 - x) * mp.log(x)),
    ("(1 + x/7)**(7*x)*log1p(x/7)", 2.3, lambda x: (1 + x / 7) ** (7 * x) * mp.log1p(x / 7)),
    ("softplus(10*x)/sigmoid(-x)", -0.2, lambda x: mp.log1p(mp.exp(10 * x)) * (1 + mp.exp(x))),
    ("asinh(sinh(x)**2)*atanh(x/4)", 1.2, lambda x: mp.asinh(mp.sinh(x) ** 2) * mp.atanh(x / 4)),
    ("acosh(1 + x**2)**3", 0.8, lambda x: mp.acosh(1 + x**2) ** 3),
    ("expm1(expm1(expm1(x)))", 0.21, lambda x: mp.expm1(mp.expm1(mp.expm1(x)))),
    ("log(abs(cos(5*x)))", 1.0, lambda x: mp.log(abs(mp.cos(5 * x)))),
    ("maximum(x**3, 2 - x)*minimum(x, 4)", 1.5, lambda x: max(x**3, 2 - x) * min(x, 4)),
    ("where(sin(9*x) > 0, x**2, exp(x))", 0.2, lambda x: x**2 if mp.sin(9 * x) > 0 else mp.exp(x)),
    ("mod(x*7.5, 2)*x", 0.9, lambda x: (x * 7.5 - 2 * mp.floor(x * 7.5 / 2)) * x),
    ("det([[x, 1, 2], [x**2, x, 1], [1, 3, sin(x)]])", 0.6,
     lambda x: mp.det(mp.matrix([[x, 1, 2], [x**2, x, 1], [1, 3, mp.sin(x)]]))),
    ("trace(inv([[2 + x, 1], [x, 3]]) @ [[1, x], [x**2, 1]])", 0.4,
     lambda x: sum((mp.inverse(mp.matrix([[2 + x, 1], [x, 3]])) * mp.matrix([[1, x], [x**2, 1]]))[i, i] for i in (0, 1))),
    ("max(eigvalsh([[x, 1, 0], [1, x**2, 2], [0, 2, 3]]))", 0.7,
     lambda x: max(mp.eigsy(mp.matrix([[x, 1, 0], [1, x**2, 2], [0, 2, 3]]), eigvals_only=True))),
    ("svdvals([[x, 1, 0], [1, x**2, 2], [0, 2, 3]])[1]", 0.7,
     lambda x: sorted(mp.svd_r(mp.matrix([[x, 1, 0], [1, x**2, 2], [0, 2, 3]]), compute_uv=False))[1]),
    ("sum(expm([[0, x, 0], [-x, 0, 1], [x, 0, 0.5]])**2)", 0.8,
     lambda x: sum(e**2 for e in mp.expm(mp.matrix([[0, x, 0], [-x, 0, 1], [x, 0, 0.5]])))),
    ("norm([[x, 2], [3, x**2]], 2)", 1.1, lambda x: max(mp.svd_r(mp.matrix([[x, 2], [3, x**2]]), compute_uv=False))),
    ("logsumexp([x, x**2, sin(x)])", 1.4, lambda x: mp.log(mp.exp(x) + mp.exp(x**2) + mp.exp(mp.sin(x)))),
    ("prod([x, x - 1, x + 2])/sum(cumsum([x, 1, x**2]))", 1.7,
     lambda x: x * (x - 1) * (x + 2) / (3 * x + 2 + x**2)),
    ("sum(sort([x, 1 - x, x**2])*[1, 2, 3])", 0.3,
     lambda x: sum(i * v for i, v in enumerate(sorted([x, 1 - x, x**2]), 1))),
    ("rsqrt(1 + sqrt(x + sqrt(x)))", 0.05, lambda x: 1 / mp.sqrt(1 + mp.sqrt(x + mp.sqrt(x)))),
    ("exp(-1/x**2)/x", 0.3, lambda x: mp.exp(-1 / x**2) / x),
    ("tan(x)**-3 + 1/sin(x)**2", 0.9, lambda x: mp.tan(x) ** -3 + 1 / mp.sin(x) ** 2),
    ("log10(1 + 2**x)*exp2(-x)", 3.3, lambda x: mp.log10(1 + 2**x) * 2**-x),
    ("(x**x)**x", 1.2, lambda x: (x**x) ** x),
    ("log(gamma(x)/gamma(x + 0.5))", 6.5, lambda x: mp.loggamma(x) - mp.loggamma(x + mp.mpf(0.5))),
]  # fmt: skip


def exact(f: Callable[[Any], Any], x: float) -> Any:
    with mp.workdps(90):
        at, h = mp.mpf(x), mp.mpf(10) ** -20
        return (8 * (f(at + h) - f(at - h)) - (f(at + 2 * h) - f(at - 2 * h))) / (12 * h)


@all_rows(("text", "x", "f"), SMOOTH, ids=[text for text, *_ in SMOOTH])
def test_a_smooth_point(text: str, x: float, f: Callable[[Any], Any]) -> None:
    found = check_script(text, at={"x": x}).checks[0]
    assert found.verdict in ("PROVED", "CERTIFIED", "IMPRECISE"), found.message
    if "exact" in found.evidence:
        with mp.workdps(90):
            told = mp.mpf(found.evidence["exact"][0])  # type: ignore[index]
            true = exact(f, x)
            assert abs(told - true) <= abs(true) * mp.mpf(10) ** -22 + mp.mpf(10) ** -40, (told, true)
    for factor in ("(1 + 1e-12)", "(1 - 1e-9)", "-1", "2"):
        wrong = f"y = {text}\nassert grad(y, x) == grad({text}, x)*{factor}\ny"
        refuted = check_script(wrong, at={"x": x}).checks[-1]
        assert refuted.verdict == "DISAGREES", (factor, refuted.message)


TIES = [
    ("abs(sin(x))", 0.0, "KINK"), ("maximum(x, -2*x)*3", 0.0, "KINK"), ("relu(x - 1)**2", 1.0, "good"),
    ("abs(x)**1.5", 0.0, "good"), ("sqrt(abs(x))", 0.0, "BOUNDARY"), ("cbrt(x)*x", 0.0, "open"),
    ("where(x < 2, x**2, 4*x - 4)", 2.0, "good"), ("where(x < 2, x**2, 4*x - 5)", 2.0, "DISCONTINUOUS"),
    ("max([x, 1, 2*x - 1])", 1.0, "KINK"), ("sum(sort([x, 1 - x]))", 0.5, "good"), ("sort([x, 1 - x])[0]", 0.5, "KINK"),
    ("floor(x) + ceil(-x)", 3.0, "open"), ("clamp(x, 0, 1)*(1 - x)", 1.0, "good"), ("abs(x)*x*x", 0.0, "good"),
    ("acos(cos(x))", 0.0, "KINK"), ("asin(x)**2", 1.0, "BOUNDARY"), ("where(x == 3, 9, x**2)", 3.0, "good"),
    ("where(x == 3, 9.5, x**2)", 3.0, "DISCONTINUOUS"), ("norm([x, 2*x])", 0.0, "KINK"), ("log(abs(x) + 1)", 0.0, "KINK"),
    ("where(x > 0, x**2*log(x), 0)", 0.0, "good"), ("where(x > 0, sqrt(x)*log(x), 0)", 0.0, "BOUNDARY"),
    ("where(x > 0, exp(-1/x)/x, 0)", 0.0, "good"), ("minimum(x**2, x)", 1.0, "KINK"), ("atan2(x, -1)", 0.0, "DISCONTINUOUS"),
    ("where(x > 0, 1/(1 - log(x)), 0)", 0.0, "BOUNDARY"), ("where(x > 0, gamma(x)*x, 1)", 0.0, "KINK"),
    ("eigvalsh([[1 + x, 0, 0], [0, 1, 0], [0, 0, 1 - x]])[0]", 0.0, "KINK"),
    ("sum(eigvalsh([[1 + x, 0, 0], [0, 1, x], [0, x, 1 - x]])**2)", 0.0, "good"),
    ("svdvals([[x, 0, 0], [0, 1, 0], [0, 0, 2]])[2]", 0.0, "KINK"),
]  # fmt: skip


@all_rows(("text", "x", "kind"), TIES, ids=[text for text, *_ in TIES])
def test_a_tie(text: str, x: float, kind: str) -> None:
    found = check_script(text, at={"x": x}).checks[0]
    if kind == "good":
        assert found.verdict in ("PROVED", "CERTIFIED", "AGREES", "KINK"), found.message
        assert found.verdict != "KINK" or not found.evidence["inside"], found.message  # a convention that is off
    elif kind == "open":
        assert found.verdict != "PROVED"
    else:
        assert found.verdict == kind, found.message
    for wrong in ("1e6", "-1e6"):
        claimed = check_script(text, at={"x": x}, claims={"x": f"{wrong} + x"}).checks[-1]
        assert not claimed.passed, claimed.message
