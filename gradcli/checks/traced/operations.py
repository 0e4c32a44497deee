"""The table of PyTorch's and JAX's operations and the operations of ours that they correspond to.

Most rows name an elementwise operation of ours, the overload packets of aten and the primitives of JAX that mean the
same. Where parameters matter, a row has a function instead, whose parameters are called as aten's schema calls them;
the jaxpr's names are translated in the row. What only moves entries about (slices, gathers, concatenations) needs no
row: it is run on the numbers of the entries (`moved`), whatever it is called.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.arrays import ArrayData, digest_of
from gradcli.graph.node import Node
from gradcli.graph.types import Type
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.builder import Builder

ORDERS = 4  # random ones, in which an operation is seen to move entries wherever they are
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class Opaque(Exception):
    """An operation, or a value, that no program of ours can stand for, and why."""


class Row(NamedTuple):
    """One operation: the name of ours or a function of operands and parameters, aten's names, JAX's.

    `params` translates the names of JAX's parameters into aten's.
    """

    ours: str | Callable[..., Any]
    aten: str = ""
    jax: str = ""
    params: dict[str, str] = {}  # never changed


# --- operands -----------------------------------------------------------------------------------------------------


def constant(builder: Builder, array: Any) -> Node:
    """The node of an array or a number that does not depend on the point; decimals mean their shortest decimal."""
    array = np.asarray(array)
    kind = KINDS.get(array.dtype.kind)
    if kind is None:
        raise Opaque(f"it computes with values of dtype {array.dtype}")
    values = array.reshape(-1).tolist()
    if kind == "bool":  # what is exact knows numbers; a mask is where they are greater
        numbers = constant(builder, array.astype(np.int64).astype(np.float64))
        return builder.call("greater", numbers, halves(builder, array.shape))
    if values and all(value == values[0] for value in values):
        return builder.constant(values[0], array.shape, kind)
    if kind == "float" and not np.isfinite(array).all():
        parts = [builder.constant(value, (1,)) for value in values]
        return shaped(joined(parts), array.shape)
    exact = [builder.constant(value).params["value"] for value in values] if kind == "float" else values
    data = ArrayData(array.shape, exact)
    return builder.array(digest_of(data), data, Type(kind, array.shape))


def halves(builder: Builder, shape: tuple[int, ...]) -> Node:
    """One half in every entry."""
    return builder.constant(0.5, shape)


def of_kind(node: Node, kind: str) -> Node:
    """The node as float, int or bool, as frameworks convert them."""
    own, builder = node.type.kind, node.builder
    if own == kind:
        return node
    if kind == "int" and own == "float":
        node = builder.call("trunc", node)
    if kind == "bool":
        return builder.call("not_equal", node, builder.constant(0, node.type.shape, own))
    return builder.call("cast", node, kind=kind)


def shaped(x: Node, shape: Sequence[int]) -> Node:
    """The node in another shape of as many entries."""
    shape = tuple(shape)
    return x if x.type.shape == shape else x.builder.call("reshape", x, shape=shape)


def joined(parts: Sequence[Node]) -> Node:
    """Vectors one after the other."""
    return parts[0] if len(parts) == 1 else parts[0].builder.call("concat", *parts, axis=-1)


def pointwise(name: str, xs: Sequence[Any], builder: Builder) -> Node:
    """An operation of ours, entry by entry, on nodes and numbers that are broadcast together."""
    shape = np.broadcast_shapes(*(x.type.shape if isinstance(x, Node) else np.shape(x) for x in xs))
    nodes = [x if isinstance(x, Node) else constant(builder, x) for x in xs]
    order = ("bool", "int", "float")
    choices = nodes[1:] if name == "where" else nodes
    logical = name in ("and", "or", "not")
    least = "bool" if logical or name == "where" else "float" if name in FLOATS else "int"
    kind = "bool" if logical else max([least, *(x.type.kind for x in choices)], key=order.index)
    counted = kind == "int" and name in ("add", "sub", "mul", "neg", "mod", "abs")  # what counts is computed in floats
    kinds = ["bool", kind, kind] if name == "where" else ["float" if counted else kind] * len(nodes)
    found = builder.call(name, *(stretch(of_kind(x, k), shape) for x, k in zip(nodes, kinds, strict=True)))
    return of_kind(found, "int") if counted else found


def axes_of(x: Node, dim: Any) -> tuple[int, ...]:
    """Axes counted from the last; all of them where none are named."""
    rank = len(x.type.shape)
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return tuple(range(-rank, 0))
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(sorted(int(d) % rank - rank for d in dims)) if rank else ()


def reduced(name: str) -> Callable[..., Node]:
    """A reduction of ours as aten calls it."""

    def reduction(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
        axes = axes_of(x, dim)
        if not axes:
            return x
        kept = [1 if i - len(x.type.shape) in axes else n for i, n in enumerate(x.type.shape)]
        found = x.builder.call(name, x, axis=axes)
        return shaped(found, kept) if keepdim else found

    return reduction


total, largest, smallest, product = (reduced(name) for name in ("sum", "max", "min", "prod"))


def along_exponents(x: Node, dim: int) -> Node:
    """A running logarithm of a sum of exponentials."""
    return x.builder.call("log", along("cumsum")(x.builder.call("exp", x), dim))


def truths(name: str) -> Callable[..., Node]:
    """Whether any or all entries are true."""

    def reduction(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
        many = largest if name == "any" else smallest
        return of_kind(many(of_kind(of_kind(x, "bool"), "float"), dim, keepdim), "bool")

    return reduction


def average(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
    found = total(x, dim, keepdim)
    return found / max(x.type.size // max(found.type.size, 1), 1)


def variance(x: Node, dim: Any = None, correction: Any = None, unbiased: Any = None, keepdim: bool = False) -> Node:
    less = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    gap = pointwise("sub", [x, average(x, dim, True)], x.builder)
    squares = total(gap * gap, dim, keepdim)
    return squares / (x.type.size // max(squares.type.size, 1) - less)


def extreme(which: str) -> Callable[..., Any]:
    """The largest or smallest entries along an axis with their positions, or of all."""

    def both(x: Node, dim: Any = None, keepdim: bool = False) -> Any:
        values = (largest if which == "max" else smallest)(x, dim, keepdim)
        return values if dim is None else (values, position(which)(x, dim, keepdim))

    return both


def position(which: str) -> Callable[..., Node]:
    """Where the largest or smallest entry along an axis is."""

    def place(x: Node, dim: Any = None, keepdim: bool = False) -> Node:
        flat = shaped(x, (x.type.size,)) if dim is None else x
        (axis,) = axes_of(flat, -1 if dim is None else dim)
        found = x.builder.call(f"arg{which}", flat, axis=axis)
        shape = list(flat.type.shape)
        shape[axis] = 1
        return shaped(found, shape) if keepdim and dim is not None else found

    return place


def along(name: str) -> Callable[..., Node]:
    """A running sum or product."""

    def running(x: Node, dim: int, reverse: bool = False) -> Node:
        if not x.type.shape:
            return x
        (axis,) = axes_of(x, dim)
        turned = x.builder.call("flip", x, axis=(axis,)) if reverse else x
        found = x.builder.call(name, turned, axis=axis)
        return x.builder.call("flip", found, axis=(axis,)) if reverse else found

    return running


def normalised(name: str) -> Callable[..., Node]:
    """Softmax, log-softmax or logsumexp along an axis."""

    def function(x: Node, dim: Any, keepdim: bool = False) -> Node:
        axes = axes_of(x, dim)
        found = x.builder.call(name, x, axis=axes)
        if not keepdim:
            return found
        return shaped(found, [1 if i - len(x.type.shape) in axes else n for i, n in enumerate(x.type.shape)])

    return function


def powered(x: Any, exponent: Any) -> Node:
    """A power; an exponent that is a whole number stays one."""
    builder = x.builder if isinstance(x, Node) else exponent.builder
    if isinstance(exponent, (int, float)) and float(exponent).is_integer() and isinstance(x, Node):
        found: Node = of_kind(x, "float") ** int(exponent)
        return found
    return pointwise("pow", [x, exponent], builder)


def scaled(name: str) -> Callable[..., Node]:
    """x + alpha*other, and x - alpha*other."""

    def function(x: Any, other: Any, alpha: Any = 1) -> Node:
        builder = x.builder if isinstance(x, Node) else other.builder
        other = other if alpha == 1 else pointwise("mul", [other, alpha], builder)
        return pointwise(name, [x, other], builder)

    return function


def rounded(x: Any, other: Any, rounding_mode: str | None = None) -> Node:
    found = pointwise("div", [x, other], _builder(x, other))
    return found if rounding_mode is None else found.builder.call(rounding_mode, found)


def remainder(x: Any, other: Any) -> Node:
    """What is left of a division, with the sign of x."""
    whole = rounded(x, other, "trunc")
    return pointwise("sub", [x, pointwise("mul", [whole, other], whole.builder)], whole.builder)


def limited(x: Node, min: Any = None, max: Any = None) -> Node:
    for name, bound in (("maximum", min), ("minimum", max)):
        x = x if bound is None else pointwise(name, [x, bound], x.builder)
    return x


def same(x: Node) -> Node:
    return x


def copied(x: Any, src: Any) -> Node:
    """What an array holds after another one was copied into it."""
    builder = _builder(x, src)
    found: Node = stretch(src if isinstance(src, Node) else constant(builder, src), x.shape)
    return found


def permuted(x: Node, dims: Sequence[int]) -> Node:
    rank = len(x.type.shape)
    order = tuple(int(d) % rank - rank for d in dims)
    return x if order == tuple(range(-rank, 0)) else x.builder.call("permute", x, axes=order)


def swapped(x: Node, dim0: int = 0, dim1: int = 1) -> Node:
    order = list(range(len(x.type.shape)))
    if len(order) > 1:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return permuted(x, order)


def expanded(x: Node, size: Sequence[int]) -> Node:
    own = (1,) * (len(size) - len(x.type.shape)) + x.type.shape
    found: Node = stretch(x, tuple(n if m == -1 else int(m) for m, n in zip(size, own, strict=True)))
    return found


def contracted(x: Any, y: Any) -> Node:
    """A product of vectors, matrices or stacks of matrices."""
    builder = _builder(x, y)
    x, y = (one if isinstance(one, Node) else constant(builder, one) for one in (x, y))
    x, y = of_kind(x, "float"), of_kind(y, "float")
    if len(x.type.shape) > 1 < len(y.type.shape):
        return builder.call("matmul", x, y)
    if len(x.type.shape) == len(y.type.shape):
        return total(pointwise("mul", [x, y], builder))
    row, column = len(x.type.shape) == 1, len(y.type.shape) == 1
    x = shaped(x, (1, *x.type.shape)) if row else x
    y = shaped(y, (*y.type.shape, 1)) if column else y
    found = builder.call("matmul", x, y)
    return shaped(found, found.type.shape[:-1] if column else (*found.type.shape[:-2], found.type.shape[-1]))


def added_product(x: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Node:
    found = contracted(mat1, mat2)
    found = found if alpha == 1 else found * alpha
    x = x if beta == 1 else pointwise("mul", [x, beta], found.builder)
    return pointwise("add", [x, found], found.builder)


def summed(subscripts: str, *xs: Any) -> Node:
    """A contraction by letters."""
    builder = next(x.builder for x in xs if isinstance(x, Node))
    nodes = [of_kind(x if isinstance(x, Node) else constant(builder, x), "float") for x in xs]
    definition: Any = builder.vocabulary["einsum"].definition
    found: Node = definition(subscripts, *nodes)
    return found


def dot_general(x: Any, y: Any, dimension_numbers: Any) -> Node:
    """JAX's contraction: batch axes first, then the free ones of x and of y."""
    (over_x, over_y), (with_x, with_y) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    own = [next(letters) for _ in x.shape]
    other = ["" for _ in y.shape]
    for i, j in [*zip(over_x, over_y, strict=True), *zip(with_x, with_y, strict=True)]:
        other[j] = own[i]
    other = [letter or next(letters) for letter in other]
    result = [own[i] for i in with_x]
    result += [letter for i, letter in enumerate(own) if i not in (*over_x, *with_x)]
    result += [letter for j, letter in enumerate(other) if j not in (*over_y, *with_y)]
    return summed(f"{''.join(own)},{''.join(other)}->{''.join(result)}", x, y)


def picked(x: Node, dim: int, index: Any) -> Node:
    """Entries at positions that depend on the point, such as those of the largest."""
    axes = axes_of(x, dim)
    if not axes:
        return x
    return x.builder.call("take_along", x, of_kind(index, "int"), axis=axes[0])


def taken(x: Any, dim: int, index: Any) -> Node:
    """aten's gather at positions that depend on the point."""
    builder = _builder(x, index)
    x = x if isinstance(x, Node) else constant(builder, x)
    return picked(x, dim, index)


def sorted_along(x: Node, dim: int = -1, descending: bool = False) -> Any:
    """The entries in order along an axis, with their positions; equal ones keep their order."""
    axes = axes_of(x, dim)
    if not axes:
        return x, constant(x.builder, np.zeros((), np.int64))
    order = x.builder.call("argsort", -x if descending else x, axis=axes[0])
    return picked(x, dim, order), order


def ordered(*xs: Any, dim: int, num_keys: int) -> Any:
    """JAX's sort: the first array in order along an axis, and the others in the order of the first."""
    if num_keys != 1 or not isinstance(xs[0], Node):
        raise Opaque("it sorts by several keys")
    values, order = sorted_along(xs[0], dim)
    return [values, *(taken(x, dim, order) for x in xs[1:])]


def top(x: Node, k: int, dim: int = -1, largest: bool = True) -> Any:
    """The k largest or smallest entries along an axis, with their positions."""
    values, order = sorted_along(x, dim, largest)
    (axis,) = axes_of(x, dim)
    places = np.take(np.arange(x.type.size).reshape(x.type.shape), np.arange(k), axis)
    return tuple(entries(x.builder, [one], places.reshape(-1), places.shape) for one in (values, order))


def put(x: Any, dim: int, index: Node, src: Any = None, value: Any = 0) -> Node:
    """aten's scatter at positions that depend on the point, as those of the largest do: each once.

    Raises Opaque where positions along the axis are several and may be the same one.
    """
    builder = _builder(x, index, src)
    x = of_kind(x if isinstance(x, Node) else constant(builder, x), "float")
    axes = axes_of(x, dim)
    if not axes or (index.type.shape[axes[0]] != 1 and not distinct(index, axes[0])):
        raise Opaque("it writes entries at indices that depend on the point")
    src = constant(builder, value) if src is None else src
    spread = put_up(builder.constant(0, x.type.shape), dim, index, src)
    mask = put_up(builder.constant(0, x.type.shape), dim, index, builder.constant(1, index.type.shape))
    return pointwise("where", [pointwise("greater", [mask, 0.5], builder), spread, x], builder)


def put_up(x: Any, dim: int, index: Node, src: Any) -> Node:
    """aten's scatter_add at positions that depend on the point."""
    builder = _builder(x, index, src)
    src = src if isinstance(src, Node) else constant(builder, src)
    (axis,) = axes_of(index, dim)
    if any(n != m for k, (n, m) in enumerate(zip(x.shape, index.type.shape, strict=True)) if k - len(x.shape) != axis):
        raise Opaque("it sums some entries at indices that depend on the point")
    src = stretch(of_kind(src, "float"), index.type.shape)
    added = builder.call("put_along", src, of_kind(index, "int"), axis=axis, size=x.shape[axis])
    return pointwise("add", [x, added], builder)


def distinct(index: Node, axis: int) -> bool:
    """Whether positions along an axis are those of a sorted order, or a part of it: no two are the same."""
    rank = len(index.type.shape)
    while index.primitive.name in ("reshape", "take_static", "slice", "cast"):
        taken = index.params.get("indices", ())
        if len({*taken}) < len(taken):
            return False
        (index,) = index.args
    return index.primitive.name == "argsort" and len(index.type.shape) == rank and index.params["axis"] == axis


def chosen(which: Any, *cases: Any) -> Node:
    """JAX's select_n of two cases: the first where the condition is false."""
    if len(cases) != 2 or (isinstance(which, Node) and which.type.kind != "bool"):
        raise Opaque("select_n has more than two cases")
    return pointwise("where", [which, cases[1], cases[0]], _builder(which, *cases))


def filled(x: Any, mask: Any, value: Any) -> Node:
    return pointwise("where", [mask, value, x], _builder(x, mask, value))


def _builder(*xs: Any) -> Builder:
    return next(x.builder for x in xs if isinstance(x, Node))


def finite(x: Node) -> Node:
    """Taken to be true: at a point where it is not, nothing is judged."""
    return constant(x.builder, np.ones(x.type.shape, bool))


def matrices(name: str) -> Callable[..., Node]:
    """A function of a matrix, for one matrix or a stack of them."""
    return lambda x: x.builder.call(name, x)


def singular(x: Node, full_matrices: bool = False) -> list[Node]:
    """A singular value decomposition without the vectors that belong to no singular value."""
    if full_matrices and x.type.shape[-1] != x.type.shape[-2]:
        raise Opaque("it takes a singular value decomposition with full matrices, which is not supported")
    u, values, v = (x.builder.call(name, x) for name in ("svd_u", "svdvals", "svd_v"))
    return [u, values, swapped(v, -2, -1)]


def orthogonal(x: Node, mode: str = "reduced") -> list[Node]:
    """A QR decomposition, whose triangle is Q'x."""
    if mode != "reduced" and x.type.shape[-1] != x.type.shape[-2]:
        raise Opaque(f"it takes a QR decomposition of mode {mode}, which is not supported")
    q = x.builder.call("qr_q", x)
    return [q, contracted(swapped(q, -2, -1), x)]


def lower_factor(x: Node, upper: bool = False) -> Node:
    found = x.builder.call("cholesky", x)
    return swapped(found, -2, -1) if upper else found


def symmetric_factor(x: Node) -> Node:
    """JAX's cholesky reads the matrix as it is."""
    return lower_factor(x)


def solved(x: Node, other: Any, left: bool = True) -> Node:
    builder = _builder(x, other)
    x, other = (one if isinstance(one, Node) else constant(builder, one) for one in (x, other))
    if not left:
        return swapped(solved(swapped(x, -2, -1), swapped(other, -2, -1)), -2, -1)
    return contracted(builder.call("inv", x), other)


def triangle(
    x: Any, other: Any, upper: bool = False, left: bool = True, unitriangular: bool = False, transposed: bool = False
) -> Node:
    """A system whose matrix is read as triangular."""
    if unitriangular:
        raise Opaque("it solves a triangular system with an implied unit diagonal")
    builder = _builder(x, other)
    x = x if isinstance(x, Node) else constant(builder, x)
    half = builder.call("triu" if upper else "tril", x, k=0)
    return solved(swapped(half, -2, -1) if transposed else half, other, left)


def of_factor(x: Any, upper: bool = False) -> Node:
    """The matrix of a Cholesky factor, of which one triangle is read."""
    half = x.builder.call("triu" if upper else "tril", x, k=0)
    other = swapped(half, -2, -1)
    return contracted(other, half) if upper else contracted(half, other)


def inverse_of_factor(x: Node, upper: bool = False) -> Node:
    return x.builder.call("inv", of_factor(x, upper))


def solved_by_factor(other: Any, factor: Any, upper: bool = False) -> Node:
    builder = _builder(other, factor)
    factor = factor if isinstance(factor, Node) else constant(builder, factor)
    return solved(of_factor(factor, upper), other)


def windows(
    shape: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> NDArray[np.int64]:
    """Which entries of an array of some shape each window holds, along a last axis; -1 for what is padded."""
    labels = np.pad(np.arange(prod(shape)).reshape(shape), padding, constant_values=-1)
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(labels, spans)
    view = view[(*(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]
    return view.reshape(*view.shape[: len(shape)], -1)


def in_windows(x: Node, places: NDArray[np.int64], beside: float) -> Node:
    """The entries of each window, with a number for what is padded."""
    if beside == 0 or (places >= 0).all():
        return entries(x.builder, [x], places.reshape(-1), places.shape)
    parts = [x, x.builder.constant(beside, (1,))]
    return entries(x.builder, parts, np.where(places < 0, x.type.size, places).reshape(-1), places.shape)


def pooled(x: Node, places: NDArray[np.int64], which: str, plane: int) -> tuple[Node, Node]:
    """The largest or smallest entry of each window, and which entry it is of a plane of so many."""
    held = in_windows(x, places, -np.inf if which == "max" else np.inf)
    table = constant(x.builder, np.maximum(places, 0) % plane)
    first = position(which)(held, -1, True)
    return reduced(which)(held, -1), shaped(picked(table, -1, first), places.shape[:-1])


FLOATS = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma",
    "digamma", "div", "atan2", "reciprocal", "xlogy", "logit", "logaddexp", "hypot", "sinc", "i0", "i1",
    "relu", "abs", "sign", "floor", "ceil", "trunc", "round", "gelu", "silu", "mish", "softplus", "logsigmoid",
}  # fmt: skip

TABLE = (
    # entry by entry
    *(
        Row(ours, aten, jax)
        for ours, aten, jax in (
            ("mul", "mul", "mul"),
            ("neg", "neg", "neg"),
            ("reciprocal", "reciprocal", ""),
            ("exp", "exp", "exp"),
            ("exp2", "exp2", "exp2"),
            ("expm1", "expm1", "expm1"),
            ("log", "log", "log"),
            ("log2", "log2", ""),
            ("log10", "log10", ""),
            ("log1p", "log1p", "log1p"),
            ("xlogy", "xlogy", ""),
            ("sqrt", "sqrt", "sqrt"),
            ("rsqrt", "rsqrt", "rsqrt"),
            ("cbrt", "", "cbrt"),
            ("square", "square", "square"),
            ("hypot", "hypot", ""),
            ("sin", "sin", "sin"),
            ("cos", "cos", "cos"),
            ("tan", "tan", "tan"),
            ("asin", "asin", "asin"),
            ("acos", "acos", "acos"),
            ("atan", "atan", "atan"),
            ("atan2", "atan2", "atan2"),
            ("sinh", "sinh", "sinh"),
            ("cosh", "cosh", "cosh"),
            ("tanh", "tanh", "tanh"),
            ("asinh", "asinh", "asinh"),
            ("acosh", "acosh", "acosh"),
            ("atanh", "atanh", "atanh"),
            ("sigmoid", "sigmoid", "logistic"),
            ("logsigmoid", "log_sigmoid_forward", ""),
            ("logaddexp", "logaddexp", ""),
            ("relu", "relu", ""),
            ("erf", "erf special_erf", "erf"),
            ("erfc", "erfc special_erfc", "erfc"),
            ("erfinv", "erfinv special_erfinv", "erf_inv"),
            ("lgamma", "lgamma", "lgamma"),
            ("digamma", "digamma", "digamma"),
            ("i0", "i0", ""),
            ("i1", "special_i1", ""),
            ("sinc", "sinc", ""),
            ("abs", "abs", "abs"),
            ("sign", "sign sgn", "sign"),
            ("floor", "floor", "floor"),
            ("ceil", "ceil", "ceil"),
            ("trunc", "trunc", ""),
            ("round", "round", "round"),
            ("maximum", "maximum fmax", "max"),
            ("minimum", "minimum fmin", "min"),
            ("mod", "remainder", ""),
            ("less", "lt", "lt"),
            ("less_equal", "le", "le"),
            ("greater", "gt", "gt"),
            ("greater_equal", "ge", "ge"),
            ("equal", "eq", "eq"),
            ("not_equal", "ne", "ne"),
            ("and", "logical_and bitwise_and __and__", "and"),
            ("or", "logical_or bitwise_or __or__", "or"),
            ("not", "logical_not bitwise_not", "not"),
            ("where", "where", ""),
        )
    ),
    Row(scaled("add"), "add", "add add_any"),
    Row(scaled("sub"), "sub", "sub"),
    Row(lambda x, other, alpha=1: scaled("sub")(other, x, alpha), "rsub"),
    Row(rounded, "div true_divide", "div"),
    Row(remainder, "fmod", "rem"),
    Row(powered, "pow", "pow integer_pow", {"y": "exponent"}),
    Row(limited, "clamp clamp_min clamp_max"),
    Row(lambda low, x, high: limited(x, low, high), "", "clamp"),
    Row(chosen, "", "select_n"),
    Row(filled, "masked_fill"),
    Row(finite, "isfinite", "is_finite"),
    # what leaves values as they are
    Row(
        same, "detach alias clone contiguous lift lift_fresh lift_fresh_copy _to_copy to positive", "copy stop_gradient"
    ),
    Row(copied, "copy copy_to"),
    Row(same, "", "convert_element_type reduce_precision optimization_barrier copy_p"),
    # shapes that stand as such in a formula
    Row(permuted, "permute", "transpose", {"permutation": "dims"}),
    Row(swapped, "t transpose"),
    Row(expanded, "expand"),
    # reductions
    Row(total, "sum", "reduce_sum", {"axes": "dim"}),
    Row(average, "mean"),
    Row(variance, "var"),
    Row(lambda x, **named: x.builder.call("sqrt", variance(x, **named)), "std"),
    Row(product, "prod", "reduce_prod", {"axes": "dim"}),
    Row(largest, "amax", "reduce_max", {"axes": "dim"}),
    Row(smallest, "amin", "reduce_min", {"axes": "dim"}),
    Row(extreme("max"), "max"),
    Row(extreme("min"), "min"),
    Row(position("max"), "argmax", "argmax", {"axes": "dim"}),
    Row(position("min"), "argmin", "argmin", {"axes": "dim"}),
    Row(truths("any"), "any", "reduce_or", {"axes": "dim"}),
    Row(truths("all"), "all", "reduce_and", {"axes": "dim"}),
    Row(along("cumsum"), "cumsum", "cumsum", {"axis": "dim"}),
    Row(along("cumprod"), "cumprod", "cumprod", {"axis": "dim"}),
    Row(along_exponents, "logcumsumexp _logcumsumexp"),
    Row(normalised("softmax"), "_softmax softmax"),
    Row(normalised("log_softmax"), "_log_softmax log_softmax"),
    Row(normalised("logsumexp"), "logsumexp"),
    # products
    Row(contracted, "mm bmm mv dot matmul vdot"),
    Row(added_product, "addmm baddbmm addmv"),
    Row(dot_general, "", "dot_general"),
    # matrices
    Row(matrices("inv"), "inverse linalg_inv_ex linalg_inv"),
    Row(lambda x: [x.builder.call(name, x) for name in ("eigvalsh", "eigvecs")], "_linalg_eigh"),
    Row(lambda x: [x.builder.call(name, x) for name in ("eigvecs", "eigvalsh")], "", "eigh"),
    Row(singular, "_linalg_svd"),
    Row(orthogonal, "linalg_qr"),
    Row(matrices("det"), "det _linalg_det linalg_det"),
    Row(matrices("logabsdet"), "logdet"),
    Row(lambda x: [x.builder.call(name, x) for name in ("slogdet_sign", "logabsdet")], "_linalg_slogdet"),
    Row(lower_factor, "linalg_cholesky_ex cholesky"),
    Row(symmetric_factor, "", "cholesky"),
    Row(solved, "_linalg_solve_ex linalg_solve"),
    Row(triangle, "linalg_solve_triangular"),
    Row(inverse_of_factor, "cholesky_inverse"),
    Row(solved_by_factor, "_cholesky_solve_helper cholesky_solve"),
    Row(taken, "gather"),
    Row(put, "scatter"),
    Row(put_up, "scatter_add"),
    Row(sorted_along, "sort"),
    Row(top, "topk", "top_k", {"axis": "dim"}),
    Row(ordered, "", "sort", {"dimension": "dim"}),
)

ATEN = {name: row for row in TABLE for name in row.aten.split()}
JAX = {name: row for row in TABLE for name in row.jax.split()}


# --- movement -----------------------------------------------------------------------------------------------------


def moved(builder: Builder, xs: Sequence[Node], run: Callable[[list[NDArray[np.float64]]], Any]) -> list[Node]:
    """The results of an operation that only moves entries about, or leaves zeros; `run` does it on plain arrays.

    It is run on the numbers of the entries, from 1 on, so the result tells what has come from where; and on other
    numbers in other orders, so that an operation which computes with them, or chooses among them, is noticed. Raises
    Opaque for such a one.
    """
    sizes = [x.type.size for x in xs]
    count = sum(sizes)
    rng = np.random.default_rng(0)
    labels = np.arange(1.0, count + 1)
    others = [-labels, *(rng.permutation(count) + count + 7.0 for _ in range(ORDERS))]

    def results(numbers: NDArray[Any]) -> list[NDArray[np.float64]]:
        given, start = [], 0
        for x, size in zip(xs, sizes, strict=True):
            given.append(numbers[start : start + size].reshape(x.type.shape).copy())
            start += size
        found = run(given)
        return [np.asarray(one, np.float64) for one in (found if isinstance(found, (list, tuple)) else [found])]

    nodes = []
    for first, *again in zip(*(results(numbers) for numbers in (labels, *others)), strict=True):
        places = first.reshape(-1).astype(np.int64) - 1
        if not ((first == first.round()) & (first >= 0) & (first <= count)).all():
            raise Opaque("")
        for numbers, result in zip(others, again, strict=True):
            if not np.array_equal(np.append(numbers, 0.0)[places], result.reshape(-1)):
                raise Opaque("")
        nodes.append(entries(builder, xs, places, first.shape))
    return nodes


def entries(builder: Builder, xs: Sequence[Node], places: NDArray[np.int64], shape: tuple[int, ...]) -> Node:
    """Entries of some nodes, one after the other, in a new order and shape; -1 stands for a zero."""
    if len(xs) == 1 and np.array_equal(places, np.arange(xs[0].type.size)):
        return shaped(xs[0], shape)
    kinds = {x.type.kind for x in xs}
    if len(kinds) > 1:
        raise Opaque("it joins arrays of different dtypes")
    flat = [shaped(x, (x.type.size,)) for x in xs]
    if (places < 0).any():
        flat.append(builder.constant(0, (1,), kinds.pop()))
        places = np.where(places < 0, sum(x.type.size for x in xs), places)
    whole = joined(flat)
    if len(xs) > 1 and np.array_equal(places, np.arange(whole.type.size)):
        return shaped(whole, shape)
    steps = np.diff(places)
    if places.size and places.size > 1 and (steps == steps[0]).all() and steps[0] > 0:
        size = (places.size,)
        found = builder.call("slice", whole, start=(int(places[0]),), step=(int(steps[0]),), size=size)
    else:
        found = builder.call("take_static", whole, indices=tuple(map(int, places)), axis=-1)
    return shaped(found, shape)


def added_up(builder: Builder, x: Node, places: NDArray[np.int64], shape: tuple[int, ...]) -> Node:
    """Entries added up at positions of an array of zeros; -1 for those that are left out."""
    kept = np.flatnonzero(places >= 0)
    if not kept.size:
        return builder.constant(0, shape)
    flat = entries(builder, [x], kept, kept.shape)
    found = builder.call("put_static", flat, indices=tuple(map(int, places[kept])), axis=-1, size=prod(shape))
    return shaped(found, shape)
