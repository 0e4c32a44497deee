"""A new operation is one declaration in one file: what `exp` has follows from these thirteen lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECLARATION = """
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import elementwise
from gradcli.primitives import declare
from gradcli.primitives.powers import sqrt
from gradcli.primitives.trigonometric import acos

declare(
    elementwise(
        "erfcx",
        "exp(x**2)*erfc(x), without overflow.",
        impl=lambda xp, x: xp.erfcx(x),
        symbolic=lambda sp, x: sp.exp(x**2) * sp.erfc(x),
        ball=lambda fl, x: (x * x).exp() * x.erfc(),
        partials=lambda x, *, out: (2 * x * out - 2 / sqrt(acos(-1)),),
        domain=[REAL],
        sample=[Closed(-1, 2)],
        examples=[("erfcx(0)", 1)],
        elementary="exp(x**2)*erfc(x)",
        names="scipy.special. torch.special.",
    )
)
"""

START = """
import contextlib, io, math, sys
import numpy as np
from scipy.special import erfcx
from gradcli import calculator
from gradcli.primitives import catalogue, forget, functions, plugins
assert 'erfcx' in set(catalogue()) & set(functions())
forget('erfcx')  # gradcli's own, so that all comes from the declaration below
plugins.import_file(sys.argv[1])
X = 0.5
SURE = ("PROVED", "CERTIFIED")
SLOPE = 2*X*erfcx(X) - 2/math.sqrt(math.pi)

def output(*arguments):
    from gradcli.interfaces import cli
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        cli.main([*arguments])
    return stream.getvalue()

def verdict(*subject, **options):
    import gradcli
    return gradcli.check(*subject, **options).checks[-1].verdict

def emitted(target):
    from gradcli.derivation.deriving import derive, emitted
    from gradcli.rendering.code import source_file
    return source_file(emitted("erfcx(x)**2", derive("erfcx(x)**2")), target)

def run(target):
    scope = {"__name__": "emitted"}
    exec(emitted(target), scope)
    scope["test_values"]()
"""

READINGS = {
    "value": "assert calculator.evaluate('erfcx(x)', at={'x': X}).value == erfcx(X)",
    "gradient": "assert np.isclose(calculator.grad('erfcx(x)', at={'x': X}).gradient['x'], SLOPE)",
    "own gradient": "assert verdict('erfcx(x)**2', at={'x': X}) in SURE",
    "third order": "third = '(8*x**3 + 12*x)*erfcx(x) - (8*x**2 + 8)/sqrt(pi)'\n"
    "assert verdict('grad(grad(erfcx(x), x), x)', claims={'x': third}, at={'x': X}) in SURE",
    "claim": "assert verdict('erfcx(x)', claims={'x': '2*x*erfcx(x) - 2/sqrt(pi)'}, at={'x': X}) in SURE",
    "wrong claim": "assert verdict('erfcx(x)', claims={'x': '2*x*erfcx(x)'}, at={'x': X}) == 'DISAGREES'",
    "SymPy": "assert 'erfc' in output('trace', '--symbolic', 'erfcx(x)', '--at', 'x=0.5')",
    "formula": "assert 'erfcx(x)' in output('derive', 'erfcx(x)**2')",
    "LaTeX": "from gradcli.rendering.mathematics import latex\n"
    r"assert latex('erfcx(x)', {}) == r'\operatorname{erfcx}(x)'",
    "ops": "assert 'without overflow' in output('ops', 'erfcx')",
    "trace": "assert 'erfcx' in output('trace', 'erfcx(x)**2', '--at', 'x=0.5')",
    "tensor method": "import gradcli.eager as torch\nx = torch.tensor(X, requires_grad=True)\nx.erfcx().backward()\n"
    "assert np.isclose(x.grad.item(), SLOPE)",
    "alias": "import gradcli.eager as torch\nassert np.isclose(torch.special.erfcx(torch.tensor(X)).item(), erfcx(X))\n"
    "assert 'erfcx' in dir(torch.special)",
    "NumPy": "run('numpy')\nassert 'special.erfcx(x)' in emitted('numpy')",
    "PyTorch": "run('torch')\nassert 'torch.special.erfcx(x)' in emitted('torch')",
    "JAX": "run('jax')",
    "C": "assert 'static double erfcx(double x)' in emitted('c')",
    "recorded NumPy": "f = lambda x: erfcx(x)**2\n"
    "assert verdict(f, lambda x: 2*erfcx(x)*(2*x*erfcx(x) - 2/np.sqrt(np.pi)), at={'x': X}) in SURE",
    "recorded PyTorch": "import torch\nf = lambda x: torch.special.erfcx(x)**2\n"
    "g = lambda x: 2*torch.special.erfcx(x)*(2*x*torch.special.erfcx(x) - 2/math.sqrt(math.pi))\n"
    "assert verdict(f, g, at={'x': torch.tensor(X, dtype=torch.float64)}) in SURE",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a process prints that declares the operation and takes every reading of it."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "declared.py").write_text(DECLARATION)
    lines = [START]
    for name, code in READINGS.items():
        body = "\n".join(f"    {line}" for line in code.split("\n"))
        lines.append(f"try:\n{body}\nexcept BaseException as problem:\n    print({name!r}, repr(problem))")
        lines.append(f"else:\n    print({name!r}, 'is right')")
    (folder / "readings.py").write_text("\n".join(lines))
    command = [sys.executable, str(folder / "readings.py"), str(folder / "declared.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600).stdout


@pytest.mark.peers
@pytest.mark.parametrize("name", READINGS)
def test_every_reading_knows_the_operation(name: str, outcome: str) -> None:
    for library in ("torch", "jax"):
        pytest.importorskip(library)
    assert f"{name} is right" in outcome.splitlines(), outcome


def test_the_declaration_has_thirteen_lines() -> None:
    inside = DECLARATION[DECLARATION.index("elementwise(\n") :].rpartition("    )")[0].strip().splitlines()
    assert len(inside) <= 13
