"""Start-up is a feature: what each command may import, read from a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "scipy", "sympy", "flint", "rich", "typer", "pydantic", "cupy", "jax", "torch", "numba"}
SLOW = {"dataclasses", "inspect", "tomllib", "argparse", "logging", "asyncio", "multiprocessing"}

PROBE = (
    "import io, sys\n"
    "from gradcli.interfaces import cli\n"
    "told, sys.stdout = sys.stdout, io.StringIO()\n"
    "code = cli.main(sys.argv[1:])\n"
    "print(code, *sorted(sys.modules), file=told)\n"
)


def modules(tmp_path: Path, *arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    code, *loaded = done.stdout.split()
    assert code == "0", done.stderr
    return set(loaded)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["grad", "(x*y+x)**2", "--at", "x=2,y=3"],
        ["grad", "(x*y+x)**2", "--at", "x=2,y=3", "--format", "json"],
        ["grad", "exp(-x)*sin(y) + log(x)", "--at", "x=2,y=3", "--order", "3"],
        ["eval", "hypot(x, y)", "--at", "x=3,y=4"],
        ["hessian", "x**2*y + sin(y)", "--at", "x=1.5,y=-0.5"],
        ["trace", "(x*y+x)**2", "--at", "x=2,y=3", "--why-topo"],
        ["explain", "GC101"],
    ],
    ids=" ".join,
)
def test_scalar_commands_import_neither_numpy_nor_typer_nor_rich(arguments: list[str], tmp_path: Path) -> None:
    assert modules(tmp_path, *arguments) & (HEAVY | SLOW) == set()


def test_the_command_handles_signals_before_it_imports_anything() -> None:
    """Until then Ctrl-C ends in a traceback, as everywhere in Python."""
    code = (
        "import sys, _signal\n"
        "before = set(sys.modules)\n"
        "import gradcli.__main__\n"
        "print(_signal.getsignal(_signal.SIGINT), *sorted(set(sys.modules) - before))\n"
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"0", "__future__", "gradcli", "gradcli.__main__"}
    assert done.stdout.split()[0] == "0"  # SIG_DFL


def test_completions_import_nothing_heavy(tmp_path: Path) -> None:
    """They list the operations of plug-ins, and `importlib.metadata` imports `inspect` since Python 3.14."""
    assert modules(tmp_path, "completions", "bash") & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], [], ["grad", "--help"]], ids=" ".join)
def test_help_needs_typer_only(arguments: list[str], tmp_path: Path) -> None:
    loaded = modules(tmp_path, *arguments)
    assert "typer" in loaded
    assert loaded & {"numpy", "scipy", "sympy", "flint", "rich"} == set()
    rooms = {name for name in loaded if name.startswith("gradcli.")}
    assert not [name for name in rooms if name.startswith(("gradcli.primitives", "gradcli.calculator"))]


def test_arrays_need_numpy_only(tmp_path: Path) -> None:
    loaded = modules(tmp_path, "grad", "sum(w**2)", "--at", "w=[1,2,3]")
    assert "numpy" in loaded
    assert loaded & (HEAVY - {"numpy"}) == set()


def test_a_configuration_is_read_only_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert "tomllib" not in modules(tmp_path, "explain", "GC101")
    (tmp_path / "gradcli.toml").write_text("digits = 5\n")
    assert "tomllib" in modules(tmp_path, "explain", "GC101")


def test_diagnosis_is_loaded_for_what_is_wrong_only(tmp_path: Path) -> None:
    loaded = modules(tmp_path, "check", "x**2*y", "--claim", "x = 2*x*y", "--at", "x=2,y=3")
    rooms = ("gradcli.checks.diagnosis", "gradcli.checks.rewrites", "gradcli.formulas")
    assert "gradcli.checks.decide.verdict" in loaded
    assert not [name for name in loaded if name.startswith(rooms)]
    assert "sympy" not in loaded and "flint" not in loaded  # they are in the process for exact arithmetic
    assert "hashlib" not in loaded  # with OpenSSL


def test_the_process_for_exact_arithmetic_loads_neither_the_language_nor_arrays() -> None:
    code = "import gradcli.checks.oracle.oracle_server, gradcli.checks.algebra.proof, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = ("gradcli.language", "gradcli.lowering", "numpy", "sympy")
    assert not [name for name in done.stdout.split() if name.startswith(rooms)]


@pytest.mark.peers
@pytest.mark.parametrize("arguments", [["why"], ["graph"], ["run"], ["run", "--trace"]], ids=" ".join)
def test_a_file_on_pytorch_loads_none_of_our_tensors(arguments: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "file.py").write_text("import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n")
    loaded = modules(tmp_path, *arguments, "--on", "torch", "file.py")
    assert "torch" in loaded and "gradcli.recording.runs.script_run" in loaded
    assert not [name for name in loaded if name.startswith("gradcli.eager")]
