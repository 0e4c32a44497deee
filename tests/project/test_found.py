"""The gradients of samples/found/: wrong as its page says, and right as corrected, by derivatives of 40 digits."""

from __future__ import annotations

import importlib.util
import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from gradcli.checks.callables.api import check_callable
from gradcli.interfaces import cli

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


def observed(m: Any, *w: Any) -> Any:
    """Gravity in the frame of a quaternion: its first entry."""
    q = [
        mpmath.mpf(float(a)) + sum(mpmath.mpf(float(b)) * x for b, x in zip(row, w, strict=True))
        for a, row in zip(m.Q0, m.BASIS, strict=True)
    ]
    s, x, y, z = (entry / mpmath.sqrt(sum(e**2 for e in q)) for entry in q)
    g = [mpmath.mpf(float(entry)) for entry in m.EKF_OF.a_ref]
    return (1 - 2 * (y**2 + z**2)) * g[0] + 2 * (x * y + s * z) * g[1] + 2 * (x * z - s * y) * g[2]


def conditional(copula: Any) -> Any:
    """dC/dv of a copula C(m, u, v) at the v of its script."""
    return lambda m, u: mpmath.diff(lambda v: copula(m, u, v), mpmath.mpf(m.V))


def conic(m: Any, r: Any) -> Any:
    """1/sigma: the length of the normal (slope, 1) of the sag, at a distance from its axis."""
    c, kappa, shift = map(mpmath.mpf, (m.C, m.KAPPA, m.SHIFT))
    away = mpmath.sqrt(r**2 + 2 * shift * r * mpmath.cos(mpmath.mpf(m.THETA)) + shift**2)
    sag = lambda rho: c * rho**2 / (1 + mpmath.sqrt(1 - (1 + kappa) * (c * rho) ** 2))  # noqa: E731
    return mpmath.sqrt(1 + mpmath.diff(sag, away) ** 2)


def weibull(m: Any, r: Any) -> Any:
    """The third derivative of the logarithm of the density by the link."""
    y = mpmath.mpf(m.Y)
    return mpmath.diff(lambda link: mpmath.log(r / link) + (r - 1) * mpmath.log(y) - y**r / link, mpmath.mpf(m.LINK), 3)


def joe(m: Any, u: Any, v: Any) -> Any:
    theta = mpmath.mpf(m.PARAMETERS[0])
    a, b = (1 - u) ** theta, (1 - v) ** theta
    return 1 - (a + b - a * b) ** (1 / theta)


def galambos(m: Any, u: Any, v: Any) -> Any:
    theta = mpmath.mpf(m.PARAMETERS[0])
    return u * v * mpmath.exp(((-mpmath.log(u)) ** -theta + (-mpmath.log(v)) ** -theta) ** (-1 / theta))


def bb1(m: Any, u: Any, v: Any) -> Any:
    delta, theta = map(mpmath.mpf, m.PARAMETERS)
    total = (u**-theta - 1) ** delta + (v**-theta - 1) ** delta
    return (1 + total ** (1 / delta)) ** (-1 / theta)


def bb2(m: Any, u: Any, v: Any) -> Any:
    delta, theta = map(mpmath.mpf, m.PARAMETERS)
    total = sum(mpmath.exp(delta * (w**-theta - 1)) for w in (u, v)) - 1
    return (1 + mpmath.log(total) / delta) ** (-1 / theta)


def softplus(m: Any, b: Any) -> Any:
    """The first derivative of the mean loss by the coefficient."""
    total = mpmath.mpf(0)
    for x, y, rest in zip(m.X, m.Y, m.REST, strict=True):
        z = mpmath.mpf(float(rest)) + b * mpmath.mpf(float(x))
        total += (1 - int(y) / mpmath.log(1 + mpmath.exp(z))) / (1 + mpmath.exp(-z)) * mpmath.mpf(float(x))
    return total / len(m.X)


def dipole(m: Any, x: Any, y: Any) -> Any:
    """The first entry of the deflection."""
    c, s = mpmath.cos(m.OPTIONS["phi_dipole"]), mpmath.sin(m.OPTIONS["phi_dipole"])
    x, y = x - mpmath.mpf(m.OPTIONS["com_x"]), y - mpmath.mpf(m.OPTIONS["com_y"])
    return c * mpmath.mpf(m.OPTIONS["coupling"]) * (c * x + s * y) / mpmath.hypot(x, y)


def d1_of(m: Any, spot: Any = None, years: Any = None, sigma: Any = None) -> tuple[Any, Any]:
    """d1 of Black and Scholes, and sigma*sqrt(t)."""
    spot = mpmath.mpf(m.SPOT) if spot is None else spot
    years = mpmath.mpf(m.DAYS) / 365 if years is None else years
    sigma = mpmath.mpf(m.VOLATILITY) if sigma is None else sigma
    spread = sigma * mpmath.sqrt(years)
    drift = (mpmath.mpf(m.RATE) + sigma**2 / 2) * years
    return (mpmath.log(spot / mpmath.mpf(m.STRIKE)) + drift) / spread, spread


def gamma_of(m: Any, spot: Any = None, years: Any = None) -> Any:
    d1, spread = d1_of(m, spot, years)
    return mpmath.npdf(d1) / ((mpmath.mpf(m.SPOT) if spot is None else spot) * spread)


def t_sne(m: Any, *Y: Any) -> Any:
    rows = [Y[k : k + 3] for k in range(0, 15, 3)]
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    kernel = [
        (1 + sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) / 2) ** mpmath.mpf(-1.5) for i, j in pairs
    ]
    total = 2 * sum(kernel)
    P = [mpmath.mpf(float(p)) for p in m.P]
    return 2 * sum(p * mpmath.log(p * total / k) for p, k in zip(P, kernel, strict=True))


def drude(m: Any, a: Any, x_0: Any, w: Any) -> Any:
    x = mpmath.mpf(m.X)
    return a * (w / x_0) ** 2 / ((x / x_0 - x_0 / x) ** 2 + (w / x_0) ** 2)


def polynomial(m: Any, a: Any, b: Any, c: Any) -> Any:
    """The residual at X of a polynomial in the variable that runs from -1 to 1 on the domain."""
    low, high = map(mpmath.mpf, m.DOMAIN)
    u = 2 * (mpmath.mpf(float(m.X[0])) - low) / (high - low) - 1
    return a + b * u + c * u**2 - mpmath.mpf(float(m.Y[0]))


def solar_cell(m: Any, v: Any) -> Any:
    photocurrent, saturation, _, shunt, thermal = map(mpmath.mpf, m.CELL)
    breakdown = m.FACTOR * v / shunt * (1 - v / mpmath.mpf(m.VOLTAGE)) ** -mpmath.mpf(m.EXPONENT)
    return photocurrent - saturation * mpmath.expm1(v / thermal) - v / shunt - breakdown


def symmetric_kl(m: Any, *x: Any) -> Any:
    small = mpmath.mpf(1e-11)
    x, y = [entry + small for entry in x], [mpmath.mpf(float(entry)) + small for entry in m.Y]
    p, q = [entry / sum(x) for entry in x], [entry / sum(y) for entry in y]
    return sum((a - b) * mpmath.log(a / b) for a, b in zip(p, q, strict=True)) / 2


Y3 = (
    0.1,
    -0.4,
    0.7,
    0.9,
    0.3,
    -0.2,
    -0.5,
    0.8,
    0.4,
    0.6,
    -0.7,
    0.2,
    -0.3,
    0.1,
    -0.9,
)  # five points in three dimensions
SHAPES = {"t_sne": (5, 3)}
# scripts whose function is wrong, too, with its derivative right: the slope of the function is what the page gives
WRONG_FUNCTIONS = {"hermite_2d"}

# script: the function, the point, the orders of the derivative that the page gives, and the entry of df that it is
EXACT: dict[str, tuple[Any, tuple[float, ...], tuple[int, ...], tuple[int, ...]]] = {
    "t_sne": (t_sne, Y3, (1, *14 * (0,)), (0, 0)),
    "drude": (drude, (1.3, 2.2, 0.7), (0, 1, 0), (1,)),
    "hermite_2d": (lambda m, c: c * (4 * mpmath.mpf(float(m.Y[0])) ** 2 - 2), (1.0,), (1,), ()),
    "polynomial_domain": (polynomial, (0.4, 0.3, 0.2), (0, 1, 0), (1,)),
    "solar_cell_breakdown": (solar_cell, (-3.0,), (1,), ()),
    "symmetric_kl": (symmetric_kl, (0.31, 0.72, 0.15, 0.44), (1, 0, 0, 0), (0,)),
    "truncated_marginal_effects": (
        lambda m, x: (lambda mu: mu / -mpmath.expm1(-mu))(
            mpmath.exp(mpmath.mpf(m.PARAMS[0]) + mpmath.mpf(m.PARAMS[1]) * x)
        ),
        (0.4,),
        (1,),
        (),
    ),
    "burr_density": (lambda m, x: 1 - (1 + x ** mpmath.mpf(m.ALPHA)) ** -mpmath.mpf(m.KAPPA), (0.9,), (1,), ()),
    "dipole_lens": (dipole, (1.3, 0.7), (0, 1), (0, 1)),
    "ekf_observations": (observed, (0.0, 0.0, 0.0), (1, 0, 0), (0, 0)),
    "softplus_hessian": (softplus, (0.4,), (1,), ()),
    "joe_copula": (conditional(joe), (0.3,), (1,), ()),
    "galambos_copula": (conditional(galambos), (0.3,), (1,), ()),
    "bb1_copula": (conditional(bb1), (0.3,), (1,), ()),
    "bb2_copula": (conditional(bb2), (0.3,), (1,), ()),
    "vanna": (lambda m, sigma: mpmath.ncdf(d1_of(m, sigma=sigma)[0]), (0.3,), (1,), ()),
    "charm": (lambda m, years: -mpmath.ncdf(d1_of(m, years=years)[0]), (0.4,), (1,), ()),
    "speed": (lambda m, spot: gamma_of(m, spot=spot), (0.95,), (1,), ()),
    "color": (lambda m, years: -gamma_of(m, years=years), (0.4,), (1,), ()),
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
    "conic_sigma": (conic, (0.6,), (1,), ()),
    "weibull_shape": (weibull, (1.4,), (1,), ()),
    "binomial_variance": (lambda m, mu: mu * (1 - mu / 5), (3.5,), (1,), ()),
}


def loaded(name: str) -> Any:
    """A script as a module; the test is skipped where its library is not installed."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    package, release = re.match(r'"""([\w-]+) ([\d.]+),', text).groups()  # type: ignore[union-attr]
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if not installed.startswith(release):
        pytest.skip(f"{package} {release} is not the one that is installed")
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def argument(name: str, point: tuple[float, ...]) -> Any:
    return np.array(point).reshape(SHAPES.get(name, -1)) if len(point) > 1 else point[0]


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
    given = np.asarray(module.df(argument(name, point)))[entry]
    if name in WRONG_FUNCTIONS:
        given = module.f(point[0] + 0.5) - module.f(point[0] - 0.5)
    right = np.asarray(module.corrected(argument(name, point)))[entry]
    assert right == pytest.approx(exact, rel=1e-9)
    assert not np.isclose(given, exact, rtol=1e-4)
    assert f"{exact:.10g}" in PAGE and f"{given:.10g}" in PAGE
    f = getattr(module, "corrected_f", module.f)
    report = check_callable(f, jac=module.corrected, at=argument(name, point))
    assert {one.verdict for one in report.checks} <= {"AGREES", "PROVED", "CERTIFIED"}
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
