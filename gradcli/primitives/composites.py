"""Steady combinations of simpler operations: softmax and its logarithm, logsumexp, norm.

A shift or a scale that keeps numbers in range cancels from value and derivative, so no rule follows it and exact
readings take it as 0 or 1.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, nondifferentiable
from gradcli.graph.types import Type, size_of
from gradcli.primitives.arithmetic import parts, real_part
from gradcli.primitives.axes import described, filled, kept, require_option, stretched_back
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.extremes import max_, min_
from gradcli.primitives.joining import joined
from gradcli.primitives.movement import permute, sum_
from gradcli.primitives.reductions import root_or_zero
from gradcli.primitives.size_arguments import normalize_axes, normalize_axis, reduced_shape
from gradcli.primitives.spectral import svdvals
from gradcli.primitives.steps import abs_

if TYPE_CHECKING:
    from collections.abc import Callable

    Axes = tuple[int, ...]

_ROWS = [(Closed(-2, 2), (2, 3))]

# --- what keeps numbers in range ---------------------------------------------------------------------------


def _peak_value(xp: Any, x: Any, *, ranks: Any, axis: Axes, keepdims: bool = False) -> Any:
    largest = xp.max(x, axis=axis, keepdims=keepdims)
    return xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))


def _magnitude_value(xp: Any, x: Any, *, ranks: Any, axis: Axes) -> Any:
    largest = xp.max(xp.abs(x), axis=axis)
    usable = xp.isfinite(largest) & (largest > 0)
    _, exponent = xp.frexp(xp.where(usable, largest, xp.ones_like(largest)))
    return xp.ldexp(xp.ones_like(largest), exponent - 1)


def _everywhere(value: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: Axes) -> Any:
        shape = reduced_shape(x.shape, axis)
        return f.array([f.number(value)] * size_of(shape), shape)

    return entries


def _reduced(x: Type, *, axis: Axes) -> Type:
    return Type(x.kind, reduced_shape(x.shape, axis))


peak: Primitive = nondifferentiable(
    "peak",
    "The largest entry where it is finite, else 0: a shift that cancels. Exact readings take 0.",
    impl=_peak_value,
    entries=_everywhere(0),
    type_rule=_reduced,
    arity=1,
    internal=True,
    closed=lambda x, *, axis: filled(x, 0, reduced_shape(x.shape, axis)),
    plane=lambda z, *, axis: peak(real_part(z), axis=axis),
)

magnitude = nondifferentiable(
    "magnitude",
    "A power of two near the largest entry: a scale that cancels. Exact readings take 1.",
    impl=_magnitude_value,
    entries=_everywhere(1),
    type_rule=_reduced,
    arity=1,
    internal=True,
    closed=lambda x, *, axis: filled(x, 1, reduced_shape(x.shape, axis)),
)

# --- softmax and its kin -----------------------------------------------------------------------------------


def _has_entries(x: Any) -> bool:
    """Whether there is a largest entry to shift or scale by."""
    return size_of(x.shape) > 0


def _shifted(x: Any, axis: Axes) -> Any:
    return x - stretched_back(peak(x, axis=axis), x.shape, axis)


def _logsumexp_definition(x: Any, *, axis: Axes) -> Any:
    return log(sum_(exp(_shifted(x, axis)), axis=axis)) + peak(x, axis=axis)


def _logsumexp_value(xp: Any, x: Any, *, ranks: Any, axis: Axes) -> Any:
    shift = _peak_value(xp, x, ranks=ranks, axis=axis)
    spread = xp.expand_dims(shift, axis)
    return xp.log(xp.sum(xp.exp(x - spread), axis=axis)) + shift


def _logsumexp_call(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    if not axes:
        return x
    total = logsumexp(x, axis=axes) if _has_entries(x) else log(sum_(exp(x), axis=axes))
    return kept(total, x.shape, axes, keepdims)


logsumexp: Primitive = composite(
    "logsumexp",
    "The logarithm of the sum of exponentials, without overflow; over all entries by default.",
    definition=_logsumexp_definition,
    impl=_logsumexp_value,
    plane=_logsumexp_definition,
    type_rule=_reduced,
    arity=1,
    call=_logsumexp_call,
    static=("axis", "keepdims"),
    domain=[REAL],
    sample=_ROWS,
    formula="log(sum(exp(x)))",
    examples=[("logsumexp([0, 0])", 0.6931471805599453), ("logsumexp([1000, 1000])", 1000.6931471805599)],
    node="LogsumexpBackward0",
    names="torch. jax.nn.",
    traits="every_size",
)


def _softmax_definition(x: Any, *, axis: Axes) -> Any:
    raised = exp(_shifted(x, axis))
    return raised / stretched_back(sum_(raised, axis=axis), x.shape, axis)


def _softmax_value(xp: Any, x: Any, *, ranks: Any, axis: Axes) -> Any:
    raised = xp.exp(x - _peak_value(xp, x, ranks=ranks, axis=axis, keepdims=True))
    return raised / xp.sum(raised, axis=axis, keepdims=True)


def _softmax_call(x: Any, axis: int | Axes = -1) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    if not axes:
        return exp(x - x)  # a number is an array of one entry
    return softmax(x, axis=axes) if _has_entries(x) else x


def _log_softmax_call(x: Any, axis: int | Axes = -1) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    if not axes:
        return x - x
    return log_softmax(x, axis=axes) if _has_entries(x) else x


softmax: Primitive = composite(
    "softmax",
    "Exponentials divided by their sum, along the last axis by default.",
    definition=_softmax_definition,
    impl=_softmax_value,
    plane=_softmax_definition,
    arity=1,
    call=_softmax_call,
    static=("axis",),
    domain=[REAL],
    sample=_ROWS,
    formula="exp(x)/sum(exp(x))",
    examples=[("softmax([0, 0])", [0.5, 0.5])],
    node="SoftmaxBackward0",
    names="torch. jax.nn.",
    traits="every_size saturates",
)


def _log_softmax_definition(x: Any, *, axis: Axes) -> Any:
    shifted = _shifted(x, axis)
    return shifted - stretched_back(log(sum_(exp(shifted), axis=axis)), x.shape, axis)


def _log_softmax_value(xp: Any, x: Any, *, ranks: Any, axis: Axes) -> Any:
    shifted = x - _peak_value(xp, x, ranks=ranks, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


log_softmax: Primitive = composite(
    "log_softmax",
    "The logarithm of softmax, along the last axis by default.",
    definition=_log_softmax_definition,
    impl=_log_softmax_value,
    plane=_log_softmax_definition,
    arity=1,
    call=_log_softmax_call,
    static=("axis",),
    domain=[REAL],
    sample=_ROWS,
    formula="x - log(sum(exp(x)))",
    examples=[("log_softmax([0, 0])", [-0.6931471805599453, -0.6931471805599453])],
    node="LogSoftmaxBackward0",
    names="torch. jax.nn.",
    traits="every_size saturates",
)

# --- norm --------------------------------------------------------------------------------------------------


def _norm_definition(x: Any, *, axis: Axes) -> Any:
    scale = magnitude(x, axis=axis)
    scaled = x / stretched_back(scale, x.shape, axis)
    return scale * root_or_zero(sum_(scaled * scaled, axis=axis))


def _norm_value(xp: Any, x: Any, *, ranks: Any, axis: Axes) -> Any:
    scale = _magnitude_value(xp, x, ranks=ranks, axis=axis)
    scaled = xp.abs(x) / xp.expand_dims(scale, axis)
    return scale * xp.sqrt(xp.sum(scaled * scaled, axis=axis))


def _norm_call(
    x: Any, ord: int | float | str | None = None, axis: int | Axes | None = None, keepdims: bool = False
) -> Any:
    rank = len(x.shape)
    axes = normalize_axes(axis, rank)
    if len(axes) != 2 and ord in ("fro", "nuc"):
        raise error("GC321", f"norm with ord={ord!r} of {described(x)}: name the axes of vectors or matrices")
    if not axes:
        return abs_(x)
    if not _has_entries(x):
        return kept(sum_(x, axis=axes), x.shape, axes, keepdims)
    if ord is None or (ord == 2 and len(axes) == 1):
        return kept(norm(x, axis=axes), x.shape, axes, keepdims)
    require_option(ord, (1, 2, inf, -inf, "fro", "nuc"), "ord", "norm")
    if len(axes) > 2:
        raise error("GC321", f"norm with ord={ord!r} of {described(x)}: name the axes of vectors or matrices")
    if ord == "fro":
        return kept(norm(x, axis=axes), x.shape, axes, keepdims)
    if ord in (2, "nuc"):
        others = tuple(i for i in range(-rank, 0) if i not in axes)
        matrix = permute(x, axes=(*others, *axes)) if (*others, *axes) != tuple(range(-rank, 0)) else x
        reduced = (max_ if ord == 2 else sum_)(svdvals(matrix), axis=(-1,))
        return kept(reduced, x.shape, axes, keepdims)
    return kept(_sums_of_sizes(abs_(x), ord, axis, axes), x.shape, axes, keepdims)


def _sums_of_sizes(sizes: Any, ord: int | float | str, axis: int | Axes | None, axes: Axes) -> Any:
    """The norms 1, inf and -inf: of a vector the sum or an extreme, of a matrix the extreme sum of columns or rows."""
    extreme = min_ if ord == -inf else max_
    if len(axes) == 1:
        return sum_(sizes, axis=axes) if ord == 1 else extreme(sizes, axis=axes)
    rank = len(sizes.shape)
    rows, columns = (normalize_axis(number, rank) for number in axis) if isinstance(axis, tuple) else axes
    inner, outer = (rows, columns) if ord == 1 else (columns, rows)
    sums = sum_(sizes, axis=(inner,))
    return extreme(sums, axis=(outer if outer > inner else outer + 1,))


norm: Primitive = composite(
    "norm",
    'The 2-norm of all entries, or along axes; ord may be 1, 2, inf, -inf, "fro" or "nuc", as in NumPy.',
    definition=_norm_definition,
    impl=_norm_value,
    type_rule=_reduced,
    arity=1,
    call=_norm_call,
    static=("ord", "axis", "keepdims"),
    domain=[REAL],
    sample=_ROWS,
    kinks=[Kink(lambda x, *, axis: norm(x, axis=axis), "where every entry is 0", "0")],
    formula="sqrt(sum(x**2))",
    plane=lambda z, *, axis: norm(real_part(joined(parts(z), axis[-1])), axis=axis),
    examples=[
        *(("norm([3, 4])", 5), ("norm([[1, -2], [3, 4]], 1)", 6), ("norm([[3, 0], [0, 4]], 2)", 4)),
        ('norm([[3, 0], [0, -4]], "nuc")', 7),
    ],
    node="LinalgVectorNormBackward0",
    names="numpy.linalg. torch.linalg.",
    traits="every_size",
)
