r"""Gradients in index notation: the entry with free indices, as a script and as LaTeX that is read again."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError
from gradcli.rendering.mathematics import Mathematics
from tests.formulas.papers import FORMULAS
from tests.formulas.test_papers import differences, point, sizes_of

# fmt: off
TABLE = [  # script, leaf, the entry of its gradient, the same in LaTeX
    (r"\sum_i x_i^2 y_i", "x", "[2*y[k]*x[k] for k in range(n)]", r"\frac{\partial L}{\partial x_{k}} = 2 y_{k} x_{k}"),
    ("mean((A@x - b)**2)", "x", "[2*sum(A[i, k]*(sum(A[i, j]*x[j] for j in range(n)) - b[i]) for i in range(m))/m for k in range(n)]",
     r"\frac{\partial L}{\partial x_{k}} = \frac{2 \sum_{i} A_{i, k} (\sum_{j} A_{i, j} x_{j} - b_{i})}{m}"),
    (r"-\sum_i t_i \log \frac{e^{z_i}}{\sum_k e^{z_k}}", "z", "[softmax(z)[k]*sum(t[i] for i in range(n)) - t[k] for k in range(n)]",
     r"\frac{\partial L}{\partial z_{k}} = \operatorname{softmax}(z)_{k} \sum_{i} t_{i} - t_{k}"),
    (r"\sum_{i<j} \frac{q_i q_j}{|r_i - r_j|}", "q", "[sum(q[i]/abs(r[i] - r[k]) for i in range(n) if i < k) + sum(q[i]/abs(r[k] - r[i]) for i in range(n) if k < i) for k in range(n)]",
     r"\frac{\partial L}{\partial q_{k}} = \sum_{i < k} \frac{q_{i}}{\left| r_{i} - r_{k} \right|} + \sum_{k < i} \frac{q_{i}}{\left| r_{k} - r_{i} \right|}"),
    (r"\sum_{i \ne j} W_{ij} s_i s_j", "s", "[sum(s[i]*(W[i, k] + W[k, i]) for i in range(n)) - 2*W[k, k]*s[k] for k in range(n)]", None),
    (r"\sum_{i \ne j} \frac{q_i q_j}{|r_i - r_j|}", "q", "[sum(q[i]/abs(r[i] - r[k]) for i in range(n) if k != i) + sum(q[i]/abs(r[k] - r[i]) for i in range(n) if i != k) for k in range(n)]",
     r"\frac{\partial L}{\partial q_{k}} = \sum_{k \ne i} \frac{q_{i}}{\left| r_{i} - r_{k} \right|} + \sum_{i \ne k} \frac{q_{i}}{\left| r_{k} - r_{i} \right|}"),
    ("trace(A)", "A", "[[where(k == l, 1, 0) for l in range(n)] for k in range(n)]",
     r"\frac{\partial L}{\partial A_{k, l}} = \begin{cases} 1 & k = l \\ 0 & \text{else} \end{cases}"),
    ("y@inv(S)@y", "S", "[[-sum(inv(S)[i, k]*y[i] for i in range(n))*sum(y[j]*inv(S)[l, j] for j in range(n)) for l in range(n)] for k in range(n)]",
     r"\frac{\partial L}{\partial S_{k, l}} = -\sum_{i} (S^{-1})_{i, k} y_{i} \sum_{j} y_{j} (S^{-1})_{l, j}"),
    (r"\prod_i x_i", "x", "[prod(x[i] for i in range(n))/x[k] for k in range(n)]", r"\frac{\partial L}{\partial x_{k}} = \frac{\prod_{i} x_{i}}{x_{k}}"),
    ("prod(x[i]**a[i] for i in range(n))", "a", "[prod(x[i]**a[i] for i in range(n))*log(x[k]) for k in range(n)]",
     r"\frac{\partial L}{\partial a_{k}} = (\prod_{i} x_{i}^{a_{i}}) \log(x_{k})"),
    ("sum(x[1:]*x[:-1])", "x", "[sum(x[i + 1] for i in range(n - 1) if k == i) + sum(x[i] for i in range(n - 1) if k == i + 1) for k in range(n)]",
     r"\frac{\partial L}{\partial x_{k}} = \sum_{i = 0}^{n - 2} \begin{cases} x_{i + 1} & k = i \\ 0 & \text{else} \end{cases} + \sum_{i = 0}^{n - 2} \begin{cases} x_{i} & k = i + 1 \\ 0 & \text{else} \end{cases}"),
    (r"\sum_{k=0}^d a_k x^k", "x", "sum(a[i]*i*x**(i - 1) for i in range(d + 1))", r"\frac{\partial L}{\partial x} = \sum_{i = 0}^{d} a_{i} i x^{i - 1}"),
]
# fmt: on


def in_latex(derived: gradcli.Derivation, leaf: str) -> tuple[str, str]:
    notation = Mathematics({name: len(axes) for name, axes in derived.assumes.items()})
    return notation.derivative("L", [leaf], "", derived.text[leaf])


@pytest.mark.parametrize("row", range(len(TABLE)))
def test_an_entry_is_written_with_free_indices(row: int) -> None:
    script, leaf, text, latex = TABLE[row]
    derived = gradcli.derive(script, wrt=[leaf], style="index")
    assert (derived.text[leaf], derived.verdict[leaf]) == (text, "PROVED")
    if latex is not None:
        assert " = ".join(in_latex(derived, leaf)) == latex


def test_a_jacobian_has_two_free_indices() -> None:
    derived = gradcli.derive("tanh(W@x)", wrt=["x"], style="index", quantity="jacobian")
    assert derived.every == ["x"]
    left, right = in_latex(derived, "x")
    assert left == r"\frac{\partial L_{k}}{\partial x_{l}}"
    assert right == r"W_{k, l} (1 - \tanh(\sum_{i} W_{k, i} x_{i})^{2})"


def test_letters_of_indices_are_no_names_of_the_script() -> None:
    derived = gradcli.derive("k*l*sum((A@i - j)**2)", wrt=["i"], style="index")
    assert derived.text["i"].endswith("for p in range(n)]")
    assert derived.every == ["i"]


def test_parts_with_indices_get_no_names() -> None:
    for script in ("sum(log(1 + exp(X@w))**2*exp(X@w))", "sum((X@w)**3*tanh(X@w)*sin(X@w))"):
        derived = gradcli.derive(script, wrt=["w"], style="index")
        for text in (derived.parts or {}).values():
            assert " for " not in text
            assert "[" not in text


@pytest.mark.parametrize("row", [*range(5, len(FORMULAS), 29)])
def test_some_formulas_of_papers_in_index_notation(row: int) -> None:
    judge(row)


@pytest.mark.deep
@pytest.mark.parametrize("row", range(len(FORMULAS)))
def test_formulas_of_papers_in_index_notation(row: int) -> None:
    judge(row)


def judge(row: int) -> None:
    """The entry is right by differences, and what is printed as LaTeX is not read as something else."""
    _, formula, name, shapes, expression = FORMULAS[row]
    derived = gradcli.derive(formula, wrt=[name], style="index")
    assert not derived.only
    at = point(shapes, 1)
    size = (
        max(np.size(value) for value in at.values() if np.ndim(value) == 1) if derived.assumes.get("c") == ["n"] else 0
    )
    at |= {"c": np.full(size, at["c"])} if size and not np.ndim(at["c"]) else {}  # a number, where a vector is assumed
    value = gradcli.evaluate(derived.formula[name], at={**at, **sizes_of(derived.formula[name], at)}).value
    wanted = differences(expression, at, name)
    np.testing.assert_allclose(np.broadcast_to(value, wanted.shape), wanted, rtol=2e-6, atol=2e-7)
    left, right = in_latex(derived, name)
    try:
        report = gradcli.check(formula, claims={left: right})
    except (GradcliError, RuntimeWarning):  # a notation that is not read; both sides infinite on another branch
        return
    assert all(check.verdict != "DISAGREES" for check in report.checks), right


def test_what_has_no_formula_for_all_sizes_is_no_page_of_indices_for_one() -> None:
    with pytest.raises(GradcliError, match="more than two axes"):
        gradcli.derive("sum(abs(fft(x))**2)")
