"""Operations of other packages: the example is installed, obeys the laws, and broken packages harm nothing else."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.primitives import plugins

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "samples" / "extending"
NAMES = ("gated", "quadratic_form", "softmax2", "dawson")


def installed_by_hand(source: Path, target: Path) -> Path:
    """The modules of a package and the metadata that an installer would write."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    metadata = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"]
    (metadata / "METADATA").write_text("".join(lines))
    points = project["entry-points"]["gradcli.operations"]
    text = "\n".join(f"{name} = {value}" for name, value in points.items())
    (metadata / "entry_points.txt").write_text(f"[gradcli.operations]\n{text}\n")
    for module in source.glob("*.py"):
        shutil.copy(module, target)
    return target


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the example is installed: by pip where it can build it, else by hand.

    Before version 70.1 setuptools needs the package wheel, which a new virtual environment does not have.
    """
    target = tmp_path_factory.mktemp("installed")
    if find_spec("pip") is None or find_spec("setuptools") is None or find_spec("wheel") is None:
        return installed_by_hand(EXAMPLE, target)
    source = shutil.copytree(
        EXAMPLE, tmp_path_factory.mktemp("source") / "example"
    )  # a build writes beside its sources
    options = [
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "--target",
        str(target),
    ]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, str(source)], check=True, timeout=300)
    return target


RUN = """
import contextlib, io, json, sys
from gradcli.interfaces import cli
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str


def ran(folders: list[Path], commands: list[list[str]]) -> list[Done]:
    """What command lines print, one after the other in one process, with the packages in these folders installed."""
    path = os.pathsep.join([*map(str, folders), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "120", "NO_COLOR": "1"}
    given = {"env": environment, "cwd": ROOT, "input": json.dumps(commands), "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, check=False, **given)
    assert done.returncode == 0, done.stderr
    return [Done(*json.loads(line)) for line in done.stdout.splitlines()]


def test_the_example_obeys_the_laws(example: Path) -> None:
    """The tables of tests/primitives/test_primitives.py, on these operations."""
    chosen = ["tests/primitives/test_primitives.py", "-k", " or ".join(NAMES), "-n", "0"]
    command = [sys.executable, "-m", "pytest", *chosen, "-q", "-p", "no:cacheprovider", "--color=no"]
    environment = {**os.environ, "PYTHONPATH": f"{example}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) == 2 * len(NAMES), done.stdout[-300:]


READINGS = (
    (("eval", "gated(2) + gated(1, 2)"), "value", 3 * 0.8807970779778823),
    (("grad", "dawson(x)", "--at", "x=0.5", "--order", "2"), "derivatives", {"x": [0.575563616497978, -1.4244363835020222]}),
    (("jacobian", "gated(x)", "--at", "x=[0, 1]"), "jacobian", {"x": [[0.5, 0.0], [0.0, 0.9276705118714867]]}),
    (("hessian", "quadratic_form(A, x)", "--at", "A=[[2,0],[0,4]],x=[1,3]", "--wrt", "x"), "hessian", {"x": {"x": [[2.0, 0.0], [0.0, 4.0]]}}),
    (("derive", "quadratic_form(A, x)", "--wrt", "x"), "formula", {"x": "(A + A.T) @ x/2"}),
    (("derive", "dawson(a*x)", "--wrt", "x"), "formula", {"x": "a*(1 - 2*a*x*dawson(a*x))"}),
    (("grad", "softmax2(x, y)", "--at", "x=1000,y=0"), "gradient", {"x": 1.0, "y": 0.0}),
)  # fmt: skip


VERDICTS = (
    ("gated(x, b)", "x=0.5,b=2", "x = sigmoid(b*x) + b*x*sigmoid(b*x)*(1 - sigmoid(b*x))", ["PROVED"] * 3),
    ("dawson(x)", "x=0.5", "x = 1 - 2*x*dawson(x)", ["PROVED", "PROVED"]),
    ("dawson(x)", "x=0.5", "x = 1 - x*dawson(x)", ["PROVED", "DISAGREES"]),
    ("softmax2(x, y)", "x=1,y=2", "x = 1/(1 + exp(y - x))", ["PROVED"] * 3),
    ("quadratic_form(A, x)", "A=[[1,2],[3,4]],x=[1,2]", "x = A@x", ["PROVED", "PROVED", "DISAGREES"]),
)


def numbers(found: Any) -> tuple[str, list[float]]:
    """A JSON value as its text without numbers, and its numbers."""
    pattern, text = r"-?\d+\.?\d*(?:e-?\d+)?", json.dumps(found)
    return re.sub(pattern, "#", text), [float(one) for one in re.findall(pattern, text)]


def test_every_reading(example: Path) -> None:
    """Values, derivatives, formulas and verdicts, by the commands."""
    checks = [["check", script, "--at", at, "--claim", claim] for script, at, claim, _ in VERDICTS]
    commands = [[*command, "--format", "json"] for command in (*[row[0] for row in READINGS], *checks, ("ops",))]
    done = [json.loads(one.out) for one in ran([example], commands)]
    for (command, key, expected), found in zip(READINGS, done, strict=False):
        form, values = numbers(found[key])
        right, exact = numbers(expected)
        assert form == right, command
        assert values == pytest.approx(exact, rel=1e-14), command
    for (script, _, claim, expected), found in zip(VERDICTS, done[len(READINGS) :], strict=False):
        assert [one["verdict"] for one in found["checks"]] == expected, (script, claim)
    assert {one["name"] for one in done[-1]["operations"]} >= set(NAMES)


def test_its_formula_is_emitted(example: Path) -> None:
    """As code that runs without the package."""
    (one,) = ran([example], [["derive", "softmax2(x, y)*gated(x)", "--emit", "numpy"]])
    module: dict[str, Any] = {}
    exec(one.out, module)
    module["test_values"]()
    assert "softmax2" not in one.out.partition("def value")[2], one.out


def test_a_formula_is_named_in_errors_about_it(example: Path) -> None:
    (one,) = ran([example], [["eval", "quadratic_form(A, x)", "--at", "A=[[1,2],[3,4]],x=[1,2,3]"]])
    assert "<formula of quadratic_form>:1:1" in one.err, one


def test_it_is_shown(example: Path) -> None:
    rule, trace = ran([example], [["ops", "dawson"], ["trace", "dawson(x)", "--at", "x=1"]])
    assert "1 - 2*x*dawson(x)" in rule.out
    assert "dawson" in trace.out


BROKEN = {
    "import": ("import does_not_exist", "ModuleNotFoundError"),
    "exit": ("raise SystemExit(3)", "SystemExit"),
    "success": ("import sys; sys.exit(0)", "SystemExit"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "generator": ("raise GeneratorExit", "GeneratorExit"),
    "own": ("class Odd(BaseException): pass\nraise Odd('x')", "Odd: x"),
    "silent": ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd", "Odd"),
    "memory": ("raise MemoryError", "MemoryError"),
    "recursion": ("def f(): f()\nf()", "RecursionError"),
    "system": ("open('/nowhere')", "FileNotFoundError"),
    "attributes": ("import sys\nclass M:\n    __slots__ = ()\nsys.modules[__name__] = M()", "plug-in"),
    "syntax": ("def f(:", "SyntaxError"),
    "empty": ("x = 1", "holds no operation"),
    "clash": ("import gradcli\nf = gradcli.operation('sin(x)', 'cos(x)')", "`sin` is an operation of gradcli"),
    "alias": ("import gradcli\nf = gradcli.operation('ln(x)', 'log(x)')", "`ln` is an operation of gradcli"),
    "formula": ("import gradcli\nf = gradcli.operation('f(x)', 'x*(')", "operation f: "),
    "arity": ("import gradcli, math\nf = gradcli.operation('f(x)', value=math.pow, partials={'x': '1'})", "takes 2 arguments"),
}  # fmt: skip


def package(name: str, module: str, entry: str, folder: Path) -> Path:
    """A package with one module, installed in a folder."""
    source = folder / "source"
    source.mkdir()
    (source / f"{entry.partition(':')[0]}.py").write_text(module)
    points = f'[project.entry-points."gradcli.operations"]\nx = "{entry}"\n'
    (source / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "1"\n{points}')
    return installed_by_hand(source, folder / "installed")


UNKNOWN = ["eval", "no_such_function(1)"]


def test_broken_packages_are_named_and_harm_nothing(example: Path, tmp_path: Path) -> None:
    folders = []
    for fault, (module, _) in BROKEN.items():
        (folder := tmp_path / fault).mkdir()
        folders.append(package(f"broken-{fault}", module, f"broken_{fault}", folder))
    ours, others, listed, unknown = ran(
        [*folders, example], [["eval", "sin(0)"], ["eval", "gated(0)"], ["ops"], UNKNOWN]
    )
    for one in (ours, others):
        assert (one.code, one.err) == (0, "") and one.out.endswith("value  0.0\n")
    assert (listed.code, unknown.code) == (0, 2)
    assert "error[GC201]" in unknown.err
    for one in (listed, unknown):
        assert "Traceback" not in one.err and one.err.count("[GC216]") == len(BROKEN)
        named = one.err.split("[GC216]")[1:]
        for fault, (_, message) in BROKEN.items():
            assert [text for text in named if f"broken-{fault}" in text and message in text], fault


VALUES = (  # of an operation of one number, and what is said of them
    ("'exp(x)'", "its value is a str, not a function"),
    ("lambda x: 1/0", "its value raised ZeroDivisionError: division by zero"),
    ("lambda x: x[:1]", "its value raised IndexError"),
    ("lambda x: None", "its value returns NoneType"),
    ("lambda x: 'a'", "its value returns str"),
    ("lambda x: x + 1j", "its value returns complex128"),
    ("lambda x: [x, x]", "its value returns list of shape (2,), its operands have shape ()"),
)


@pytest.mark.parametrize(("value", "message"), VALUES)
def test_a_value_that_fails_is_named(value: str, message: str, tmp_path: Path) -> None:
    """In every reading by numbers, as a fault of the operation."""
    module = f"import gradcli\nf = gradcli.operation('zig(x)', value={value}, partials={{'x': '1'}})"
    folder = package("broken-value", module, "broken_value", tmp_path)
    for one in ran([folder], [[command, "zig(x)", "--at", "x=1"] for command in ("eval", "grad", "trace", "check")]):
        assert "GC999" not in one.err and "GC216" in one.err + one.out and message in one.err + one.out, one


def test_values_of_arrays_work_on_numbers(tmp_path: Path) -> None:
    module = "import gradcli\nf = gradcli.operation('inv1(x)', value=lambda x: 1/x, partials={'x': '-out**2'})"
    folder = package("one-over", module, "one_over", tmp_path)
    (one,) = ran([folder], [["eval", "inv1(x)", "--at", "x=0"]])
    assert "value  inf" in one.out, one


def test_the_same_name_in_two_packages(example: Path, tmp_path: Path) -> None:
    """Which of them counts must not depend on an order that nobody sees: neither does."""
    module = "import gradcli\nf = gradcli.operation('gated(x)', 'x')"
    folder = package("second-example", module, "second_example:f", tmp_path)
    (done,) = ran([folder, example], [["eval", "gated(1)"]])
    assert done.code == 2
    assert "gradcli-example" in done.err and "second-example" in done.err


def test_cached_reports_depend_on_the_plug_ins(example: Path, tmp_path: Path) -> None:
    """A stored verdict is not used again after the code of a plug-in has changed."""
    code = "from gradcli.batch.journal import Journal; print(Journal.stamp({}).hex())"
    folder = package("some-example", "x = 1", "some_example", tmp_path)

    def stamp(*folders: Path) -> str:
        path = os.pathsep.join([*map(str, folders), str(ROOT)])
        given = {"env": {**os.environ, "PYTHONPATH": path}, "text": True, "timeout": 60}
        return str(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, **given).stdout)

    stamps = [stamp(), stamp(folder), stamp(folder)]
    (folder / "some_example.py").write_text("x = 2")
    stamps.append(stamp(folder))
    assert stamps[1] == stamps[2] and len(set(stamps)) == 3 and stamps[0]


def test_without_plug_ins_nothing_is_searched(tmp_path: Path) -> None:
    """Reading the metadata of installed packages would cost more than a gradient."""
    code = "import sys; from gradcli.interfaces import cli; cli.main(sys.argv[1:]); sys.exit('importlib.metadata' in sys.modules)"
    for arguments in (["grad", "sin(x)**2 + y", "--at", "x=1,y=2"], ["eval", "softmax(w)", "--at", "w=[1, 2]"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr


REFUSED = (
    (("f", "x"), {}, "is not the form of a call"),
    (("f(2)", "x"), {}, "is not the form of a call"),
    (("f(x, x)", "x"), {}, "names of their own"),
    (("f(x, b=y)", "x"), {}, "the default of `b`"),
    (("grad(x)", "x"), {}, "word of the language"),
    (("f(out)", "out"), {}, "word of the language"),
    (("f(x)", "x*y"), {}, "`y` is not one of its arguments"),
    (("f(x)", "sine(x) +"), {}, "operation f: "),
    (("f(x)", "f(x/2)"), {}, "calls itself"),
    (("f(x)", "x, 2*x"), {}, "several results"),
    (("f(x)", "x*sum([1, 2])"), {}, "array of constants"),
    (("f(x)", "x"), {"partials": {"x": "1"}}, "it needs a formula, or a value and partials"),
    (("f(x)",), {}, "it needs a formula, or a value and partials"),
    (("f(x)",), {"value": abs}, "it needs a formula, or a value and partials"),
    (("f(x, y)",), {"value": pow, "partials": {"x": "1"}}, "partials has no `y`"),
    (("f(x)",), {"value": abs, "partials": {"x": "1", "y": "2"}}, "partials names `y`"),
    (("f(x)",), {"value": abs, "partials": {"x": "x*"}}, "operation f: "),
    (("f(x)",), {"value": abs, "partials": {"x": "x*t"}}, "`t` is not one of its arguments"),
    (("f(x)",), {"value": divmod, "partials": {"x": "1"}}, "its value takes 2 arguments, its form 1"),
    (("f(A)", "trace(A)"), {"value": lambda xp, A: A}, "a formula of arrays"),
    (("f(x)", "x"), {"domain": ["x > 0"]}, "is not an interval"),
)


@pytest.mark.parametrize(("form", "options", "message"), REFUSED)
def test_a_declaration_that_does_not_fit(form: tuple[str, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(GradcliError) as problem:
        gradcli.operation(*form, **options)
    (first,) = problem.value.diagnostics
    assert first.code == "GC216" and message in first.message, first.message


def test_scripts_of_the_process_know_it_at_once() -> None:
    gradcli.operation("zag(x, b=1)", "x*sigmoid(b*x)")
    assert gradcli.grad("zag(x)", at={"x": 0.0}).gradient == {"x": 0.5}
    report = gradcli.check("zag(x)", at={"x": 0.5}, claims={"x": "sigmoid(x)*(1 + x*(1 - sigmoid(x)))"})
    assert [check.verdict for check in report.checks] == ["PROVED", "PROVED"], report
    gradcli.operation("zag(x)", "x**3")
    assert gradcli.grad("zag(x)", at={"x": 2.0}).gradient == {"x": 12.0}, "the second declaration counts"
    with pytest.raises(GradcliError):
        gradcli.operation("zag(x)", value=np.square, partials={"x": "x"})
    assert gradcli.grad("zag(x)", at={"x": 2.0}).gradient == {"x": 12.0}, "one that is refused changes nothing"
    with pytest.raises(GradcliError, match="an operation of gradcli"):
        gradcli.operation("sin(x)", "x")


def test_without_exact_readings_no_wrong_claim_passes() -> None:
    """What computes exact readings is another process, which does not know functions of this one."""
    gradcli.operation("zog(x)", value=np.square, partials={"x": "2*x"})
    assert gradcli.check("zog(x)", at={"x": 0.5}, claims={"x": "2*x"}).ok
    assert not gradcli.check("zog(x)", at={"x": 0.5}, claims={"x": "3*x"}).ok


JUDGED: tuple[tuple[str, Any, dict[str, str], dict[str, Any], str], ...] = (
    ("f(x)", np.square, {"x": "2*x"}, {}, ""),
    ("f(x)", np.square, {"x": "3*x"}, {}, "its partial with respect to x, 3*x, is -1.56 at x = -0.52"),
    ("f(x)", np.square, {"x": "2*x + 1e-3"}, {}, "its partial with respect to x"),
    ("f(x)", np.square, {"x": "0*x/0"}, {}, "its partial with respect to x"),
    ("f(x, y)", np.multiply, {"x": "y", "y": "y"}, {}, "its partial with respect to y"),
    ("f(x, y)", np.multiply, {"x": "y", "y": "x"}, {}, ""),
    ("f(x)", np.log, {"x": "1/x"}, {"domain": ["(0, inf)"]}, ""),
    ("f(x)", np.log, {"x": "1/x"}, {"sample": [(1e-9, 2e-9)]}, ""),
    ("f(x)", np.log, {"x": "-1/x"}, {"domain": ["(0, inf)"]}, "its partial with respect to x"),
    ("f(x)", np.log, {"x": "1/x"}, {"domain": ["(-9, -1)"]}, "not finite at any sample point"),
    ("f(x)", np.abs, {"x": "sign(x)"}, {"sample": [(-0.37, 0.63)], "kinks": {"x": "0"}}, ""),
    ("f(x)", np.abs, {"x": "-sign(x)"}, {"sample": [(-0.37, 0.63)], "kinks": {"x": "0"}}, "its partial with"),
    ("f(x)", np.floor, {"x": "0"}, {}, ""),
    ("f(x)", lambda x: np.exp(np.float32(x)), {"x": "out"}, {}, ""),
    ("f(x)", math.exp, {"x": "out"}, {}, ""),
    ("f(x)", lambda x: 1e200 * x, {"x": "1e200"}, {}, ""),
    ("f(x)", lambda x: 1e-200 * x**2, {"x": "2e-200*x"}, {}, ""),
    ("f(x)", lambda x: np.sin(1e6 * x), {"x": "1e6*cos(1e6*x)"}, {}, ""),
    ("f(x)", lambda x: np.sin(1e5 * x), {"x": "1e5*sin(1e5*x)"}, {}, "its partial with respect to x"),
    ("f(x)", lambda x: np.exp(np.float32(x)), {"x": "1.1*out"}, {}, "its partial with respect to x"),
)  # fmt: skip


@pytest.mark.parametrize(("form", "value", "partials", "options", "message"), JUDGED, ids=range(len(JUDGED)))
def test_partials_are_judged(form: str, value: Any, partials: Any, options: Any, message: str) -> None:
    try:
        gradcli.operation(form, value=value, partials=partials, **options)
    except GradcliError as problem:
        assert message and message in problem.diagnostics[0].message, problem
    else:
        assert not message


def test_a_value_is_judged_by_its_formula() -> None:
    gradcli.operation("f(x)", "log(1 + exp(x))", value=lambda xp, x: xp.log1p(xp.exp(x)))
    with pytest.raises(GradcliError, match=r"its value is .* and its formula gives"):
        gradcli.operation("f(x)", "log(1 + exp(x))", value=lambda xp, x: xp.log(xp.exp(x)))


OPS = """print('a word of its own')
import gradcli, numpy
gradcli.operation("gated7(x, b=1)", "x*sigmoid(b*x)", sample=[(-2, 2), (0.5, 2)], examples={"gated7(0)": 0})
gradcli.operation("cube7(x)", value=lambda x: x**3, partials={"x": "3*x**2"})
"""
SCRIPTS = {
    "right.grad": "x = 2\nf = gated7(x)\nassert grad(f, x) == sigmoid(x)*(1 + x - x*sigmoid(x))\nf",
    "wrong.grad": "x = 2\nf = gated7(x)\nassert grad(f, x) == 3*x**2\nf",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with operations and two scripts that call them."""
    for name, text in {"ops.py": OPS, **SCRIPTS}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.gradcli]\nimport = ["ops.py"]\n')
    return tmp_path


def command(folder: Path, *arguments: str) -> Done:
    words = [sys.executable, "-m", "gradcli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_file_of_operations_is_imported(project: Path) -> None:
    """By its option and by settings, in the workers of `check` too, whose reports are as those of other scripts."""
    by_option = command(project, "check", "right.grad", "wrong.grad", "--import", "ops.py", "--format", "json")
    assert "--import ops.py" in command(project, "check", "wrong.grad", "--import", "ops.py").out, "to reproduce it"
    by_settings = command(project, "check", "right.grad", "wrong.grad", "--format", "json", "--jobs", "2")
    for done in (by_option, by_settings):
        checks = json.loads(done.out)["checks"]
        assert done.code == 1, done
        assert [check["passed"] for check in checks] == [True, True, True, False], checks
        assert done.err.count("a word of its own") == 1 and "GC999" not in done.err
    assert "GC727" in by_settings.err and "ops.py executed" in by_settings.err
    assert "GC727" not in by_option.err
    below = project / "below"
    below.mkdir()
    assert json.loads(command(below, "eval", "cube7(2)", "--format", "json").out)["value"] == 8


def test_a_report_is_not_taken_from_the_journal_after_the_file_has_changed(project: Path) -> None:
    assert command(project, "check", "right.grad").code == 0
    (project / "ops.py").write_text(OPS.replace("x*sigmoid(b*x)", "x*sigmoid(b*x) + x"))
    assert command(project, "check", "right.grad").code == 1


IMPORTS = (
    ("missing.py", None, "no such Python file"),
    ("ops.txt", OPS, "no such Python file"),
    ("ops.py", "x = 1", "declares no operation"),
    ("ops.py", "x = 1\nraise ValueError('no')", "line 2: ValueError: no"),
    ("ops.py", "def f(:", "line 1: SyntaxError"),
    ("ops.py", "import sys\nsys.exit(0)", "SystemExit"),
    ("ops.py", "import gradcli\ngradcli.operation('sin(x)', 'x')", "an operation of gradcli"),
    ("ops.py", "import gradcli\ngradcli.operation('f(x)', value=abs, partials={'x': '2'})", "its partial with respect to x"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), IMPORTS, ids=range(len(IMPORTS)))
def test_a_file_that_cannot_be_imported(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    """Nothing is judged."""
    if text is not None:
        (tmp_path / name).write_text(text)
    done = command(tmp_path, "check", "x**2", "--at", "x=1", "--import", name)
    assert (done.code, done.out) == (2, "") and "[GC216]" in done.err and message in done.err, done


def test_laws_of_one_operation(project: Path, tmp_path: Path) -> None:
    for name in ("gated7", "cube7", "log1p"):
        done = command(project, "ops", name, "--check", "--format", "json")
        results = {law["law"]: law["result"] for law in json.loads(done.out)["laws"]}
        assert done.code == 0 and set(results.values()) <= {"ok", "-"} and results["third derivatives"] == "ok", done
    broken = "import gradcli\nf = gradcli.operation('zig(x)', {}, examples={{'zig(1)': {}}})"
    for number, (body, example, laws) in enumerate(
        (
            ("value=lambda x: x**3, partials={'x': '2*x**2'}", 1, {"first derivatives"}),
            ("'x**3'", 2, {"examples"}),
            ("value=lambda x: x**3, partials={'x': '3*x**2'}, domain=['(0, inf)']", 1, {"domain"}),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        (done,) = ran(
            [package("broken-law", broken.format(body, example), "broken_law", folder)],
            [["ops", "zig", "--check", "--format", "json"]],
        )
        failed = {law["law"] for law in json.loads(done.out)["laws"] if law["result"] == "FAIL"}
        assert done.code == 1 and laws <= failed, done


@pytest.mark.parametrize(("place", "found"), [("a-1.dist-info", True), ("a.egg-info", True), ("a", False)])
def test_packages_are_searched_by_their_metadata(
    place: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / place).mkdir()
    (tmp_path / place / "entry_points.txt").write_text("[gradcli.operations]\na = a_module\n")
    (tmp_path / place / "METADATA").write_text("Metadata-Version: 2.1\nName: a\nVersion: 1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    backport = [one for one in sys.meta_path if type(one).__module__.startswith("importlib_metadata")]
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    assert plugins.any_package() is found
    sys.meta_path += backport  # it takes over where a library has imported it
    assert [point.value for point in plugins.entry_points()] == ["a_module"] * found


def test_without_plugins_an_unknown_name_imports_no_metadata() -> None:
    code = "import sys, gradcli.interfaces.cli as cli; cli.main(['grad', 'foo(x)']); print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n" and "GC" in done.stderr, done
