"""`gradcli audit --scan` and `--pairs`: pairs are recognised by names, read by trying, and never accused on a guess."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.audit import command, guesses, judging, pair_calls, pairs
from gradcli.audit.conventions import FEW, PairedCall, of_few
from gradcli.audit.source_scan import scan
from gradcli.audit.watching import recorder
from gradcli.rendering.document import Facts
from gradcli.rendering.documents import audits
from tests.audit.test_audit import run
from tests.rendering.test_schema import validator

SOURCE = Path(__file__).parent.parent / "support" / "audited_pairs.py"

VERDICTS = {
    "square_grad": "AGREES",
    "cube_grad": "AGREES",
    "sines_grad": "AGREES",
    "quartic_grad": "DISAGREES",
    "width_jac": "UNPAIRED",
    "mass_der": "LOOK",
    "affine_jacobian": "AGREES",
    "loss_and_grad": "AGREES",
    "decay_and_derivatives": "AGREES",
    "Line.fit_deriv": "AGREES",
    "Arc.fit_deriv": "AGREES",
    "Wave.fit_deriv": "AGREES",
    "Decay.fit_deriv": "DISAGREES",
    "Link.deriv": "AGREES",
    "Root.deriv": "DISAGREES",
    "Odds.deriv": "AGREES",
    "Power.deriv": "AGREES",
    "Field._Rforce": "AGREES",
    "Kernel.__call__": "AGREES",
    "Profile.derivative": "AGREES",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package `planted`."""
    (tmp_path / "planted").mkdir()
    shutil.copy(SOURCE, tmp_path / "planted" / "__init__.py")
    return tmp_path


def test_a_scan_lists_the_pairs_of_a_package(package: Path) -> None:
    """Without importing it; abstract methods are left out, inherited ones belong to the class that has one of the two."""
    listed, unread = scan(str(package / "planted"))
    assert (unread, {pair.derivative.removeprefix("planted:") for pair in listed}) == ([], set(VERDICTS))
    named = {pair.derivative.partition(":")[2]: pair for pair in listed}
    assert named["Root.deriv"].value == "planted:Root.__call__"
    assert (named["Root.deriv"].kind, named["square_grad"].kind) == ("entrywise", "gradient")
    assert (named["Field._Rforce"].sign, named["Kernel.__call__"].flag) == (-1, "eval_gradient")
    assert "planted" not in sys.modules
    done = run(package, "audit", "--scan", "planted", "--output", "pairs.toml")
    assert done.returncode == 0, done.stderr
    assert pairs.read(str(package / "pairs.toml")) == [pair._replace(place="") for pair in listed]
    assert len(tomllib.loads((package / "pairs.toml").read_text())["pairs"]) == len(VERDICTS)
    answer = json.loads(run(package, "audit", "--scan", "planted", "--format", "json").stdout)
    validator("audit-scan").validate(answer)
    assert len(answer["pairs"]) == len(VERDICTS)


NAMES = [  # derivative, function, the rule's sign; None: no pair
    ("sigmoid_prime", "sigmoid", 1),
    ("d_sigmoid", "sigmoid", 1),
    ("dPsat_dT", "Psat", 1),
    ("d2Psat_dT2", "dPsat_dT", 1),
    ("grad_energy", "energy", 1),
    ("rosen_hess", "rosen_der", 1),
    ("fprime", "f", 1),
    ("gradual", "ual", None),
    ("graded", "f", None),
]


@pytest.mark.parametrize(("derivative", "function", "sign"), NAMES)
def test_names_of_functions(derivative: str, function: str, sign: int | None) -> None:
    signs = [match.sign for match in pairs.matches(derivative, False) if function in match.names]
    assert signs[:1] == ([] if sign is None else [sign])


METHODS = [
    ("fit_deriv", "evaluate", 1),
    ("score", "loglike", 1),
    ("psi_deriv", "psi", 1),
    ("_R2deriv", "_Rforce", -1),
    ("evaluateS1", "__call__", 1),
    ("hessian", "gradient", 1),
]


@pytest.mark.parametrize(("derivative", "function", "sign"), METHODS)
def test_names_of_methods(derivative: str, function: str, sign: int) -> None:
    assert [match.sign for match in pairs.matches(derivative, True) if function in match.names][:1] == [sign]


SOURCES = [  # of functions, and how many pairs they are
    ("def f(x, a): return a*x\ndef f_da(x, a): return x", 1),
    ("def f(x, a): return a*x\ndef f_diffuse(x, a): return x", 0),
    ("def f(x): x *= 2\ndef f_derivative(x): x += 1", 0),
    ("def value(y, w, z): return y*w*z\ndef value_grad(x, y, z): return x*y*z", 0),
    ("def K_of_r(r): return r*r\ndef K(X): return X\ndef dK_dr(r): return 2*r", 1),
    ("def pulled_gradient(x, g): return g*x\ndef pulled_hessian(x, g, h, v): return h*v", 0),
    ("def f(x): return x*x\ndef f_grad(x, ct): return 2*x*ct", 1),
    ("def f(x, *a): return a[0]*a[1]*x\ndef f_grad(x, a, b): return a*b", 1),
    ("def step(x, jac=False): return x", 1),
    ("def minimize(fun, x, jac=None): return x", 0),
    ("def smooth(x, deriv=0): return x", 0),
    ("def g(x):\n    y, dy = x, 1\n    return y, dy", 1),
    ("def checked(t, y, dy):\n    return t, y, dy", 0),
    ("def fit(x):\n    def inner(x):\n        return x, grad\n    return x", 0),
    ("def derive_folder_and_name(x): return x, 1", 0),
    ("def loss_and_gradient(x): return x, 1", 1),
    ("def fit(x):\n    grad_dict = {'x': x}\n    return x*x, grad_dict", 0),
    ("def fit(x):\n    return Posterior(x), grad", 0),
    ("def grads(X, w):\n    return dvar, dw, dX", 0),
    ("def step(F, dF):\n    G, dG = F, dF\n    return G, dG", 1),
    ("def f(x): return x*x\ndef f_grad(x): return approx_fprime(x, f)", 0),
    ("def f(x): return x*x\ndef f_grad(x):\n    g = approx_fprime(x, f)\n    return g.T", 0),
    ("def f(x): return x*x\ndef f_grad(x, exact):\n    if exact: return 2*x\n    return approx_fprime(x, f)", 1),
    ("def f(x): return x*x\ndef f_grad(x): return NotImplementedError", 0),
]


TUPLES = [  # what a function returns, and how many values stand before the derivatives
    ("y, grad", 1),
    ("y, z, grad", 2),
    ("F, L, Q, dF, dQ", 3),
    ("y, grad, hess", 1),
]


@pytest.mark.parametrize(("returned", "values"), TUPLES)
def test_values_that_stand_before_derivatives(tmp_path: Path, returned: str, values: int) -> None:
    """The file of pairs says how many."""
    (tmp_path / "some.py").write_text(
        f"def f(x):\n    y = z = grad = hess = F = L = Q = dF = dQ = x\n    return {returned}"
    )
    ((pair,), _) = scan(str(tmp_path / "some.py"))
    assert pair.values == values
    (tmp_path / "pairs.toml").write_text(pairs.written([pair], "some"))
    assert pairs.read(str(tmp_path / "pairs.toml")) == [pair._replace(place="")]


VARIABLES = [
    ("dK_dr", "K", "r"),
    ("dlogpdf_df_dtheta", "dlogpdf_df", "theta"),
    ("d2f_dxdy", "df_dx", "y"),
]


@pytest.mark.parametrize(("derivative", "function", "variable"), VARIABLES)
def test_a_name_says_by_what_it_is(derivative: str, function: str, variable: str) -> None:
    """A second derivative is by its last variable."""
    assert next(x.by for x in pairs.matches(derivative, False) if function in x.names) == variable


@pytest.mark.parametrize(("source", "count"), SOURCES)
def test_what_a_source_names(tmp_path: Path, source: str, count: int) -> None:
    (tmp_path / "some.py").write_text(source)
    assert len(scan(str(tmp_path / "some.py"))[0]) == count


def test_an_audit_of_a_package_needs_no_command(package: Path) -> None:
    """Each pair gets its verdict, those planted wrong fail the run, nothing is left behind."""
    before = sorted(path for path in package.rglob("*"))
    options = ("--json", "found.json", "--sarif", "found.sarif", "--output", "report.txt")
    done = run(package, "audit", "--pairs", "planted", *options)
    found = json.loads((package / "found.json").read_text())
    validator("audit").validate(found)
    verdicts = {row["name"].removeprefix("planted."): row["verdict"] for row in found["gradients"]}
    assert (verdicts, found["faults"], found["missed"]) == (VERDICTS, [], [])
    assert (done.returncode, done.stderr) == (1, "gradcli audit: 3 gradients of planted failed\n")
    written = {"found.json", "found.sarif", "report.txt", "cache"}
    after = [path for path in package.rglob("*") if path.relative_to(package).parts[0] not in written]
    assert sorted(after) == before
    report = (package / "report.txt").read_text()
    assert max(len(line) for line in report.splitlines() if "audit --again" not in line) <= 100
    assert "they disagree" in report
    again = next(row["again"] for row in found["gradients"] if row["name"] == "planted.quartic_grad")
    done = run(package, *again.split()[1:])
    assert done.returncode == 1 and "DISAGREES" in done.stdout and "cube_grad" not in done.stdout
    assert {row["level"] for row in json.loads((package / "found.sarif").read_text())["runs"][0]["results"]} >= {
        "error"
    }


PROGRAM = """
import numpy as np
from planted import quartic_grad, square_grad, Kernel, Wave
for k in range(2):
    quartic_grad(np.array([0.5, 1.5]) + k)
square_grad(np.array([0.5, 1.5]))
Wave().fit_deriv(np.array([0.1, 0.4]), 0.5, 2.0)
x = np.array([0.1, 0.4, 0.8])
Kernel()(x), Kernel()(x, False), Kernel()(x, eval_gradient=False), Kernel()(2 * x, True)
"""


@pytest.mark.parametrize(("confirmed", "code", "word"), [(False, 0, "LOOK"), (True, 1, "DISAGREES")])
def test_a_file_of_pairs_and_a_command(package: Path, confirmed: bool, code: int, word: str) -> None:
    """A guess that nothing supports is no accusation; a confirmed pair is one. Only what the command calls is judged."""
    (package / "program.py").write_text(PROGRAM)
    listed = [
        pair
        for pair in scan(str(package / "planted"))[0]
        if any(name in pair.derivative for name in ("quartic", "Wave", "Kernel"))
    ]
    listed = [pair._replace(confirmed=confirmed) for pair in listed]
    (package / "pairs.toml").write_text(pairs.written(listed, "planted"))
    done = run(package, "audit", "--pairs", "pairs.toml", "--json", "found.json", "--", sys.executable, "program.py")
    found = json.loads((package / "found.json").read_text())
    verdicts = {row["name"]: row["verdict"] for row in found["gradients"]}
    agreeing = {"planted.Wave.fit_deriv": "AGREES", "planted.Kernel.__call__": "AGREES"}
    assert verdicts == {"planted.quartic_grad": word, **agreeing}
    assert [row["calls"] for row in found["gradients"] if "Kernel" in row["name"]] == [1]  # with the flag
    assert done.returncode == code, done.stderr


BROKEN = {
    "fails": ("raise ValueError('no')", "its import fails: ValueError: no"),
    "prints": ("print('hello')", "its import prints 'hello'"),
    "ends": ("import os; os._exit(3)", "it ended the process with exit code 3"),
    "crashes": ("import os; os.abort()", "it crashed with signal 6"),
    "ends_well": ("import os; os._exit(0)", "it ended the process with exit code 0"),
}


def test_modules_that_cannot_be_imported_are_named(package: Path) -> None:
    """And the others are judged."""
    for name, (text, _) in BROKEN.items():
        source = f"{text}\ndef square(x): return x @ x\ndef square_grad(x): return 2*x\n"
        (package / "planted" / f"{name}.py").write_text(source)
    done = run(package, "audit", "--pairs", "planted", "--json", "found.json")
    for name, (_, phrase) in BROKEN.items():
        assert f"planted.{name}: {phrase}" in done.stderr
    names = {row["name"] for row in json.loads((package / "found.json").read_text())["gradients"]}
    assert {"planted.square_grad", "planted.prints.square_grad"} <= names


FORKS = """
import os, sys, subprocess
open("LOG", "a").write("imported\\n")
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("LOG", "a").write(f"{left.pid}\\n")
if os.fork() == 0:
    sys.exit()
"""


def test_what_an_import_starts_is_ended(package: Path) -> None:
    """A process that it leaves behind, and a copy of itself, which does not go on as the audit; it is judged."""
    log = package / "log"
    source = FORKS.replace("LOG", str(log)) + "def square(x): return x @ x\ndef square_grad(x): return 2*x\n"
    (package / "planted" / "forks.py").write_text(source)
    done = run(package, "audit", "--pairs", "planted", "--json", "found.json")
    found = json.loads((package / "found.json").read_text())
    verdicts = {row["name"]: (row["verdict"], row["calls"]) for row in found["gradients"]}
    assert verdicts["planted.forks.square_grad"] == ("AGREES", 2), done.stderr
    assert (found["missed"], log.read_text().count("imported")) == ([], 1)  # it is not imported for others
    for process in log.read_text().replace("imported", "").split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)


def test_what_modules_share_is_imported_once_for_all(package: Path) -> None:
    """Once in the process of the first, and once for the others, of which each has its own process."""
    log = package / "log"
    (package / "planted" / "shared.py").write_text(f"open({str(log)!r}, 'a').write('shared ')\n")
    for name in ("one", "two", "three", "four"):
        source = f"from planted import shared\nopen({str(log)!r}, 'a').write('{name} ')\n"
        (package / "planted" / f"{name}.py").write_text(f"{source}def f(x): return x*x\ndef f_grad(x): return 2*x\n")
    run(package, "audit", "--pairs", "planted", "--json", "found.json")
    imported = log.read_text().split()
    assert [imported.count(name) for name in ("shared", "one", "four")] == [2, 2, 2]
    assert sum(row["verdict"] == "AGREES" for row in json.loads((package / "found.json").read_text())["gradients"]) >= 4


@pytest.mark.deep
def test_an_import_that_hangs_is_stopped(package: Path) -> None:
    (package / "planted" / "hangs.py").write_text("while True: pass\ndef f(x): return x\ndef f_grad(x): return 1\n")
    done = run(package, "audit", "--pairs", "planted")
    assert "planted.hangs: its import takes more than" in done.stderr and done.returncode == 1


@pytest.mark.deep
def test_an_audit_that_is_terminated_leaves_no_process(package: Path) -> None:
    noted = f"import os\nopen({str(package / 'pid')!r}, 'w').write(str(os.getpid()))\nwhile True: pass\n"
    (package / "planted" / "hangs.py").write_text(f"{noted}def f(x): return x\ndef f_grad(x): return 1\n")
    with subprocess.Popen([sys.executable, "-m", "gradcli", "audit", "--pairs", "planted"], cwd=package) as audit:
        while not (package / "pid").exists() or not (package / "pid").read_text():
            time.sleep(0.1)
        audit.terminate()
    time.sleep(1)
    with pytest.raises(ProcessLookupError):
        os.kill(int((package / "pid").read_text()), 0)


@pytest.mark.parametrize("argv", [("--scan", "no_such_package"), ("--pairs", "no.toml"), ("--pairs", "bad.toml")])
def test_what_holds_no_pairs(package: Path, argv: tuple[str, str]) -> None:
    (package / "bad.toml").write_text("pairs = 3")
    done = run(package, "audit", *argv)
    assert done.returncode == 2 and "GC747" in done.stderr


# --- readings -------------------------------------------------------------------------------------------------------

X = np.array([[0.3, 0.8], [1.1, 0.4], [0.7, 0.9]])
V = np.array([0.3, 0.8, 0.5])

LAYOUTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], str, str, float]] = {
    "gradient": (lambda x: np.sum(x**3), lambda x: 3 * x**2, (V,), "x", "jacobian", 1.0),
    "Jacobian": (lambda x: X.T @ x**2, lambda x: X.T * 2 * x, (V,), "x", "jacobian", 1.0),
    "transposed": (lambda x: X.T @ x**2, lambda x: (X.T * 2 * x).T, (V,), "x", "transposed", 1.0),
    "an axis of 1": (lambda x: X.T @ x**2, lambda x: (X.T * 2 * x)[:, None], (V,), "x", "jacobian", 1.0),
    "one axis for two": (lambda a: a * X, lambda a: X.reshape(-1), (0.3,), "x", "jacobian", 1.0),
    "entrywise": (np.sin, np.cos, (V,), "x", "entrywise", 1.0),
    "rows": (lambda x: np.sum(x**3, axis=1), lambda x: 3 * x**2, (X,), "x", "entrywise", 1.0),
    "columns": (lambda x: np.sum(x**3, axis=0), lambda x: 3 * x**2, (X,), "x", "columns", 1.0),
    "transposed columns": (lambda x: np.sum(x**3, axis=0), lambda x: 3 * x.T**2, (X,), "x", "columns", 1.0),
    "total": (lambda x: X.T @ x.sum(axis=1), lambda x: np.stack(2 * [X.sum(axis=1)], axis=1), (X,), "x", "total", 1.0),
    "coupled rows": (lambda x: x**3 * x.sum(), lambda x: 3 * x**2 * x.sum() + x**3, (V,), "x", "diagonal", 1.0),
    "minus": (lambda x: np.sum(x**3), lambda x: -3 * x**2, (V,), "x", "jacobian", -1.0),
    "twice": (lambda x: np.sum(x**3), lambda x: 6 * x**2, (V,), "x", "jacobian", 2.0),
    "the second argument": (lambda k, x: k * x**3, lambda k, x: 3 * k * x**2, (2.5, 0.7), "x", "jacobian", 1.0),
    "a number for a row": (lambda x, a: a * x, lambda x, a: x, (V, 0.3), "a", "jacobian", 1.0),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    f, derivative, at, argument, layout, factor = LAYOUTS[name]
    row = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict() | {"guessed": True}

    def value(*args: Any) -> Any:
        return f(*args)

    names = "kx" if argument == "x" and len(at) == 2 else "xa"[: len(at)]
    space = {"f": f, "g": derivative}
    exec(f"def value({','.join(names)}): return f({','.join(names)})", space)
    exec(f"def slope({','.join(names)}): return g({','.join(names)})", space)
    found = judging.answer(lambda: PairedCall(row, space["value"], space["slope"], None, at, {}), {"timeout": 10.0})
    (check,) = found["checks"]
    reading = check["reading"]
    assert (check["leaf"], reading["convention"][3], reading["factor"], reading["agrees"]) == (
        argument,
        layout,
        factor,
        True,
    )
    assert (check["verdict"] in ("AGREES", "PROVED")) == (factor == 1.0), check["message"]


@pytest.mark.parametrize(("power", "factor"), [(0, "1/alpha"), (1, 1.0), (2, "alpha"), (3, 1.0)])
def test_a_factor_that_the_object_holds(power: int, factor: float | str) -> None:
    """A weight that a derivative leaves out, or takes twice, is named; anything else is no such factor."""

    class Penalty:
        def __init__(self, alpha: float) -> None:
            self.alpha = alpha

        def value(self, w: Any) -> Any:
            return self.alpha * np.sum(np.sqrt(w))

        def derivative(self, w: Any) -> Any:
            return self.alpha**power / (2 * np.sqrt(w))

    row = pairs.Pair("m:P.derivative", "m:P.value", "derivative -> value")._asdict() | {"guessed": True}
    owner = Penalty(0.3)
    call = PairedCall(row, owner.value, owner.derivative, owner, (V,), {})
    reading = judging.answer(lambda: call, {"timeout": 10.0})["checks"][0]["reading"]
    assert (reading["factor"], reading["agrees"]) == (factor, power < 3)


def test_each_part_of_a_derivative_is_read_apart() -> None:
    row = pairs.Pair("m:C.fit_deriv", "m:C.evaluate", "fit_deriv -> evaluate")._asdict() | {"guessed": True}

    def value(x: Any, a: float, b: float) -> Any:
        return a * np.exp(-b * x)

    def slope(x: Any, a: float, b: float) -> Any:
        return [np.exp(-b * x), -2 * x * a * np.exp(-b * x)]

    found = judging.answer(lambda: PairedCall(row, value, slope, None, (V, 0.7, 1.3), {}), {"timeout": 10.0})
    readings = [(check["leaf"], check["reading"]) for check in found["checks"] if check["reading"]["agrees"]]
    assert [(x["convention"][0], leaf, x["factor"]) for leaf, x in readings] == [(0, "a", 1.0), (1, "b", 2.0)]


def test_at_a_kink_the_argument_that_agrees_elsewhere_is_meant() -> None:
    """Not another one, by which the derivative is right up to a factor by accident."""
    pair = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict()
    accident, kink = called(True, 0.01, leaf="a"), {**W, "verdict": "KINK"}
    accident["reading"]["convention"][-1] = 1  # its place
    for other, word in (kink, "KINK"), (W, "LOOK"):
        answers = [{"checks": [accident, other], "call": 1}, {"checks": [R], "call": 2}]
        (row,) = guesses.settled({"a": {"pair": pair}}, {"a": answers})["a"][0]["checks"]
        assert row["verdict"] == word


class States:
    """A model with two parameters, and the derivatives of its matrices by them along the last axis."""

    slip = 1.0

    def __init__(self, rate: float, size: float) -> None:
        self.rate, self.size = rate, size

    def matrices(self) -> Any:
        F, L = np.array([[-self.rate, 1.0], [0.0, -2 * self.rate]]), np.array([[1.0], [0.5]])
        Q = np.array([[self.rate * self.size**2]])
        dF = np.stack([np.array([[-1.0, 0.0], [0.0, -2.0]]), np.zeros((2, 2))], axis=-1)
        dQ = np.array([[[self.size**2, self.slip * 2 * self.rate * self.size]]])
        return F, L, Q, dF, dQ


class Gaussian:
    """Its derivatives are by arguments of the call and by what the object holds."""

    slip = 1.0

    def __init__(self, variance: float) -> None:
        self.variance = variance

    def expected(self, y: Any, m: Any) -> Any:
        square = (y - m) ** 2
        value = -0.5 * square / self.variance
        return value, (y - m) / self.variance, (self.slip * 0.5 * square / self.variance**2)[None]


@pytest.mark.parametrize("slip", [1.0, 1.1])
@pytest.mark.parametrize(
    ("kind", "name", "values", "made_of", "args", "parts"),
    [
        (States, "matrices", 3, (0.7, 1.3), (), 4),
        (Gaussian, "expected", 1, (0.7,), (X, X[::-1] ** 2), 2),
    ],
)
def test_each_stacked_part_is_read_by_what_it_belongs_to(
    kind: Any, name: str, values: int, made_of: Any, args: Any, parts: int, slip: float
) -> None:
    """Values that stand before the derivatives are no parts of them."""
    at = f"m:{kind.__name__}.{name}"
    pair = pairs.Pair(at, at, "value and derivative", "together", values=values)._asdict() | {"guessed": True}
    owner = type(kind.__name__, (kind,), {"slip": slip})(*made_of)
    function = getattr(owner, name)
    found = judging.answer(lambda: PairedCall(pair, function, function, owner, args, {}), {"timeout": 60.0})["checks"]
    agreeing = {check["reading"]["convention"][0] for check in found if check["reading"]["agrees"]}
    assert len(agreeing) == (parts if slip == 1.0 else parts - 1), found


@pytest.mark.parametrize("slip", [1.0, 1.001])
def test_smaller_steps_may_show_by_what_a_derivative_is(slip: float) -> None:
    """Those of the first look are larger than a period."""
    row = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict() | {"guessed": True}

    def value(a: float, w: float) -> Any:
        return 0.1 * a + np.sin(3e4 * w)

    def slope(a: float, w: float) -> Any:
        return slip * 3e4 * np.cos(3e4 * w)

    found = judging.answer(lambda: PairedCall(row, value, slope, None, (0.3, 0.7), {}), {"timeout": 60.0})["checks"]
    assert (found[0]["leaf"], found[0]["reading"]["agrees"]) == (("w", True) if slip == 1.0 else ("a", False)), found


@pytest.mark.parametrize(("count", "seed"), [(4, 2), (4, 8), (4, 11), (30, 3)])
@pytest.mark.parametrize(("slip", "words"), [(1.0, ("AGREES", "IMPRECISE")), (1.001, ("DISAGREES",))])
def test_a_derivative_in_float32_is_allowed_its_digits(count: int, seed: int, slip: float, words: Any) -> None:
    row = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict() | {"guessed": True}

    def value(x: Any) -> Any:
        return np.sqrt(np.sum((x - np.resize([0.5, 0.4, 0.8, 0.3], count)) ** 2))

    def slope(x: Any) -> Any:
        return (slip * (x - np.resize([0.5, 0.4, 0.8, 0.3], count)) / value(x)).astype(np.float32)

    at = np.random.default_rng(seed).uniform(0.2, 0.9, count)
    (check,) = judging.answer(lambda: PairedCall(row, value, slope, None, (at,), {}), {"timeout": 60.0})["checks"]
    assert check["verdict"] in words, check


@pytest.mark.parametrize("slip", [1.0, 1.1])
def test_a_value_beside_its_derivative_may_be_rounded_apart(slip: float) -> None:
    """It is no part of the derivative at any point, also where no digit differs."""
    row = pairs.Pair("m:f_fprime", "m:f", "X_fprime -> X")._asdict() | {"guessed": True}

    def value(x: Any, z: Any) -> Any:
        return sum(z / (1 + x * k) for k in (0.3, 0.7, 1.9))

    def both(x: Any, z: Any) -> Any:
        inverse = [1 / (1 + x * k) for k in (0.3, 0.7, 1.9)]
        slope = sum(-slip * z * k * y * y for k, y in zip((0.3, 0.7, 1.9), inverse, strict=True))
        return sum(z * y for y in inverse), slope

    call = PairedCall(row, value, both, None, (V, X[:, 1]), {})
    assert not np.array_equal(value(V, X[:, 1]), both(V, X[:, 1])[0])
    found = judging.answer(lambda: call, {"timeout": 60.0})["checks"]
    assert {check["reading"]["convention"][0] for check in found} == {0}
    assert (found[0]["leaf"], found[0]["verdict"] == "DISAGREES") == ("x", slip != 1.0), found


@pytest.mark.parametrize(("claim", "agrees"), [(0.0, True), (0.1, False)])
def test_differences_that_rounding_makes_are_0(claim: float, agrees: bool) -> None:
    """So a function does not depend on an argument, and a derivative that is 0 is that by it."""
    row = pairs.Pair("m:f_torque", "m:f", "by hand")._asdict() | {"guessed": True}

    def value(z: float, phi: float) -> Any:
        return 3.7 * z**2 * (np.cos(phi) ** 2 + np.sin(phi) ** 2)

    call = PairedCall(row, value, lambda z, phi: claim, None, (0.83, 0.31), {})
    check = judging.answer(lambda: call, {"timeout": 60.0})["checks"][0]
    assert (check["reading"]["agrees"], check["leaf"] == "phi") == (agrees, agrees)
    assert not agrees or check["verdict"] in ("AGREES", "PROVED"), check


@pytest.mark.parametrize(("noise", "word"), [(1e-8, "APPROXIMATE"), (0.2, None)])
def test_noise_excuses_no_derivative_that_is_all_noise(noise: float, word: str | None) -> None:
    def slope(x: Any) -> Any:
        return (
            1.5 * np.cos(x) * (1 + noise * np.modf(1e4 * np.sin(1e15 * x))[0])
            if noise > 1e-2
            else ((np.sin(x + 1e-8) - np.sin(x)) / 1e-8)
        )

    (check,) = judging.judged((np.sin, {"jac": slope}, (0.7,)), 20.0, 0.0)["checks"]
    assert (check["verdict"] in ("APPROXIMATE", "IMPRECISE")) == (word is not None), check


@pytest.mark.parametrize(("name", "leaf"), [("phi", "phi"), ("tol", "y")])
def test_a_default_of_0_may_be_the_argument(name: str, leaf: str) -> None:
    """It may be where the function has it, too: of another one by that place nothing is known."""
    row = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict() | {"guessed": True}
    space: dict[str, Any] = {"np": np}
    exec(f"def value(y, {name}=0): return np.cos(y - {name if name == 'phi' else 0}) * 0.5", space)
    exec("def slope(y, phi=0): return np.sin(y - phi) * 0.5", space)
    call = PairedCall(row, space["value"], space["slope"], None, (0.7,), {})
    check = judging.answer(lambda: call, {"timeout": 60.0})["checks"][0]
    factor = 1.0 if leaf == "phi" else -1.0
    assert (check["leaf"], check["reading"]["factor"], check["reading"]["agrees"]) == (leaf, factor, True)


class Normal:
    """What it is made of is kept, but what its methods use is computed when it is made."""

    def __init__(self, params: Any, *, slip: float = 1.0) -> None:
        self._params, self.slip, self.where, self.size = params, slip, params[0], np.exp(params[1])

    def score(self, y: Any) -> Any:
        return ((y - self.where) / self.size) ** 2 / 2 + np.log(self.size)

    def d_score(self, y: Any) -> Any:
        z = (y - self.where) / self.size
        return np.stack([-z / self.size, self.slip - z**2], axis=1)


@pytest.mark.parametrize(("count", "slip"), [(3, 1.0), (30, 1.0), (30, 1.1)])
def test_an_object_is_made_anew_of_other_numbers(count: int, slip: float) -> None:
    """Of many entries a few are moved one by one, and the others together: what is wrong in all of them is seen."""
    generator = np.random.default_rng(5)
    y, owner = generator.uniform(1, 2, count), Normal(generator.uniform(0, 1, (2, count)), slip=slip)
    row = pairs.Pair("m:Normal.d_score", "m:Normal.score", "d_score -> score")._asdict() | {"guessed": True}
    found = judging.answer(lambda: PairedCall(row, owner.score, owner.d_score, owner, (y,), {}), {"timeout": 300.0})
    agreeing = {check["leaf"] for check in found["checks"] if check["verdict"] in ("AGREES", "PROVED")}
    assert agreeing == ({"params"} if slip == 1.0 else {"where"}), found
    assert bool(found["notes"]) == (count == 30)


class Line:
    """A line over a domain, which whoever fits it applies to x first."""

    def __init__(self, domain: Any, slip: float) -> None:
        self.domain, self.slip = domain, slip

    def evaluate(self, x: Any, a: float, b: float) -> Any:
        x = x if self.domain is None else (x - self.domain[0]) / (self.domain[1] - self.domain[0])
        return a * x + b * x**2

    def fit_deriv(self, x: Any, a: float, b: float) -> Any:
        return [x, self.slip * x**2]


@pytest.mark.parametrize(
    ("domain", "slip", "word"),
    [(None, 1.0, "AGREES"), ((1.0, 3.0), 1.0, "LOOK"), (None, 1.1, "DISAGREES"), ((1.0, 3.0), 1.1, "DISAGREES")],
)
def test_a_domain_is_for_the_caller_to_apply(domain: Any, slip: float, word: str) -> None:
    """What is right without it is not accused; what is wrong without it is."""
    owner = Line(domain, slip)
    row = pairs.Pair("m:Line.fit_deriv", "m:Line.evaluate", "fit_deriv -> evaluate")._asdict() | {"guessed": True}
    call = PairedCall(row, owner.evaluate, owner.fit_deriv, owner, (V, 0.7, 1.3), {})
    found = judging.answer(lambda: call, {"timeout": 300.0})["checks"]
    assert found[-1]["verdict"] == word, found
    assert owner.domain == domain


def test_a_few_entries_stand_for_all() -> None:
    """A gradient with one wrong entry, which is none of those that move alone, is refuted along the others."""
    x = np.linspace(0.5, 1.5, 50)
    f, derivative, at = of_few(
        (np.cumsum, {"jac": lambda x: np.tri(50) + np.eye(50)[[7]] * (np.arange(50) == 5)}, (x,))
    )
    right = of_few((np.cumsum, {"jac": lambda x: np.tri(50)}, (x,)))[1]["jac"]
    assert np.shape(at) == (1, FEW + 1)
    wrong = derivative["jac"](at[0]) - right(at[0])
    assert (np.flatnonzero(wrong.any(axis=0)) == [FEW]).all()
    steps = [(f(at[0] + h) - f(at[0] - h)) / 2e-6 for h in 1e-6 * np.eye(FEW + 1)]
    assert np.allclose(np.stack(steps, axis=1), right(at[0]), rtol=1e-7)


def test_an_attribute_that_is_an_array_of_its_own_kind_stays_it() -> None:
    class Parameter(np.ndarray):
        pass

    class Owner:
        def __init__(self) -> None:
            self.width = np.array([0.7]).view(Parameter)
            self.parameters = [self.width]

    def value(x: Any) -> Any:
        assert isinstance(owner.width, Parameter) and isinstance(owner.parameters, list)
        return owner.width[0] ** 2 * x.sum()

    def slope(x: Any) -> Any:
        return 2 * owner.width * x.sum()

    owner = Owner()
    row = pairs.Pair("m:C.f_grad", "m:C.f", "X_grad -> X")._asdict() | {"guessed": True}
    (check,) = judging.answer(lambda: PairedCall(row, value, slope, owner, (V,), {}), {"timeout": 10.0})["checks"]
    assert (check["leaf"], check["verdict"]) == ("width", "AGREES")
    assert owner.width[0] == 0.7


def test_a_vector_that_is_no_gradient_is_told_from_one_of_another_function() -> None:
    row = pairs.Pair("m:f_grad", "m:f", "X_grad -> X")._asdict() | {"guessed": True}

    def value(x: Any) -> Any:
        return x[0] * x[1] ** 2 + x[2]

    def slope(x: Any) -> Any:
        return np.array([x[1] ** 2, x[0] * x[1], 1.0])  # the factor 2 is missing in one entry

    def other(x: Any) -> Any:
        return np.array([x[1] ** 2, 2 * x[0] * x[1], 2.0])

    for derivative, is_none in ((slope, True), (other, False)):
        call = PairedCall(row, value, derivative, None, (V,), {})
        (check,) = judging.answer(lambda call=call: call, {"timeout": 10.0})["checks"]
        assert check["verdict"] == "DISAGREES" and ("gradient of no function" in check["message"]) == is_none


# --- what guesses allow ----------------------------------------------------------------------------------------------


def called(agrees: bool, factor: float = 1.0, part: int = 0, leaf: str = "x", whole: bool = False) -> dict[str, Any]:
    """A row of a judged call."""
    verdict = "AGREES" if agrees and factor == 1 else "DISAGREES"
    reading = {
        "agrees": agrees,
        "factor": factor,
        "flat": False,
        "whole": whole,
        "gap": 0.0 if agrees else 0.5,
        "convention": [part, None, 0, "jacobian", 0],
    }
    return {"leaf": leaf, "verdict": verdict, "message": "", "evidence": {}, "reading": reading}


R, W, M, N = called(True), called(False), called(True, -1.0), called(True, whole=True)
GUESSES: dict[str, tuple[dict[str, list[dict[str, Any]]], str]] = {
    # the calls of pairs of one rule; the verdict of the first call of `a`
    "nothing else": ({"a": [W]}, "LOOK"),
    "another call agrees": ({"a": [W, R]}, "DISAGREES"),
    "a sibling agrees": ({"a": [W], "b": [R]}, "DISAGREES"),
    "a sibling agrees, but in whole numbers": ({"a": [W], "b": [N]}, "LOOK"),
    "another call agrees, but in whole numbers": ({"a": [W, N]}, "LOOK"),
    "as many siblings do as do not": ({"a": [W], "b": [R], "c": [W]}, "LOOK"),
    "more siblings do": ({"a": [W], "b": [R], "c": [W], "d": [R]}, "DISAGREES"),
    "minus, alone": ({"a": [M]}, "LOOK"),
    "minus, as its siblings": ({"a": [M], "b": [M]}, "AGREES"),
    "minus, where siblings have plus": ({"a": [M], "b": [R]}, "DISAGREES"),
    "right": ({"a": [R], "b": [W], "c": [W]}, "AGREES"),
}


@pytest.mark.parametrize("name", GUESSES)
@pytest.mark.parametrize("confirmed", [False, True])
def test_what_a_guess_allows(name: str, confirmed: bool) -> None:
    calls, word = GUESSES[name]
    gradients, answers = {}, {}
    for key, rows in calls.items():
        pair = pairs.Pair(f"m:{key.upper()}.deriv", f"m:{key.upper()}.value", "deriv -> value", confirmed=confirmed)
        gradients[key] = {"pair": pair._asdict()}
        answers[key] = [{"checks": [row], "call": k + 1} for k, row in enumerate(rows)]
    (row,) = guesses.settled(gradients, answers)["a"][0]["checks"]
    assert row["verdict"] == (calls["a"][0]["verdict"] if confirmed else word)


INVENTED: dict[str, tuple[dict[str, list[dict[str, Any]]], str]] = {
    "another call agrees": ({"a": [W, R]}, "LOOK"),
    "two siblings agree": ({"a": [W], "b": [R], "c": [R]}, "LOOK"),
    "three siblings agree": ({"a": [W], "b": [R], "c": [R], "d": [R]}, "DISAGREES"),
    "three siblings agree, and one does not": ({"a": [W], "b": [R], "c": [R], "d": [R], "e": [W]}, "LOOK"),
}


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_point_may_be_outside_of_the_domain(name: str) -> None:
    calls, word = INVENTED[name]
    gradients, answers = {}, {}
    for key, rows in calls.items():
        pair = pairs.Pair(f"m:{key}_grad", f"m:{key}", "X_grad -> X")._asdict()
        gradients[key] = {"pair": pair | {"invented": True}}
        answers[key] = [{"checks": [row], "call": k + 1} for k, row in enumerate(rows)]
    (row,) = guesses.settled(gradients, answers)["a"][0]["checks"]
    assert row["verdict"] == word


@pytest.mark.parametrize(("score", "word"), [(R, "DISAGREES"), (W, "LOOK")])
def test_an_invented_object_of_which_another_pair_fails_is_not_accused(score: dict[str, Any], word: str) -> None:
    gradients, answers = {}, {}
    for name in "abcd":
        for of, by in ("hessian", "score"), ("score", "loglike"):
            pair = pairs.Pair(f"m:{name}.{of}", f"m:{name}.{by}", f"{of} -> {by}")._asdict() | {"invented": True}
            gradients[name + of] = {"pair": pair}
            row = (W if of == "hessian" else score) if name == "a" else R
            answers[name + of] = [{"checks": [row], "call": 1}]
    (row,) = guesses.settled(gradients, answers)["ahessian"][0]["checks"]
    assert row["verdict"] == word


def test_what_an_object_is_set_to_may_be_for_its_caller_to_apply() -> None:
    """A pair that agrees for another object is accused only where the attributes that are None are the same."""
    pair = pairs.Pair("m:C.fit_deriv", "m:C.evaluate", "fit_deriv -> evaluate")._asdict()
    for unset, word in (["domain"], "LOOK"), ([], "DISAGREES"):
        answers = [{"checks": [W], "call": 1, "unset": []}, {"checks": [R], "call": 2, "unset": unset}]
        (row,) = guesses.settled({"a": {"pair": pair}}, {"a": answers})["a"][0]["checks"]
        assert row["verdict"] == word


def test_a_guess_without_any_reading_is_unpaired() -> None:
    pair = pairs.Pair("m:C.deriv", "m:C.value", "deriv -> value")._asdict()
    for answer in ({"checks": [], "call": 1}, {"error": "no", "call": 1}):
        (row,) = guesses.settled({"a": {"pair": pair}}, {"a": [answer]})["a"][0]["checks"]
        assert row["verdict"] == "UNPAIRED"


@pytest.mark.parametrize(("name", "lines"), [("diagnosis", 3), ("again", 1), ("exact", 1)])
def test_sentences_of_a_card_are_wrapped(name: str, lines: int) -> None:
    """Commands and numbers, which people copy, are not."""
    narrow = audits.narrow(Facts(((name, "a mistake at " * 16, "text"),)))
    assert isinstance(narrow, Facts)
    assert [row[0] for row in narrow.rows] == [name, *[""] * (lines - 1)]
    assert lines == 1 or max(len(row[1]) for row in narrow.rows) <= 80


class Costly:
    """Objects that count how many of them were made; `still` depends on nothing."""

    made = 0

    def __init__(self, width: float = 0.7) -> None:
        type(self).made += 1
        self.width = width

    def cube(self, x: Any) -> Any:
        return self.width * x**3

    def cube_grad(self, x: Any) -> Any:
        return 3 * self.width * x**2

    def still(self, x: Any) -> Any:
        return 0 * x

    def still_grad(self, x: Any) -> Any:
        return 0 * x


def test_objects_are_made_once_for_all_pairs_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one made anew of other numbers where function and derivative are 0: nothing could agree better."""
    module = sys.modules[__name__]
    monkeypatch.setattr(pair_calls, "OBJECTS", {})
    Costly.made = 0
    for name in ("cube", "still", "cube"):
        row = {"derivative": f"{__name__}:Costly.{name}_grad", "value": f"{__name__}:Costly.{name}"}
        row |= {"rule": "", "kind": "gradient", "sign": 1, "flag": "", "by": ""}
        pair_calls.by_defaults(module, row)
    assert Costly.made == 1


def test_arguments_are_those_by_which_all_parts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a vector v the second derivative would be that of a sum over the rows of y."""
    calls: list[tuple[int, ...]] = []
    module = type(sys)("invented")

    def normal_and_gradients(y: Any, m: Any, v: Any) -> Any:
        if not recorder.state.inside:
            calls.append(np.shape(v))
        if np.ndim(y) < 2:
            raise ValueError("y is no matrix")
        return -0.5 * ((y - m) ** 2 + v), y - m, np.full_like(v, -0.5)

    monkeypatch.setattr(pair_calls, "OBJECTS", {})
    module.normal_and_gradients = normal_and_gradients  # type: ignore[attr-defined]
    at = "invented:normal_and_gradients"
    pair_calls.by_defaults(module, pairs.Pair(at, at, "value and derivative", "together")._asdict())
    assert calls == [(4, 2)] * pair_calls.POINTS


def test_what_is_called_inside_of_invented_calls_is_invented(package: Path) -> None:
    """By which module it may be, and in whichever order the processes report: three siblings do not accuse it."""
    sources = {
        "inner": "def energy(x): return x**3\ndef energy_grad(x): return 5*x**2\n",
        "outer": "from planted import inner\ndef f(x): inner.energy_grad(x); return x*x\n"
        "def f_grad(x): inner.energy_grad(3*x); inner.energy_grad(2*x); return 2*x\n",
    }
    for name, source in sources.items():
        (package / "planted" / f"{name}.py").write_text(source)
    run(package, "audit", "--pairs", "planted", "--json", "found.json")
    rows = {row["name"]: row["verdict"] for row in json.loads((package / "found.json").read_text())["gradients"]}
    assert (rows["planted.inner.energy_grad"], rows["planted.outer.f_grad"]) == ("LOOK", "AGREES")


@pytest.mark.parametrize("first", [False, True])
def test_a_pair_is_invented_if_it_is_in_any_process(tmp_path: Path, first: bool) -> None:
    for process, invented in enumerate([first, not first]):
        facts = {"name": "f_grad", "pair": {"invented": True} if invented else {}}
        (tmp_path / f"{process}.jsonl").write_text(json.dumps({"gradient": facts, "key": "f"}) + "\n")
    assert command.recorded(str(tmp_path))[1]["f"]["pair"] == {"invented": True}


def test_a_derivative_of_another_order_is_not_accused() -> None:
    """The order is a whole number that the function does not take; it is compared with that of the call that agrees."""
    pair = {"kind": "gradient", "sign": 1, "flag": "", "by": "", "value": "m:cube", "derivative": "m:cube_derivative"}

    def derivative(x: Any, der: int = 1) -> Any:
        return 3 * x**2 if der == 1 else 6 * x

    calls = [PairedCall(pair, lambda x: x**3, derivative, None, args, {}) for args in ((0.7,), (0.7, 2))]
    first, second = (judging.judged_pair(call, 20.0) for call in calls)
    assert (first["unset"], second["unset"]) == ([], ["der=2"])
    support, row = guesses.Support(), {**pair, "rule": "derivative", "confirmed": False}
    answers = [{**first, "call": 1}, {**second, "call": 2}]
    support.note("k", row, answers)
    assert [guesses.one_row_each(support, "k", row, x)["checks"][0]["verdict"] for x in answers] == ["AGREES", "LOOK"]
