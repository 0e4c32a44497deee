"""`gradcli audit`: programs with planted slips run as they would alone, and each slip is found, and nothing else."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcli import audit
from tests.rendering.test_schema import validator

ROOT = Path(__file__).parents[2]
WATCHING = Path(audit.__file__).parent / "watching"

SOLVERS = """
import sys
import numpy as np
from scipy.optimize import minimize, curve_fit
from scipy.integrate import solve_ivp

A = np.diag([1.0, 2.0, 3.0])
f = lambda x: float(x @ A @ x / 2 + np.sin(x).sum())

def right(x):
    return A @ x + np.cos(x)

def wrong(x):
    return A @ x - np.cos(x)

minimize(f, np.ones(3), jac=right, method="BFGS", options={"maxiter": 1})
minimize(f, np.ones(3), jac=wrong, method="BFGS", options={"maxiter": 1})
t = np.linspace(0, 1, 7)
model = lambda t, a, b: a*np.exp(-b*t)
def columns(t, a, b):
    return np.stack([np.exp(-b*t), -t*a*np.exp(-b*t)], 1)
curve_fit(model, t, 2*np.exp(-t), p0=[2.0, 1.0], jac=columns)
print("out", sys.stdin.read())
print("err", file=sys.stderr)
"""


def run(folder: Path, *argv: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, in a folder; what it audits may take long on a loaded machine."""
    if {"--", "--pairs", "--again"} & {*argv} and "--timeout" not in argv:
        argv = (argv[0], "--timeout", "60", *argv[1:])
    command = [sys.executable, "-m", "gradcli", *argv]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    env |= {"GRADCLI_CACHE": str(folder / "cache"), **environment}
    return subprocess.run(
        command, cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=240, check=False
    )


def audited(folder: Path, program: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and each gradient of a program by its name."""
    (folder / "program.py").write_text(program)
    done = run(folder, "audit", "--json", "found.json", *options, "--", sys.executable, "program.py")
    path = folder / "found.json"
    assert path.exists(), done.stderr
    found = json.loads(path.read_text())
    validator("audit").validate(found)
    assert found["faults"] == []
    return done.returncode, {one["name"]: one for one in found["gradients"]}


def test_a_program_of_solvers(tmp_path: Path) -> None:
    """The planted slip fails the run; streams are the program's own, and the report files say the same."""
    (tmp_path / "program.py").write_text(SOLVERS)
    options = ("--json", "found.json", "--junit", "found.xml", "--output", "report.txt")
    done = run(tmp_path, "audit", *options, "--", sys.executable, "program.py", given="typed")
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (1, "out typed\n", "err")
    found = json.loads((tmp_path / "found.json").read_text())
    validator("audit").validate(found)
    told = {one["name"]: (one["verdict"], one["passed"], one["owned"], one["line"]) for one in found["gradients"]}
    assert told == {
        "right": ("AGREES", True, True, 10),
        "wrong": ("DISAGREES", False, True, 13),
        "columns": ("PROVED", True, True, 20),
    }
    assert found["gradients"][0]["called_from"] == "program.py:17"
    assert found["processes"] == 1  # what judging starts is not counted
    xml = (tmp_path / "found.xml").read_text()
    assert 'failures="1"' in xml and 'name="jac= of minimize wrong line 13"' in xml
    assert "1.54030230587" in (tmp_path / "report.txt").read_text()


BOUNDARY = """
import numpy as np
from scipy.integrate import solve_bvp

def fun(x, y, p):
    return np.vstack([y[1], -p[0]**2 * np.sin(y[0])])

def fun_jac(x, y, p):
    by_y, by_p = np.zeros((2, 2, x.size)), np.zeros((2, 1, x.size))
    by_y[0, 1], by_y[1, 0], by_p[1, 0] = 1, -p[0]**2 * np.cos(y[0]), -2 * p[0] * np.sin(y[0])
    return by_y, by_p

def bc_jac(ya, yb, p):
    return np.array([[1.0, 0], [0, 0], [0, 1]]), np.array([[0, 0], [1.0, 0], [0, 0]]), np.array([[0], [0], [1.0]])

x, y = np.linspace(0, 1, 5), np.array([[0, 1, 0, -1.0, 0], np.zeros(5)])
bc = lambda ya, yb, p: np.array([ya[0], yb[0], ya[1] - p[0]])
solve_bvp(fun, bc, x, y, p=[6], fun_jac=fun_jac, bc_jac=bc_jac)
free = lambda x, y: np.vstack([y[1], -np.exp(y[0])])
free_jac = lambda x, y: np.stack([np.stack([0*x, 1 + 0*x]), np.stack([np.exp(y[0]), 0*x])])
solve_bvp(free, lambda ya, yb: np.array([ya[0], yb[0]]), x, y, fun_jac=free_jac)
"""


def test_boundary_value_problems(tmp_path: Path) -> None:
    """A Jacobian for each point of the mesh, by the parameters too, and those of the boundary conditions."""
    code, found = audited(tmp_path, BOUNDARY)
    verdicts = {name: (one["role"], one["verdict"]) for name, one in found.items()}
    assert (code, verdicts) == (
        1,
        {
            "fun_jac": ("fun_jac= of solve_bvp", "AGREES"),
            "bc_jac": ("bc_jac= of solve_bvp", "DISAGREES"),
            "<lambda>": ("fun_jac= of solve_bvp", "DISAGREES"),
        },
    )
    assert "with respect to p" in found["bc_jac"]["message"] and "y[0, 1]" in found["<lambda>"]["message"]


@pytest.mark.parametrize(
    ("options", "program", "code", "told"),
    [
        ((), ("-c", "import sys; sys.exit(7)"), 7, "the command ended with exit code 7"),
        ((), ("-c", "import os; os.kill(os.getpid(), 15)"), 143, "the command ended with exit code 143"),
        ((), ("-c", "1"), 5, "no hand-written gradient was called"),
        ((), ("-I", "-c", "1"), 5, "0 Python processes reported"),
        (("--report-only",), ("-c", "1"), 0, "no hand-written gradient was called"),
        (("--expect", "f=FINE"), ("-c", "1"), 2, "GC723"),
    ],
)
def test_exit_codes(tmp_path: Path, options: tuple[str, ...], program: tuple[str, ...], code: int, told: str) -> None:
    done = run(tmp_path, "audit", *options, "--", sys.executable, *program)
    assert done.returncode == code
    assert told in done.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    for argv in (["audit"], ["audit", "--", "no-such-command"]):
        done = run(tmp_path, *argv)
        assert done.returncode == 2 and "GC745" in done.stderr


def test_the_hidden_sitecustomize_runs(tmp_path: Path) -> None:
    """A user's own `sitecustomize` runs, and the path has nothing of ours; the first "mine" is gradcli's own process."""
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    program = (
        "import sys, sitecustomize; print(sitecustomize.__file__); print([p for p in sys.path if 'injected' in p])"
    )
    command = (sys.executable, "-c", program)
    done = run(tmp_path, "audit", "--", *command, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert done.stdout.splitlines()[1:4] == ["mine", str(tmp_path / "sitecustomize.py"), "[]"]


def test_watching_needs_the_standard_library_only() -> None:
    """At import; libraries are used inside functions, where they are imported already."""
    for path in sorted(WATCHING.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root in sys.stdlib_module_names or name.startswith("gradcli.audit.watching"), f"{path}: {name}"


@pytest.mark.peers
def test_functions_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, found = audited(
        tmp_path,
        (ROOT / "tests" / "support" / "audited_torch.py").read_text(),
        "--timeout",
        "60",
        "--expect",
        "Reversed=SURROGATE",
    )
    assert code == 1
    assert verdicts(found) == {
        "Cube": "DISAGREES",
        "Square": "PROVED",
        "Step": "SURROGATE",
        "Reversed": "SURROGATE",
        "Quiet": "NOT JUDGED",
        "Away": "NOT JUDGED",
    }
    (point,) = found["__main__.Cube"]["points"]
    assert point["message"].startswith("the exact derivative") and point["evidence"]["diagnosis"], point
    assert "are on meta" in found["__main__.Away"]["message"]
    assert found["__main__.Quiet"]["calls_without_gradient"] == 1
    assert found["__main__.Reversed"]["expected"] == "SURROGATE" and found["__main__.Reversed"]["passed"]


OPERATIONS = """
import torch

def defined(name, factor):
    @torch.library.custom_op(f"audited::{name}", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    def backward(ctx, g):
        return factor * g * ctx.x**2

    def set_up(ctx, inputs, output):
        (ctx.x,) = inputs

    cube.register_autograd(backward, setup_context=set_up)
    return cube

x = torch.tensor([0.5, -1.5], requires_grad=True)
for name, factor in (("right", 3), ("wrong", 2)):
    defined(name, factor)(x).sum().backward()
"""


@pytest.mark.peers
def test_custom_operations_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, found = audited(tmp_path, OPERATIONS)
    assert code == 1
    told = {name: (one["verdict"], one["line"]) for name, one in found.items()}
    assert told == {"audited::right": ("AGREES", 9), "audited::wrong": ("DISAGREES", 9)}


NONLINEAR = """
import numpy as np
from scipy.optimize import NonlinearConstraint, minimize

def circle(x):
    return np.array([x[0]**2 + x[1]**2, x[0]*x[1]])

def circle_jac(x):
    return np.array([[2*x[0], 2*x[1]], [x[1], x[0]]])

def circle_hess(x, v):
    return np.array([[2*v[0], v[1]], [v[1], v[0]]])  # wrong: the last 2

bounds = NonlinearConstraint(circle, [0, 0.1], [2, 1], jac=circle_jac, hess=circle_hess)
minimize(lambda x: x[0] + x[1], [1.0, 0.5], constraints=bounds, method="trust-constr", options={"maxiter": 2})
"""


def test_nonlinear_constraints(tmp_path: Path) -> None:
    code, found = audited(tmp_path, NONLINEAR)
    assert code == 1
    assert verdicts(found) == {"circle_jac": "PROVED", "circle_hess": "DISAGREES"}


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    """The verdict of each gradient, by the last part of its name."""
    return {name.rpartition(".")[2]: one["verdict"] for name, one in found.items()}


def test_marked_gradients(tmp_path: Path) -> None:
    code, found = audited(tmp_path, (ROOT / "tests" / "support" / "audited_python.py").read_text())
    assert (code, verdicts(found)) == (1, {"force": "DISAGREES", "slope": "PROVED"})
    assert [point["call"] for point in found["__main__.slope"]["points"]] == [1, 2, 8]
    assert "minus the claim" in found["__main__.force"]["message"]


def test_a_saved_point_is_judged_again(tmp_path: Path) -> None:
    """From any folder; a program that comes to another point says so."""
    program = (ROOT / "tests" / "support" / "audited_python.py").read_text()
    (tmp_path / "program.py").write_text(program)
    first = run(tmp_path, "audit", "--", sys.executable, "program.py")
    assert first.returncode == 1
    (path,) = (tmp_path / "cache" / "audit").glob("*.json")
    assert f"gradcli audit --again {path}" in first.stdout
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = run(elsewhere, "audit", "--again", str(path))
    assert (again.returncode, again.stderr) == (1, "gradcli audit: 1 gradient of your own code failed\n")
    assert "minus the claim" in again.stdout and "slope" not in again.stdout
    (tmp_path / "program.py").write_text(program.replace("1.5, -1.0]), k", "1.25, -1.0]), k"))
    assert "reached a different point" in run(elsewhere, "audit", "--again", str(path)).stderr
    path.write_text("{}")
    assert "GC746" in run(elsewhere, "audit", "--again", str(path)).stderr


def test_what_is_expected(tmp_path: Path) -> None:
    """What is meant passes; what is expected and better fails, and names that nothing has are named."""
    settings = '[tool.gradcli.audit.expect]\nforce = "DISAGREES"\nslope = "SURROGATE"\nother = "KINK"\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "program.py").write_text((ROOT / "tests" / "support" / "audited_python.py").read_text())
    done = run(tmp_path, "audit", "--format", "csv", "--", sys.executable, "program.py")
    assert done.returncode == 1 and "no gradient is called other" in done.stderr
    rows = {line.split(",")[1].split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert "expected: DISAGREES" in rows["__main__.force"] and "expected: SURROGATE" in rows["__main__.slope"]
    (tmp_path / "pyproject.toml").write_text(settings.replace('slope = "SURROGATE"\nother = "KINK"\n', ""))
    done = run(tmp_path, "audit", "--", sys.executable, "program.py")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.peers
def test_primitives_of_autograd(tmp_path: Path) -> None:
    pytest.importorskip("autograd")
    program = (ROOT / "tests" / "support" / "audited_python.py").read_text()
    (tmp_path / "program.py").write_text(program)
    options = ("--json", "found.json", "--output", "report.txt")
    run(tmp_path, "audit", *options, "--", sys.executable, "program.py", "autograd")
    found = {one["name"]: one for one in json.loads((tmp_path / "found.json").read_text())["gradients"]}
    assert verdicts(found) == {"force": "DISAGREES", "slope": "PROVED", "logsumexp": "AGREES", "product": "DISAGREES"}
    assert {point["verdict"] for point in found["__main__.product"]["points"]} == {"AGREES", "DISAGREES"}


@pytest.mark.peers
@pytest.mark.deep
@pytest.mark.parametrize("options", [(), ("--no-callbacks",)])
def test_rules_of_jax(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Under jit, grad and vmap, with the numbers of the calls or with made-up ones."""
    pytest.importorskip("jax")
    code, found = audited(tmp_path, (ROOT / "tests" / "support" / "audited_jax.py").read_text(), *options)
    assert (code, verdicts(found)) == (
        1,
        {"right": "AGREES", "wrong": "DISAGREES", "closed": "DISAGREES", "sine": "DISAGREES"},
    )
    assert {Path(one["file"]).name for one in found.values()} == {"program.py"}  # also where JAX wraps the rule
    notes = found["__main__.wrong"]["notes"]
    assert any("random point" in one for one in notes) == bool(options)
    if not options:
        first = found["__main__.wrong"]["points"][0]["evidence"]
        assert first["at"] == {"x0": [0.5, 1.5, 2.5]} and first["worst"][0]["differences"] == pytest.approx(18.75)
