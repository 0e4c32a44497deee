"""Functions of samples: quantiles, running extremes, convolution, linear interpolation and powers of samples."""

from __future__ import annotations

from fractions import Fraction

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import composite
from gradcli.primitives.axes import described, filled, kept, merged, part, require_entries, require_option, reshaped
from gradcli.primitives.broadcasting import together
from gradcli.primitives.joining import joined
from gradcli.primitives.movement import sum_
from gradcli.primitives.ordering import sort
from gradcli.primitives.size_arguments import normalize_axes, normalize_axis, whole_number
from gradcli.primitives.steps import maximum, minimum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.primitive import Primitive

_SAMPLE = [(Closed(-2, 2), (5,))]


def _quantile(x: Any, q: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    require_entries(x, axes, "quantile")
    if not isinstance(q, int | float | Fraction) or not 0 <= q <= 1:
        shown = number_text(q) if isinstance(q, int | float | Fraction | tuple) else described(q)
        raise error("GC320", f"the q of a quantile is one number between 0 and 1, not {shown}")
    ordered = sort(merged(x, axes), axis=-1) if axes else x
    if not axes or ordered.shape[-1] == 1:
        return kept(reshaped(ordered, ordered.shape[: -1 if axes else None]), x.shape, axes, keepdims)
    place = Fraction(q) * (ordered.shape[-1] - 1)
    below = min(int(place), ordered.shape[-1] - 2)
    low, high = part(ordered, -1, below, 1), part(ordered, -1, below + 1, 1)
    value = low if place == below else high if place == below + 1 else low + (high - low) * (place - below)
    return kept(reshaped(value, ordered.shape[:-1]), x.shape, axes, keepdims)


quantile = composite(
    "quantile",
    "The value below which a share q of the entries is, between neighbours in sorted order by a line, as in NumPy.",
    definition=_quantile,
    static=("q", "axis", "keepdims"),
    domain=[REAL],
    formula="sort(x) at place q*(n - 1)",
    examples=[("quantile([3, 1, 2, 5], 0.5)", 2.5), ("quantile([[1, 2], [4, 8]], 0.25, axis=1)", [1.25, 5])],
)


def _running(name: str, summary: str, extreme: Primitive, results: list[int]) -> Primitive:
    def definition(x: Any, axis: int = -1) -> Any:
        if not x.shape:
            return x
        at, reach = normalize_axis(axis, len(x.shape)), 1
        while reach < (size := x.shape[at]):  # each entry is the extreme of those up to `reach` places before it
            later = extreme(part(x, at, reach, size - reach), part(x, at, 0, size - reach))
            x, reach = joined([part(x, at, 0, reach), later], at), 2 * reach
        return x

    return composite(
        name,
        summary,
        definition=definition,
        static=("axis",),
        domain=[REAL],
        sample=_SAMPLE,
        formula=f"y[i] = {name[3:]}(x[0], ..., x[i])",
        examples=[(f"{name}([2, 1, 3, 0])", results)],
    )


cummax = _running("cummax", "The largest entry up to each place along an axis.", maximum, [2, 2, 3, 3])
cummin = _running("cummin", "The smallest entry up to each place along an axis.", minimum, [2, 1, 1, 0])


def _vector(x: Any, what: str) -> int:
    if len(x.shape) != 1 or not x.shape[0]:
        raise error("GC321", f"{what} needs a vector with entries, not {described(x)}")
    size: int = x.shape[0]
    return size


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    n, m = _vector(a, "convolve"), _vector(v, "convolve")
    require_option(mode, ("full", "same", "valid"), "mode", "convolve")
    rows, columns = together(reshaped(v, (m, 1)), reshaped(a, (1, n)))
    products = joined([rows * columns, filled(a, 0, (m, m))], -1)  # row j has to move by j places
    flat = part(reshaped(products, (m * (n + m),)), -1, 0, m * (n + m - 1))
    full = sum_(reshaped(flat, (m, n + m - 1)), axis=(-2,))
    long, short = max(n, m), min(n, m)
    sizes = {"full": n + m - 1, "same": long, "valid": long - short + 1}
    return part(full, -1, {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[mode], sizes[mode])


convolve = composite(
    "convolve",
    'The convolution of two vectors; mode is "full", "same" or "valid", as in NumPy.',
    definition=_convolve,
    static=("mode",),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (4,)), (Closed(-2, 2), (3,))],
    formula="y[k] = sum of a[i]*v[k - i]",
    examples=[("convolve([1, 2, 3], [0, 1, 2])", [0, 1, 4, 7, 6]), ('convolve([1, 2, 3], [1, 1], "valid")', [3, 5])],
)


def _interp(x: Any, xp: Any, fp: Any) -> Any:
    size = _vector(xp, "interp")
    if fp.shape != xp.shape:
        raise error("GC301", f"interp needs a value for each place, not {described(fp)} for {described(xp)}")
    start, places = part(xp, -1, 0, size - 1), (*x.shape, 1)
    slopes = (part(fp, -1, 1, size - 1) - part(fp, -1, 0, size - 1)) / (part(xp, -1, 1, size - 1) - start)
    wide, low, high, slopes = together(reshaped(x, places), start, part(xp, -1, 1, size - 1), slopes)
    rises = slopes * (minimum(maximum(wide, low), high) - low)
    first, total = together(reshaped(part(fp, -1, 0, 1), ()), sum_(rises, axis=(-1,)))
    return first + total


interp = composite(
    "interp",
    "Linear interpolation at x between values fp at ascending places xp; beyond them the first or the last value.",
    definition=_interp,
    domain=[REAL, REAL, REAL],
    formula="fp[i] + (fp[i + 1] - fp[i])*(x - xp[i])/(xp[i + 1] - xp[i])",
    examples=[("interp(2.5, [1, 2, 4], [0, 3, 5])", 3.5), ("interp([0, 9], [1, 2], [3, 4])", [3, 4])],
)


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    size = _vector(x, "vander")
    count = size if N is None else whole_number(N, "the number of columns", 0)
    powers = [reshaped(x**k if k else filled(x, 1, x.shape), (size, 1)) for k in range(count)]
    return joined(powers if increasing else powers[::-1], -1) if powers else filled(x, 0, (size, 0))


vander = composite(
    "vander",
    "The matrix whose columns are powers of a vector, the highest first unless increasing.",
    definition=_vander,
    static=("N", "increasing"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3,))],
    formula="x[i]**(N - 1 - j)",
    examples=[("vander([1, 2, 3])", [[1, 1, 1], [4, 2, 1], [9, 3, 1]]), ("vander([2, 3], 2, True)", [[1, 2], [1, 3]])],
)
