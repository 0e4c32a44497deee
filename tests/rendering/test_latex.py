r"""`--format latex` is mathematics: equations, with verdicts as comments, that a LaTeX system sets without an error."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.interfaces import cli

ROOT = Path(__file__).parents[2]
HEAD = r"""\documentclass{article}
\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\usepackage{textcomp}\usepackage{amsmath}
\begin{document}
"""
EQUATIONS = r"""
grad 'x**2*sin(y)' --at x=2,y=1e-9
grad 'exp(sin(θ))*x_1**3 + log(rate)' --at θ=0.7,x_1=1.3,rate=2
grad 'sum(x**2)' --at x=randn(30)
grad 'sum(x**2)' --at x=randn(20,12)
grad 'sum(x**2)' --at x=randn(3,4,2)
grad 'sum(x**2)' --at x=zeros(40,40)
grad 'x**3' --order 3 --at x=2
grad '\frac{x^2}{y}' --at x=1,y=2
grad 'f*g*h*y*z*F*G' --at f=1,g=1,h=1,y=1,z=1,F=1,G=1
grad 'sin(x)'
grad 'abs(z)' --at z=1+2j --dtype complex128
hessian 'x**2*y' --at x=1,y=2
hessian 'sum(x**2)*y' --at x=randn(3),y=2
jacobian 'softmax(x)' --at 'x=[1,2,3]'
jacobian 'A@x' --at 'x=[1,2],A=[[1,2],[3,4]]'
jacobian '[x*y, x], x' --at x=1,y=2
jacobian 'outer(x, x)' --at 'x=[1,2]'
derive 'x**2*sin(y)'
derive 'logdet(A)'
derive 'mean((A@x-b)**2)'
derive 'mean((A@x-b)**2)' --steps
derive 'x**3*y' --order 3
derive 'logsumexp(x)' --direction v --hessian
derive 'tanh(W@x + b)' --jacobian --wrt x,b
derive 'where(x > 0 and not x > 3, x**2, sin(x))'
derive 'abs(x)*norm(y)*sqrt(x/3)'
derive '-sum(Y*log_softmax(X@W, axis=1))'
derive 'x**(y+1)/(x-y)**-2 + (-x)**2'
derive 'lam*Alpha*ALPHA*Omega*alpha_2*my_rate*lambda_*x__1'
derive 'x*erf(y)*lgamma(x)*j0(x)'
derive 'sum(x[1:]*x[:-1])'
derive 'trace(X.T@B@X@C)'
""".strip().splitlines()
OTHERS = r"""
eval 'A@x, x' --at 'A=[[1,2],[3,4]],x=[1,2]'
eval 'log(-x)' --at x=1
eval '1/x, -1/x' --at x=0
eval 'z*z' --at z=1+2j --dtype complex128
eval 'x > 1 and not x > 2' --at x=1
eval samples/language/hand_written_rule.grad
check 'x**2*sin(y)' --claim 'x = x*sin(y)' --at x=2,y=3 --show all --witnesses all --steps
check 'abs(x)' --at x=0
check samples/regression
check --python samples/python/rms_norm.py:rms_norm --grad samples/python/rms_norm.py:summed_backward --at x=randn(4,5)
trace 'x**2*sin(y)' --at x=2,y=3 --symbolic --why-topo --all
trace 'sum((A@x)**2)' --at x=randn(2),A=randn(2,2) --plan
ops softmax
explain GC301
why --on gradcli samples/eager/why/detached.py
""".strip().splitlines()
Written = Callable[[str], str]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Written:
    monkeypatch.chdir(ROOT)

    def run(command: str) -> str:
        cli.main([*shlex.split(command), "--format", "latex"])
        return capsys.readouterr().out

    return run


def is_balanced(text: str) -> bool:
    begun = re.findall(r"\\begin\{(\w+\*?)\}", text)
    bare = re.sub(r"\\[{}]", "", text)
    return sorted(begun) == sorted(re.findall(r"\\end\{(\w+\*?)\}", text)) and bare.count("{") == bare.count("}")


@pytest.mark.parametrize("command", EQUATIONS)
def test_results_are_equations(command: str, written: Written) -> None:
    text = written(command)
    lines = [line for line in text.splitlines() if not line.startswith("% ")]
    assert (lines[0], lines[-1]) == (r"\begin{align*}", r"\end{align*}")
    assert all(line.count("&=") == 1 and line.endswith(r"\\") for line in lines[1:-2]) and "&=" in lines[-2]
    assert r"\frac{\partial" in text and is_balanced(text)
    assert not re.search(r"\\texttt\{(?!axis|-?\d*:)", text), "script is mathematics"
    assert ("% verdict" in text) == (command.startswith("derive") or "--at" not in command)


def test_verdicts_are_comments_and_the_input_is_mathematics(written: Written) -> None:
    assert written("derive 'x**2*sin(y)'") == (
        "% verdict: PROVED\n\\begin{align*}\nf &= x^{2} \\sin(y) \\\\\n"
        "\\frac{\\partial f}{\\partial x} &= 2 x \\sin(y) \\\\\n"
        "\\frac{\\partial f}{\\partial y} &= x^{2} \\cos(y)\n\\end{align*}\n"
    )
    assert r"A^{-\top}" in written("derive 'logdet(A)'")
    check = written("check 'x**2*sin(y)' --claim 'x = x*sin(y)' --at x=2,y=3")
    assert check.startswith("$x^{2} \\sin(y)$\n")
    assert r"claim & $\frac{\partial}{\partial x} (x^{2} \sin(y)) = x \sin(y)$ \\" in check
    assert r"correct & $2 x \sin(y)$ \\" in check


@pytest.mark.parametrize("command", OTHERS)
def test_other_results_are_well_formed(command: str, written: Written) -> None:
    text = written(command)
    assert text and is_balanced(text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_everything_is_set_without_an_error(written: Written, tmp_path: Path) -> None:
    parts = "\n\n".join(map(written, [*EQUATIONS, *OTHERS]))
    (tmp_path / "all.tex").write_text(HEAD + parts + "\n\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
