"""Functions of NumPy with hand-written derivatives, as people write them: right ones are proved, each mistake refuted."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import linalg, optimize, special

from gradcli import check_callable
from gradcli.formulas.index_proof import _labels_of
from gradcli.formulas.index_reading import _one_for_each_row
from tests.support.rows import all_rows, every

R = np.random.default_rng(7)
V, W3 = np.array([0.3, 1.1, -0.7, 0.4]), R.normal(size=(3, 4))
X, Y, LABELS = R.normal(size=(5, 3)), R.normal(size=(5, 2)), np.array([0, 2, 1, 1, 3])


class Rule(NamedTuple):
    """A function, its derivative (`kind` of it), wrong ones, the point, and which arguments are judged."""

    f: Callable[..., Any]
    right: Callable[..., Any]
    wrong: Sequence[Callable[..., Any]]
    at: tuple[Any, ...]
    kind: str = "grad"


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def entropy(w: Any, b: Any) -> Any:
    return -np.mean(np.log(softmax(X @ w + b)[np.arange(5), LABELS]))


def entropy_gradient(w: Any, b: Any, less: float = 1.0) -> Any:
    p = softmax(X @ w + b)
    p[np.arange(5), LABELS] -= less
    p /= len(LABELS)
    return X.T @ p, p.sum(axis=0)


def network(w: Any, b: Any, v: Any) -> Any:
    return np.mean((np.maximum(X @ w + b, 0) @ v - Y) ** 2)


def network_gradient(w: Any, b: Any, v: Any, masked: bool = True) -> Any:
    z = X @ w + b
    h = np.maximum(z, 0)
    g = 2 * (h @ v - Y) / Y.size
    dh = g @ v.T
    if masked:
        dh[z < 0] = 0
    return X.T @ dh, dh.sum(0), h.T @ g


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1) * g + b


def layer_norm_vjp(x: Any, g: Any, b: Any, ct: Any, third: float = 1.0) -> Any:
    n, s = x.shape[-1], np.sqrt(x.var(-1, keepdims=True) + 0.1)
    h = (x - x.mean(-1, keepdims=True)) / s
    d = ct * g
    dx = (n * d - d.sum(-1, keepdims=True) - third * h * (d * h).sum(-1, keepdims=True)) / (n * s)
    return dx, (ct * h).sum(0), ct.sum(0)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def attention_vjp(q: Any, k: Any, v: Any, ct: Any, scaled: bool = True) -> Any:
    p = softmax(q @ k.T / np.sqrt(q.shape[1]))
    dp = ct @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    ds = ds / np.sqrt(q.shape[1]) if scaled else ds
    return ds @ k, ds.T @ q, p.T @ ct


def rosenbrock_gradient(x: Any, inner: float = 400.0) -> Any:
    x = np.asarray(x)
    middle, left, right = x[1:-1], x[:-2], x[2:]
    der = np.zeros_like(x)
    der[1:-1] = 200 * (middle - left**2) - inner * (right - middle**2) * middle - 2 * (1 - middle)
    der[0] = -400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
    der[-1] = 200 * (x[-1] - x[-2] ** 2)
    return der


def convolved(x: Any, k: Any) -> Any:
    return np.sum(np.array([np.sum(x[i : i + 2] * k) for i in range(len(x) - 1)]) ** 2)


def convolved_gradient(x: Any, k: Any, order: int = 1) -> Any:
    dx, dk = np.zeros_like(x), np.zeros(2)
    for i in range(len(x) - 1):
        y = np.sum(x[i : i + 2] * k)
        dx[i : i + 2] += 2 * y * k[::order]
        dk += 2 * y * x[i : i + 2]
    return dx, dk


def powers_gradient(x: Any, less: int = 0) -> Any:
    g = np.empty(len(x))
    for i in range(len(x)):
        g[i] = (i + 1 - less) * x[i] ** i
    return g


def rows_gradient(w: Any, twice: bool = True) -> Any:
    g = np.zeros(w.shape)
    if twice:
        np.add.at(g, [0, 2, 2], 2 * w[[0, 2, 2]])
    else:
        g[[0, 2, 2]] += 2 * w[[0, 2, 2]]
    return g


def scalar(x: Any) -> Any:
    return 0.5 * math.log(2 * math.pi) + x**2 / 2 + math.sin(x) * math.exp(-x)


def axes_gradient(z: Any, columns: float = 1.0) -> Any:
    largest, least = z == z.max(-1, keepdims=True), z == np.min(z, 0)
    return largest * (z.min(0).sum() + V[:3, None]) + columns * least * np.max(z, 1).sum()


def cholesky_gradient(s: Any, factor: float = 0.5) -> Any:
    inverse = np.linalg.inv(s)
    return factor * inverse - 0.5 * inverse @ np.outer(V[:2], V[:2]) @ inverse


RULES = {
    "softmax cross entropy": Rule(
        entropy,
        entropy_gradient,
        [lambda w, b: entropy_gradient(w, b, 2.0), lambda w, b: tuple(5 * g for g in entropy_gradient(w, b))],
        (W3, V),
    ),
    "two layers": Rule(
        network,
        network_gradient,
        [lambda w, b, v: network_gradient(w, b, v, False)],
        (W3, V, R.normal(size=(4, 2))),
    ),
    "layer norm": Rule(
        layer_norm,
        layer_norm_vjp,
        [lambda x, g, b, ct: layer_norm_vjp(x, g, b, ct, 0.0)],
        (R.normal(size=(2, 3)), V[:3], V[1:]),
        "vjp",
    ),
    "attention": Rule(
        attention,
        attention_vjp,
        [lambda q, k, v, ct: attention_vjp(q, k, v, ct, False)],
        (R.normal(size=(2, 2)), R.normal(size=(3, 2)), R.normal(size=(3, 2))),
        "vjp",
    ),
    "Rosenbrock": Rule(
        lambda x: sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
        rosenbrock_gradient,
        [lambda x: rosenbrock_gradient(x, 200.0)],
        (V,),
    ),
    "convolution": Rule(convolved, convolved_gradient, [lambda x, k: convolved_gradient(x, k, -1)], (V, V[1:3])),
    "a loop": Rule(
        lambda x: sum(x[i] ** (i + 1) for i in range(len(x))),
        powers_gradient,
        [lambda x: powers_gradient(x, 1)],
        (V,),
    ),
    "rows": Rule(lambda w: np.sum(w[[0, 2, 2]] ** 2), rows_gradient, [lambda w: rows_gradient(w, False)], (W3,)),
    "math": Rule(
        scalar,
        lambda x: x + math.cos(x) * math.exp(-x) - math.sin(x) * math.exp(-x),
        [lambda x: x + math.cos(x) * math.exp(-x), lambda x: x + math.sin(x) * math.exp(-x)],
        (0.7,),
    ),
    "softmax, its Jacobian": Rule(
        softmax,
        lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x)),
        [lambda x: np.diag(softmax(x)), lambda x: np.diag(softmax(x)) + np.outer(softmax(x), softmax(x))],
        (V,),
        "jac",
    ),
    "least squares": Rule(
        lambda p: p[0] * np.exp(-p[1] * LABELS) - Y[:, 0],
        lambda p: np.stack([np.exp(-p[1] * LABELS), -LABELS * p[0] * np.exp(-p[1] * LABELS)], axis=1),
        [lambda p: np.stack([np.exp(-p[1] * LABELS), -p[0] * np.exp(-p[1] * LABELS)], axis=1)],
        (np.array([2.0, 0.5]),),
        "jac",
    ),
    "logistic loss": Rule(
        lambda w: np.sum(np.logaddexp(0, -(X @ w))),
        lambda w: -X.T @ special.expit(-(X @ w)),
        [lambda w: X.T @ special.expit(-(X @ w)), lambda w: -X.T @ special.expit(X @ w)],
        (V[:3],),
    ),
    "normal density": Rule(
        lambda m, s: -0.5 * np.sum(((V - m) / s) ** 2) - len(V) * np.log(s),
        lambda m, s: (np.sum(V - m) / s**2, np.sum((V - m) ** 2) / s**3 - len(V) / s),
        [lambda m, s: (np.sum(V - m) / s, np.sum((V - m) ** 2) / s**3 - len(V) / s)],
        (0.3, 1.7),
    ),
    "a solved system": Rule(
        lambda x, m: 0.5 * x @ np.linalg.solve(m @ m.T, x) + np.log(np.linalg.det(m @ m.T)) / 2,
        lambda x, m: {"x": np.linalg.solve(m @ m.T, x)},
        [lambda x, m: {"x": np.linalg.solve(m, x)}],
        (V[:2], np.array([[2.0, 0.1], [0.5, 1.2]])),
    ),
    "stacked and clipped": Rule(
        lambda x: (
            np.sum(np.stack([x, x**2], axis=1) * np.concatenate([x, np.ones(1)])[:-1, None]) + np.clip(x, -1, 1).sum()
        ),
        lambda x: 2 * x + 3 * x**2 + (np.abs(x) < 1),
        [lambda x: 2 * x + 3 * x**2 + 1.0],
        (V,),
    ),
    "running sums": Rule(
        lambda x: np.sum(np.cumsum(x) ** 2),
        lambda x: 2 * np.cumsum(np.cumsum(x)[::-1])[::-1],
        [lambda x: 2 * np.cumsum(np.cumsum(x))],
        (V,),
    ),
    "a log-determinant": Rule(
        lambda m: np.linalg.slogdet(m)[1],
        lambda m: np.linalg.inv(m).T,
        [np.linalg.inv],
        (np.array([[2.0, 0.1], [0.5, 1.2]]),),
    ),
    "axes by position": Rule(
        lambda z: np.sum(z.max(-1, keepdims=True) * z.min(0)) + np.max(z, 1) @ V[:3],
        axes_gradient,
        [lambda z: axes_gradient(z, 0.0)],
        (W3,),
    ),
    "reductions of ufuncs": Rule(
        lambda z: np.logaddexp.reduce(z, axis=1).sum() + np.multiply.reduce(z, axis=None) + np.add.reduce(z) @ V,
        lambda z: softmax(z) + z.prod() / z + V,
        [lambda z: softmax(z.T).T + z.prod() / z + V],
        (W3,),
    ),
    "a Cholesky factor": Rule(
        lambda s: (
            np.log(np.diag(np.linalg.cholesky(s))).sum()
            + 0.5 * np.sum(np.linalg.solve(np.linalg.cholesky(s), V[:2]) ** 2)
        ),
        cholesky_gradient,
        [lambda s: cholesky_gradient(s, 1.0), lambda s: cholesky_gradient(s, -0.5)],
        (np.array([[2.0, 0.5], [0.5, 1.25]]),),
    ),
    "weighted averages": Rule(
        lambda z: np.average(z**2, axis=0, weights=V[:3]) @ V + np.average(z, weights=np.exp(z)),
        lambda z: averages_gradient(z, 1.0),
        [lambda z: averages_gradient(z, 0.0)],
        (W3,),
    ),
    "a convolution": Rule(
        lambda x: (
            np.sum(np.convolve(x, V[:3], "same") ** 2)
            + np.convolve(V[:3], x).sum()
            + np.correlate(x, V[:2], "full") @ X[:, 0]
        ),
        lambda x: convolution_gradient(x, V[:3]),
        [lambda x: convolution_gradient(x, V[2::-1])],
        (V**2,),
    ),
    "an interpolation": Rule(
        lambda x: np.sum(np.interp(x, [-1.0, 0.0, 0.5, 1.0], V) ** 2),
        lambda x: 2 * np.interp(x, [-1.0, 0.0, 0.5, 1.0], V) * slopes(x, True),
        [lambda x: 2 * np.interp(x, [-1.0, 0.0, 0.5, 1.0], V) * slopes(x, False)],
        (V,),
    ),
    "differences, a grid, a polynomial, cases": Rule(
        lambda x: (
            np.sum(np.diff(x, prepend=0.0) ** 2)
            + np.linspace(x[0], x[1], 5) @ np.arange(5.0)
            + np.polyval([1.0, 0.0, 3.0], x[2])
            + np.ptp(x)
            + np.sum(np.select([x < 0, x < 1], [x**3, 2 * x], x))
        ),
        lambda x: several_gradient(x, 1.0),
        [lambda x: several_gradient(x, 0.0)],
        (V,),
    ),
    "functions of SciPy": Rule(
        lambda x: special.logsumexp(x) + np.sum(special.softmax(x) ** 2) - special.log_softmax(x)[0],
        lambda x: scipy_gradient(x, 1.0),
        [lambda x: scipy_gradient(x, 0.0)],
        (V,),
    ),
    "covariances": Rule(
        lambda z: np.sum(np.cov(z) ** 2) + np.cov(z[0], bias=True) + np.corrcoef(z)[0, 1],
        lambda z: covariance_gradient(z, 3),
        [lambda z: covariance_gradient(z, 4)],
        (W3,),
    ),
    "slopes and quantiles": Rule(
        lambda x: np.sum(np.gradient(x, 0.5) ** 2) + np.quantile(x, 0.25) + 2 * np.percentile(x, 100),
        lambda x: slopes_gradient(x, 0.75),
        [lambda x: slopes_gradient(x, 0.25)],
        (V,),
    ),
    **{
        f"a factor of SciPy, {name}": Rule(
            f, cholesky_gradient, [lambda s: cholesky_gradient(s, 1.0)], (np.array([[2.0, 0.5], [0.5, 1.25]]),)
        )
        for name, f in {
            "solved with": lambda s: (
                np.log(np.diag(linalg.cho_factor(s, lower=True, check_finite=False)[0])).sum()
                + 0.5 * V[:2] @ linalg.cho_solve(linalg.cho_factor(s, lower=True), V[:2])
            ),
            "triangular": lambda s: (
                np.log(np.diag(linalg.cholesky(s, lower=True))).sum()
                + 0.5 * np.sum(linalg.solve_triangular(linalg.cholesky(s, lower=True), V[:2], lower=True) ** 2)
            ),
        }.items()
    },
    "a factor above the diagonal": Rule(
        lambda s: np.sum(linalg.cholesky(s) * W3[:2, :2]) + V[:2] @ linalg.cho_solve(linalg.cho_factor(s), V[1:3]),
        lambda s: above_gradient(s),
        [lambda s: above_gradient(s, False)],
        (np.array([[2.0, 0.5], [0.5, 1.25]]),),
    ),
    "inverses of SciPy": Rule(
        lambda m: linalg.det(m) + np.sum(linalg.inv(m)) + V[:2] @ linalg.solve(m, V[2:]),
        lambda m: inverse_gradient(m, m),
        [lambda m: inverse_gradient(m, m.T)],
        (np.array([[2.0, 0.1], [0.5, 1.2]]),),
    ),
    "reductions without NaN": Rule(
        lambda x: np.nanmean(x**2) + np.nanvar(x, ddof=1) + np.nansum(x) * np.nanmax(x),
        lambda x: x / 2 + 2 * (x - x.mean()) / 3 + x.max() + x.sum() * (x == x.max()),
        [lambda x: x / 2 + 2 * (x - x.mean()) / 4 + x.max() + x.sum() * (x == x.max())],
        (V,),
    ),
    "least squares of a matrix": Rule(
        lambda x: np.sum(np.linalg.lstsq(X[:4], x, rcond=None)[0]),
        lambda x: np.linalg.pinv(X[:4]).T @ np.ones(X.shape[1]) + 0 * x,
        [lambda x: np.linalg.pinv(X[:4]).T @ np.arange(X.shape[1]) + 0 * x],
        (V,),
    ),
    "factorials": Rule(
        lambda x: np.sum(special.factorial(x)),
        lambda x: special.gamma(x + 1) * special.digamma(x + 1),
        [lambda x: special.gamma(x + 1) * special.digamma(x)],
        (V**2 + 0.5,),
    ),
    "the function of Rosenbrock": Rule(optimize.rosen, optimize.rosen_der, [lambda x: -optimize.rosen_der(x)], (V,)),
    "value and gradient": Rule(
        lambda x: (np.linalg.norm(x) ** 3, 3 * np.linalg.norm(x) * x),
        lambda x: True,
        [],
        (V,),
        "pair",
    ),
}


def averages_gradient(z: Any, less: float) -> Any:
    e = np.exp(z)
    p = e / e.sum()
    return 2 * z * V[:3, None] * V / V[:3].sum() + p * (1 + z - less * (p * z).sum())


def convolution_gradient(x: Any, k: Any) -> Any:
    same = np.convolve(2 * np.convolve(x, V[:3], "same"), k[::-1], "same")
    return same + np.full(4, V[:3].sum() * (x / x)[0]) + np.convolve(X[:, 0], V[:2], "valid")


def covariance_gradient(z: Any, less: int) -> Any:
    apart = z - z.mean(1, keepdims=True)
    found = 4 * (apart @ apart.T / 3) @ apart / less
    found[0] += 2 * apart[0] / 4
    a, b = apart[:2]
    u, v = a / np.linalg.norm(a), b / np.linalg.norm(b)
    found[0] += (v - u @ v * u) / np.linalg.norm(a)
    found[1] += (u - u @ v * v) / np.linalg.norm(b)
    return found


def slopes_gradient(x: Any, share: float) -> Any:
    g = np.gradient(x, 0.5)
    sent = np.array([[-2.0, 2, 0, 0], [-1, 0, 1, 0], [0, -1, 0, 1], [0, 0, -2, 2]])
    order = np.sort(x)
    return 2 * g @ sent + (1 - share) * (x == order[0]) + share * (x == order[1]) + 2 * (x == order[3])


def above_gradient(s: Any, whole: bool = True) -> Any:
    a, b = np.sqrt(s[0, 0]), s[0, 1]
    d = np.sqrt(s[1, 1] - b**2 / s[0, 0])
    w = W3[:2, :2]
    corner = w[0, 0] / (2 * a) - w[0, 1] * b / (2 * a**3) + w[1, 1] * b**2 / (2 * d * s[0, 0] ** 2)
    side = (w[0, 1] / a - w[1, 1] * b / (d * s[0, 0])) / (2 if whole else 1)
    sent = -np.outer(np.linalg.solve(s, V[:2]), np.linalg.solve(s, V[1:3]))
    return np.array([[corner, side], [side, w[1, 1] / (2 * d)]]) + (sent + sent.T) / 2


def inverse_gradient(m: Any, wrong: Any) -> Any:
    i = np.linalg.inv(m)
    rows = i.T @ np.ones((2, 2)) @ i.T + np.outer(np.linalg.solve(wrong.T, V[:2]), i @ V[2:])
    return np.linalg.det(m) * i.T - rows


def slopes(x: Any, divided: bool) -> Any:
    of = np.diff(V) / (np.array([1.0, 0.5, 0.5]) if divided else 1.0)
    inside = [(x > -1) & (x < 0), (x > 0) & (x < 0.5), (x > 0.5) & (x < 1)]
    return np.select(inside, list(of), 0.0)


def several_gradient(x: Any, last: float) -> Any:
    steps = np.diff(x, prepend=0.0)
    g = 2 * steps - 2 * np.append(steps[1:], 0.0)
    g += np.array([10 - 7.5, 7.5, 2 * x[2], 0.0])
    g += 1.0 * (x == x.max()) - last * (x == x.min())
    return g + np.select([x < 0, x < 1], [3 * x**2, 2 + 0 * x], 1.0)


def scipy_gradient(x: Any, less: float) -> Any:
    p = special.softmax(x)
    return p + 2 * (p**2 - less * p * (p**2).sum()) + p - np.eye(4)[0]


def judged(rule: Rule, derivative: Callable[..., Any]) -> dict[str, str]:
    given: dict[str, Any] = {"grad": True} if rule.kind == "pair" else {rule.kind: derivative}
    report = check_callable(rule.f, at=rule.at, **given)
    assert not any("values alone" in one.message for one in report.diagnostics), report.diagnostics
    return {str(one.leaf): one.verdict for one in report.checks}


@all_rows("name", RULES)
def test_right_derivatives_are_proved(name: str) -> None:
    found = judged(RULES[name], RULES[name].right)
    assert set(found.values()) <= {"PROVED", "CERTIFIED"}, found


@pytest.mark.parametrize(
    ("name", "k"), every(2, [(name, k) for name, rule in RULES.items() for k in range(len(rule.wrong))])
)
def test_mistakes_are_refuted(name: str, k: int) -> None:
    found = judged(RULES[name], RULES[name].wrong[k])
    assert "DISAGREES" in found.values() and set(found.values()) <= {"PROVED", "CERTIFIED", "DISAGREES"}, found


POINTS = R.normal(size=(40, 3)).round(2)
ANSWERS = (R.random(40) > 0.5).astype(float)


def likelihood(w: Any) -> Any:
    p = 1 / (1 + np.exp(-(POINTS @ w)))
    return -np.mean(ANSWERS * np.log(p) + (1 - ANSWERS) * np.log(1 - p))


def likelihood_gradient(w: Any, labels: Any = ANSWERS, points: Any = POINTS) -> Any:
    return points.T @ (1 / (1 + np.exp(-(POINTS @ w))) - labels) / 40


def test_data_that_numpy_computed_is_read_as_such() -> None:
    """X.T and 1 - y are computed before anything is recorded; the proof needs what they have in common with X and y."""
    found = check_callable(likelihood, at=(V[:3],), grad=likelihood_gradient)
    assert [one.verdict for one in found.checks] == ["PROVED"]
    labels, points = ANSWERS.copy(), POINTS.copy()
    labels[7], points[0, 0] = 1 - labels[7], points[0, 0] + 0.01
    changed = (
        functools.partial(likelihood_gradient, labels=labels),
        functools.partial(likelihood_gradient, points=points),
    )
    for wrong in changed:
        assert [one.verdict for one in check_callable(likelihood, at=(V[:3],), grad=wrong).checks] == ["DISAGREES"]


CLASSES = np.arange(40) % 3


def class_loss(w: Any) -> Any:
    z = POINTS @ w
    z = z - z.max(1, keepdims=True)
    return -np.mean((z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(40), CLASSES])


def class_gradient(w: Any, classes: Any = CLASSES) -> Any:
    return POINTS.T @ (softmax(POINTS @ w) - np.eye(3)[classes]) / 40


def test_labels_and_rows_of_an_identity_are_one_thing() -> None:
    """The loss picks entries by labels, and the derivative subtracts the rows of an identity."""
    at = (R.normal(size=(3, 3)),)
    assert [one.verdict for one in check_callable(class_loss, at=at, grad=class_gradient).checks] == ["PROVED"]
    wrong = functools.partial(class_gradient, classes=np.roll(CLASSES, 1))
    assert [one.verdict for one in check_callable(class_loss, at=at, grad=wrong).checks] == ["DISAGREES"]
    assert _labels_of([0, 1, 0, 1, 0, 0], 3) == [1, 0]
    assert not _labels_of([0, 1, 1, 1, 0, 0], 3) and not _labels_of([0, 2, 0], 3) and not _labels_of([0, 0, 0], 3)
    assert _one_for_each_row([1, 3], (2, 3)) and not _one_for_each_row([3, 1], (2, 3))


CENTRES = POINTS[:4] + 0.1


def distances(c: Any) -> Any:
    return ((POINTS[:, None, :] - c) ** 2).sum(-1)


def nearest(c: Any) -> Any:
    return np.eye(4)[distances(c).argmin(1)]


def to_the_nearest(c: Any) -> Any:
    return np.sum((POINTS - c[distances(c).argmin(1)]) ** 2)


def picked_by_row(c: Any) -> Any:
    d = distances(c)
    return d[np.arange(40), np.argmin(d, axis=1)].sum()


def k_means_gradient(c: Any, count: bool = True) -> Any:
    members = nearest(c)
    return 2 * ((members.sum(0)[:, None] if count else 1.0) * c - members.T @ POINTS)


def k_means_by_add_at(c: Any, count: bool = True) -> Any:
    places, g = distances(c).argmin(1), np.zeros_like(c)
    np.add.at(g, places, 2 * (c[places] - POINTS) if count else 2 * (c.sum(0) - POINTS))
    return g


def largest_gradient(x: Any, count: bool = True) -> Any:
    g = np.zeros_like(x)
    g[np.argmax(x)] = (2 if count else 1) * x[np.argmax(x)]
    return g


CHOSEN: dict[str, tuple[Any, Any, Any]] = {
    "one-hot rows": (lambda c: np.sum(nearest(c) * distances(c)), k_means_gradient, CENTRES),
    "rows": (to_the_nearest, k_means_by_add_at, CENTRES),
    "an entry of each row": (picked_by_row, k_means_gradient, CENTRES),
    "one entry": (lambda x: x[np.argmax(x)] ** 2, largest_gradient, V),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_argmin_and_argmax_choose_is_recorded(name: str) -> None:
    f, df, at = CHOSEN[name]
    report = check_callable(f, df, at=at)
    assert not any("values alone" in one.message for one in report.diagnostics), report.diagnostics
    assert [one.verdict for one in report.checks] == ["PROVED"]
    wrong = check_callable(f, functools.partial(df, count=False), at=at)
    assert [one.verdict for one in wrong.checks] == ["DISAGREES"]


def test_at_two_equal_centres_nothing_is_proved() -> None:
    for f, df, at in list(CHOSEN.values())[:3]:
        assert check_callable(f, df, at=np.array([at[0], *at[:3]])).checks[0].verdict == "KINK"
    assert check_callable(*CHOSEN["one entry"][:2], at=np.array([1.0, 1.0, 0.5])).checks[0].verdict == "KINK"


def centred(w: Any) -> Any:
    Xc = X - X.mean(axis=0)  # what NumPy computes has the name that the code gives it
    return np.sum((Xc @ w) ** 2)


class Fit:
    def __init__(self) -> None:
        self.A, self.b = POINTS[:5], ANSWERS[:5]

    def loss(self, w: Any) -> Any:
        return np.sum((self.A @ w - self.b) ** 2)

    def gradient(self, w: Any) -> Any:
        return 2 * self.A.T @ (self.A @ w + self.b)


def test_readings_have_the_names_of_the_code() -> None:
    """Of globals, closures, attributes and other arguments; a name that the language gives a meaning is not taken."""
    A, b, exp = POINTS[:5], ANSWERS[:5], POINTS[5:10]

    def loss(w: Any, M: Any, t: Any) -> Any:
        return np.sum((M @ w - t) ** 2)

    rows: list[tuple[Any, Any, Any, str]] = [
        (lambda w: np.sum((X @ w) ** 2), lambda w: X.T @ (X @ w), V[:3], "`(X @ w)**2`"),
        (lambda w: np.sum((A @ w - b) ** 2), lambda w: A.T @ (A @ w - b), V[:3], "`(A @ w - b)**2`"),
        (Fit().loss, Fit().gradient, V[:3], "`b` has the other sign"),
        (lambda t: np.exp(t[0]) ** 2, lambda t: np.eye(3)[0] * np.exp(t[0]) ** 2, V[:3], "`exp(t[0])**2`"),
        (loss, lambda w, M, t: {"w": M.T @ (M @ w - t)}, (V[:3], A, b), "`(M @ w - t)**2`"),
        (centred, lambda w: (X - X.mean(axis=0)).T @ ((X - X.mean(axis=0)) @ w), V[:3], "`(Xc @ w)**2`"),
        (lambda w: np.sum((exp @ w) ** 2), lambda w: exp.T @ (exp @ w), V[:3], "`(data[5, 3] @ w)**2`"),
    ]
    for f, df, at, text in rows:
        (found,) = check_callable(f, df, at=at).checks
        assert found.verdict == "DISAGREES" and text in found.message, found.message
    (found,) = check_callable(Fit().loss, Fit().gradient, at=V[:3]).checks
    assert "2*A.T @ (A @ w - b)" in str(found.evidence["diagnosis"])


class Guarded:
    """Looks like an array, and refuses to be one."""

    dtype = np.dtype("float64")

    def __array__(self, *_: Any) -> Any:
        raise TypeError("no implicit conversion")


def test_what_only_looks_like_an_array_has_no_name_and_does_no_harm() -> None:
    guarded = Guarded()
    report = check_callable(lambda w: np.sum((X @ w) ** 2) if guarded else 0.0, lambda w: 2 * X.T @ (X @ w), at=V[:3])
    assert report.checks[0].verdict in ("PROVED", "CERTIFIED")  # so it was recorded


class Unconfigured:
    """Stands for settings that are read at their first use, and raises before they are configured."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("settings are not configured")

    __class__ = property(lambda self: self.missing)  # type: ignore[assignment]


SETTINGS = Unconfigured()


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.peers)])
def test_an_object_whose_attributes_raise_is_left_alone(library: str) -> None:
    xp: Any = pytest.importorskip(library)
    inside, at = Unconfigured(), xp.asarray([1.0, -2.0])
    derivative = (lambda x: 2 * x if SETTINGS is not inside else x) if xp is np else None
    (check,) = check_callable(lambda x: xp.sum(x**2) if SETTINGS is not inside else x, derivative, at=at).checks
    assert check.verdict == "PROVED"


def test_functions_and_layers_of_other_modules_take_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = """
        import numpy as np

        def softmax(z):
            out = np.zeros(len(z))
            out[:] = np.exp(z) / np.sum(np.exp(z))
            return out

        class Layer:
            def forward(self, x):
                return np.array([x[0] * x[1], x[1]])

            def backward(self, x):
                return np.array([x[1], x[0]])
        """
    code = """
        from helpers_of_losses import Layer, softmax

        layer = Layer()

        def loss(z):
            return softmax(z)[0] + layer.forward(z)[0]

        def gradient(z):
            s = softmax(z)
            return s[0] * (layer.forward([1.0, 0.0])[1] + [1.0, 0.0] - s) + layer.backward(z)
        """
    for name, text in (("helpers_of_losses", helpers), ("losses_with_helpers", code)):
        (tmp_path / f"{name}.py").write_text(dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = import_module("losses_with_helpers")
    made = sys.modules["helpers_of_losses"].np.zeros
    report = check_callable(module.loss, module.gradient, at=np.array([0.5, -1.0]))
    assert report.checks[0].verdict == "PROVED", report
    assert sys.modules["helpers_of_losses"].np.zeros is made


BY_VALUES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any, str]] = {
    "a branch": (lambda x: x**2 if x > 0 else -x, lambda x: 2 * x if x > 0 else -1.0, 1.5, "it branches on values"),
    "a mask": (lambda x: np.sum(x[x > 0] ** 2), lambda x: 2 * x * (x > 0), V, "indices that depend on the point"),
    "a number": (lambda x: float(x[0]) ** 2, lambda x: np.array([2 * x[0], 0, 0, 0]), V, "plain Python numbers"),
    "an unknown function": (lambda x: np.sum(np.i0(x)), lambda x: special.i1(x), V, ""),
    "a long loop": (
        lambda x: sum(x[i % 4] ** 2 for i in range(20_000)) / 1e4,
        lambda x: x,
        V,
        "more than 10,000 operations",
    ),
    "an own array": (lambda x: next(map(float, x)), lambda x: np.eye(4)[0], V, "plain Python numbers"),
}


@pytest.mark.parametrize("name", BY_VALUES)
def test_what_cannot_be_recorded_is_judged_by_values_and_says_why(name: str) -> None:
    f, df, at, reason = BY_VALUES[name]
    report = check_callable(f, df, at=at)
    (found,) = report.checks
    assert found.verdict in ("AGREES", "PROVED", "CERTIFIED")
    if reason:
        assert any("values alone" in one.message and reason in one.message for one in report.diagnostics)
        wrong = check_callable(f, lambda x: 1.01 * np.asarray(df(x)), at=at)
        assert wrong.checks[0].verdict == "DISAGREES"


def test_a_view_that_is_written_into_is_not_taken_for_a_copy() -> None:
    def gradient(x: Any) -> Any:
        g = np.zeros_like(x)
        part = g[1:]
        part += 3 * x[1:] ** 2
        g[0] = 3 * x[0] ** 2
        return g

    assert check_callable(lambda x: np.sum(x**3), gradient, at=V).checks[0].verdict in ("AGREES", "PROVED")


def test_nothing_stays_replaced_and_objects_forget_the_recording() -> None:
    class Layer:
        def forward(self, x: Any) -> Any:
            self.kept = np.tanh(x)
            return np.sum(self.kept)

        def backward(self, x: Any) -> Any:
            return 1 - self.kept**2

    before = {(module, name): getattr(module, name) for module in (np, math) for name in dir(module)}
    layer = Layer()
    report = check_callable(layer.forward, layer.backward, at=V)
    assert report.checks[0].verdict in ("AGREES", "PROVED")
    assert isinstance(layer.kept, np.ndarray)
    check_callable(lambda x: abs(x) if x > 0 else -x, lambda x: 1.0, at=0.5)  # it ends in the middle of the recording
    assert all(getattr(module, name) is value for (module, name), value in before.items())


HISTORY: list[Any] = []


def running(x: Any, gamma: Any, state: dict[str, Any] = {"mean": np.zeros(3)}) -> Any:  # noqa: B006
    state["mean"] = 0.9 * state["mean"] + 0.1 * x.mean(axis=0)
    HISTORY.append(x)
    return gamma * (x - x.mean(axis=0)), gamma


def test_running_statistics_and_histories_forget_the_recording() -> None:
    """A forward that keeps something in a default argument, a global list or an option is recorded all the same."""
    at = {"x": X, "gamma": np.array([1.0, 2.0, 3.0])}

    def backward(dout: Any, cache: Any) -> dict[str, Any]:
        return {"x": cache * (dout - dout.mean(axis=0))}

    assert check_callable(running, vjp=backward, at=at).checks[0].verdict == "PROVED"
    assert all(type(x) is np.ndarray for x in HISTORY)
    assert type(running.__defaults__[0]["mean"]) is np.ndarray  # type: ignore[index]
    state = {"mean": np.zeros(3)}
    assert check_callable(running, vjp=backward, at={**at, "state": state}).checks[0].verdict == "PROVED"
    assert not state["mean"].any()  # every call had its own


class Dense:
    """A layer as people write it: backward reads what forward kept."""

    def __init__(self) -> None:
        self.w, self.b = np.arange(8.0).reshape(2, 4) / 5, np.array([0.1, 0.2])

    def forward(self, x: Any) -> Any:
        self.z = self.w @ x + self.b
        return np.tanh(self.z)

    def backward(self, dout: Any) -> Any:
        return self.w.T @ (dout * (1 - np.tanh(self.z) ** 2))

    def wrong(self, dout: Any) -> Any:
        return self.w.T @ dout

    def by_values(self, dout: Any) -> Any:
        assert float(self.z[0]) < 10  # so it is not recorded
        return self.backward(dout)


def batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(axis=0)
    std = np.sqrt(np.mean(centred**2, axis=0) + 0.1)
    return gamma * centred / std + beta, (gamma, centred, std)


def batch_norm_backward(dout: Any, cache: Any) -> Any:
    gamma, centred, std = cache
    n = dout.shape[0]
    dx = gamma * dout / std
    dx += (2 / n) * centred * (-0.5 * np.sum(gamma * dout * centred, axis=0) / std**3)
    return dx - dx.sum(axis=0) / n, np.sum(dout * centred / std, axis=0), dout.sum(axis=0)


def batch_norm_without_the_mean(dout: Any, cache: Any) -> Any:
    gamma, centred, std = cache
    dx = gamma * dout / std + (2 / len(dout)) * centred * (-0.5 * np.sum(gamma * dout * centred, axis=0) / std**3)
    return dx, np.sum(dout * centred / std, axis=0), dout.sum(axis=0)


def affine(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w + b)


def affine_backward(x: Any, w: Any, b: Any, dout: Any) -> Any:
    inner = dout * (1 - affine(x, w, b) ** 2)
    return inner @ w.T, x.T @ inner, inner.sum(axis=0)


COTANGENTS: dict[str, Any] = {
    "last": affine_backward,
    "first": lambda dout, x, w, b: affine_backward(x, w, b, dout),
    "last, other names": lambda a, c, d, e: affine_backward(a, c, d, e),
    "first, with an option": lambda dout, x, w, b, scale=1.0: affine_backward(x, w, b, scale * dout),
    "by values": lambda dout, x, w, b: affine_backward(x, w, b, dout) if float(x[0, 0]) < 10 else None,
}


@pytest.mark.parametrize("place", every(2, COTANGENTS))
def test_a_cotangent_is_passed_where_the_names_say(place: str) -> None:
    backward = COTANGENTS[place]
    at = {"x": R.normal(size=(4, 3)), "w": R.normal(size=(3, 2)), "b": V[:2]}
    right = check_callable(affine, vjp=backward, at=at)
    assert [one.passed for one in right.checks] == [True] * 3
    wrong = check_callable(
        affine, vjp=functools.wraps(backward)(lambda *given: tuple(2 * part for part in backward(*given))), at=at
    )
    assert {one.verdict for one in wrong.checks} == {"DISAGREES"}


def test_a_forward_may_return_a_cache_for_its_backward() -> None:
    at = (R.normal(size=(4, 2)), V[:2], V[2:])
    right = check_callable(batch_norm, vjp=batch_norm_backward, at=at)
    assert {one.verdict for one in right.checks} <= {"PROVED", "CERTIFIED"}
    wrong = check_callable(batch_norm, vjp=batch_norm_without_the_mean, at=at)
    assert [one.verdict for one in wrong.checks if one.leaf == "x"] == ["DISAGREES"]
    masked = check_callable(lambda x: (np.maximum(x, 0), x), vjp=lambda dout, cache: dout * (cache > 0), at=V)
    assert masked.checks[0].verdict == "PROVED"
    by_values = check_callable(lambda x: (np.abs(x), float(x[0])), vjp=lambda dout, cache: dout * np.sign(V), at=V)
    assert by_values.checks[0].verdict == "AGREES"
    (refused,) = check_callable(np.sin, vjp=lambda dout, cache: dout, at=V).checks
    assert refused.verdict == "ERROR" and "the pair (value, cache)" in refused.message


def test_a_method_takes_the_cotangent_alone() -> None:
    layer = Dense()
    verdicts = [
        check_callable(layer.forward, vjp=backward, at=V).checks[0].verdict
        for backward in (layer.backward, layer.wrong, layer.by_values)
    ]
    assert verdicts == ["PROVED", "DISAGREES", "AGREES"]


def test_functions_inside_others_take_part() -> None:
    """Wrappers without `__wrapped__`, partial functions and objects hand over to functions of other modules."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: function(*args)

    class Call:
        def __call__(self, x: Any) -> Any:
            return powers_gradient(x)

    def f(x: Any) -> Any:
        return sum(x[i] ** (i + 1) for i in range(len(x)))

    for derivative in (wrapped(wrapped(powers_gradient)), functools.partial(powers_gradient, less=0), Call()):
        assert check_callable(wrapped(f), derivative, at=V).checks[0].verdict == "PROVED"


def test_the_cause_of_a_mistake_is_named() -> None:
    wrong = check_callable(lambda x: np.exp(x) / np.exp(x).sum(), jac=lambda x: np.diag(softmax(x)), at=V).checks[0]
    text = wrong.evidence["diagnosis"][0]["text"]
    assert "quotient rule is missing" in text, text
    squared = check_callable(lambda x: np.sum(np.tanh(x)), lambda x: 1 - np.tanh(x), at=V).checks[0]
    assert "1 - tanh**2" in squared.evidence["diagnosis"][0]["text"]
    assert "1 - tanh(x)**2" in squared.evidence["diagnosis"][0]["correction"]


def normal(x: Any) -> Any:
    return special.erf(x / np.sqrt(2))


def rows(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("f", "vjp", "told"),
    [
        (
            lambda x: 0.5 * x * (1 + normal(x)),
            lambda x, ct: ct * (0.5 * (1 + normal(x)) + np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),
            "is multiplied by `x`",
        ),
        (rows, lambda x, ct: rows(x) * (ct - (ct * rows(x)).sum()), "runs along axis -1 alone"),
        (
            lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
            lambda x, ct: ct - rows(x),
            "is multiplied by the sum of `ct` along axis -1",
        ),
        (
            lambda x: np.cumprod(x, -1),
            lambda x, ct: np.cumsum(ct * np.cumprod(x, -1), -1) / x,
            "runs from the other end",
        ),
        (
            lambda x: x[:, [1, 2, 0]] * x,
            lambda x, ct: ct * x[:, [1, 2, 0]] + (ct * x)[:, [1, 2, 0]],
            "the entries of `ct*x` move the other way",
        ),
    ],
)
def test_what_a_written_formula_lacks_is_named(f: Any, vjp: Any, told: str) -> None:
    wrong = check_callable(f, vjp=vjp, at=X[:2]).checks[0]
    text = wrong.evidence["diagnosis"][0]["text"]
    assert wrong.verdict == "DISAGREES" and told in text, text


def correlated(x: Any, k: Any) -> Any:
    return np.stack([np.sum(x[i : i + 3] * k) for i in range(len(x) - 2)])


def correlated_vjp(x: Any, k: Any, ct: Any) -> Any:
    dx = np.zeros_like(x)
    for i in range(len(x) - 2):
        dx[i : i + 3] += ct[i] * k[::-1]
    return dx, np.stack([np.sum(x[j : j + len(x) - 2] * ct) for j in range(3)])


def constant_statistics(x: Any, g: Any, b: Any, ct: Any) -> Any:
    s = np.sqrt(x.var(-1, keepdims=True) + 0.1)
    return ct * g / s, (ct * (x - x.mean(-1, keepdims=True)) / s).sum(0), ct.sum(0)


@pytest.mark.parametrize(
    ("f", "vjp", "at", "told"),
    [
        (layer_norm, constant_statistics, (X[:2], V[:3], V[1:]), "statistics taken for constants"),
        (correlated, correlated_vjp, (X[:, 0], V[:3]), "where `k` is the same read backwards"),
    ],
)
def test_classic_mistakes_of_layers_are_named(f: Any, vjp: Any, at: Any, told: str) -> None:
    first = check_callable(f, vjp=vjp, at=at).checks[0]
    text = first.evidence["diagnosis"][0]["text"]
    assert first.verdict == "DISAGREES" and told in text, text
