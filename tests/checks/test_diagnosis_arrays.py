"""Wrong gradients of arrays and wrong hand-written rules go in: the planted mistake is among the readings."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.checks import check_script
from tests.checks.test_diagnosis_planted import FOUND, UNIQUE, law
from tests.support.planted_arrays import Case, arrays, rules

NAMES: dict[str, tuple[str, ...]] = {
    "mean forgotten": ("mean factor forgotten",),
    "mean for a whole": ("constant factor",),
    "missing sum": ("missing sum",),
    "transposed operand": ("transposed operand",),
    "softmax": ("softmax without its Jacobian",),
    "one entry": ("some entries",),
    "order": ("wrong order",),
    "held constant": ("product term dropped", "held constant"),
    "branch": ("right on one branch",),
    "term of both": ("product term dropped",),
    "chain of a matrix": ("inner derivative dropped", "chain factor dropped"),
    "swapped cotangents": ("swapped",),
    "cotangent forgotten": ("chain factor dropped", "missing factor"),
    "term dropped": ("term dropped", "product term dropped"),
    "wrong sign": ("wrong sign",),
}
SLICE = 4
CHOLESKY = (
    "X = [[2.1, 0.3], [0.3, 1.7]]\nconst C = [[0.7, 0], [-0.2, 1.1]]\nL = cholesky(X)\nP = L.T @ C\n"
    "B = inv(L).T @ {} @ inv(L)\nassert grad(sum(C*L), X) == {}"
)

GELU = (
    "x = [0.3, 1.1, -1.2, 0.7]\ng = sum(x*(1 + tanh(0.79788*(x + 0.044715*x**3)))/2)\nt = tanh(0.79788*(x + {}*x**3))\n"
    "assert grad(g, x) == (1 + t)/2 + x/2*(1 - t**2)*0.79788*(1 + {}*x**2)"
)

EXACT_GELU = "sum(x*(1 + erf(x/sqrt(2)))/2)"
FITTED_GELU = "sum(x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))/2)"
EXACT_GRADIENT = "(1 + erf(x/sqrt(2)))/2 + x*exp(-x**2/2)/sqrt(2*pi)"
FITTED_GRADIENT = "(1 + t)/2 + x/2*(1 - t**2)*sqrt(2/pi)*(1 + 3*0.044715*x**2)"
BATCH_NORM = (
    "x = [[0.3, 1.1], [-1.2, 0.7], [0.5, -0.6], [2.1, 0.1]]\nconst c = [[0.7, -1.1], [0.2, 1.5], [0.9, -0.3], [-0.6, 0.1]]\n"
    "m = mean(x, axis=0)\ns = sqrt(mean((x - m)**2, axis=0) + 0.1)\nh = (x - m)/s\nq = sum(c*h)\n"
    "assert grad(q, x) == (3*c - sum(c, axis=0) - h*sum(c*h, axis=0))/(3*s)"
)


def gelu(formula: str, claim: str) -> str:
    """A claim about a formula of GELU."""
    fit = "t = tanh(sqrt(2/pi)*(x + 0.044715*x**3))"
    return f"x = [0.3, 1.1, -1.2, 0.7]\ng = {formula}\n{fit}\nassert grad(g, x) == {claim}"


def diagnosed(script: str) -> list[dict[str, Any]] | None:
    """The readings of the first claim or rule that is refuted; None where none is, or where the gradient is 0."""
    for check in check_script(script).checks:
        if check.kind != "gradient" and check.verdict == "DISAGREES":
            readings: Any = check.evidence.get("diagnosis")
            return None if readings is None else list(readings)
    return None


def table(cases: list[Case]) -> list[tuple[str, int, int, int]]:
    rows = {case.kind: [0, 0, 0] for case in cases}
    for case in cases:
        readings = diagnosed(case.script)
        if readings is not None:
            hit = any(not {one["name"], one.get("cause")}.isdisjoint(NAMES[case.kind]) for one in readings)
            row = rows[case.kind]
            row[0], row[1], row[2] = row[0] + 1, row[1] + hit, row[2] + (hit and len(readings) == 1)
    return [(kind, count, found, unique) for kind, (count, found, unique) in rows.items()]


def test_the_planted_mistake_is_found() -> None:
    cases = [*arrays(), *rules()]
    kinds = {case.kind for case in cases}
    assert kinds == set(NAMES)
    some = [case for kind in NAMES for case in [one for one in cases if one.kind == kind][1 : 4 * SLICE : 4]]
    law(table(some), SLICE - 1)


@pytest.mark.deep
def test_the_planted_mistake_is_found_in_all_cases() -> None:
    assert 0.5 < UNIQUE < FOUND
    law(table([*arrays(), *rules()]), 19)


@pytest.mark.parametrize(
    ("script", "name", "text"),
    [
        (
            "A = [[1, 2], [0.5, 3]]\nx = [0.3, -1]\nq = x @ A @ x\nassert grad(q, x) == 2*A @ x",
            "symmetric matrix",
            "`A`",
        ),
        ("x = -1.5\ny = abs(x)*x\nassert grad(y, x) == 2*x", "right on one branch", "x > 0"),
        ("x = 0.4\nassert grad(sin(x), x) == 0", "zero", "zero"),
        ("x = 0.4\nassert grad(x**3, x) == cos(x) + x**5", "unexplained", "none of the mistakes"),
        ("x = 0.4\nassert grad(2*x**2, x) == 4.00001*x", "rounded constant", "5 digits"),
        ("u = 0.4\nt = 0.3\nw = exp(u*t)\nassert 3*grad(w, t) + 1 == 3*w + 1", "chain factor dropped", "`u`"),
        ("x = 0.7\nr = 2.5\nassert grad(r*sin(x), x)/r == sin(x)", "not differentiated", "sin"),
        ("z = [0.2, 0.5]\np = z**2\nassert jacobian(p, z) == diag(z)", "power factor forgotten", "2"),
        ("x = -0.7\nassert sqrt(x**2) == x", "right on one branch", "x > 0"),
        ("x = 0.7\ny = 1.3\nassert (x + y)**2 == x**2 + y**2", "missing term", "lacks the term 2 times `x*y`"),
        (
            "X = [[1, 0.2], [1, 1.1], [1, 1.9]]\nconst y = [1, 2, 4]\nb = [0.1, 0.6]\nm = exp(X @ b)\n"
            "assert grad(sum(y*log(m) - m), b) == X.T @ (y - X @ b)",
            "mistake in the claim",
            "`X @ b` is the argument of exp",
        ),
        (CHOLESKY.format("tril(P)", "(B + B.T)/2"), "half forgotten", "the diagonal of L.T @ ct is halved"),
        (CHOLESKY.format("P", "(B + B.T)/2"), "triangle forgotten", "only the lower triangle"),
        (
            CHOLESKY.format("((tril(C) + tril(C, -1))/2)", "(B + B.T)/2"),
            "factor dropped",
            "the factor L.T before the cotangent",
        ),
        (
            "x = [0.1, 0.3]\nq = sum(acos(x))\nassert grad(q, x) == -1/(1 - x**2)",
            "root forgotten",
            "in the denominator",
        ),
        ("x = [0.3, 1.2]\nq = sum(sin(x)**2)\nassert grad(q, x) == 2*sin(x)*x", "not differentiated", "the argument"),
        (
            "x = [0.3, 1.2]\nq = logsumexp(3*x)\nassert grad(q, x) == 3*where(x == max(x), 1, 0)",
            "another function",
            "gradient of the maximum",
        ),
        (
            "x = [5.3, -7.1, 4.4]\ny = [2.1, 1.9, -1.3]\nq = sum(x - trunc(x/y)*y)\nassert grad(q, y) == -floor(x/y)",
            "mistake in the claim",
            "`floor(x/y)` is trunc of the same",
        ),
        (
            "x = [0.5, -1.1, 0.3]\nq = sum(tanh(0.7979*x))\nassert grad(q, x) == 0.7979*(1 - tanh(1.2533*x)**2)",
            "mistake in the claim",
            "`1.2533` is 0.7979",
        ),
        (GELU.format(0.4715, 1.4145), "mistake in the claim", "`0.4715` is 0.044715, and `1.4145` is 0.134145"),
        (GELU.format(0.044715, 0.4715), "mistake in the claim", "`0.4715` is 0.134145"),
        (gelu(EXACT_GELU, FITTED_GRADIENT), "another formula", "than with `erf(x/sqrt(2))`"),
        (gelu(FITTED_GELU, EXACT_GRADIENT), "another formula", "than with `tanh(sqrt(2/pi)"),
        (gelu("sum(gelu(x))", FITTED_GRADIENT), "another formula", "than with `erfc("),
        (BATCH_NORM, "mistake in the claim", "right if `3` is 4"),
        (
            "x = [[0.3, 1.1], [-1.2, 0.7], [0.5, -0.6]]\nw = [0.3, -0.5]\nconst d = [0.4, -0.3, 1.2]\n"
            "y = tanh(x @ w)\nq = sum(d*y)\nassert grad(q, w) == d[2]*(1 - y[2]**2)*x[2]",
            "missing sum",
            "over axis 0: the claim is right for the last entry of `d*y`",
        ),
    ],
)
def test_readings_of_other_claims(script: str, name: str, text: str) -> None:
    readings = diagnosed(script)
    assert readings is not None
    assert name in {readings[0]["name"], readings[0].get("cause")}
    assert text in readings[0]["text"]


def test_nothing_is_read_where_the_derivative_is_zero() -> None:
    assert diagnosed("x = [0.4, 0.9]\nassert grad(0*sum(x), x) == x") is None


def test_readings_are_the_same_each_time() -> None:
    script = "x = 0.4\ny = 1.2\nassert grad(sin(x*y)/x, x) == cos(x*y)/x - sin(x*y)/x**2"
    assert diagnosed(script) == diagnosed(script)
    assert diagnosed(script)


TENSOR = [[[1.0, 2.0], [0.3, -1.1]], [[0.4, 0.9], [-0.6, 1.7]]]
MATRIX = {"T": TENSOR, "X": [[1.0, 2.0, 0.3], [-1.0, 0.5, 0.7], [0.2, 1.1, -0.9]]}
ENTRIES: list[tuple[str, str, str]] = [
    ("sum(X**2)", "0*X + 2*sum(X, axis=0)", "a gradient summed over axis 0 that should not be"),
    ("sum(X**2)", "flip(2*X)", "entries in reverse order along every axis: a kernel flipped?"),
    ("sum(X**2)", "2*X[::-1]", "entries in reverse order along axis 0"),
    ("sum(T**2)", "2*flip(T, axis=(1, 2))", "entries in reverse order along the last two axes: a kernel flipped?"),
    (
        "sum(X**2)",
        "2*concatenate([0*X[0:1], X[:-1]])",
        "entries shifted by one along axis 0: is the padding wrong?",
    ),
    ("sum(T**2)", "2*swapaxes(T, 1, 2)", "entries with the last two axes exchanged"),
]


@pytest.mark.parametrize(("formula", "claim", "told"), ENTRIES)
def test_entries_that_stand_elsewhere_are_read(formula: str, claim: str, told: str) -> None:
    leaf = "T" if "T" in formula else "X"
    report = check_script(formula, at={leaf: MATRIX[leaf]}, claims={leaf: claim})
    (found,) = (one for one in report.checks if one.kind == "claim")
    readings: Any = found.evidence["diagnosis"]
    assert found.verdict == "DISAGREES" and readings[0]["text"].endswith(told)


# --- blame ----------------------------------------------------------------------------------------------------


def blamed(script: str) -> list[str]:
    found = []
    for check in check_script(script).checks:
        readings: Any = check.evidence.get("diagnosis", [])
        if check.kind == "gradient":
            found += [one["text"] for one in readings if one["name"] == "wrong rule"]
    return found


def test_the_wrong_rule_is_named() -> None:
    right = "def g(u): return u*u\ndef g.vjp(u, ct): return 2*u*ct\n"
    wrong = "def h(u): return sin(u)\ndef h.vjp(u, ct): return sin(u)*ct\n"
    text = f"x = 0.6\n{right}{wrong}exp(g(h(x)*3))"
    assert blamed(text) == ["the rule of h is wrong, at line 5"]
    assert blamed(f"x = 0.6\ny = 0.4\n{right}{wrong}exp(g(x*3))\ng(h(y))") == ["the rule of h is wrong, at line 6"]
    assert blamed(f"x = 0.6\n{right}exp(g(x*3))") == []
    other = "def l(u): return u**3\ndef l.vjp(u, ct): return u*ct\n"
    each = blamed(f"x = 0.6\ny = 0.4\n{wrong}{other}h(x) + l(y)")  # a rule is blamed for the leaves behind it alone
    assert each == ["the rule of h is wrong, at line 4", "the rule of l is wrong, at line 6"]


CONVOLUTION = "x = [0.5, -1, 2, 0.3, 1.2, -0.4, 0.9]\nk = [0.2, -0.7, 0.4]\n"
BATCH = (
    "const X = [[0.5, 1.2], [-0.3, 0.8], [1.1, -0.7]]\nW = [[0.3, -0.2, 0.9], [0.1, 0.7, -0.5]]\nb = [0.1, -0.2, 0.3]\n"
)
BATCH += "S = X @ W + b\nL = sum(tanh(S)**2)\nD = 2*tanh(S)*(1 - tanh(S)**2)\n"
BACKWARD_PASSES = [  # as engineers write them, and what is said of the mistake
    (CONVOLUTION + "const G = [1, -0.5, 2]\nL = sum(G*(k[0]*x[0:5:2] + k[1]*x[1:6:2] + k[2]*x[2:7:2]))\n"
     "assert grad(L, k) == [sum(G*x[0:3]), sum(G*x[1:4]), sum(G*x[2:5])]", "have the step 2 along axis 0: is a stride missing?"),
    (CONVOLUTION + "const G = [1, -0.5, 2, 0.7, -1.3, 0.2, 0.8]\np = concatenate((zeros(1), x, zeros(1)))\n"
     "L = sum(G*(k[0]*p[0:7] + k[1]*p[1:8] + k[2]*p[2:9]))\ng = concatenate((zeros(2), G, zeros(2)))\n"
     "assert grad(L, x) == k[2]*g[0:7] + k[1]*g[1:8] + k[0]*g[2:9]", "shifted by one along axis 0: is the padding wrong?"),
    (BATCH + "assert grad(L, b) == sum(D, axis=1)", "`sum(D, axis=-1)` runs over axis 0, not 1"),
    (BATCH + "assert grad(sum(log(softmax(S, axis=1))), W) == X.T @ (1 - 3*softmax(S, axis=0))",
     "`softmax(S, axis=-2)` runs over axis 1, not 0"),
    ("S = [[0.1, -0.4, 1.2], [2, 0.3, -1], [0.5, 0.2, -0.3]]\nL = -mean(diag(log_softmax(S, axis=1)))\n"
     "assert grad(L, S) == softmax(S, axis=1)/3",
     "except on the diagonal, where it is 1/3 too large: is a one-hot label or an identity missing?"),
    ("S = [[0.1, -0.4, 1.2], [2, 0.3, -1], [0.5, 0.2, -0.3]]\nL = -(log_softmax(S, axis=1)[0, 1])\n"
     "assert grad(L, S) == [softmax(S[0]) - [1, 0, 0], zeros(3), zeros(3)]",
     "except in [0, 1], where it is 1 too large, and in [0, 0], where it is 1 too small: does something belong elsewhere?"),
    ("q = 0.3\nr = 0.5\nP = 0.8 + q\nK = P/(P + r)\nL = log((1 - K)*P)\ndP = 1\n"
     "assert grad(L, q) == (1 - K)*dP/((1 - K)*P)", "the term of `1 - K` in the product rule is missing"),
    ("y = 0.6\nh = 0.2\na = sin(y)\nb = sin(y + h/2*a)\nc = sin(y + h/2*b)\nd = sin(y + h*c)\n"
     "z = y + h/6*(a + 2*b + 2*c + d)\nda = cos(y)\ndb = cos(y + h/2*a)*(1 + h/2*da)\ndc = cos(y + h/2*b)*(1 + h/2*db)\n"
     "dd = cos(y + h*c)*(1 + h*dc)\nassert grad(z, y) == 1 + h/6*(da + db + dc + dd)",
     "one mistake at both places like `2*b`: the factor 2 is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "sentence"), BACKWARD_PASSES)
def test_backward_passes_as_engineers_write_them_are_read(script: str, sentence: str) -> None:
    causes = diagnosed(script)
    assert causes is not None and causes[0]["text"].endswith(sentence), causes


@pytest.mark.parametrize(
    ("output", "claim", "at", "words"),
    [
        (
            "where(x < 2, tanh(x), 0)",
            "where(x < 2, 1 + tanh(x)**2, 0)",
            0.8,
            ("one of its branches", "not 1 + tanh**2"),
        ),
        ("where(x > 0, exp(-x), x**2)", "where(x > 0, exp(-x), 2*x)", 0.8, ("one of its branches", "wrong sign")),
        ("where(x > 0, sin(x)*x, 0)", "where(x > 0, cos(x)*x, 0)", 0.8, ("one of its branches", "product rule")),
        ("x*abs(x)", "2*x", -0.8, ("a forgotten branch", "wrong where x < 0")),
    ],
)
def test_a_branch_that_the_claim_has_is_not_called_forgotten(
    output: str, claim: str, at: float, words: tuple[str, str]
) -> None:
    readings = diagnosed(f"x = {at}\ny = {output}\nassert grad(y, x) == {claim}")
    assert readings is not None
    assert all(word in readings[0]["text"] for word in words), readings
