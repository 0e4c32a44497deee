"""Logarithms of probability densities, with SciPy's names and arguments: `norm_logpdf` is `scipy.stats.norm.logpdf`.

All of them expand to simpler operations. Outside the support of a distribution, where SciPy returns -inf, a logarithm
is undefined: the value is NaN, and a diagnostic names the operation. Where the factor of that logarithm is 0, and for
negative counts, the formula is continued.
"""

from __future__ import annotations

from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import NONNEGATIVE, POSITIVE, REAL, Closed, Open
from gradcli.graph.primitive import composite
from gradcli.graph.types import size_of
from gradcli.primitives.axes import described, diagonal, require_square, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.exponential import exp, log, log1p, xlogy
from gradcli.primitives.gamma_functions import betaln, erfc, erfcinv, lgamma
from gradcli.primitives.matrix_functions import cholesky, solve, symmetric
from gradcli.primitives.movement import sum_
from gradcli.primitives.powers import sqrt
from gradcli.primitives.trigonometric import PI

_AROUND = Closed(-2, 2)
_SHAPE = Closed(0.5, 3)


# --- the normal distribution ------------------------------------------------------------------------------------


def _norm_logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return -(z * z) / 2 - log(scale) - log(2 * PI) / 2


norm_logpdf = composite(
    "norm_logpdf",
    "The logarithm of the density of a normal distribution with mean loc and standard deviation scale.",
    definition=_norm_logpdf,
    pointwise=True,
    domain=[REAL, REAL, POSITIVE],
    sample=[_AROUND, _AROUND, _SHAPE],
    formula="-((x - loc)/scale)**2/2 - log(scale) - log(2*π)/2",
    examples=[("norm_logpdf(0)", -0.9189385332046727), ("norm_logpdf(3, 1, 2)", -2.112085713764618)],
)


def _norm_pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return exp(-(z * z) / 2) / sqrt(2 * PI) / scale


norm_pdf = composite(
    "norm_pdf",
    "The density of a normal distribution with mean loc and standard deviation scale > 0.",
    definition=_norm_pdf,
    pointwise=True,
    domain=[REAL, REAL, REAL],
    sample=[_AROUND, _AROUND, _SHAPE],
    formula="exp(-((x - loc)/scale)**2/2)/(scale*√(2*π))",
    examples=[("norm_pdf(0)", 0.3989422804014327), ("norm_pdf(3, 1, 2)", 0.12098536225957168)],
)

norm_cdf = composite(
    "norm_cdf",
    "The distribution function of a normal distribution with mean loc and standard deviation scale > 0.",
    definition=lambda x, loc=0, scale=1: erfc((loc - x) / (scale * sqrt(2))) / 2,
    pointwise=True,
    aliases=("ndtr",),
    domain=[REAL, REAL, REAL],
    sample=[_AROUND, _AROUND, _SHAPE],
    formula="Φ((x - loc)/scale)",
    examples=[("norm_cdf(0)", 0.5), ("norm_cdf(3, 1, 2)", 0.8413447460685429)],
)

norm_ppf = composite(
    "norm_ppf",
    "The quantile function of a normal distribution: the inverse of norm_cdf, with scale > 0.",
    definition=lambda q, loc=0, scale=1: loc - scale * (sqrt(2) * erfcinv(2 * q)),
    pointwise=True,
    aliases=("ndtri",),
    domain=[Open(0, 1), REAL, REAL],
    sample=[Closed(0.1, 0.9), _AROUND, _SHAPE],
    formula="loc + scale*Φ⁻¹(q)",
    examples=[
        ("norm_ppf(0.5)", 0),
        ("norm_ppf(0.975)", 1.959963984540054),
        ("norm_ppf(0.25)", -0.6744897501960818),
    ],
)

# --- other distributions of one number ----------------------------------------------------------------------------


def _t_logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    half = (df + 1) / 2
    return lgamma(half) - lgamma(df / 2) - log(df * PI) / 2 - log(scale) - half * log1p(z * z / df)


t_logpdf = composite(
    "t_logpdf",
    "The logarithm of the density of Student's t distribution with df degrees of freedom.",
    definition=_t_logpdf,
    pointwise=True,
    domain=[REAL, POSITIVE, REAL, POSITIVE],
    sample=[_AROUND, _SHAPE, _AROUND, _SHAPE],
    formula="log(Γ((df + 1)/2)/(Γ(df/2)*√(df*π)*scale)) - (df + 1)/2*log(1 + ((x - loc)/scale)**2/df)",
    examples=[("t_logpdf(0, 1)", -1.1447298858494), ("t_logpdf(3, 4, 1, 2)", -2.231835311857196)],
)


def _gamma_logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return xlogy(a - 1, z) - z - lgamma(a) - log(scale)


gamma_logpdf = composite(
    "gamma_logpdf",
    "The logarithm of the density of a gamma distribution with shape a, for x above loc.",
    definition=_gamma_logpdf,
    pointwise=True,
    domain=[REAL, REAL, REAL, POSITIVE],
    sample=[Closed(0.5, 3), _SHAPE, Closed(-1, 0), _SHAPE],
    formula="(a - 1)*log(z) - z - log(Γ(a)*scale) with z = (x - loc)/scale",
    examples=[("gamma_logpdf(1, 2)", -1), ("gamma_logpdf(3, 2, 0, 2)", -1.7876820724517808)],
)


def _beta_logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return xlogy(a - 1, z) + xlogy(b - 1, 1 - z) - betaln(a, b) - log(scale)


beta_logpdf = composite(
    "beta_logpdf",
    "The logarithm of the density of a beta distribution with shapes a and b, for x between loc and loc + scale.",
    definition=_beta_logpdf,
    pointwise=True,
    domain=[REAL, REAL, REAL, REAL, POSITIVE],
    sample=[Closed(0.3, 0.6), _SHAPE, _SHAPE, Closed(-0.5, 0), Closed(1.5, 2)],
    formula="(a - 1)*log(z) + (b - 1)*log(1 - z) - log(B(a, b)*scale) with z = (x - loc)/scale",
    examples=[("beta_logpdf(0.5, 2, 2)", 0.4054651081081644), ("beta_logpdf(0.5, 1, 1, 0, 2)", -0.6931471805599453)],
)


def _chi2_logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return xlogy(df / 2 - 1, z) - z / 2 - lgamma(df / 2) - df * log(2) / 2 - log(scale)


chi2_logpdf = composite(
    "chi2_logpdf",
    "The logarithm of the density of a chi-squared distribution with df degrees of freedom, for x above loc.",
    definition=_chi2_logpdf,
    pointwise=True,
    domain=[REAL, REAL, REAL, POSITIVE],
    sample=[Closed(0.5, 3), _SHAPE, Closed(-1, 0), _SHAPE],
    formula="(df/2 - 1)*log(z) - z/2 - log(Γ(df/2)*2**(df/2)*scale) with z = (x - loc)/scale",
    examples=[("chi2_logpdf(2, 2)", -1.6931471805599454), ("chi2_logpdf(3, 4, 1, 2)", -2.579441541679836)],
)


def _poisson_logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    n = k - loc
    return xlogy(n, mu) - lgamma(n + 1) - mu


poisson_logpmf = composite(
    "poisson_logpmf",
    "The logarithm of the probability of the count k >= 0 under a Poisson distribution with mean mu.",
    definition=_poisson_logpmf,
    pointwise=True,
    domain=[REAL, NONNEGATIVE, REAL],
    sample=[Closed(0.5, 4), _SHAPE, Closed(-1, 0)],
    formula="k*log(mu) - mu - log(k!)",
    examples=[("poisson_logpmf(0, 2)", -2), ("poisson_logpmf(3, 2)", -1.7123179275482191)],
)

# --- distributions of vectors -------------------------------------------------------------------------------------


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    if len(alpha.shape) != 1 or not x.shape or x.shape[0] != alpha.shape[0]:
        raise error(
            "GC302",
            f"dirichlet_logpdf needs a vector alpha, and x with as many rows: not {described(x)}, {described(alpha)}",
        )
    rank = len(x.shape)
    rows = stretch(reshaped(alpha, (*alpha.shape, *(1,) * (rank - 1))), x.shape)
    normalizer = lgamma(sum_(alpha, axis=(-1,))) - sum_(lgamma(alpha), axis=(-1,))
    total = sum_(xlogy(rows - 1, x), axis=(-rank,))
    return total + stretch(normalizer, total.shape)


dirichlet_logpdf = composite(
    "dirichlet_logpdf",
    "The logarithm of the density of a Dirichlet distribution; the first axis of x counts the components.",
    definition=_dirichlet_logpdf,
    domain=[NONNEGATIVE, REAL],
    sample=[(Closed(0.1, 0.9), (3,)), (_SHAPE, (3,))],
    formula="sum((alpha - 1)*log(x)) + log(Γ(sum(alpha))) - sum(log(Γ(alpha)))",
    examples=[("dirichlet_logpdf([0.25, 0.75], [1, 2])", 0.4054651081081644)],
)


def _multivariate_normal_logpdf(x: Any, mean: Any, cov: Any) -> Any:
    require_square(cov, "the covariance of multivariate_normal_logpdf")
    size = cov.shape[-1]
    if len(cov.shape) != 2 or mean.shape != (size,) or x.shape[-1:] != (size,):
        raise error(
            "GC302",
            "multivariate_normal_logpdf needs x[..., n], mean[n] and cov[n, n], "
            f"not {described(x)}, {described(mean)} and {described(cov)}",
        )
    factor = cholesky(symmetric(cov))
    lead = x.shape[:-1]
    away = reshaped(x - stretch(mean, x.shape), (size_of(lead), size))
    scaled = solve(factor, away.mT)
    distances = sum_(scaled * scaled, axis=(-2,))
    logdet = 2 * sum_(log(diagonal(factor)), axis=(-1,))
    constant = stretch(logdet + size * log(2 * PI), distances.shape)
    return reshaped(-(distances + constant) / 2, lead)


multivariate_normal_logpdf = composite(
    "multivariate_normal_logpdf",
    "The logarithm of the density of a multivariate normal distribution with covariance (cov + cov.T)/2.",
    definition=_multivariate_normal_logpdf,
    domain=[REAL, REAL, REAL],
    sample=[(_AROUND, (2, 3)), (_AROUND, (3,)), (Closed(-1, 1), (3, 3), "positive definite")],
    formula="-((x - mean) @ inv(cov) @ (x - mean) + log(det(2*π*cov)))/2",
    examples=[
        ("multivariate_normal_logpdf([1, 2], [1, 2], [[4, 2], [2, 5]])", -3.224171427529236),
        ("multivariate_normal_logpdf([1, 2], [0, 0], [[1, 0], [0, 1]])", -4.337877066409345),
    ],
)
