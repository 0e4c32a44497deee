"""Statements about all sizes and all values: what is wrong at a member of the set is not said, and conditions are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import challenge, check_script
from gradcli.checks.report import Check
from gradcli.derivation import deriving
from gradcli.derivation.deriving import derive
from gradcli.execution.evaluate import evaluate
from gradcli.formulas import index_proof, normal_form
from gradcli.interfaces import cli
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower
from gradcli.lowering.shapes.ranks import FixedShapes, probes

X = "x[n] in real; y[n] in real; A[m, n] in real; B[k, m] in real; "
TIE = ", wherever no comparison is a tie"
DEFINED = ", wherever both sides are defined"
DEEP = "sum(relu(B@relu(A@x)))"
# what a proof of a gradient by x used to assume in silence: a loss, a right claim with its conditions, and wrong ones
ROWS: list[tuple[str, str, str | None, list[str]]] = [
    # `>` and `>=`, and signs that are neither 1 nor -1, where a tie lasts
    ("sum(relu(relu(x)))", "relu(x) > 0", TIE, ["relu(x) >= 0", "sign(relu(x)) + 1", "0*x + 1"]),
    ("sum(sign(relu(x))*x)", "x > 0", TIE, ["0*x + 1", "relu(x) >= 0"]),
    ("sum(relu(-relu(x)))", "0*x", "", ["x < 0", "relu(x) <= 0", "-(x < 0)"]),
    ("sum(minimum(relu(x), relu(-x)))", "0*x", "", ["sign(x)", "(relu(x) <= relu(-x)) + 0*x"]),
    ("sum(where(relu(x) == 0, 7*x, x**2))", "where(x > 0, 2*x, 7)", TIE, ["2*x", "0*x + 7"]),
    ("sum(where(relu(x) >= 0, x**2, x))", "2*x", "", ["where(x > 0, 2*x, 1)"]),
    ("sum(where(x > 0, x, 0) + where(x < 0, x, 0))", "0*x + 1", TIE, ["(x > 0) - (x < 0)"]),
    (DEEP, "A.T@((A@x > 0)*(B.T@(B@relu(A@x) > 0)))", TIE, ["A.T@(B.T@(B@relu(A@x) > 0))"]),
    (
        DEEP,
        "A.T@((A@x > 0)*(B.T@(B@relu(A@x) >= 0)))",
        f"{TIE} and `B @ relu(A @ x)` is not 0",
        ["A.T@((A@x > 0)*(B.T@(B@relu(A@x) < 0)))"],
    ),
    # branches that meet smoothly need no condition
    ("sum(relu(x)**2)", "2*relu(x)", "", ["2*abs(x)", "2*x"]),
    ("sum(x*abs(x))", "2*abs(x)", "", ["2*x"]),
    ("sum(where(abs(x) < 1, x**2/2, abs(x) - 1/2))", "where(abs(x) < 1, x, sign(x))", TIE, ["x", "sign(x)"]),
    ("sum(elu(x))", "where(x >= 0, 1, exp(x))", TIE, ["exp(x)", "0*x + 1"]),
    ("sum(leaky_relu(x))", "where(x < 0, 0.01, 1)", TIE, ["0.01 + 0*x"]),
    ("sum(hardtanh(x) + hardsigmoid(x))", "(abs(x) < 1) + (abs(x) < 3)/6", None, ["(x < 1) + (x < 3)/6"]),
    ("sum(heaviside(x, 2)*x)", "heaviside(x, 5)", TIE, ["0*x + 1"]),
    ("sum(where(x > 0, x**3*exp(1/x), 0))", "where(x > 0, (3*x**2 - x)*exp(1/x), 0)",
     f"{DEFINED} and no comparison is a tie", ["where(x > 0, 3*x**2*exp(1/x), 0)"]),
    ("sum(where(x > 0, x**2*log(x), 0))", "where(x > 0, 2*x*log(x) + x, 0)", f"{DEFINED} and no comparison is a tie",
     ["where(x > 0, 2*x*log(x), x)"]),
    # sums of squares, of any kind, that are 0
    ("where(sum(relu(x)**2) == 0, 5*sum(x), sum(x**2))", "where(max(x) > 0, 2*x, 5)", None, ["2*x"]),
    ("where(sum(x**2) == 0, 5*sum(x), sum(x**2))", "2*x", TIE, ["0*x + 5"]),
    ("norm(relu(x))", "relu(x)/norm(relu(x))", f"{DEFINED} and no comparison is a tie", ["x/norm(relu(x))"]),
    ("norm(x)", "x/norm(x)", DEFINED, ["x"]),
    # the largest entry is one of several
    ("max(x)", "x == max(x)", TIE, ["x == min(x)", "0*x + 1"]),
    ("max(abs(x))", "sign(x)*(abs(x) == max(abs(x)))", TIE, ["abs(x) == max(abs(x))", "sign(x)*(x == max(x))"]),
    (
        "max(relu(x))",
        "(x > 0)*(relu(x) == max(relu(x)))",
        f"{TIE} and the largest entry of `relu(x)` is the only one",
        ["(x < 1)*(relu(x) == max(relu(x)))"],
    ),
    ("max(relu(x))", "(x > 0)*(x == max(x))", None, ["relu(x) == max(relu(x))"]),
    ("where(max(relu(x)) == 0, sum(x), sum(x**3))", "where(max(x) > 0, 3*x**2, 1)", None, ["3*x**2"]),
    ("y@sort(x)", "y[argsort(argsort(x))]", TIE, ["y[argsort(x)]", "y"]),
    # places that are equal
    ("sum(abs(x[:, None] - x))", "2*sum(sign(x[:, None] - x), axis=1)", TIE, ["2*sum(2*(x[:, None] >= x) - 1, axis=1)"]),
    ("sum(maximum(x, x)*y)", "y", "", ["y*(x > x)", "0*y"]),
    # denominators
    ("prod(x)", "prod(x)/x", DEFINED, ["where(x > 0, prod(x)/x, 0)"]),
    ("prod(x)", "where(x == 0, 0, prod(x)/x)", f"{DEFINED} and no comparison is a tie", ["prod(x) + 0*x"]),
    ("sum(where(x != y, (x**2 - y**2)/(x - y), 2*x))", "0*x + 1", f"{DEFINED} and no comparison is a tie", ["0*x + 2"]),
    ("sum(where(x > 0, 7*x, x/(1 - (x > 0))))", "where(x > 0, 7, 1)", f"{DEFINED} and no comparison is a tie", ["0*x + 7"]),
    ("logsumexp(relu(x))", "softmax(relu(x))*(x > 0)", TIE, ["softmax(relu(x))"]),
    ("sum(log(sigmoid(x)) + log(1 - sigmoid(x)))", "1 - 2*sigmoid(x)", "", ["1 - sigmoid(x)"]),
    ("sum(x/x)", "0*x", DEFINED, ["1/x"]),
    ("sum(sqrt(x)**2)", "0*x + 1", DEFINED, ["0*x + 2"]),
    ("var(x, ddof=1)", "2*(x - mean(x))/(n - 1)", DEFINED, ["2*(x - mean(x))/n"]),
    # numbers that are no sizes
    ("mean(2039*x)", "2039/n + 0*x", "", ["0*x + 1", "2039/(n + 1) + 0*x"]),
    ("sum(1019*x)", "0*x + 1019", "", ["(n - 1)/2 + 0*x"]),
]  # fmt: skip
SIZES = [(1, 1, 1), (2, 3, 2), (3, 2, 1), (1, 3, 2), (4, 2, 3)]
SIGNS = [(0.3, 2.0), (-2.0, -0.3), (-2.0, 2.0), (-60.0, 60.0)]


def on_set(loss: str, claim: str) -> Check:
    script = X + loss
    (check,) = [check for check in check_script(script, claims={"x": claim}).checks if check.kind == "claim"]
    return check


def is_for_all(check: Check) -> bool:
    sizes: Any = check.evidence.get("sizes", {})
    return check.passed and bool(sizes.get("all"))


def largest_gap(loss: str, claim: str) -> float:
    """How far a claim is off the central differences of a loss, at random members of the set where both are finite."""
    generator, gap = np.random.default_rng(3), 0.0
    for m, n, k in SIZES:
        shapes = FixedShapes({}, {"m": m, "n": n, "k": k})
        (claimed,) = lower(parse(Source(f"{X}u = {loss}\nassert grad(u, x) == ({claim})")), shapes=shapes).claims
        assert claimed.derivative is not None
        output, _ = claimed.derivative
        for low, high in SIGNS:
            own = {"x": (n,), "y": (n,), "A": (m, n), "B": (k, m)}
            values = {name: generator.uniform(low, high, shape) for name, shape in own.items()}
            right = np.broadcast_to(np.asarray(evaluate([claimed.right], values)[0], dtype=float), (n,))
            slopes = [differences(output, values, step) for step in (1e-4, 5e-5)]
            sure = (
                np.isfinite(right) & np.isfinite(slopes[1]) & (abs(slopes[1] - slopes[0]) < 1e-5 * (1 + abs(slopes[0])))
            )
            gap = max([gap, *(abs(right - slopes[1]) / (1 + abs(right)))[sure]])
    return gap


def differences(output: Any, values: dict[str, Any], step: float) -> NDArray[Any]:
    slopes = []
    for i, x in enumerate(values["x"]):
        h = step * max(1.0, abs(x))
        moved = [{**values, "x": values["x"] + side * h * np.eye(len(values["x"]))[i]} for side in (1, -1)]
        above, below = [float(np.asarray(evaluate([output], point)[0])) for point in moved]
        slopes.append((above - below) / (2 * h))
    return np.array(slopes)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("loss", "claim", "words", "wrong"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_what_is_said_of_all_sizes(loss: str, claim: str, words: str | None, wrong: list[str]) -> None:
    """A right claim is for all sizes, with its conditions (None: not proved); a wrong one is wrong and never for all."""
    check = on_set(loss, claim)
    assert largest_gap(loss, claim) < 1e-5, "the row itself"
    assert check.passed and is_for_all(check) is (words is not None), check.message
    if words is not None:
        assert check.message.endswith(f", for all n{words}") or check.message.endswith(f", m and k{words}"), (
            check.message
        )
    for other in wrong:
        assert largest_gap(loss, other) > 1e-3, f"{other} is not wrong"
        refuted = on_set(loss, other)
        assert not is_for_all(refuted), (other, refuted.message)


def test_a_tie_that_the_point_has_decided_leaves_a_proof_for_all_sizes() -> None:
    text = "A[m, n] in real; x[n] in real; y[m] in real; sum(abs(A@x - y))"
    (check,) = [c for c in check_script(text, claims={"x": "A.T@sign(A@x - y)"}).checks if c.kind == "claim"]
    assert check.message == "equal by algebra, for all m and n, wherever no comparison is a tie"


def test_what_differs_somewhere_is_refuted_or_named() -> None:
    text = "x[n] in real; z in real; z*where(sum(relu(x)**2) == 0, 7, 0)"
    (check,) = [check for check in check_script(text, claims={"z": "0"}).checks if check.kind == "claim"]
    assert check.verdict == "DISAGREES" and "right for n = 2, but for n = 1 and negative entries " in check.message
    text = "x[n] in real; where(sum(relu(x)**2) == 0, 5*sum(x), sum(x**2))"
    (check,) = [c for c in check_script(text, at={"x": [1, 2]}, claims={"x": "2*x"}).checks if c.kind == "claim"]
    assert check.verdict == "PROVED" and check.message.endswith("; for n = 2, but not for n = 1 and negative entries")
    assert check.evidence["sizes"]["wrong"] == {"n": 1}  # type: ignore[index]


def test_conditions_are_evidence() -> None:
    check = on_set("sum(abs(log(x)))", "sign(log(x))/x")
    assert check.evidence["assumptions"] == [
        {"kind": "defined", "text": "both sides are defined"},
        {"kind": "kink", "text": "no comparison is a tie"},
    ]
    assert "assumptions" not in on_set("sum(x**2)", "2*x").evidence


def test_evidence_has_the_conditions_of_what_is_said_and_no_others() -> None:
    for_all = on_set("sum(relu(x)*x)", "2*relu(x)").evidence
    on_a_box = check_script("x*abs(x)", at={"x": 0.5}, box={"x": (-1, 1)}).checks[0].evidence
    assert "region" not in for_all and "region" not in on_a_box
    at_a_point = check_script("max(x)", at={"x": [0.1 * k for k in range(32)]}).checks[0].evidence
    assert at_a_point["assumptions"] == [{"kind": "kink", "text": "no comparison is a tie"}]
    hessian = check_script("x = [0.0, 0.0]; f = norm(x)**2; assert hessian(f, x) == 2*eye(2); f").checks[-1]
    assert hessian.verdict == "CERTIFIED"
    assert hessian.evidence["not_proved"].startswith("a branch depends on an exact zero")


# --- each discharge, switched off, is noticed ----------------------------------------------------------------------


def test_without_a_challenge_regions_are_only_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenge, "members", lambda *_, **__: ())
    check = on_set("where(sum(relu(x)**2) == 0, 5*sum(x), sum(x**2))", "2*x")
    assert is_for_all(check) and check.message.endswith(f"{TIE} and `sum(relu(x)**2)` is not 0")


@pytest.mark.parametrize(
    ("name", "other", "loss", "claim"),
    [
        ("continuous", lambda *_: True, "sum(relu(x))", "x > 0"),
        ("passes", lambda *_: True, DEEP, "A.T@((A@x > 0)*(B.T@(B@relu(A@x) >= 0)))"),
        ("undecided", lambda total, names: [] if normal_form.undecided(total, names) is not None else None, DEEP,
         "A.T@((A@x > 0)*(B.T@(B@relu(A@x) >= 0)))"),
        ("lowest", lambda *_: 1, "norm(x)", "x/norm(x)"),
    ],
)  # fmt: skip
def test_conditions_that_are_not_looked_for_are_missed(
    name: str, other: Any, loss: str, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = on_set(loss, claim).message
    monkeypatch.setattr(index_proof, name, other)
    assert on_set(loss, claim).message != before


# --- formulas of derive ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("mean((A@x - b)**2)", "PROVED for all m and n"),
        ("det(A@A.T)", "PROVED for all m and n, wherever both sides are defined"),
        ("sum(abs(log(x)))", "PROVED for all n, wherever both sides are defined and no comparison is a tie"),
        ("x*log(x)", "PROVED, wherever both sides are defined"),
        ("where(x > 1, x**2, x**3)", "PROVED, wherever no comparison is a tie"),
        ("sin(x)*cos(x)", "PROVED"),
        ("gamma(x)", "PROVED, wherever both sides are defined"),
        ("floor(x)*x", "PROVED, wherever signs are those at the points that were checked"),
        ("median(x)", "PROVED for n = 3, wherever no comparison is a tie; other sizes have other formulas"),
        ("huber_loss(x, y)", "the same formula at every size, wherever no comparison is a tie"),
        ("sum(maximum(x, x))", "PROVED for all n"),
        ("sum(minimum(2*x, x + x)*y)", "PROVED for all n"),
    ],
)
def test_a_formula_has_the_conditions_under_which_it_holds(
    script: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = ["--shape", "A=m,n"] if script.startswith("det") else []
    assert cli.main(["derive", script, *shapes]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("verdict")]
    assert row.endswith(shown)


def test_a_formula_that_fails_in_a_region_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "where(sum(relu(x)**2) == 0, 5*sum(x), sum(x**2))"
    with pytest.raises(GradcliError, match="the formula that was found fails for n = 3 and negative entries"):
        derive(script, shapes={"x": ("n",)})
    monkeypatch.setattr(deriving, "counterexample", lambda *_: None)
    assert derive(script, shapes={"x": ("n",)}).assumptions["x"], "and without the challenge it has a condition"


def test_conditions_go_with_a_formula_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    words = "wherever both sides are defined and no comparison is a tie"
    script = ["derive", "sum(abs(log(x)))"]
    for target in ("numpy", "torch", "jax", "c"):
        assert cli.main([*script, "--emit", target]) == 0
        assert f"d/dx holds {words}." in capsys.readouterr().out
    assert cli.main([*script, "--steps"]) == 0
    assert words in capsys.readouterr().out
    assert cli.main([*script, "--format", "json"]) == 0
    kinds = [condition["kind"] for condition in json.loads(capsys.readouterr().out)["assumptions"]["x"]]
    assert kinds == ["defined", "kink"]
    second = derive("log(x)*abs(x)", quantity="hessian").assumptions
    assert second["x,x"] == second["x"], "a derivative of a formula has its conditions"


# --- numbers and sizes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "formula"),
    [
        ("mean(2039*x)", "2039/n*ones(n)"),
        ("mean(1019*x)", "1019/n*ones(n)"),
        ("mean(20.39*x)", "20.39/n*ones(n)"),
        ("mean(2031*x)", "2031/n*ones(n)"),
        ("(2000 + 39)*mean(x)", "2039/n*ones(n)"),
        ("2000*sum(x**2) + 39*sum(x**2)", "4078*x"),
        ("sum(3119*x**2)/3023 + 2063*mean(y)", "6238/3023*x"),
        ("sum(x**2/(2*2063))", "x/2063"),
    ],
)
def test_numbers_that_stand_for_sizes_are_no_sizes(script: str, formula: str) -> None:
    result = derive(script, shapes={"x": ("n",)})
    assert (result.text["x"], "x" in result.every) == (formula, True)


def test_sizes_that_stand_for_symbols_are_in_no_number_of_the_script() -> None:
    script = parse(Source("1019*x + 20.63*y + z**2099 + 2210"))
    assert set(probes([script], 0)).isdisjoint((2039, 2063, 2099, 2207))
    assert len(set(probes([script], 0)) | set(probes([script], 1))) == 24


def test_the_members_differ_in_signs_and_sizes() -> None:
    assert {size for choice in challenge.CHOICES for size in choice} == {1, 2, 3, 5}
    assert {(low < 0, high > 0) for low, high in challenge.RANGES.values()} == {
        (False, True),
        (True, False),
        (True, True),
    }
    assert list(challenge.RANGES)[-1] == "zero entries", "which ties leave out"
