"""The gradients of samples/found/: wrong as its page says, and right as corrected, by derivatives of 40 digits."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from gradcli import cli
from gradcli.checks.callables.api import check_callable

FOLDER = Path(__file__).parents[2] / "samples" / "found"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(gradcli check .*)$", PAGE, re.MULTILINE)

# the log-likelihoods and functions themselves, from their definitions


def zero_inflated(m: Any, g: Any, a: Any, b: Any) -> Any:
    w = 1 / (1 + mpmath.exp(-g))
    mean = [mpmath.exp(a * x[0] + b * x[1]) for x in m.X]
    zero = [mpmath.log(w + (1 - w) * mpmath.exp(-mu)) for mu, y in zip(mean, m.y, strict=True) if y == 0]
    rest = [mpmath.log(1 - w) - mu + int(y) * mpmath.log(mu) for mu, y in zip(mean, m.y, strict=True) if y > 0]
    return sum(zero) + sum(rest)


def truncated(m: Any, a: Any, b: Any, alpha: Any) -> Any:
    total = mpmath.mpf(0)
    for x, y in zip(m.X, m.y, strict=True):
        mu = mpmath.exp(a * x[0] + b * x[1])
        wide, count = 1 + alpha * mu, int(y)
        moved = mu + alpha * mu * count
        total += mpmath.log(mu) + (count - 1) * mpmath.log(moved) - count * mpmath.log(wide) - moved / wide
        total -= mpmath.log(1 - mpmath.exp(-mu / wide))
    return total


def negative_binomial(m: Any, a: Any, b: Any, alpha: Any, p: Any) -> Any:
    total = mpmath.mpf(0)
    for x, y in zip(m.X, m.y, strict=True):
        mu, count = mpmath.exp(a * x[0] + b * x[1]), int(y)
        size = mu ** (2 - p) / alpha
        total += mpmath.loggamma(count + size) - mpmath.loggamma(size)
        total += size * mpmath.log(size / (size + mu)) + count * mpmath.log(mu / (size + mu))
    return total


def mixed(m: Any, root: Any) -> Any:
    """Random intercepts in 12 groups of 5; fixed effects and the scale profiled out."""
    shrink = root**2 / (1 + 5 * root**2)
    X, y = mpmath.matrix(m.X.tolist()), mpmath.matrix(m.y.tolist())
    within = mpmath.eye(60)
    for i in range(60):
        for j in range(60):
            if i // 5 == j // 5:
                within[i, j] -= shrink
    beta = mpmath.lu_solve(X.T * within * X, X.T * within * y)
    rest = y - X * beta
    return -6 * mpmath.log(1 + 5 * root**2) - 30 * mpmath.log((rest.T * within * rest)[0])


def frank(m: Any, t: Any) -> Any:
    theta = mpmath.mpf(m.THETA)
    return -mpmath.log(mpmath.expm1(-theta * t) / mpmath.expm1(-theta))


# script: the function, the point, the orders of the derivative that the page gives, and the entry of df that it is
EXACT: dict[str, tuple[Any, tuple[float, ...], tuple[int, ...], tuple[int, ...]]] = {
    "zero_inflated_poisson": (zero_inflated, (-0.5, 0.3, 0.4), (1, 1, 0), (0, 1)),
    "truncated_generalized_poisson": (truncated, (0.2, 0.3, 0.2), (1, 0, 0), (0,)),
    "mixed_linear_model": (mixed, (-0.6,), (1,), ()),
    "negative_binomial_p": (
        lambda m, a, b, alpha: negative_binomial(m, a, b, alpha, mpmath.mpf(m.P)),
        (0.3, 0.4, 0.5),
        (1, 0, 1),
        (0, 2),
    ),
    "negative_binomial": (
        lambda m, a, b, log: negative_binomial(m, a, b, mpmath.exp(log), 2),
        (0.3, 0.4, 0.5),
        (0, 0, 2),
        (2, 2),
    ),
    "frank_copula": (frank, (0.3,), (1,), ()),
    "gumbel_copula": (lambda m, t: (-mpmath.log(t)) ** mpmath.mpf(m.THETA), (0.3,), (2,), ()),
    "log_normal_cdf": (lambda m, z: mpmath.log(mpmath.ncdf(z)), (-1.2,), (1,), ()),
    "binomial_variance": (lambda m, mu: mu * (1 - mu / 5), (3.5,), (1,), ()),
}


def loaded(name: str) -> Any:
    """A script as a module; the test is skipped where its library is not installed."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    library, version = re.match(r'"""(\w+) ([\d.]+),', text).groups()  # type: ignore[union-attr]
    found = pytest.importorskip(library)
    if not found.__version__.startswith(version):
        pytest.skip(f"{library} {version} is not the one that is installed")
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def argument(point: tuple[float, ...]) -> Any:
    return np.array(point) if len(point) > 1 else point[0]


def test_every_find_has_a_script_a_command_and_a_test() -> None:
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == set(EXACT)
    named = {re.search(r"found/(\w+)\.py:f ", one).group(1) for one in COMMANDS if "--python" in one}  # type: ignore[union-attr]
    assert named == scripts
    assert sum("In this release" in line for line in PAGE.splitlines()) >= 6


@pytest.mark.peers
@pytest.mark.deep
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.filterwarnings("ignore")
def test_a_find(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command fails, the digits are those of the page, and the corrected formula is right."""
    module = loaded(name)
    function, point, orders, entry = EXACT[name]
    with mpmath.workdps(40):
        exact = float(mpmath.diff(lambda *x: function(module, *x), tuple(map(mpmath.mpf, point)), orders))
    given = np.asarray(module.df(argument(point)))[entry]
    right = np.asarray(module.corrected(argument(point)))[entry]
    assert right == pytest.approx(exact, rel=1e-9)
    assert not np.isclose(given, exact, rtol=1e-4)
    assert f"{exact:.10g}" in PAGE and f"{given:.10g}" in PAGE
    f = getattr(module, "corrected_f", module.f)
    report = check_callable(f, jac=module.corrected, at=argument(point))
    assert [one.verdict for one in report.checks] == ["AGREES"]
    monkeypatch.chdir(FOLDER.parent.parent)
    command = next(one for one in COMMANDS if f"/{name}.py:f " in one)
    assert cli.main(shlex.split(command)[1:]) == 1
    assert "DISAGREES" in capsys.readouterr().out


def test_the_expressions_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """Finds that need no library: the claim is refuted with the digits of the page."""
    found = [one for one in COMMANDS if "--python" not in one]
    assert found
    for command in found:
        assert cli.main(shlex.split(command)[1:]) == 1
        told = capsys.readouterr().out
        for digits in re.findall(r"-?0\.\d{10}", PAGE.partition(command)[2].partition("\n## ")[0]):
            assert digits in told
