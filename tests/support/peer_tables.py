"""PyTorch's functions under our names, with the arguments that a script gives them; for `test_peers`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Axis = int | tuple[int, ...] | None


class Operators:
    """Arrays of a peer are combined by Python's own operators."""

    add, sub, mul, div, pow, matmul = (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul
    )  # fmt: skip
    less, less_equal, greater, greater_equal = operator.lt, operator.le, operator.gt, operator.ge
    equal, not_equal = operator.eq, operator.ne
    logical_and, logical_or, logical_not = operator.and_, operator.or_, operator.invert


def torch_tables() -> tuple[dict[str, Callable[..., Any]], Any]:
    """PyTorch's functions by our names, and how its tensors are made."""
    import torch

    f, d = torch.nn.functional, torch.distributions

    class Tensors(Operators):
        @staticmethod
        def asarray(x: Any) -> Any:
            return torch.as_tensor(x, dtype=torch.float64)

        @staticmethod
        def stack(xs: Any) -> Any:
            return torch.stack(list(xs))

        @staticmethod
        def transpose(x: Any) -> Any:
            return x.permute(*reversed(range(x.ndim)))

    tensor = Tensors.asarray

    def reduced(function: Callable[..., Any], all_axes: bool = True) -> Callable[..., Any]:
        def reduction(x: Any, axis: Axis = None, keepdims: bool = False, **params: Any) -> Any:
            if axis is None:
                axis = tuple(range(x.ndim))
            axes = (axis,) if isinstance(axis, int) else axis
            if not axes:
                return x
            return function(x, axes, keepdim=bool(keepdims), **params)

        return reduction

    def product(x: Any, axes: Any, keepdim: bool = False) -> Any:
        for one in sorted((a % x.ndim for a in axes), reverse=True):
            x = torch.prod(x, one, keepdim=keepdim)
        return x

    def middle(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        flat = x.reshape(-1) if axis is None else x
        found = torch.quantile(flat, 0.5, dim=-1 if axis is None else axis, keepdim=keepdims and axis is not None)
        return found.reshape((1,) * x.ndim) if keepdims and axis is None else found

    def pairs(single: Callable[..., Any], double: Callable[..., Any]) -> Callable[..., Any]:
        def extreme(*xs: Any, axis: Any = None, keepdims: bool = False) -> Any:
            if len(xs) > 1:
                return double(tensor(xs[0]), tensor(xs[1]))
            return reduced(single)(xs[0], axis, keepdims)

        return extreme

    def two(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, **kw: function(tensor(x), tensor(y), **kw)

    def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
        if ord is None:
            return torch.linalg.vector_norm(x, dim=axis, keepdim=bool(keepdims))
        return torch.linalg.norm(x, ord=ord, dim=axis, keepdim=bool(keepdims))

    def along(function: Callable[..., Any]) -> Callable[..., Any]:
        def one_axis(x: Any, axis: Any = -1) -> Any:
            if isinstance(axis, tuple):
                raise NotImplementedError("no several axes")
            return function(x, axis)

        return one_axis

    def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
        bounds = [tensor(b) for b in (low, high) if b is not None]
        x, *bounds = torch.broadcast_tensors(tensor(x), *bounds)
        return (
            torch.clamp(x, *bounds)
            if len(bounds) == 2
            else torch.clamp(x, None if low is None else bounds[0], None if high is None else bounds[-1])
        )

    def symmetric(x: Any) -> Any:
        return (x + x.mT) / 2

    def signs(vectors: Any) -> Any:
        return torch.where(0.618 ** torch.arange(vectors.shape[-2]).double() @ vectors < 0, -1.0, 1.0).detach()

    def eigh(x: Any) -> Any:
        values, vectors = torch.linalg.eigh(symmetric(x))
        return values, vectors * signs(vectors)

    def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        if not compute_uv:
            return torch.linalg.svdvals(x)
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return u * signs(u), s, signs(u)[:, None] * vh

    def running(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, axis=None: function(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)

    def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        widths = pad_width if isinstance(pad_width, tuple) else (pad_width, pad_width)
        if isinstance(widths[0], tuple):
            if not isinstance(constant_values, (int, float)):
                ones = f.pad(torch.zeros_like(x), [n for pair in reversed(widths) for n in pair], value=1.0)
                return f.pad(x, [n for pair in reversed(widths) for n in pair]) + ones * constant_values
            return f.pad(x, [n for pair in reversed(widths) for n in pair], value=constant_values)
        modes = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}
        if mode == "constant":
            return f.pad(x, list(widths) * x.ndim, value=constant_values)
        return f.pad(x[None], list(widths), mode=modes[mode])[0]

    table: dict[str, Callable[..., Any]] = {
        "add": two(torch.add), "sub": two(torch.sub), "mul": two(torch.mul), "div": two(torch.div),
        "neg": torch.neg, "pow": two(torch.pow), "hypot": two(torch.hypot), "atan2": two(torch.atan2),
        "mod": two(torch.remainder), "logaddexp": two(torch.logaddexp), "xlogy": two(torch.xlogy),
        "minimum": two(torch.minimum), "maximum": two(torch.maximum), "heaviside": two(torch.heaviside),
        "polygamma": lambda n, x: torch.polygamma(int(n), tensor(x)),
        "beta": lambda x, y: torch.exp(torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)),
        "gamma": lambda x: torch.exp(torch.lgamma(x)),
        "betaln": lambda x, y: torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y),
        "norm_pdf": lambda x, loc=0, scale=1: torch.exp(d.Normal(tensor(loc), tensor(scale)).log_prob(tensor(x))),
        "norm_cdf": lambda x, loc=0, scale=1: torch.special.ndtr((x - loc) / scale),
        "norm_ppf": lambda q, loc=0, scale=1: loc + scale * torch.special.ndtri(q),
        "norm_logpdf": lambda x, loc=0, scale=1: d.Normal(tensor(loc), tensor(scale)).log_prob(tensor(x)),
        "t_logpdf": lambda x, df, loc=0, scale=1: d.StudentT(*map(tensor, (df, loc, scale))).log_prob(tensor(x)),
        "gamma_logpdf": lambda x, a, loc=0, scale=1: d.Gamma(tensor(a), 1 / tensor(scale), False).log_prob(x - loc),
        "chi2_logpdf": lambda x, df, loc=0, scale=1: d.Gamma(tensor(df) / 2, 0.5 / tensor(scale), False).log_prob(
            x - loc),
        "beta_logpdf": lambda x, a, b, loc=0, scale=1: d.Beta(tensor(a), tensor(b), False).log_prob(
            (x - loc) / scale) - torch.log(tensor(scale)),
        "poisson_logpmf": lambda k, mu, loc=0: d.Poisson(tensor(mu), False).log_prob(k - loc),
        "dirichlet_logpdf": lambda x, alpha: d.Dirichlet(alpha, False).log_prob(x.movedim(0, -1)),
        "multivariate_normal_logpdf": lambda x, mean, cov: d.MultivariateNormal(mean, symmetric(cov)).log_prob(x),
        **{name: lambda z, n=None, axis=-1, name=name: getattr(torch.fft, name)(z, n, axis)
           for name in ("fft", "ifft", "rfft", "irfft")},
        "fft2": torch.fft.fft2, "fftshift": torch.fft.fftshift, "real": torch.real, "imag": torch.imag,
        "angle": torch.angle, "conj": torch.conj,
        "pinv": torch.linalg.pinv, "eigh": eigh, "svd": svd,
        "array": torch.clone, "zeros_like": torch.zeros_like, "ones_like": torch.ones_like,
        "reciprocal": torch.reciprocal, "radians": torch.deg2rad, "degrees": torch.rad2deg,
        "factorial": lambda x: torch.exp(torch.lgamma(x + 1)),
        "trapezoid": lambda y, x=None, axis=-1: torch.trapezoid(
            y, dim=axis) if x is None else torch.trapezoid(y, x, dim=axis),
        "j0": torch.special.bessel_j0, "j1": torch.special.bessel_j1, "i0": torch.special.i0, "i1": torch.special.i1,
        "gammainc": lambda a, x: torch.special.gammainc(tensor(a), tensor(x)),
        "gammaincc": lambda a, x: torch.special.gammaincc(tensor(a), tensor(x)),
        "erfcinv": lambda x: torch.erfinv(1 - x), "logit": torch.logit,
        "cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
        "where": lambda c, x, y: torch.where(c if c.dtype == torch.bool else c != 0, tensor(x), tensor(y)),
        "clamp": clamp,
        "leaky_relu": lambda x, slope=0.01: torch.where(x > 0, x, tensor(slope) * x),
        "elu": lambda x, alpha=1: torch.where(x > 0, x, tensor(alpha) * torch.expm1(x)),
        "relu": f.relu, "selu": f.selu, "gelu": lambda x, approximate="none": f.gelu(x, approximate=approximate),
        "silu": f.silu, "mish": f.mish, "softplus": f.softplus, "logsigmoid": f.logsigmoid, "hardtanh": f.hardtanh,
        "hardsigmoid": f.hardsigmoid, "detach": lambda x: x.detach(),
        "ste": lambda value, surrogate: surrogate + (value - surrogate).detach(),
        "sum": reduced(torch.sum), "mean": reduced(torch.mean), "amax": reduced(torch.amax),
        "amin": reduced(torch.amin), "max": pairs(torch.amax, torch.maximum), "min": pairs(torch.amin, torch.minimum),
        "prod": reduced(product), "logsumexp": reduced(torch.logsumexp),
        "var": lambda x, axis=None, keepdims=False, ddof=0: reduced(torch.var)(x, axis, keepdims, correction=ddof),
        "std": lambda x, axis=None, keepdims=False, ddof=0: reduced(torch.std)(x, axis, keepdims, correction=ddof),
        "median": middle, "norm": norm,
        "softmax": along(torch.softmax), "log_softmax": along(torch.log_softmax),
        "cumsum": running(torch.cumsum), "cumprod": running(torch.cumprod),
        "sort": lambda x, axis=-1: torch.sort(x, dim=axis, stable=True)[0],
        "argmax": lambda x, axis=None, keepdims=False: torch.argmax(x, axis, keepdim=bool(keepdims)),
        "argmin": lambda x, axis=None, keepdims=False: torch.argmin(x, axis, keepdim=bool(keepdims)),
        "argsort": lambda x, axis=-1: torch.argsort(x, dim=axis, stable=True),
        "reshape": lambda x, shape, *more: torch.reshape(x, (shape, *more) if isinstance(shape, int) else shape),
        "transpose": lambda x, axes=None: x.permute(*(axes or reversed(range(x.ndim)))),
        "swapaxes": torch.swapaxes, "expand_dims": lambda x, axis: torch.unsqueeze(x, axis),
        "squeeze": lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, axis),
        "broadcast_to": torch.broadcast_to, "flatten": lambda x: x.reshape(-1),
        "concatenate": lambda xs, axis=0: torch.cat(list(xs), dim=axis), "stack": lambda xs, axis=0: torch.stack(list(xs), axis),
        "split": lambda x, n, axis=0: tuple(torch.tensor_split(x, n, axis)), "pad": pad,
        "array_split": lambda x, n, axis=0: tuple(torch.tensor_split(x, n, axis)),
        **{name: lambda x, n, name=name: tuple(getattr(torch, name)(x, n)) for name in ("vsplit", "hsplit", "dsplit")},
        **{name: lambda xs, name=name: getattr(torch, name)(list(xs))
           for name in ("vstack", "hstack", "dstack", "column_stack")},
        "moveaxis": torch.moveaxis, "diagonal": torch.diagonal,
        "diff": lambda x, n=1, axis=-1: torch.diff(x, int(n), axis),
        "tensordot": lambda x, y, axes=2: torch.tensordot(
            x, y, axes if isinstance(axes, int) else [[int(one) for one in each] for each in axes]),
        "roll": lambda x, shift, axis=None: torch.roll(x, shift, axis),
        "flip": lambda x, axis=None: torch.flip(
            x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis),
        "tile": lambda x, reps: torch.tile(x, (reps,) if isinstance(reps, int) else reps),
        "repeat": lambda x, n, axis=None: torch.repeat_interleave(x, n if isinstance(n, int) else torch.tensor(n), axis),
        "take": lambda x, i, axis=None: torch.index_select(
            x.reshape(-1) if axis is None else x, axis or 0, torch.atleast_1d(torch.as_tensor(i).long()))
            if torch.as_tensor(i).ndim else torch.select(x, axis or 0, int(i)),
        "gather": lambda x, i, axis: torch.gather(x, axis, torch.as_tensor(i).long()),
        "diag": lambda x, k=0: torch.diag(x, k), "triu": lambda x, k=0: torch.triu(x, k),
        "tril": lambda x, k=0: torch.tril(x, k), "full": lambda shape, x: tensor(x).expand(shape),
        "dot": lambda x, y: x @ y, "matmul": torch.matmul, "outer": torch.outer, "inner": torch.inner,
        "einsum": lambda s, *xs: torch.einsum(s, *xs), "trace": torch.trace, "det": torch.linalg.det,
        "logdet": torch.logdet, "slogdet": lambda x: tuple(torch.linalg.slogdet(x)), "inv": torch.linalg.inv,
        "solve": torch.linalg.solve, "cholesky": lambda x: torch.linalg.cholesky(symmetric(x)),
        "qr": lambda x: tuple(torch.linalg.qr(x)), "eigvalsh": lambda x: torch.linalg.eigvalsh(symmetric(x)),
        "svdvals": torch.linalg.svdvals, "matrix_power": torch.linalg.matrix_power, "expm": torch.linalg.matrix_exp,
        "kron": torch.kron, "cross": lambda x, y, axis=-1: torch.linalg.cross(x, y, dim=axis),
        "vecdot": lambda x, y, axis=-1: torch.linalg.vecdot(x, y, dim=axis),
        "mse_loss": f.mse_loss, "l1_loss": f.l1_loss, "huber_loss": f.huber_loss,
        "binary_cross_entropy": f.binary_cross_entropy, "kl_div": f.kl_div,
        "binary_cross_entropy_with_logits": f.binary_cross_entropy_with_logits,
        "cross_entropy": lambda x, y: f.cross_entropy(x, y if y.shape == x.shape else y.long()),
        "nll_loss": lambda x, y: f.nll_loss(x, y.long()),
        "cosine_similarity": lambda x, y, axis=-1: f.cosine_similarity(x, y, dim=axis),
        "trunc": torch.trunc, "round": torch.round, "square": torch.square,
    }  # fmt: skip
    for name in (
        "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
        "atanh erf erfc erfinv lgamma digamma sinc abs sign floor ceil sigmoid"
    ).split():
        table[name] = getattr(torch, name)
    return table, Tensors
