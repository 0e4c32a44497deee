"""The functions of arrays to 80 digits, for `reference`: NumPy moves the entries, mpmath computes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support.reference import INNER, NUMBERS, entry_by_entry, exact, mp
from tests.support.reference_matrices import (
    cholesky,
    cofactors,
    determinant,
    eigenvalues,
    eigenvectors,
    exponential,
    frechet,
    inverse,
    matrix_power,
    orthonormal,
    per_matrix,
    product,
    qr,
    singular_values,
    singular_vectors,
    slogdet,
    solve,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Axis = int | tuple[int, ...] | None


# --- reductions -------------------------------------------------------------------------------------------


def over(reduce: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A reduction with NumPy's `axis` and `keepdims` from one of a list."""

    def reduction(x: Any, axis: Axis = None, keepdims: bool = False, **params: Any) -> Any:
        x = np.asarray(x, dtype=object)
        rank = x.ndim
        axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
        chosen = sorted({a % rank for a in axes}) if rank else []
        others = [a for a in range(rank) if a not in chosen]
        shape = [x.shape[a] for a in others]
        rows = x.transpose([*others, *chosen]).reshape([*shape, -1])
        made = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            made[place] = reduce(list(rows[place]), **params)
        return made.reshape([1 if a in chosen else n for a, n in enumerate(x.shape)]) if keepdims else made

    return reduction


def mean(row: list[Any]) -> Any:
    return mp.fsum(row) / len(row)


def variance(row: list[Any], ddof: int = 0) -> Any:
    middle = mean(row)
    return mp.fsum((x - middle) ** 2 for x in row) / (len(row) - ddof)


def median(row: list[Any]) -> Any:
    ordered = sorted(row)
    return (ordered[(len(row) - 1) // 2] + ordered[len(row) // 2]) / 2


def total_exp(row: list[Any]) -> Any:
    return mp.log(mp.fsum(mp.exp(x) for x in row))


def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    x = np.asarray(x, dtype=object)
    if isinstance(axis, tuple) and ord not in (None, "fro"):
        rows = np.moveaxis(x, axis, (-2, -1))
        return exact([norm(rows[place], ord) for place in np.ndindex(rows.shape[:-2])]).reshape(rows.shape[:-2])
    if ord == 2 and x.ndim == 2 and axis is None:
        return singular_values(x)[0]
    if ord == "nuc":
        return mp.fsum(singular_values(x))
    if ord is None or ord in ("fro", 2):
        return over(lambda row: mp.sqrt(mp.fsum(e * e for e in row)))(x, axis, keepdims)
    if ord == 1:
        if x.ndim == 2 and axis is None:
            return max(mp.fsum(map(abs, column)) for column in x.T)
        return over(lambda row: mp.fsum(map(abs, row)))(x, axis, keepdims)
    if ord in (mp.inf, -mp.inf) or str(ord) in ("inf", "-inf"):
        best = max if float(ord) > 0 else min
        if x.ndim == 2 and axis is None:
            return best(mp.fsum(map(abs, row)) for row in x)
        return over(lambda row: best(map(abs, row)))(x, axis, keepdims)
    return over(lambda row: mp.fsum(abs(e) ** ord for e in row) ** (mp.one / ord))(x, axis, keepdims)


def softmax(x: Any, axis: int = -1) -> Any:
    powers = entry_by_entry(mp.exp, x)
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int = -1) -> Any:
    return entry_by_entry(mp.log, softmax(x, axis))


# --- products and places -----------------------------------------------------------------------------------


def einsum(subscripts: str, *operands: Any) -> Any:
    terms, arrow, output = subscripts.replace(" ", "").partition("->")
    letters = terms.replace(",", "")
    if not arrow:
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return np.einsum(f"{terms}->{output}", *operands)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    if mode != "constant":
        return np.pad(x, pad_width, mode=mode)
    return np.pad(x, pad_width, constant_values=exact(constant_values)[()])


def gather(x: Any, indices: Any, axis: int) -> Any:
    return np.take_along_axis(x, np.asarray(indices).astype(int), axis=axis)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, np.asarray(indices).astype(int), axis=axis)


def split(x: Any, sections: Any, axis: int = 0) -> Any:
    return tuple(np.split(x, sections, axis))


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    return np.repeat(x, repeats, axis)


def reshape(x: Any, shape: Any, *more: int) -> Any:
    return np.reshape(x, (shape, *more) if isinstance(shape, int) else shape)


def transpose(x: Any, axes: Any = None, *more: int) -> Any:
    return np.transpose(x, (axes, *more) if isinstance(axes, int) else axes)


def extreme(best: Callable[..., Any], pair: str) -> Callable[..., Any]:
    reduced = over(best)

    def of(*xs: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        if len(xs) == 1:
            return reduced(xs[0], axis, keepdims)
        result = xs[0]
        for x in xs[1:]:
            result = entry_by_entry(NUMBERS[pair], exact(result), exact(x))
        return result

    return of


def position(best: Callable[..., Any]) -> Callable[..., Any]:
    return over(lambda row: row.index(best(row)))


def kept_triangle(lower: bool) -> Callable[..., Any]:
    def triangle(x: Any, k: int = 0) -> Any:
        made = np.array(x, dtype=object)
        for place in np.ndindex(*made.shape):
            i, j = place[-2:]
            if (j - i > k) if lower else (j - i < k):
                made[place] = mp.zero
        return made

    return triangle


def running(function: Any) -> Callable[..., Any]:
    def along(x: Any, axis: int | None = None) -> Any:
        x = np.asarray(x, dtype=object)
        return function(x.reshape(-1), axis=0) if axis is None or not x.ndim else function(x, axis=axis)

    return along


def sort(x: Any, axis: int | None = -1) -> Any:
    return np.sort(x.reshape(-1)) if axis is None else np.sort(x, axis=axis) if x.ndim else x


def argsort(x: Any, axis: int | None = -1) -> Any:
    flat = x.reshape(-1) if axis is None else x
    return np.argsort(flat, axis=-1 if axis is None else axis, kind="stable")


# --- Fourier transforms -------------------------------------------------------------------------------------------


def _transform(z: Any, n: int | None, axis: int, sign: int) -> Any:
    """Sums of z[j]*exp(sign*2*pi*i*j*k/n) along an axis."""
    z = np.moveaxis(np.asarray(z, dtype=object), axis, -1)
    n = n or z.shape[-1]
    z = z[..., :n]
    matrix = np.array(
        [[mp.expjpi(mp.mpf(2 * sign * j * k) / n) for k in range(n)] for j in range(z.shape[-1])], dtype=object
    )
    return np.moveaxis(z @ matrix, -1, axis)


def _quotient(x: Any, y: Any) -> Any:
    if any(isinstance(one, mp.mpc) for z in (x, y) for one in z.flat):
        return x / y
    return entry_by_entry(NUMBERS["div"], x, y)


def _rfft(z: Any, n: int | None, axis: int) -> Any:
    found = _transform(z, n, axis, -1)
    return np.take(found, range(found.shape[axis] // 2 + 1), axis)


def _irfft(z: Any, n: int | None, axis: int) -> Any:
    z = np.moveaxis(np.asarray(z, dtype=object), axis, -1)
    n = n or 2 * (z.shape[-1] - 1)
    missing = max(n // 2 + 1 - z.shape[-1], 0)
    z = np.concatenate([z[..., : n // 2 + 1], np.full((*z.shape[:-1], missing), mp.zero, dtype=object)], -1)
    rest = np.vectorize(mp.conj, otypes=[object])(z[..., 1 : (n + 1) // 2][..., ::-1]) if n > 2 else z[..., :0]
    found = _transform(np.concatenate([z, rest], -1), n, -1, 1) / n
    return np.moveaxis(np.vectorize(mp.re, otypes=[object])(found), -1, axis)


# --- matrices ---------------------------------------------------------------------------------------------------


def _pseudoinverse(a: Any) -> Any:
    if a.shape[0] >= a.shape[1]:
        return product(inverse(product(a.T, a)), a.T)
    return product(a.T, inverse(product(a, a.T)))


def _signs(vectors: Any) -> Any:
    weights = np.array([mp.mpf("0.618") ** i for i in range(len(vectors))], dtype=object)
    return np.array([-mp.one if along < 0 else mp.one for along in weights @ vectors], dtype=object)


def _eigh(x: Any) -> Any:
    a = (x + x.T) / 2
    vectors = eigenvectors(a)
    return np.asarray(eigenvalues(a), dtype=object), vectors * _signs(vectors)


def _svd(x: Any) -> Any:
    left, right = singular_vectors(x, True), singular_vectors(x, False)
    signs = _signs(left)
    return left * signs, np.asarray(singular_values(x), dtype=object), (right * signs).T


# --- losses ---------------------------------------------------------------------------------------------------


def reduced(entries: Any, reduction: str) -> Any:
    entries = np.asarray(entries, dtype=object)
    if reduction == "none":
        return entries
    total = mp.fsum(entries.reshape(-1))
    return total / entries.size if reduction == "mean" else total


def loss(entry: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that is an average over entries."""

    def of(x: Any, target: Any, *more: Any, reduction: str = "mean", **params: Any) -> Any:
        return reduced(entry_by_entry(entry, exact(x), exact(target), *map(exact, more), **params), reduction)

    return of


def huber(x: Any, y: Any, delta: Any = 1) -> Any:
    away = abs(x - y)
    delta = mp.mpf(delta)
    return away**2 / 2 if away <= delta else delta * (away - delta / 2)


def cross_entropy(logits: Any, target: Any, reduction: str = "mean", **params: Any) -> Any:
    return nll(log_softmax(logits, 1 if np.ndim(logits) > 1 else 0), target, reduction)


def nll(logs: Any, target: Any, reduction: str = "mean") -> Any:
    logs, target = np.asarray(logs, dtype=object), np.asarray(target)
    if target.shape == logs.shape:
        entries = -np.sum(logs * exact(target), axis=-1)
        return reduced(entries, reduction)
    if logs.ndim == 1:
        return reduced(-logs[int(target)], reduction)
    rows = [-logs[i][int(label)] for i, label in enumerate(target)]
    return reduced(np.array(rows, dtype=object), reduction)


def cosine_similarity(x: Any, y: Any, axis: int = -1) -> Any:
    x, y = np.broadcast_arrays(exact(x), exact(y))
    lengths = norm(x, axis=axis) * norm(y, axis=axis)
    return np.sum(x * y, axis=axis) / lengths


def kl_entry(x: Any, y: Any, log_target: bool = False) -> Any:
    return mp.exp(y) * (y - x) if log_target else (NUMBERS["xlogy"](y, y) - y * x)


# --- the tables -------------------------------------------------------------------------------------------------


def of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def lifted(*xs: Any, **params: Any) -> Any:
        return entry_by_entry(function, *map(exact, xs), **params)

    return lifted


# What a script calls, with the arguments that it gives.
CALLS: dict[str, Callable[..., Any]] = {
    **{name: of_numbers(function) for name, function in NUMBERS.items()},
    "gelu": lambda x, approximate="none": entry_by_entry(_gelu, exact(x), approximate=approximate),
    "polygamma": lambda n, x: entry_by_entry(INNER["polygamma"], exact(x), n=int(n)),
    "lambertw": lambda x, k=0: entry_by_entry(INNER["lambertw"], exact(x), k=int(k)),
    "multigammaln": lambda a, d: entry_by_entry(
        lambda a: (
            mp.log(mp.pi) * int(d) * (int(d) - 1) / 4 + mp.fsum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(int(d)))
        ),
        exact(a),
    ),
    "where": lambda condition, x, y: np.where(np.asarray(condition) != 0, exact(x), exact(y)),
    "sum": over(mp.fsum),
    "mean": over(mean),
    "prod": over(mp.fprod),
    "max": extreme(max, "maximum"),
    "min": extreme(min, "minimum"),
    "amax": over(max),
    "amin": over(min),
    "var": over(variance),
    "std": over(lambda row, ddof=0: mp.sqrt(variance(row, ddof))),
    "nansum": over(mp.fsum),
    "nanmean": over(mean),
    "nanprod": over(mp.fprod),
    "nanmax": over(max),
    "nanmin": over(min),
    "nanvar": over(variance),
    "nanstd": over(lambda row, ddof=0: mp.sqrt(variance(row, ddof))),
    "norm": norm,
    "logsumexp": over(total_exp),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "cumsum": running(np.cumsum),
    "cumprod": running(np.cumprod),
    "argmax": position(max),
    "argmin": position(min),
    "argsort": argsort,
    "any": over(lambda row: mp.mpf(any(row))),
    "all": over(lambda row: mp.mpf(all(row))),
    "median": over(median),
    "sort": sort,
    "reshape": reshape,
    "transpose": transpose,
    "swapaxes": np.swapaxes,
    "squeeze": np.squeeze,
    "expand_dims": np.expand_dims,
    "broadcast_to": np.broadcast_to,
    "flatten": np.ravel,
    "concatenate": np.concatenate,
    "stack": np.stack,
    "split": split,
    "array": lambda x: x,
    "zeros_like": lambda x: exact(np.zeros(np.shape(x))),
    "ones_like": lambda x: exact(np.ones(np.shape(x))),
    "trapezoid": np.trapezoid,
    "array_split": lambda x, sections, axis=0: tuple(np.array_split(x, sections, axis)),
    "vsplit": lambda x, sections: tuple(np.vsplit(x, sections)),
    "hsplit": lambda x, sections: tuple(np.hsplit(x, sections)),
    "dsplit": lambda x, sections: tuple(np.dsplit(x, sections)),
    "vstack": np.vstack,
    "hstack": np.hstack,
    "dstack": np.dstack,
    "column_stack": np.column_stack,
    "moveaxis": np.moveaxis,
    "diagonal": np.diagonal,
    "diff": np.diff,
    "tensordot": lambda x, y, axes=2: np.tensordot(
        x, y, axes if isinstance(axes, int) else [[int(one) for one in each] for each in axes]
    ),
    "pad": pad,
    "roll": np.roll,
    "flip": np.flip,
    "tile": np.tile,
    "repeat": repeat,
    "take": take,
    "gather": gather,
    "diag": lambda x, k=0: exact(np.diag(x, k)),
    "triu": kept_triangle(False),
    "tril": kept_triangle(True),
    "zeros": lambda shape, *more: exact(np.zeros((shape, *more) if more else shape)),
    "ones": lambda shape, *more: exact(np.ones((shape, *more) if more else shape)),
    "eye": lambda n, m=None, k=0: exact(np.eye(n, m, k)),
    "len": len,
    "shape": np.shape,
    "dot": np.dot,
    "matmul": product,
    "outer": lambda x, y: np.multiply.outer(np.ravel(x), np.ravel(y)),
    "inner": np.inner,
    "einsum": einsum,
    "trace": np.trace,
    "det": per_matrix(determinant),
    "logdet": per_matrix(lambda a: mp.log(abs(determinant(a)))),
    "slogdet": slogdet,
    "inv": per_matrix(inverse),
    "solve": solve,
    "cholesky": per_matrix(lambda a: cholesky((a + a.T) / 2)),
    "qr": qr,
    "eigvalsh": per_matrix(eigenvalues),
    "svdvals": per_matrix(singular_values),
    "div": lambda x, y: _quotient(exact(x), exact(y)),
    "fft": lambda z, n=None, axis=-1: _transform(z, n, axis, -1),
    "ifft": lambda z, n=None, axis=-1: _transform(z, n, axis, 1) / (n or np.shape(z)[axis]),
    "rfft": lambda z, n=None, axis=-1: _rfft(z, n, axis),
    "irfft": lambda z, n=None, axis=-1: _irfft(z, n, axis),
    "fft2": lambda z: _transform(_transform(z, None, -1, -1), None, -2, -1),
    "fftshift": np.fft.fftshift,
    "real": np.vectorize(mp.re, otypes=[object]),
    "imag": np.vectorize(mp.im, otypes=[object]),
    "angle": np.vectorize(mp.arg, otypes=[object]),
    "conj": np.vectorize(mp.conj, otypes=[object]),
    "abs": np.vectorize(abs, otypes=[object]),
    "pinv": per_matrix(_pseudoinverse),
    "solve_triangular": lambda a, b, lower=False: product(
        _pseudoinverse(exact((np.tril if lower else np.triu)(a))), exact(b)
    ),
    "lstsq": lambda a, b: product(_pseudoinverse(exact(a)), exact(b)),
    "eigh": lambda x: _eigh(exact(x)),
    "svd": lambda x, full_matrices=True, compute_uv=True: _svd(exact(x)) if compute_uv else singular_values(exact(x)),
    "matrix_power": matrix_power,
    "expm": per_matrix(exponential),
    "kron": np.kron,
    "cross": np.cross,
    "vecdot": lambda x, y, axis=-1: np.sum(x * y, axis=axis),
    "full": lambda shape, value: np.broadcast_to(exact(value), shape),
    "mse_loss": loss(lambda x, y: (x - y) ** 2),
    "l1_loss": loss(lambda x, y: abs(x - y)),
    "huber_loss": loss(huber),
    "binary_cross_entropy": loss(lambda x, y: -(xlogy(y, x) + xlogy(1 - y, 1 - x))),
    "binary_cross_entropy_with_logits": loss(
        lambda x, y: y * NUMBERS["softplus"](-x) + (1 - y) * NUMBERS["softplus"](x)
    ),
    "cross_entropy": cross_entropy,
    "nll_loss": nll,
    "kl_div": loss(kl_entry),
    "cosine_similarity": cosine_similarity,
    "dirichlet_logpdf": lambda x, alpha: _dirichlet(exact(x), exact(alpha)),
    "multivariate_normal_logpdf": lambda x, mean, cov: _multivariate_normal(exact(x), exact(mean), exact(cov)),
}

xlogy = NUMBERS["xlogy"]


def _dirichlet(x: Any, alpha: Any) -> Any:
    columns = x.reshape(len(alpha), -1).T
    front = mp.gamma(mp.fsum(alpha)) / mp.fprod(map(mp.gamma, alpha))
    found = [mp.log(front * mp.fprod(p ** (a - 1) for p, a in zip(row, alpha, strict=True))) for row in columns]
    return np.array(found, dtype=object).reshape(x.shape[1:])


def _multivariate_normal(x: Any, mean: Any, cov: Any) -> Any:
    cov = (cov + cov.T) / 2
    front = mp.log(determinant(2 * mp.pi * cov))
    rows = (x - mean).reshape(-1, len(mean))
    found = [-(row @ inverse(cov) @ row + front) / 2 for row in rows]
    return np.array(found, dtype=object).reshape(x.shape[:-1])


def _gelu(x: Any, approximate: str) -> Any:
    from tests.support.reference import gelu

    return gelu(x, approximate)


def _slices(start: Any, step: Any, size: Any) -> tuple[Any, ...]:
    return np.ix_(*([a + s * i for i in range(n)] for a, s, n in zip(start, step, size, strict=True)))


def _unslice(x: Any, shape: Any, start: Any, step: Any) -> Any:
    made = np.full(shape, mp.zero, dtype=object)
    if x.ndim == 0:
        return x
    made[_slices(start, step, x.shape)] = x
    return made


def _put(x: Any, index: Any, axis: int, size: int) -> Any:
    """Entries added where an index array of the same shape says."""
    shape = list(x.shape)
    shape[axis] = size
    made = np.full(shape, mp.zero, dtype=object)
    for place in np.ndindex(*x.shape):
        to = list(place)
        to[axis] = int(index[place])
        made[tuple(to)] += x[place]
    return made


def _along_axis(indices: Any, x: Any, axis: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = len(indices)
    return np.broadcast_to(np.reshape(indices, shape), x.shape)


def _recur(a: Any, c: Any) -> Any:
    made = np.array(c, dtype=object)
    for i in range(1, made.shape[-1]):
        made[..., i] = a[..., i] * made[..., i - 1] + c[..., i]
    return made


# What a graph is made of beside functions of numbers, with its static parameters.
STEPS: dict[str, Callable[..., Any]] = {
    "cast": lambda x, kind: exact(np.asarray(x).astype(float)) if kind == "float" else np.asarray(x).astype(int),
    "reshape": np.reshape,
    "broadcast": np.broadcast_to,
    "permute": lambda x, axes: np.transpose(x, [a % x.ndim for a in axes] if x.ndim else None),
    "slice": lambda x, start, step, size: x[_slices(start, step, size)] if x.ndim else x,
    "unslice": _unslice,
    "concat": lambda *xs, axis: np.concatenate(xs, axis=axis),
    "take_static": lambda x, indices, axis: np.take(x, list(indices), axis=axis),
    "put_static": lambda x, indices, axis, size: _put(x, _along_axis(indices, x, axis), axis, size),
    "take_along": lambda x, index, axis: np.take_along_axis(x, index.astype(int), axis=axis),
    "put_along": lambda x, index, axis, size: _put(x, index, axis, size),
    "matmul": product,
    "recur": _recur,
    "frechet": per_matrix(frechet, 2),
    "cof0": per_matrix(cofactors),
    "cof1": per_matrix(cofactors, 2),
    "cof2": per_matrix(cofactors, 3),
    "pinv": per_matrix(_pseudoinverse),
    "fft_real": lambda x: np.vectorize(mp.re, otypes=[object])(_transform(x, None, -1, -1)),
    "fft_imag": lambda x: np.vectorize(mp.im, otypes=[object])(_transform(x, None, -1, -1)),
    "qr_q": per_matrix(orthonormal),
    "eigvecs": per_matrix(eigenvectors),
    "svd_u": per_matrix(lambda a: singular_vectors(a, True)),
    "svd_v": per_matrix(lambda a: singular_vectors(a, False)),
    "svdvals": per_matrix(singular_values),
    "logabsdet": per_matrix(lambda a: mp.log(abs(determinant(a)))),
    "slogdet_sign": per_matrix(lambda a: NUMBERS["sign"](determinant(a))),
    "peak": over(max),
    "is_max": lambda x, axis: x == np.max(x, axis=axis, keepdims=True),
    "is_min": lambda x, axis: x == np.min(x, axis=axis, keepdims=True),
    "magnitude": over(lambda row: mp.mpf(2) ** int(mp.floor(mp.log(max(map(abs, row)), 2)))),
    "norm": norm,
    "any": over(any),
    "all": over(all),
    "cholesky": per_matrix(cholesky),
    "solve": per_matrix(lambda a, b: product(inverse(a), b), 2),
    **{name: CALLS[name] for name in (
        "sum", "prod", "max", "min", "std", "cumsum", "cumprod", "argmax", "argmin", "argsort",
        "median", "sort", "tril", "triu", "inv", "det", "logdet", "expm", "eigvalsh", "softmax", "log_softmax",
        "logsumexp",
    )},
}  # fmt: skip
