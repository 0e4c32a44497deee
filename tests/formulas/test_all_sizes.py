"""Claims with symbolic sizes: proved for all of them where an identity of matrices suffices, and else not said to be."""

from __future__ import annotations

import contextlib
import re
from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from gradcli.checks.all_sizes import Sizes, known_sizes
from gradcli.execution.evaluate import evaluate
from gradcli.formulas import NoFormula, formula_texts
from gradcli.formulas.index_proof import identity
from gradcli.formulas.staged_proof import equal_as_formulas
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower
from gradcli.lowering.shapes.ranks import FixedShapes, probes
from gradcli.transforms.derivatives import grad
from tests.support.rows import all_rows, every

HEAD = (
    "A[m, n] in real; B[n, n] in real; C[m, n] in real; x[n] in real; y[n] in real; b[m] in real; lam in positive; "
    "loss = mean((A@x - b)**2)\n"
)
RIGHT = [
    "grad(loss, x) == 2/m*A.T@(A@x - b)",
    "grad(loss, A) == 2/len(b)*outer(A@x - b, x)",
    "grad(loss, b) == -2*(A@x - b)/shape(A)[0]",
    "grad(sum((A@x - b)**2) + lam*x@x, x) == 2*(A.T@A + lam*eye(n))@x - 2*A.T@b",
    "grad(x@B@x, x) == (B + B.T)@x",
    "grad(log(det(B)), B) == inv(B).T",
    "grad(trace(inv(B)), B) == -(inv(B)@inv(B)).T",
    "grad(x@inv(B)@y, B) == -outer(inv(B).T@x, inv(B)@y)",
    "grad(x@solve(B, y), y) == solve(B.T, x)",
    "grad(mean(log(1 + exp(-b*(A@x)))), x) == -A.T@(b*sigmoid(-b*(A@x)))/m",
    "grad(sum(softplus(A@x) - b*(A@x)), x) == A.T@(sigmoid(A@x) - b)",
    "grad(logsumexp(A@x), x) == A.T@softmax(A@x)",
    "grad(norm(A@x - b), x) == A.T@(A@x - b)/norm(A@x - b)",
    "grad(var(x), x) == 2*(x - mean(x))/n",
    "grad(var(x, ddof=1), x) == 2*(x - mean(x))/(n - 1)",
    "grad(std(x), x) == (x - mean(x))/(n*std(x))",
    "grad(sum(tanh(A@x)), A) == outer(1/cosh(A@x)**2, x)",
    "grad(mean(x), x) == ones(n)/n",
    "grad(sum(relu(A@x)), x) == A.T@(A@x > 0)",
    "grad(sum(relu(A + y)**2), y) == 2*sum(relu(A + y), axis=0)",
    "grad(trace(A.T@C), A) == C",
    "grad(trace(B@B), B) == 2*B.T",
    "grad(x@y/(norm(x)*norm(y)), x) == y/(norm(x)*norm(y)) - (x@y)*x/(norm(x)**3*norm(y))",
    "grad(mean((softmax(x) - y)**2), x) == 2/n*softmax(x)*((softmax(x) - y) - sum(softmax(x)*(softmax(x) - y)))",
    "grad(sum(sigmoid(x)), x) == sigmoid(x)*(1 - sigmoid(x))",
    "grad(sum(A, axis=0)@y, A) == outer(ones(m), y)",
    "grad(mod(m, 2)*sum(x), x) == mod(m, 2)*ones(n)",
    "grad(einsum('i,ij,j->', b, A, x), x) == A.T@b",
    "grad(sum(atan(A@x)), x) == A.T@(1/(1 + (A@x)**2))",
    "grad(sum(log2(x) + logit(x)), x) == 1/(x*log(2)) + 1/(x*(1 - x))",
    "grad(sum(lgamma(x)), x) == digamma(x)",
    "grad(-mean(b*log(sigmoid(A@x)) + (1 - b)*log(1 - sigmoid(A@x))), x) == A.T@(sigmoid(A@x) - b)/m",
    "grad(-sum(y*log_softmax(x)), x) == sum(y)*softmax(x) - y",
    "grad(log(det(B.T@B)), B) == 2*inv(B).T",
    "grad((x@B@x)/(x@x), x) == ((B + B.T)@x)/(x@x) - 2*(x@B@x)*x/(x@x)**2",
    "grad(sum(softmax(A, axis=1)@x), x) == sum(softmax(A, axis=1), axis=0)",
    "grad(sum(logsumexp(A, axis=1)), A) == softmax(A, axis=1)",
    "grad(sum(A[:, :, None]*B), x) == 0*x",
    "grad(logdet(B), B) == inv(B).T",
    "grad(logdet(B@B.T), B) == 2*inv(B).T",
    "grad(prod(x), x) == prod(x)/x",
    "grad(log(prod(x*y)), x) == 1/x",
    "grad(sum(prod(A, axis=1)), A) == prod(A, axis=1, keepdims=True)/A",
    "grad(sum((A[:, None] - C[None, :])**2), A) == 2*(m*A - sum(C, axis=0))",
    "grad(sum(relu(x)) + trace(B), x) == where(x > 0, 1, 0) + zeros(shape(A)[1])*ones(len(x))",
    "grad(sum(cumsum(x)), x) == n - cumsum(ones(n)) + 1",
    "grad(y@cumsum(x), x) == cumsum(y[::-1])[::-1]",
    "grad(y@cumsum(x), x) == sum(y) - cumsum(y) + y",
    "grad(sum(C*cumsum(A, axis=0)), A) == flip(cumsum(flip(C, axis=0), axis=0), axis=0)",
    "grad(sum(y*(x - log(cumsum(exp(x))))), x) == y - exp(x)*flip(cumsum(flip(y/cumsum(exp(x)))))",
    "grad(max(x)**2, x) == 2*x*(x == max(x))",
    "grad(max(A) - min(x), x) == -where(x == min(x), 1, 0)",
    "grad(max(A@x), x) == A.T@(A@x == max(A@x))",
    "grad(sum(max(A, axis=1)), A) == (A == max(A, axis=1, keepdims=True))",
    "grad(sum(b*amax(A, axis=1)), A) == b[:, None]*(A == amax(A, axis=1)[:, None])",
    "grad(max(abs(x)), x) == sign(x)*(abs(x) == max(abs(x)))",
    "grad(max(x) + log(sum(exp(x - max(x)))), x) == softmax(x)",
    "grad(sum(max(A, axis=1) + log(sum(exp(A - max(A, axis=1, keepdims=True)), axis=1))), A) == softmax(A, axis=1)",
    "grad(sum(maximum(x, y) - minimum(x, y)), x) == (x > y) - (x <= y)",
    "grad(mean(max(0, 1 - b*(A@x))), x) == -A.T@(b*(1 - b*(A@x) > 0))/m",
    "grad(sum(abs(x) + log(abs(y))), y) == 1/y",
    "grad(sum(abs(A@x)), x) == A.T@where(A@x > 0, 1, -1)",
    "grad(sum(leaky_relu(A@x)), x) == A.T@where(A@x < 0, 0.01, 1)",
    "grad(sum(clamp(x, 0, 1)), x) == where(not(x < 0 or x > 1), 1, 0)",
    "grad(sum(where(x > 0 or y > 0, x*y, 0)), x) == where(x > 0 or y > 0, y, 0)",
    "grad(sum(where(abs(x) < 1, x**2/2, abs(x) - 1/2)), x) == where(abs(x) < 1, x, sign(x))",
    "grad(sum(where(x > 0, log(x), 0)), x) == where(x > 0, 1/x, 0)",
    "grad(sum(where(x > 0, 7*y, y/(1 - (x > 0)))), y) == 7*(x > 0) + 1 - (x > 0)",
    "grad(sum(where(A == 0, A**2, 0)), A) == 0*A",
    "grad(sum(max(A@x, 0) - b*(A@x) + log(1 + exp(-abs(A@x)))), x) == A.T@(sigmoid(A@x) - b)",
    "grad(sum(sort(x)**2), x) == 2*x",
    "grad(y@sort(x), x) == y[argsort(argsort(x))]",
    "grad(sum(sort(A, axis=0)**3 + exp(sort(A))), A) == 3*A**2 + exp(A)",
    "grad(sum(x[argsort(y)]*y), x) == y[argsort(argsort(y))]",
    "grad(y@sort(x), x) == eye(n)[argsort(x)].T@y",
    "B[argsort(argsort(x))] == eye(n)[argsort(x)].T@B",
    "sum(B[:, argsort(x)], axis=1) == sum(B, axis=1)",
    "grad(sum(flip(x)*y), x) == flip(y)",
    "grad(sum((x[1:] - x[:-1])**2), x) == 2*(pad(x[1:] - x[:-1], (1, 0)) - pad(x[1:] - x[:-1], (0, 1)))",
    "grad(sum((x[2:] - 2*x[1:-1] + x[:-2])**2), x) == 2*diff(diff(pad(diff(diff(x)), 2)))",
    "grad(mean(abs(diff(x))), x) == -diff(pad(sign(diff(x)), 1))/(n - 1)",
    "grad(sum((A[1:] - A[:-1])**2) + sum(diff(A)**2), A) == -2*(diff(pad(diff(A), ((0, 0), (1, 1)))) + "
    "diff(pad(A[1:] - A[:-1], ((1, 1), (0, 0))), axis=0))",
    "grad(sum(elu(x)), x) == where(x > 0, 1, exp(x))",
    "grad(sum(x[0:]**2), x) == 2*x",
    "grad(mod(len(x), 2)*mean(A@x), x) == mod(n, 2)/len(A@x)*sum(A, axis=0)",
    "A@x == x@A.T",
    "trace(B) == sum(diag(B))",
    "sum(outer(x, x)) == sum(x)**2",
]
# right at the sizes that are chosen, which are 2 and 3, and nowhere else
LUCKY = [
    "grad(loss, x) == 2/2*A.T@(A@x - b)",
    "grad(mean(x), x) == ones(n)/3",
    "grad(sum(x)*n, x) == 3*ones(n)",
    "grad(sum(x**m), x) == 2*x",
    "grad(mod(m, 2)*sum(x), x) == 0*x",
    "grad(loss, x) == 2/(n - 1)*A.T@(A@x - b)",
]
# right at every size, and more than identities of matrices
BEYOND = [
    ("grad(sum(cumprod(x)), x) == flip(cumsum(flip(cumprod(x))))/x", "it calls `cumprod`"),
    ("grad(sum(x**m), x) == m*x**(m - 1)", "a size decides what it computes"),
    ("sum(0*x[:3] + 1) == n", "it reads part of an array"),
    ("sum(0*x[1:] + 1) == n - 1", "it computes with the size of part of an array"),
    ("sum(0*x[1:2] + 1) == 1", "it reads part of an array"),
    ("sum(0*concatenate([x, x])[:6] + 1) == 2*n", "it reads part of an array"),
    ("sum(x[::2]) == x[0] + x[2]", "it reads part of an array"),
    ("x[[0, -1]] == [x[0], x[2]]", "it reads part of an array"),
    ("grad(mod(len(x[1:]), 2)*sum(x), x) == 0*x", "no identity of matrices proves it"),
    ("len(concatenate([x, x])) == 6", "the script is not the same at every size"),
    ("grad(x[0]*sum(x[:-1]), x) == x", "it reads single entries and parts of arrays"),
    ("grad(mean(x[:-2]), x) == pad(ones(n)[2:], (0, 2))/(n - 2)", "it computes with the size of part of an array"),
    ("grad(sort(x)[0], x) == ones(n)", "no identity of matrices proves it"),
    ("grad(sum(sin(x)**2), x) == sin(2*x)", "no identity of matrices proves it"),
    ("grad(sum(max(B, axis=1)), B) == (B == max(B, axis=0))", "no identity of matrices proves it"),
    ("grad(y@sort(x), x) == y[argsort(x)]", "no identity of matrices proves it"),
    ("grad(sum(where(x > 0, 7*y, y/(1 - (x > 0)))), y) == 7*(x > 0) + 1", "no identity of matrices proves it"),
    ("grad(sum(median(A, axis=1)), A) == 0*A", "it calls `median`"),
]
SIZES = [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (4, 4)]


def known(text: str, at: dict[str, Any] | None = None) -> list[Sizes]:
    lowered = lower(parse(Source(text)), at=at or {})
    return known_sizes(lowered, at or {}, None, DEFAULT_LIMITS)


def sides_at(text: str, m: int, n: int, seed: int) -> tuple[Any, Any]:
    """Both sides of a claim, evaluated at these sizes."""
    lowered = lower(parse(Source(text)), shapes=FixedShapes({}, {"m": m, "n": n}))
    generator = np.random.default_rng(seed)
    shapes = {name: leaf.node.shape for name, leaf in lowered.program.leaves.items()}
    values = {name: generator.uniform(0.3, 1.7, shape) for name, shape in shapes.items()}
    for name in values.keys() - {"lam"}:
        values[name] *= (1, -1, generator.choice([-1, 1], shapes[name]))[seed % 3]
    if "B" in values:
        values["B"] = values["B"] + 2 * n * np.eye(n)
    (claim,) = lowered.claims
    return tuple(np.asarray(one) for one in evaluate([claim.left, claim.right], values))


@all_rows("claim", RIGHT)
def test_identities_are_proved_for_all_sizes(claim: str) -> None:
    (found,) = known(f"{HEAD}assert {claim}")
    assert (found.reason, found.sizes) == (None, {"m": 2, "n": 3})


@pytest.mark.parametrize("claim", every(3, RIGHT))
def test_what_is_proved_for_all_sizes_holds_at_each(claim: str) -> None:
    """Every claim with one token changed: what is still said to be proved has equal sides at each of some sizes."""
    tokens = re.findall(r" or |[A-Za-z]\w*|\d+|\S", claim)
    changes = {
        "m": "n",
        "n": "m",
        "2": "3",
        "1": "2",
        "+": "-",
        "-": "+",
        "x": "y",
        "y": "x",
        "softmax": "exp",
        "C": "A",
    }
    proved = 0
    other_tokens = [[*tokens[:i], changes.get(one, one), *tokens[i + 1 :]] for i, one in enumerate(tokens)]
    for changed in dict.fromkeys(["".join(one) for one in [tokens, *other_tokens]]):
        text = f"{HEAD}assert {changed}"
        try:
            (found,) = known(text)
        except GradcliError:
            continue
        if found.reason is not None or "apart" in found.assumed.values():  # it may not hold in a region, which is said
            continue
        proved += 1
        for seed, (m, n) in enumerate(SIZES):
            with np.errstate(all="ignore"):
                left, right = sides_at(text, m, n, seed)
            defined = np.isfinite(left) & np.isfinite(right)
            assert np.allclose(left[defined], right[defined], rtol=1e-7, atol=1e-9), (text, m, n)
    assert proved


def test_what_a_report_says_of_sizes() -> None:
    report = check_script(f"{HEAD}assert {RIGHT[0]}\nassert {BEYOND[0][0]}")
    one, other = [check for check in report.checks if check.kind == "claim"]
    assert (one.verdict, one.message) == ("PROVED", "equal by algebra, for all m and n")
    assert one.evidence["sizes"] == {"all": True, "point": {"m": 2, "n": 3}}
    (_, largest) = check_script("x[n] in real\nassert grad(max(x), x) == (x == max(x))", at={"x": [1, 3, 2]}).checks
    assert largest.message == "equal by algebra, for all n, wherever no comparison is a tie"
    (_, norm) = check_script("x[n] in real\nassert grad(norm(x), x) == x/norm(x)").checks
    assert (norm.verdict, norm.message) == ("PROVED", "equal by algebra, for all n, wherever both sides are defined")
    assert other.verdict == "PROVED" and other.message == (
        "equal by algebra; for m = 2, n = 3 and m = 3, n = 5, not proved for all: it calls `cumprod`"
    )
    assert other.evidence["sizes"] == {
        "all": False, "point": {"m": 2, "n": 3}, "beside": {"m": 3, "n": 5}, "reason": "it calls `cumprod`"
    }  # fmt: skip


LARGE = [
    "x = randn(40); sum(sin(x)*x**2)",
    "x = randn(2000); sum(relu(x)**3)",
    "A = randn(30, 20); x = randn(20); b = randn(30); mean((A@x - b)**2) + 0.1*norm(x)",
    "x = randn(6, 30); sum((x - mean(x, axis=1, keepdims=True))/std(x, axis=1, keepdims=True)*x)",
    "x = randn(3, 30); sum(max(x, axis=1)*min(x, axis=1))",
    "q = randn(9, 4); k = randn(9, 4); v = randn(9, 4); sum(softmax(q@k.T)@v)",
    "A = randn(5, 5); logdet(A@A.T + eye(5))",
    "x = randn(50); sum(where(x > 0.3, x**2, abs(x)))",
    "A = randn(9, 7); sum(abs(A[1:, :] - A[:-1, :])) + sum(abs(A[:, 1:] - A[:, :-1]))",
    "x = randn(40); sum(x[::2]*exp(x[1::2])) + sum(roll(x, 3)*x)*x[-1]",
    "x = randn(10, 4); cross_entropy(x, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1])",
    "x = randn(10, 4); ids = [0, 2, 2, 5]; sum(tanh(x[ids]))*sum(x[[3, 9, 3], [0, 1, 1]])",
    "q = randn(4, 6); k = randn(4, 6); sum(softmax(transpose(reshape(q, 4, 2, 3), (1, 0, 2))"
    "@transpose(reshape(k, 4, 2, 3), (1, 2, 0)))[:, 1]**2)",
    "x = randn(30); sum(sort(x)[3:-3]) + sum(concatenate([x, cumsum(x)])**2)",
]


@pytest.mark.parametrize("text", LARGE)
def test_gradients_of_large_arrays_are_proved(text: str) -> None:
    for check in check_script(text.replace("; ", "\n")).checks:
        assert check.verdict == "PROVED" and check.message.startswith("equal by algebra"), check


PARTS_OF_ARRAYS = {  # a loss and the claims about its gradient by x
    "sum((x[1:] - x[:-1])**2)": [
        "2*concatenate([x[:1] - x[1:2], 2*x[1:-1] - x[:-2] - x[2:], x[-1:] - x[-2:-1]])",
        "2*(pad(x[1:] - x[:-1], (1, 0)) - pad(x[1:] - x[:-1], (0, 1)))",
    ],
    "sum(abs(x[2:] - x[:-2]))": ["pad(sign(x[2:] - x[:-2]), (2, 0)) - pad(sign(x[2:] - x[:-2]), (0, 2))"],
    "sum(x[::2]*x[1::2])": ["reshape(stack([x[1::2], x[::2]], axis=1), 18)"],
    "sum(roll(x, 1)*x*flip(y))": ["roll(x, 1)*flip(y) + roll(x*flip(y), -1)"],
    "sum(x[3:10])**2": ["2*sum(x[3:10])*concatenate([zeros(3), ones(7), zeros(8)])"],
    "sum(exp(concatenate([x, 2*y, 3*x])))": ["exp(x) + 3*exp(3*x)"],
    "sum(logsumexp(reshape(x, 6, 3), axis=1))": ["reshape(softmax(reshape(x, 6, 3), axis=1), 18)"],
    "sum(reshape(x, 3, 6)[:, 1:4]**2)": ["2*reshape(pad(reshape(x, 3, 6)[:, 1:4], ((0, 0), (1, 2))), 18)"],
    "cross_entropy(reshape(x, 6, 3), [0, 1, 2, 2, 1, 1])": [
        "reshape(softmax(reshape(x, 6, 3), axis=1) - eye(3)[[0, 1, 2, 2, 1, 1]], 18)/6",
    ],
    "sum(x[[1, 4, 4, 7]]*y[:4])": [
        "eye(18)[[1, 4, 4, 7]].T@y[:4]",
    ],
    "y[:5]@sin(x)[4:9] + sum(cos(x)[-3:])": [
        "concatenate([zeros(4), y[:5]*cos(x[4:9]), zeros(6), -sin(x[-3:])])",
    ],
}


@pytest.mark.parametrize("loss", PARTS_OF_ARRAYS)
def test_claims_about_parts_of_arrays(loss: str) -> None:
    """What is proved with one token changed, in the loss or in the claim, is right."""
    changes = {"x": "y", "y": "x", "+": "-", "-": "+", "sin": "cos", "cos": "sin", "abs": "exp", "exp": "abs", "*": "+"}
    numbers = {str(n): str(n + 1) for n in range(10)}
    values = {name: np.random.default_rng(len(name) + seed).normal(size=18) for seed, name in enumerate("xy")}
    for claim in PARTS_OF_ARRAYS[loss]:
        tokens = re.findall(r"[A-Za-z]\w*|\d+|\S| ", f"grad({loss}, x) == {claim}")
        others = [
            [*tokens[:i], other, *tokens[i + 1 :]]
            for i, one in enumerate(tokens)
            if (other := (changes | numbers).get(one))
        ]
        proved = 0
        for place, text in enumerate(["".join(one) for one in (tokens, *others)]):
            try:
                (found,) = lower(parse(Source(f"x[18] in real; y[18] in real\nassert {text}"))).claims
                left, right = (np.asarray(one) for one in evaluate([found.left, found.right], values))
            except GradcliError:
                continue
            try:
                holds = (
                    found.derivative is not None and identity(*found.derivative, found.right, {}).proof() is not None
                )
            except NoFormula:
                holds = False
            assert holds or place, text
            proved += holds
            assert not holds or np.allclose(left, right), text
        assert proved < len(others) / 2


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("2*x*sin(x) + x**2*cos(x)", "PROVED"),
        ("2*x*sin(x) + x**2*cos(x) + 1e-13*x", "DISAGREES"),
        ("where(x == 0, 0, 2*x*sin(x) + x**2*cos(x))", "PROVED"),
        ("where(floor(x) == 0, 0, 2*x*sin(x) + x**2*cos(x))", "DISAGREES"),
        ("2*x*sin(x) + sort(x)*0 + x**2*cos(x)", "PROVED"),
    ],
)
def test_claims_about_large_arrays(claim: str, verdict: str) -> None:
    report = check_script("x = randn(40)\nsum(sin(x)*x**2)", claims={"x": claim})
    (check,) = [check for check in report.checks if check.kind == "claim"]
    assert check.verdict == verdict, check


def test_a_gradient_of_too_many_entries_for_enclosures_is_proved_with_its_differences() -> None:
    (check,) = check_script("x = randn(200000)\nsum(tanh(x))").checks
    assert check.verdict == "PROVED"
    assert check.message.startswith("equal by algebra, in all 200,000 entries; finite differences agree at 4 points")


@pytest.mark.parametrize("claim", LUCKY)
def test_right_at_the_chosen_sizes_alone_is_wrong(claim: str) -> None:
    report = check_script(f"{HEAD}assert {claim}")
    (check,) = [check for check in report.checks if check.kind == "claim"]
    assert check.verdict == "DISAGREES" and not check.passed
    assert check.message.startswith("right for m = 2, n = 3, but for m = 3, n = 5 ")
    assert check.evidence["sizes"]["wrong"] == {"m": 3, "n": 5}  # type: ignore[index]


def test_a_tolerance_holds_at_the_second_sizes_too() -> None:
    claim = "A[m, n] in real\nassert sum(abs(A)) == 1.001*sum(abs(A)){}\nsum(A**2)"
    assert check_script(claim.format("  # gradcli: rtol=1e-2")).checks[1].verdict == "CERTIFIED"
    assert check_script(claim.format("")).checks[1].verdict == "DISAGREES"


def test_right_at_sizes_that_were_given_passes_and_says_so() -> None:
    text = "A[m, n] in real; x[n] in real\nassert grad(mean(A@x), x) == sum(A, axis=0)/2"
    report = check_script(text, at={"A": [[1, 2, 3], [4, 5, 6]]})
    (check,) = [check for check in report.checks if check.kind == "claim"]
    assert check.passed and check.message == "equal by algebra; for m = 2, n = 3, but not for m = 3, n = 5"


def test_loops_of_known_length_are_read() -> None:
    text = f"{HEAD}u = x\nfor i in range(4):\n  u = 0.5*u + y\nassert grad(sum(u**2), y) == 3.75*u\nassert {RIGHT[0]}"
    assert [one.reason for one in known(text)] == [None, None]


def test_sizes_are_read_inside_functions() -> None:
    (found,) = known("A[n] in real\ndef f(A): return sum(A)/len(A)\nassert grad(f(A), A) == ones(n)/n")
    assert (found.reason, found.sizes) == (None, {"n": 2})


def test_gradients_with_respect_to_what_is_computed() -> None:
    text = f"{HEAD}r = A@x - b\ns = r@r/m\nassert grad(s, r) == 2*r/m\nassert grad(s, r) == 2*r/n\nassert grad(s, x) == 2*A.T@r/m"
    assert [one.reason for one in known(text)] == [None, "no identity of matrices proves it", None]


def test_one_claim_does_not_stand_in_the_way_of_another() -> None:
    text = f"{HEAD}assert {RIGHT[0]}\nassert {BEYOND[1][0]}\nassert grad(sum(ones(mod(n, 2)))*sum(x), x) == ones(n)"
    assert [one.reason for one in known(text)] == [None, *["a size decides what it computes"] * 2]
    text = f"{HEAD}assert {BEYOND[0][0]}\nassert {RIGHT[0]}\nassert grad(sum(ones(mod(n, 2)))*sum(x), x) == ones(n)"
    assert [one.reason for one in known(text)] == ["it calls `cumprod`", None, "a size decides what it computes"]


def test_right_for_square_matrices_only() -> None:
    text = "A[m, n] in real; x[n] in real\nassert grad(sum(A@(A@x)), x) == (A@A).T@ones(n)"
    report = check_script(text, at={"A": [[1, 2], [3, 4]]})
    (check,) = [check for check in report.checks if check.kind == "claim"]
    assert check.passed and "not proved for all: it is refused where sizes differ" in check.message
    (found,) = known(text.replace("A[m, n]", "A[n, n]"))
    assert found.reason is None


@pytest.mark.parametrize(("claim", "reason"), BEYOND)
def test_what_is_no_identity_of_matrices(claim: str, reason: str) -> None:
    (found,) = known(f"{HEAD}assert {claim}")
    assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A[n] in real\nn = 3\nassert grad(sum(A), A) == ones(3)", None),
        ("A[n] in real\ns = 0\nfor i in range(n): s = s + i\nassert grad(s*sum(A), A) == ones(n)", "a size decides"),
        ("A[n] in real\nassert grad(sum([i for i in range(n)])*sum(A), A) == ones(n)", "no identity"),
        ("A[n] in real\ns = 1\nif n > 1: s = 2\nassert grad(s*sum(A), A) == 2*ones(n)", "a size decides"),
        ("A[n] in real\ndef f(n): return sum(eye(n)) + sum(A)\nassert grad(f(3), A) == ones(3)", None),
        ("A[n] in real\ndef f(A): return sum(A)*mod(len(A), 2)\nassert grad(f(A), A) == ones(n)", "no identity"),
        ("A[n] in real\nassert grad(sum(ones(mod(n, 2)))*sum(A), A) == ones(n)", "a size decides"),
        ("A[n] in real\nassert grad(sum(A)*detach(sum(A)), A) == sum(A)*ones(n)", "it reads `detach`"),
        ("A[n] in real\nassert grad(sum([A[0], A[0]]), A) == 2*concatenate([ones(1), zeros(n - 1)])", None),
    ],
)
def test_scripts_whose_graph_may_depend_on_sizes(text: str, reason: str | None) -> None:
    try:
        found = known(text)
    except GradcliError:
        return
    for one in found:
        assert one.reason is not None and (reason is None or one.reason.startswith(reason))


def test_nothing_is_said_where_no_size_is_open() -> None:
    assert known("A[2, 3] in real\nassert grad(sum(A), A) == ones(2, 3)") == []
    assert known("x in real\nassert grad(x**2, x) == 2*x") == []


def test_a_claim_of_the_command_line_reads_sizes() -> None:
    text = "A[m, n] in real; x[n] in real; b[m] in real; mean((A@x - b)**2)"
    claims = {"x": "r = A@x - b; 2/m*A.T@r", "b": "-2/len(b)*(A@x - b)"}
    found = [check for check in check_script(text, claims=claims).checks if check.kind == "claim"]
    assert [check.message for check in found] == ["equal by algebra, for all m and n"] * 2


PARTS = (
    ["sum(x)", "x@y", "mean(x)", "x@B@y", "trace(B)", "sum((A@x)*b)", "norm(x)", "logsumexp(x)", "sum(softmax(x)*y)"]
    + ["var(x)", "m", "n", "lam", "sum(tanh(A@x))", "sum(exp(x*y))", "mean(log(1 + exp(A@x - b)))", "x@inv(B)@y"]
    + ["sum(x**2)", "norm(A@x - b)", "mean((A@x - b)**2)", "2", "1", "sum(outer(x, y)*B)", "std(x)", "sum(relu(x))"]
    + ["max(x)", "sum(y*sort(x))", "sum(abs(x - 1))", "max(A@x)", "sum(where(x > 1, x*y, x**2))", "min(x*y)"]
)


def random_expression(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.25:
        return random.choice(PARTS)
    operands = [random_expression(random, depth - 1) for _ in range(2)]
    return f"({operands[0]}{random.choice('+-*/')}{operands[1]})"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(6))
def test_formulas_of_random_gradients_are_proved_and_others_are_not(seed: int) -> None:
    """The formula that is derived for an expression, as a claim about it and about one with another part."""
    random = Random(seed)
    sizes = dict(zip(("m", "n"), probes([], 0), strict=False))
    tried, proved = 0, 0
    for _ in range(40):
        right = random_expression(random, 2)
        part = next(one for one in PARTS if one in right)
        other = right.replace(part, random.choice(PARTS), 1)
        lowered = lower(parse(Source(HEAD + right)), shapes=FixedShapes({}, sizes))
        (gradient,) = grad(lowered.program.outputs[0], [lowered.program.leaves["x"].node])
        with building(gradient.builder, reachable([gradient])):
            text = next(formula_texts(gradient, None, {sizes["m"]: "len(b)", sizes["n"]: "len(x)"}), None)
        for script in (right, other) if text else ():
            claim = f"{HEAD}assert grad({script}, x) == {text}"
            try:
                (found,) = known(claim)
            except GradcliError:
                continue
            tried += script is right
            proved += script is right and found.reason is None
            for place, (m, n) in enumerate(SIZES if found.reason is None else ()):
                with np.errstate(all="ignore"):
                    ours, theirs = sides_at(claim, m, n, place)
                defined = np.isfinite(ours) & np.isfinite(theirs)
                assert np.allclose(ours[defined], theirs[defined], rtol=1e-6, atol=1e-8), (claim, m, n)
    assert tried > 20 and proved >= 0.85 * tried  # the rest is too long, or its text has a prime that is no size


VECTORS = (
    [
        "x",
        "y",
        "sort(x)",
        "x[::-1]",
        "x[[1, 0, 2, 4, 3]]",
        "x[[0, 0, 2, 2, 4]]",
        "cumsum(x)",
        "y[argsort(x)]",
        "A[:, 1]",
    ]
    + ["concatenate([x[1:], x[:1]])", "x[argsort(argsort(y))]", "A.T[0]", "diag(A)", "A@x", "pad(x[1:], (1, 0))"]
    + ["pad(x[1:-1], (1, 1))", "A[arange(5), [1, 0, 3, 3, 2]]", "reshape(A, 25)[::6]", "reshape(A, 25)[3:8]", "x[L]"]
    + ["sum(A[:, 1:], axis=1)", "max(A, axis=1)", "where(x > y, x, y**2)", "relu(x)", "roll(x, 1)", "cumsum(y)[::-1]"]
    + ["take_along_axis(A, L[:, None], axis=1)[:, 0]", "log_softmax(A)[arange(5), L]", "sort(A, axis=0)[0]", "exp(x)"]
)
REDUCED = ["sum({}**2)", "{}@y", "max({})", "norm({})", "logsumexp({})", "{}[0]*{}[-1]", "sum({}[1:]*{}[:-1])"]
REDUCED += ["sum({}[::2]**2)", "sum(sort({})[:2])", "sum(cumsum({})*y)", "sum(concatenate([{}[1:], {}[:1]])*y)"]
EXCHANGED = [("[1:]", "[:-1]"), ("[:-1]", "[1:]"), ("[::-1]", ""), ("sort(", "("), ("argsort(x)", "argsort(y)")]
EXCHANGED += [("x", "y"), ("y", "x"), ("axis=1", "axis=0"), ("cumsum(", "("), ("max(", "min("), ("(1, 0)", "(0, 1)")]
EXCHANGED += [("[::2]", "[1::2]"), ("[:2]", "[1:3]"), ("::6", "::5"), ("3:8", "4:9"), ("[L]", "[[0, 1, 2, 3, 4]]")]


def random_loss(random: Random) -> str:
    one, other = random.choice(VECTORS), random.choice(VECTORS)
    vector = f"({one} {random.choice('+-*')} {other})"
    return random.choice(REDUCED).replace("{}", vector)


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6)]])
def test_wrong_gradients_of_parts_of_arrays_are_not_proved(seed: int) -> None:
    """The gradient of one loss as a claim about another, with a slice, an order or a label exchanged."""
    random, generator = Random(seed), np.random.default_rng(seed)
    proved = 0
    for _ in range(40):
        one = random_loss(random)
        old, new = random.choice([("", ""), *[pair for pair in EXCHANGED if pair[0] in one]])
        start = random.choice([at for at in range(len(one)) if one.startswith(old, at)])
        other = one[:start] + new + one[start + len(old) :]
        shapes = {"A": (5, 5), "x": (5,), "y": (5,)}
        points = [{name: generator.normal(size=shape) for name, shape in shapes.items()} for _ in range(3)]
        text = f"A[5, 5] in real; x[5] in real; y[5] in real\nL = [1, 0, 3, 2, 2]\nstack([{one}, {other}])"
        try:
            lowered = lower(parse(Source(text)), at={name: value.tolist() for name, value in points[0].items()})
        except GradcliError:  # an exchange that is no script
            continue
        ours, theirs = (side.args[0] for side in lowered.program.outputs[0].args)
        leaf = lowered.program.leaves[random.choice("xA")].node
        (right,), (claim,) = grad(ours, [leaf]), grad(theirs, [leaf])
        with contextlib.suppress(NoFormula), building(claim.builder, reachable([claim, ours])):
            if equal_as_formulas(ours, leaf, claim) is not None:
                proved += 1
                for at in points:
                    assert np.allclose(*evaluate([right, claim], {**at, "L": [1, 0, 3, 2, 2]})), (one, other)
    assert proved > 8


LAYER_NORM = """def norm(x, g):
    d = x - mean(x, axis=1, keepdims=True)
    return d/sqrt(mean(d**2, axis=1, keepdims=True) + 0.00001)*g
"""
BLOCK = """h = norm(x, g)
q, k, v = h@Q, h@K, h@V
r = x + softmax(q@k.T/2, axis=1)@v@O
loss = mean((r + gelu(norm(r, g)@W)@U - y)**2)
"""
SHAPES = {"x": (5, 4), "y": (5, 4), "g": (4,), **dict.fromkeys("QKVO", (4, 4)), "W": (4, 6), "U": (6, 4)}
OTHER_BLOCKS = [
    ("r + gelu", "x + gelu"),
    ("@k.T", "@q.T"),
    ("/2", "/3"),
    ("h@V", "x@V"),
]


def gradients_of(block: str, names: str, values: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A loss and its derivatives by some leaves, as graphs; `block` may end in a loss of its own, whose they are then."""
    shapes = "; ".join(f"{name}[{', '.join(map(str, shape))}] in real" for name, shape in SHAPES.items())
    other = re.sub(r"\b([hqkvr]|loss)\b", r"\1_", block)
    lowered = lower(parse(Source(f"{shapes}\n{LAYER_NORM}{BLOCK}{other}stack([loss, loss_])")), at=values)
    ours, theirs = (one.args[0] for one in lowered.program.outputs[0].args)
    leaves = [lowered.program.leaves[name].node for name in names]
    return ours, dict(zip(leaves, grad(theirs, leaves), strict=True))


def test_networks_are_proved_node_by_node() -> None:
    """The gradients of a transformer block; those of another block are no proof."""
    generator = np.random.default_rng(0)
    values = {name: generator.normal(size=shape).tolist() for name, shape in SHAPES.items()}
    loss, right = gradients_of(BLOCK, "xgQVWU", values)
    numbers = dict(zip(right, evaluate(list(right.values()), values), strict=True))
    for leaf, one in right.items():
        assert equal_as_formulas(loss, leaf, one) is not None, leaf
    for old, new in OTHER_BLOCKS:
        loss, others = gradients_of(BLOCK.replace(old, new), "xQ", values)
        for leaf, one in others.items():
            (number,) = evaluate([one], values)
            same = np.allclose(number, next(n for known, n in numbers.items() if known.params == leaf.params))
            proof = None
            with contextlib.suppress(NoFormula):
                proof = equal_as_formulas(loss, leaf, one)
            assert (proof is None) or same, (old, new, leaf)
