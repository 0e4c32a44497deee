"""Scripts and points go in, verdicts are expected: the traps that a checker of gradients must not fall into."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import Check, Report, check_script
from gradcli.checks.decide.assumptions import conditions
from tests.support.rows import all_rows


def checked(text: str, at: dict[str, Any] | None = None, **options: Any) -> Report:
    report = check_script(text, at=at or {}, **options)
    for check in report.checks:
        json.dumps(check.evidence, allow_nan=False)
        assert check.message
    return report


def only(text: str, at: dict[str, Any] | None = None, **options: Any) -> Check:
    found = checked(text, at, **options).checks
    assert len(found) == 1
    return found[0]


VERDICTS = [
    ("x**2*sin(y)", {"x": 1.3, "y": 0.4}, "PROVED"),
    ("relu(x)", 1e-9, "PROVED"),
    ("abs(x)", -1e-300, "PROVED"),
    ("floor(x)", 0.999, "PROVED"),
    ("sqrt(x)", 1e-7, "PROVED"),
    ("log(x)", 2e-6, "PROVED"),
    ("1e-9*x**2", 3.0, "PROVED"),
    ("1e10 + x**2", 1.0, "PROVED"),
    ("x**2", 1e12, "PROVED"),
    ("sin(1e6*x)", 1.0, "PROVED"),
    ("(1 - cos(x))/x**2", 1e-4, "IMPRECISE"),
    ("x**3", 0.0, "PROVED"),
    ("log(exp(x) + 1)", 800.0, "IMPRECISE"),
    ("exp(-x)", 800.0, "PROVED"),
    ("sinc(x)", 0.0, "CERTIFIED"),
    ("x**0", 0.0, "PROVED"),
    ("x*abs(x)", 0.0, "PROVED"),
    ("where(x > 0, sqrt(x), 0)", -1.0, "PROVED"),
    ("maximum(x, x)", 2.0, "PROVED"),
    ("sum(cumprod(x))", [0.0, 2.0, 3.0], "PROVED"),
    ("prod(x)", [0.0, 0.0, 3.0], "PROVED"),
    ("det(X)", {"X": [[1.0, 2.0], [2.0, 4.0]]}, "PROVED"),
    ("x*x", 2.0, "PROVED"),
    ("eigvalsh(X)", {"X": [[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]]}, "CERTIFIED"),
    ("w, V = eigh(X); sum(V*[[1, 2], [3, 5]])", {"X": [[2.0, 1.0], [0.5, 3.0]]}, "PROVED"),
    ("u, s, vh = svd(X); sum(u*[[1, 2], [3, 5]]) + vh[0, 1]", {"X": [[2.0, 1.0], [0.5, 3.0]]}, "CERTIFIED"),
    ("sum(pinv(X)**2)", {"X": [[2.0, 1.0, 4.0], [1.0, 3.0, 0.5]]}, "PROVED"),
    ("norm_logpdf(x, 0.5, 2)", 1.0, "PROVED"),
    ("beta_logpdf(x, 2.5, 1.5)", 0.3, "PROVED"),
    ("erfcinv(x)", 1e-10, "PROVED"),
    ("jn(3, x)", 0.0, "PROVED"),
    ("i1(x)*j0(x)", 2.5, "PROVED"),
    ("gammainc(2.5, x)", 3.0, "PROVED"),
    ("gammainc(2.5, x)", 0.0, "BOUNDARY"),
    ("betainc(2, 1.5, x)", 0.3, "PROVED"),
    ("sum(abs(fft(x))**2*[1, 2, 3])", [1.0, 2.0, 4.0], "PROVED"),
    ("real(ifft(fft(x)*fft(y)))[1]", {"x": [1.0, 2.0, 4.0, 8.0], "y": [1.0, 2.0, 0.5, 0.0]}, "PROVED"),
    ("sum(abs(rfft(x))*[1, 2, 3, 5])", [1.0, 2.0, 4.0, 8.0, 5.0, 7.0], "PROVED"),
    ("detach(x)*x", 1.7, "PROVED"),
    ("ste(round(x), x)**2", 1.7, "PROVED"),
    ("x + 0*y", {"x": 1.0, "y": 2.0}, "PROVED"),
    ("abs(x)", 0.0, "KINK"),
    ("relu(x)", 0.0, "KINK"),
    ("norm(x)", [0.0, 0.0], "KINK"),
    ("max(x)", [1.0, 1.0, 0.0], "KINK"),
    ("minimum(abs(x), abs(y))", {"x": 0.0, "y": 0.0}, "KINK"),
    ("relu(x) - relu(-x)", 0.0, "KINK"),
    ("hypot(x, y)", {"x": 0.0, "y": 0.0}, "KINK"),
    ("sqrt(x)", 0.0, "BOUNDARY"),
    ("cbrt(x)", 0.0, "BOUNDARY"),
    ("sqrt(x)**2", 0.0, "BOUNDARY"),
    ("where(x > 0, log(x), 0)", 0.0, "BOUNDARY"),
    ("floor(x)", 0.0, "DISCONTINUOUS"),
    ("sign(x)", 0.0, "DISCONTINUOUS"),
    ("where(x == 0, 5, x)", 0.0, "DISCONTINUOUS"),
    ("log(x)", 0.0, "UNDEFINED"),
    ("exp(log(x))", 0.0, "UNDEFINED"),
    ("sqrt(x)", -1.0, "UNDEFINED"),
    ("x/0", 1.0, "UNDEFINED"),
    ("x**y", {"x": -8.0, "y": 1 / 3}, "UNDEFINED"),
    ("gamma(x)", -1.0, "UNDEFINED"),
    ("x + 1", float("inf"), "UNDEFINED"),
    ("x*0", float("nan"), "UNDEFINED"),
]


@all_rows(("text", "at", "verdict"), VERDICTS)
def test_verdicts(text: str, at: Any, verdict: str) -> None:
    point = at if isinstance(at, dict) else {"x": at}
    found = {check.verdict for check in checked(text, point).checks}
    assert found == {verdict}


def test_a_kink_shows_both_slopes_and_whether_the_value_is_one_of_them() -> None:
    check = only("relu(x)", {"x": 0.0})
    assert check.evidence["left"] == [pytest.approx(0.0, abs=1e-9)]
    assert check.evidence["right"] == [pytest.approx(1.0, abs=1e-9)]
    assert check.evidence["inside"] is True
    assert not check.passed
    assert only("relu(x)", {"x": 0.0}, allow_kink=True).passed
    off = only("relu(x) - relu(-x)", {"x": 0.0}, allow_kink=True)
    assert not off.passed
    assert "true slope is 1" in off.message


def test_a_kink_in_one_leaf_says_nothing_of_another() -> None:
    found = {check.leaf: check.verdict for check in checked("abs(x)*y", {"x": 0.0, "y": 2.0}).checks}
    assert found == {"x": "KINK", "y": "PROVED"}


def test_undefined_names_the_node() -> None:
    check = only("1 + log(x - 3)", {"x": 1.0})
    assert check.evidence["node"] == "log(x - 3)"
    assert check.diagnostics[0].code == "GC401"
    assert check.diagnostics[0].span is not None
    assert tuple(check.diagnostics[0].span) == (1, 5, 1, 15)


def test_imprecise_names_the_node_that_loses_digits() -> None:
    check = only("(1 - cos(x))/x**2", {"x": 1e-4})
    assert check.evidence["node"] == "1 - cos(x)"
    assert check.evidence["ulps"] > 1024  # type: ignore[operator]
    assert check.passed
    assert not only("(1 - cos(x))/x**2", {"x": 1e-4}, require="precise").passed


@pytest.mark.parametrize(
    ("text", "at", "rewrite"),
    [
        ("(1 - cos(x))/x**2", {"x": 1e-4}, "2*sin(x/2)**2"),
        ("(exp(x) - 1)/x", {"x": 1e-9}, "expm1(x)"),
        ("log(1 + x)/x", {"x": 1e-9}, "log1p(x)"),
        ("log(exp(x) + 1)", {"x": 800.0}, "softplus(x)"),
        ("log(exp(x) + exp(y))", {"x": 800.0, "y": 1.0}, "logaddexp(x, y)"),
        ("log(sum(exp(w)))", {"w": [800.0, 1.0]}, "logsumexp(w"),
        ("sqrt(x**2 + y**2)", {"x": 3e200, "y": 4e200}, "hypot(x, y)"),
        ("exp(x)/(1 + exp(x))", {"x": 800.0}, "sigmoid(x)"),
    ],
)
def test_imprecise_proposes_a_better_spelling(text: str, at: dict[str, Any], rewrite: str) -> None:
    found = [check for check in checked(text, at).checks if check.verdict == "IMPRECISE"]
    assert found
    assert rewrite in found[0].message


OUT_OF_RANGE = [
    ("exp(x)", {"x": 800.0}, {}, "inf is out of range: float64 ends at 1.8e+308; exact: 2.72637"),
    ("-exp(x)*exp(y)", {"x": 500.0, "y": 300.0}, {}, "-inf is out of range: float64 ends at 1.8e+308; exact: -2.72637"),
    ("sum(exp(w))", {"w": [1.0, 800.0]}, {}, "inf[1] is out of range"),
    ("sum(exp(w))", {"w": [800.0] * 1200}, {}, "is out of range"),
    ("exp(x)", {"x": 90.0}, {"dtype": "float32"}, "inf is out of range: float32 ends at 3.4e+38; exact: 1.22040"),
    ("sum(exp(w))", {"w": [1.0, 90.0]}, {"dtype": "float32"}, "inf[1] is out of range: float32"),
    ("exp(z)", {"z": 800.0 + 1.0j}, {"dtype": "complex128"}, "is out of range"),
    ("x**3", {"x": 10.0}, {"claims": {"x": "3*x**2*exp(x + 790)/exp(x + 790)"}}, "nan is not finite; exact: 300.0"),
    ("exp(x)", {"x": 800.0}, {"claims": {"x": "exp(x - 1)*e"}}, "inf is out of range"),
    ("exp(x)", {"x": -800.0}, {"claims": {"x": "1/exp(-x)*(1 + 0*exp(-x))"}}, "nan is not finite"),
    ("exp(x)", {"x": -400.0}, {"claims": {"x": "exp(3*x)/exp(2*x)"}}, "nan is not finite; exact: 1.9"),
    ("exp(x)", {"x": -300.0}, {"claims": {"x": "exp(4*x)*exp(-3*x)"}}, "is not finite"),
    ("x**3", {"x": 1e-3}, {"claims": {"x": "3*x**2*(exp(-500)*exp(-500))*exp(500)*exp(500)"}}, "0.0 has no correct digit"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "options", "expected"), OUT_OF_RANGE)
def test_a_float_out_of_range_is_imprecise(text: str, at: Any, options: Any, expected: str) -> None:
    """An exact number that the float format cannot hold, or an overflow on the way to one that it can."""
    for require, passed in ((None, True), ("precise", False)):
        check = checked(text, at, require=require, **options).checks[-1]
        assert check.verdict == "IMPRECISE", check.message
        assert expected in check.message
        assert check.passed is passed


ILL_CONDITIONED = [  # whether an entry that is far off beside itself is as good as its data
    ("sum((x@x)**2)", {"x": "randn(40, 40)"}, "float64", True),
    ("sum((x@x)**2)", {"x": "randn(40, 40)"}, "float32", True),
    ("exp(w[0]) + (1 - cos(w[1]))/w[1]**2", {"w": [40.0, 1e-4]}, "float64", False),
    ("exp(w[0]) + w[1]**3/3 - w[1]**2*w[2] + w[1]*w[2]**2", {"w": [40.0, 1.0000001, 1.0]}, "float64", False),
    ("1e9*w[0] + (exp(w[1]) - 1 - w[1] - w[1]**2/2)/w[1]", {"w": [1.0, 1e-3]}, "float64", False),
]


@pytest.mark.parametrize(("text", "at", "dtype", "good"), ILL_CONDITIONED)
def test_entries_that_cancel_are_judged_beside_the_largest(text: str, at: Any, dtype: str, good: bool) -> None:
    """Where rounding the data moves an entry as far as it is off; where the formula is to blame, it stays IMPRECISE."""
    point = {name: np.random.default_rng(8).normal(size=(40, 40)) if value == "randn(40, 40)" else value
             for name, value in at.items()}  # fmt: skip
    check = only(text, point, dtype=dtype, wrt=list(at))
    if good:
        assert check.verdict in ("PROVED", "CERTIFIED")
        assert check.evidence["ulps"] > 1024 and check.evidence["ulps_of_the_largest_entry"] < 100  # type: ignore[operator]
        assert "of the largest entry: rounding the data changes it as much" in check.message
    else:
        assert check.verdict == "IMPRECISE", check.message
        assert "ill_conditioned" not in check.evidence


def test_what_is_smaller_than_every_float_is_matched_by_zero() -> None:
    assert only("exp(-x)", {"x": 800.0}, require="precise").passed
    assert only("exp(-x)", {"x": 110.0}, dtype="float32", require="precise").passed


def test_numerical_evidence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.checks.oracle.oracle_client.MOST_NODES", 3)  # the graph is too large for the oracle
    check = only("eigvalsh(X)", {"X": [[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]]})
    assert check.evidence["basis"] == "numerical"
    assert check.evidence["points"] == 4
    assert check.evidence["bound"] < 1e-6  # type: ignore[operator]
    assert isinstance(check.evidence["seed"], int)
    assert check.passed
    text = {"X": [[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]]}
    assert not only("eigvalsh(X)", text, require="certified").passed


def test_the_region_of_a_proof_is_told() -> None:
    check = only("abs(x)*sqrt(x**2)", {"x": -1.5})
    assert check.verdict == "PROVED"
    assert check.evidence["region"] == ["x < 0"]


@pytest.mark.parametrize(
    ("signs", "text"),
    [
        (["x > 0", "y < 1"], "where x > 0, y < 1"),
        (["x > 0", "y < 1", "z > 2", "a > 0", "b > 0"], "where x > 0, y < 1, ... 3 more"),
        (["9.1e+15*C[0]**2 ... < 0", "x > 0", "y > 0"], "where x > 0, y > 0, ... 1 more"),
        (["9.1e+15*C[0]**2 ... < 0"], "in the region of the point (1 condition)"),
    ],
)
def test_of_many_signs_those_that_can_be_read_are_shown(signs: list[str], text: str) -> None:
    assert conditions(signs) == text


def test_a_free_name_is_sampled_inside_its_domain() -> None:
    first = only("y in (0, 1)\nlog(y) + log(1 - y)")
    again = only("y in (0, 1)\nlog(y) + log(1 - y)")
    assert first.verdict == "PROVED"
    assert 0 < first.evidence["at"]["y"] < 1  # type: ignore[index]
    assert first.evidence == again.evidence
    assert {c.verdict for c in checked("log(x)*sqrt(y - 3)").checks} == {"PROVED"}
    assert only("sqrt(a - 2)", seed=1).evidence["at"] != only("sqrt(a - 2)", seed=2).evidence["at"]


def test_every_output_is_judged() -> None:
    report = checked("x*y, x + y**2", {"x": 1.0, "y": 2.0})
    assert [(check.id, check.verdict) for check in report.checks] == [
        ("gradient:x (output 1)", "PROVED"),
        ("gradient:y (output 1)", "PROVED"),
        ("gradient:x (output 2)", "PROVED"),
        ("gradient:y (output 2)", "PROVED"),
    ]
    assert report.summary == {"passed": 4, "failed": 0, "inconclusive": 0, "PROVED": 4}


def test_every_entry_of_an_array_is_certified_or_proved() -> None:
    w = np.linspace(0.5, 2.0, 300).tolist()
    assert only("sum(sin(w)*w)", {"w": w}).verdict == "PROVED"
    assert only("sum(sin(w)*w) + sum(w[2:9]**3)", {"w": w}).verdict == "PROVED"
    assert only("sum(sin(w)*w) + sum(cumprod(w/2))", {"w": w}).verdict == "CERTIFIED"


def test_complex_numbers_are_judged_where_they_are_asked_for_or_given() -> None:
    assert only("x**2", {"x": 2.0}, dtype="complex128").verdict == "CERTIFIED"
    assert only("x**2", {"x": 2.0 + 1.0j}).verdict == "CERTIFIED"
    with pytest.raises(GradcliError, match="complex128"):
        only("x**2", {"x": 2.0 + 1.0j}, dtype="float32")


def test_float32_is_measured_in_its_own_ulps() -> None:
    assert only("sin(x)*x", {"x": 1.3}, dtype="float32").verdict == "PROVED"


def test_inconclusive_counts_as_such() -> None:
    report = checked("abs(digamma(2*x) - digamma(x)/2 - digamma(x + 0.5)/2 - log(2))", {"x": 0.7})
    assert report.checks[0].verdict == "INCONCLUSIVE"
    assert report.summary["inconclusive"] == 1
    assert (
        checked("abs(digamma(2*x) - digamma(x)/2 - digamma(x + 0.5)/2 - log(2))", {"x": 0.7}, lenient=True)
        .checks[0]
        .passed
    )


def test_the_same_input_gives_the_same_bytes() -> None:
    text = "w = [0.3, 1.2]\nassert grad(sum(w**3), w) == 3*w\nsum(w**3)*y"
    one, other = (checked(text, {"y": 2.0}) for _ in range(2))
    assert repr(one.checks) == repr(other.checks)


def test_a_library_that_is_absent_is_said_by_check_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "gradcli.execution.namespaces.cupy_", raising=False)
    monkeypatch.setattr("gradcli.execution.namespaces._namespaces", {})
    with pytest.raises(GradcliError, match="GC713"):
        check_script("x**2", at={"x": 1}, backend="cupy")


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_floats_that_are_judged_are_those_of_the_backend(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install gradcli[jax]")
    from gradcli.execution import namespaces

    xp = namespaces.namespace("jax", dtype)
    script, at = "sum(sin(x)*x)", {"x": [1.0, 2.0]}
    assert check_script(script, at=at, backend="jax", dtype=dtype).checks[0].verdict == "PROVED"
    monkeypatch.setattr(xp, "cos", lambda x: xp.sin(x), raising=False)
    assert check_script(script, at=at, backend="jax", dtype=dtype).checks[0].verdict == "IMPRECISE"
    assert check_script(script, at=at, dtype=dtype).checks[0].verdict == "PROVED"


def test_arrays_of_free_sizes_are_sampled_inside_their_domains() -> None:
    script = "A[m, n] in real\nx[n] in [0.5, 2]\ny = sum((A @ x)**2)\nassert grad(y, x) == 2*A.T @ A @ x\ny"
    claim = check_script(script, wrt=["x"]).checks[-1]
    assert claim.verdict == "PROVED", claim.message
    at: Any = claim.evidence["at"]
    assert np.all((np.array(at["x"]) >= 0.5) & (np.array(at["x"]) <= 2))
