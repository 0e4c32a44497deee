"""`grad`, `hessian` and `jacobian` without a point give the formulas of `derive`, which infers shapes."""

from __future__ import annotations

import pytest

from gradcli.interfaces import cli

FORMULAS = [
    ("grad", "sum((A@x)**2)"), ("grad", "mean((A@x - b)**2)"), ("grad", "x.T @ A @ x"), ("grad", "logdet(A) + y"),
    ("grad", "sum(exp(a*x))"), ("grad", "x*y + sin(x)"), ("grad", "trace(A.T @ B)"), ("grad", "norm(A@x - b)**2"),
    ("grad", "sum(softmax(W@x + b)*t)"), ("grad", "sum(x[3])"), ("grad", "logsumexp(A@x)"),
    ("hessian", "x.T @ A @ x"), ("hessian", "sum((A@x)**2)"), ("hessian", "x**2*y"), ("hessian", "logsumexp(x)"),
    ("jacobian", "A@x"), ("jacobian", "tanh(W@x)"), ("jacobian", "x*y"), ("jacobian", "softmax(x)"),
]  # fmt: skip
# a point is meant, or nothing helps
ERRORS = [
    ("grad", ["[1,2] + [1,2,3]"], "GC301"), ("grad", ["A@x"], "GC302"), ("grad", ["sum(A@x)", "--at", "x=2"], "GC302"),
    ("grad", ["x = [1,2]; A = [[1,2,3]]; sum(A@x)"], "GC3"), ("grad", ["x = 2; x*y"], "GC202"),
    ("hessian", ["x*y", "--at", "x=2"], "GC202"), ("jacobian", ["[1,2] + [1,2,3]"], "GC301"), ("grad", ["x +"], "GC1"),
    ("hessian", ["nope(x)"], "GC201"), ("grad", ["c = 2; c*sum(A@x)"], "GC302"), ("grad", ["x = [1,2,3]; x**2"], "GC307"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "script"), FORMULAS)
@pytest.mark.parametrize("wrt", [(), pytest.param(("--wrt", "x"), marks=pytest.mark.deep)])
def test_the_formulas_are_those_of_derive(
    command: str, script: str, wrt: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if wrt and "x" not in script.replace("exp", ""):
        pytest.skip("x is not in it")
    options = [] if command == "grad" else [f"--{command}"]
    code = cli.main(["derive", script, *options, *wrt])
    derived = capsys.readouterr()
    assert cli.main([command, script, *wrt]) == code
    assert capsys.readouterr() == derived
    assert code == 0


@pytest.mark.parametrize(("command", "words", "code"), ERRORS)
def test_where_a_point_is_meant_its_error_is_shown(
    command: str, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, *words]) == 2
    assert f"error[{code}" in capsys.readouterr().err
