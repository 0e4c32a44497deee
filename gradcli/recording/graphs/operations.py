"""The table of PyTorch's and JAX's operations, and the functions of ours that they correspond to.

What is computed entry by entry needs no row: its declaration has their names (`elementwise`). A row names a function of
the script language, or has a Python function where parameters differ. Their parameters have NumPy's names (`axis`,
`keepdims`), into which PARAMETERS translates those of the frameworks. What only moves entries about (slices, gathers,
concatenations) needs no row either: it is run on the numbers of the entries (`moved`).
"""

from __future__ import annotations

from fractions import Fraction
from inspect import signature
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.arrays import ArrayData, digest_of
from gradcli.graph.node import Node
from gradcli.graph.types import Type
from gradcli.primitives import called_elsewhere, functions
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.comparison import cast, greater, not_equal
from gradcli.primitives.extremes import argmax, argmin
from gradcli.primitives.matrix_functions import cholesky, inv, qr_q
from gradcli.primitives.movement import broadcast, reshape, slice_
from gradcli.primitives.ordering import argsort
from gradcli.primitives.positions import put_along, put_static, take_along, take_static
from gradcli.primitives.rounding import trunc
from gradcli.primitives.size_arguments import normalize_axes
from gradcli.recording.calls.gradient_libraries import listed
from gradcli.transforms.reverse import pull

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Builder

ORDERS = 2  # random ones, in which an operation is seen to move entries wherever they are
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class Opaque(BaseException):
    """An operation, or a value, that no program of ours can stand for, and why.

    No Exception: the code of a user that catches whatever goes wrong would be recorded as if nothing had.
    """


class Row(NamedTuple):
    """One operation: the name of a function of ours or a function of nodes, aten's names, JAX's."""

    ours: str | Callable[..., Any]
    aten: str = ""
    jax: str = ""

    @property
    def function(self) -> Callable[..., Any]:
        """What computes the nodes of its results."""
        return own(self.ours) if isinstance(self.ours, str) else self.ours

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters."""
        return list(signature(self.function).parameters)


def own(name: str) -> Callable[..., Node]:
    """A function of the script language."""
    primitive = functions()[name]
    return primitive.call or primitive.definition or primitive


# --- operands -----------------------------------------------------------------------------------------------------


def constant(builder: Builder, array: Any) -> Node:
    """The node of an array or a number that does not depend on the point; decimals mean their shortest decimal."""
    array = np.asarray(array)
    kind = KINDS.get(array.dtype.kind)
    if kind is None:
        raise Opaque(f"it computes with values of dtype {array.dtype}")
    values = array.reshape(-1).tolist()
    if kind == "bool":  # oracles have numbers only; a mask is a comparison of them
        numbers = constant(builder, array.astype(np.int64).astype(np.float64))
        return greater(numbers, builder.constant(0.5, array.shape))
    if values and all(value == values[0] for value in values):
        return builder.constant(values[0], array.shape, kind)
    if kind == "float" and not np.isfinite(array).all():
        parts = [builder.constant(value, (1,)) for value in values]
        return shaped(joined(parts), array.shape)
    exact = [builder.constant(value).params["value"] for value in values] if kind == "float" else values
    data = ArrayData(array.shape, exact)
    known = _known(builder, data) if kind == "float" else None
    return known if known is not None else builder.array(digest_of(data), data, Type(kind, array.shape))


def _known(builder: Builder, data: ArrayData) -> Node | None:
    """An array as another one of the program in another shape, transposed, or subtracted from a number, if it is that.

    NumPy computes `X.T` and `1 - y` of constants before anything is recorded, and proofs need what they have in common.
    """
    for digest, other in builder.data.items():
        if not isinstance(other, ArrayData) or len(other.flat) != len(data.flat):
            continue
        node = builder.array(digest, other, Type("float", other.shape))
        if other.flat == data.flat:
            return shaped(node, data.shape)
        if len(other.shape) == 2 and other.shape[::-1] == data.shape:
            rows, columns = other.shape
            if data.flat == tuple([other.flat[i * columns + j] for j in range(columns) for i in range(rows)]):
                return node.mT
        total = other.flat[0] + data.flat[0]
        if other.shape == data.shape and all(x + y == total for x, y in zip(other.flat, data.flat, strict=True)):
            return total - node
    return None


def of_kind(node: Node, kind: str) -> Node:
    """The node as float, int or bool, as frameworks convert them."""
    own, builder = node.type.kind, node.builder
    if own == kind:
        return node
    if kind == "int" and own == "float":
        node = trunc(node)
    if kind == "bool":
        return not_equal(node, builder.constant(0, node.type.shape, own))
    return cast(node, kind=kind)


def shaped(x: Node, shape: Sequence[int]) -> Node:
    """The node in another shape of as many entries."""
    shape = tuple(shape)
    return x if x.type.shape == shape else reshape(x, shape=shape)


def joined(parts: Sequence[Node]) -> Node:
    """Vectors one after the other."""
    return parts[0] if len(parts) == 1 else parts[0].builder.call("concat", *parts, axis=-1)


def node_of(x: Any, beside: Node) -> Node:
    """An operand as a node; a number becomes a constant beside another node."""
    return x if isinstance(x, Node) else constant(beside.builder, x)


def pointwise(name: str, *xs: Any) -> Node:
    """An operation of ours, entry by entry, on nodes and numbers that are broadcast together."""
    builder: Builder = next(x.builder for x in xs if isinstance(x, Node))
    shape = np.broadcast_shapes(*(x.type.shape if isinstance(x, Node) else np.shape(x) for x in xs))
    nodes = [x if isinstance(x, Node) else constant(builder, x) for x in xs]
    order = ("bool", "int", "float")
    choices = nodes[1:] if name == "where" else nodes
    logical = name in ("and", "or", "not")
    least = "bool" if logical or name == "where" else "int" if name in WHOLE else "float"
    kind = "bool" if logical else max([least, *(x.type.kind for x in choices)], key=order.index)
    counted = kind == "int" and name in ("add", "sub", "mul", "neg", "mod")  # what counts is computed in floats
    kinds = ["bool", kind, kind] if name == "where" else ["float" if counted else kind] * len(nodes)
    result = builder.call(name, *(stretch(of_kind(x, k), shape) for x, k in zip(nodes, kinds, strict=True)))
    return of_kind(result, "int") if counted else result


def elementwise(name: str, count: int) -> str | None:
    """Our name of what NumPy, PyTorch or JAX compute entry by entry of so many operands; None where there is none."""
    primitive = called_elsewhere(name.removeprefix("special_"))
    if primitive is None or not primitive.pointwise or primitive.static or primitive.arity not in (None, count):
        return None
    return primitive.name


def whole(x: Any) -> Any:
    """A constant as a whole number, where it is one number."""
    value = x.params.get("value") if isinstance(x, Node) else x
    return int(value) if isinstance(value, (int, float, Fraction)) and value == int(value) else value


def axes_of(x: Node, axis: Any) -> tuple[int, ...]:
    """Axes counted from the last; all of them where none are named."""
    return normalize_axes(tuple(axis) if isinstance(axis, list) else axis, len(x.type.shape))


def extreme(which: str) -> Callable[..., Any]:
    """The largest or smallest entries along an axis with their positions, or of all."""

    def both(x: Node, axis: Any = None, keepdims: bool = False) -> Any:
        values = own(which)(x, axis=axis, keepdims=keepdims)
        return values if axis is None else (values, own(f"arg{which}")(x, axis=axis, keepdims=keepdims))

    return both


def variance(x: Node, axis: Any = None, correction: Any = None, unbiased: Any = None, keepdims: bool = False) -> Node:
    less = int(unbiased) if unbiased is not None else 1 if correction is None else int(correction)
    return own("var")(x, axis=axis, ddof=less, keepdims=keepdims)


def deviation(x: Node, axis: Any = None, correction: Any = None, unbiased: Any = None, keepdims: bool = False) -> Node:
    return pointwise("sqrt", variance(x, axis, correction, unbiased, keepdims))


def along(name: str) -> Callable[..., Node]:
    """A running sum or product, from either end."""

    def running(x: Node, axis: int, reverse: bool = False) -> Node:
        turned = own("flip")(x, axis) if reverse else x
        sums: Node = own(name)(turned, axis=axis) if x.type.shape else x
        return own("flip")(sums, axis) if reverse else sums

    return running


def powered(x: Any, exponent: Any) -> Node:
    """A power; an exponent that is a whole number stays one."""
    if isinstance(exponent, (int, float)) and float(exponent).is_integer() and isinstance(x, Node):
        return of_kind(x, "float") ** int(exponent)
    return pointwise("pow", x, exponent)


def scaled(name: str) -> Callable[..., Node]:
    """x + alpha*other, and x - alpha*other."""
    return lambda x, other, alpha=1: pointwise(name, x, other if alpha == 1 else pointwise("mul", other, alpha))


def rounded(x: Any, other: Any, rounding_mode: str | None = None) -> Node:
    quotient = pointwise("div", x, other)
    return quotient if rounding_mode is None else quotient.builder.call(rounding_mode, quotient)


def remainder(x: Any, other: Any) -> Node:
    """What is left of a division, with the sign of x."""
    return pointwise("sub", x, pointwise("mul", rounded(x, other, "trunc"), other))


def limited(x: Node, min: Any = None, max: Any = None) -> Node:
    for name, bound in (("maximum", min), ("minimum", max)):
        x = x if bound is None else pointwise(name, x, bound)
    return x


def copied(x: Node, src: Any) -> Node:
    """What an array holds after another one was copied into it."""
    copy: Node = stretch(node_of(src, x), x.type.shape)
    return copy


def swapped(x: Node, dim0: int = 0, dim1: int = 1) -> Node:
    return own("swapaxes")(x, dim0, dim1) if len(x.type.shape) > 1 else x


def expanded(x: Node, size: Sequence[int]) -> Node:
    own_sizes = (1,) * (len(size) - len(x.type.shape)) + x.type.shape
    copy: Node = stretch(x, tuple(n if m == -1 else int(m) for m, n in zip(size, own_sizes, strict=True)))
    return copy


def contracted(x: Node, y: Node) -> Node:
    """A product of vectors, matrices or stacks of matrices."""
    x, y = of_kind(x, "float"), of_kind(y, "float")
    if len(x.type.shape) == len(y.type.shape) < 2:
        return own("sum")(pointwise("mul", x, y))
    return own("matmul")(x, y)


def added_product(x: Any, mat1: Node, mat2: Node, beta: Any = 1, alpha: Any = 1) -> Node:
    return scaled("add")(x if beta == 1 else pointwise("mul", x, beta), contracted(mat1, mat2), alpha)


def summed(subscripts: str, *xs: Node) -> Node:
    """A contraction by letters."""
    return own("einsum")(subscripts, *(of_kind(x, "float") for x in xs))


def dot_general(x: Node, y: Node, dimension_numbers: Any) -> Node:
    """JAX's contraction: batch axes first, then the free ones of x and of y."""
    (over_x, over_y), (with_x, with_y) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    letters_of_x = [next(letters) for _ in x.type.shape]
    other = ["" for _ in y.type.shape]
    for i, j in [*zip(over_x, over_y, strict=True), *zip(with_x, with_y, strict=True)]:
        other[j] = letters_of_x[i]
    other = [letter or next(letters) for letter in other]
    result = [letters_of_x[i] for i in with_x]
    result += [letter for i, letter in enumerate(letters_of_x) if i not in (*over_x, *with_x)]
    result += [letter for j, letter in enumerate(other) if j not in (*over_y, *with_y)]
    return summed(f"{''.join(letters_of_x)},{''.join(other)}->{''.join(result)}", x, y)


def picked(x: Node, axis: int, index: Node) -> Node:
    """Entries at positions that depend on the point, such as those of the largest."""
    axes = axes_of(x, axis)
    return take_along(x, of_kind(index, "int"), axis=axes[0]) if axes else x


def sorted_along(x: Node, axis: int = -1, descending: bool = False) -> Any:
    """The entries in order along an axis, with their positions; equal ones keep their order."""
    axes = axes_of(x, axis)
    if not axes:
        return x, constant(x.builder, np.zeros((), np.int64))
    order = argsort(-x if descending else x, axis=axes[0])
    return picked(x, axis, order), order


def ordered(*xs: Node, axis: int, num_keys: int) -> Any:
    """JAX's sort: the first array in order along an axis, and the others in the order of the first."""
    if num_keys != 1:
        raise Opaque("it sorts by several keys")
    values, order = sorted_along(xs[0], axis)
    return [values, *(picked(x, axis, order) for x in xs[1:])]


def top(x: Node, k: int, axis: int = -1, largest: bool = True) -> Any:
    """The k largest or smallest entries along an axis, with their positions."""
    values, order = sorted_along(x, axis, largest)
    (at,) = axes_of(x, axis)
    places = np.take(np.arange(x.type.size).reshape(x.type.shape), np.arange(k), at)
    return tuple(entries(x.builder, [array], places.reshape(-1), places.shape) for array in (values, order))


def put(x: Node, axis: int, index: Node, src: Any = None, value: Any = 0) -> Node:
    """aten's scatter at positions that depend on the point, as those of the largest do: each once.

    Raises Opaque where positions along the axis are several and may be the same one.
    """
    axes = axes_of(x, axis)
    if not axes or (index.type.shape[axes[0]] != 1 and not distinct(index, axes[0])):
        raise Opaque("it writes entries at indices that depend on the point")
    zeros = x.builder.constant(0, x.type.shape)
    spread = put_up(zeros, axis, index, value if src is None else src)
    return pointwise("where", pointwise("greater", put_up(zeros, axis, index, 1), 0.5), spread, of_kind(x, "float"))


def put_up(x: Node, axis: int, index: Node, src: Any) -> Node:
    """aten's scatter_add at positions that depend on the point."""
    shape, (at,) = x.type.shape, axes_of(index, axis)
    if any(n != m for k, (n, m) in enumerate(zip(shape, index.type.shape, strict=True), -len(shape)) if k != at):
        raise Opaque("it sums some entries at indices that depend on the point")
    src = stretch(of_kind(node_of(src, index), "float"), index.type.shape)
    return pointwise("add", x, put_along(src, of_kind(index, "int"), axis=at, size=shape[at]))


def one_hot(index: Any, count: int) -> Node:
    """1 at each of some positions and else 0, along a last axis of so many entries."""
    where = pointwise("equal", shaped(index, (*index.type.shape, 1)), np.arange(count))
    return of_kind(where, "float")


def taken_at(x: Node, axes: Sequence[int], indices: Sequence[Any]) -> Node:
    """Entries at positions along some axes, of which those along one axis depend on the point.

    The axes of the positions come first. The products are those that NumPy's reader makes of `argmin`.
    """
    (live,) = live_in(indices)
    index, count = indices[live], x.type.shape[axes[live]]
    places = np.moveaxis(np.arange(x.type.size).reshape(x.type.shape), axes, range(len(axes)))
    there = one_hot(index, count)
    if len(indices) == 1:
        return own("tensordot")(there, entries(x.builder, [x], places.reshape(-1), places.shape), 1)
    columns = [np.arange(count) if k == live else np.expand_dims(at, -1) for k, at in enumerate(indices)]
    places = places[tuple(columns)]
    rank = len(there.type.shape)
    if places.shape[: rank - 1] != index.type.shape:
        raise Opaque("it selects entries at indices that depend on the point")
    rows = entries(x.builder, [x], places.reshape(-1), places.shape)
    there = shaped(there, (*there.type.shape, *(1,) * (places.ndim - rank)))
    return own("sum")(pointwise("mul", rows, there), axis=rank - 1)


def added_at(x: Node, axis: int, index: Node, updates: Node) -> Node:
    """The array with entries added up at positions along an axis; in what is added, these axes come first."""
    shape, size = x.type.shape, index.type.size
    there = one_hot(shaped(index, (size,)), shape[axis])
    rest = [n for k, n in enumerate(shape) if k != axis]
    flat = shaped(of_kind(updates, "float"), (size, *rest))
    return pointwise("add", x, own("moveaxis")(own("tensordot")(own("transpose")(there), flat, 1), 0, axis))


def live_in(indices: Sequence[Any]) -> list[int]:
    """Which of some positions depend on the point: one of them, else Opaque."""
    live = [k for k, index in enumerate(indices) if isinstance(index, Node)]
    if len(live) != 1:
        raise Opaque("it selects entries at several indices that depend on the point")
    return live


def counted(index: Any) -> bool:
    """Whether whole numbers are positions of a largest or smallest entry, or of a sorted order: none is negative."""
    while isinstance(index, Node) and index.primitive in (reshape, take_static, slice_, cast, broadcast):
        (index,) = index.args
    return isinstance(index, Node) and index.primitive in (argmin, argmax, argsort)


def distinct(index: Node, axis: int) -> bool:
    """Whether positions along an axis are those of a sorted order, or a part of it: no two are the same."""
    rank = len(index.type.shape)
    while index.primitive in (reshape, take_static, slice_, cast):
        taken = index.params.get("indices", ())
        if len({*taken}) < len(taken):
            return False
        (index,) = index.args
    return index.primitive is argsort and len(index.type.shape) == rank and index.params["axis"] == axis


def chosen(which: Node, *cases: Node) -> Node:
    """JAX's select_n of two cases: the first where the condition is false."""
    if len(cases) != 2 or which.type.kind != "bool":
        raise Opaque("select_n has more than two cases")
    return pointwise("where", which, cases[1], cases[0])


def finite(x: Node) -> Node:
    """Taken to be true: at a point where it is not, nothing is judged."""
    return constant(x.builder, np.ones(x.type.shape, bool))


def several(*names: str) -> Callable[..., list[Node]]:
    """Functions of a matrix, or of a stack of them, one result each."""
    return lambda x: [x.builder.call(name, x) for name in names]


def singular(x: Node, full_matrices: bool = False) -> list[Node]:
    """A singular value decomposition without the vectors that belong to no singular value."""
    if full_matrices and x.type.shape[-1] != x.type.shape[-2]:
        raise Opaque("it takes a singular value decomposition with full matrices, which is not supported")
    u, values, v = several("svd_u", "svdvals", "svd_v")(x)
    return [u, values, swapped(v, -2, -1)]


def orthogonal(x: Node, mode: str = "reduced") -> list[Node]:
    """A QR decomposition, whose triangle is Q'x."""
    if mode != "reduced" and x.type.shape[-1] != x.type.shape[-2]:
        raise Opaque(f"it takes a QR decomposition of mode {mode}, which is not supported")
    q = qr_q(x)
    return [q, contracted(swapped(q, -2, -1), x)]


def solved(x: Node, other: Node, left: bool = True) -> Node:
    if not left:
        return swapped(solved(swapped(x, -2, -1), swapped(other, -2, -1)), -2, -1)
    return contracted(inv(x), other)


def triangle(
    x: Node, other: Node, upper: bool = False, left: bool = True, unitriangular: bool = False, transposed: bool = False
) -> Node:
    """A system whose matrix is read as triangular."""
    if unitriangular:
        raise Opaque("it solves a triangular system with an implied unit diagonal")
    half = x.builder.call("triu" if upper else "tril", x, k=0)
    return solved(swapped(half, -2, -1) if transposed else half, other, left)


def factor(x: Node, upper: bool = False) -> Node:
    """The Cholesky factor of a matrix."""
    lower = cholesky(x)
    return swapped(lower, -2, -1) if upper else lower


def of_factor(x: Node, upper: bool = False) -> Node:
    """The matrix of a Cholesky factor, of which one triangle is read."""
    half = x.builder.call("triu" if upper else "tril", x, k=0)
    other = swapped(half, -2, -1)
    return contracted(other, half) if upper else contracted(half, other)


def sent_back(forward: Callable[..., Node], operands: Sequence[Node], cotangent: Node) -> list[Node]:
    """What an operation sends back to its operands, as if none of them depended on another."""
    builder = cotangent.builder
    leaves = [builder.fresh_leaf(x.type) for x in operands]
    sent = pull(builder, [(forward(*leaves), cotangent)], leaves)
    zeros = [builder.constant(0, x.type.shape) for x in operands]
    nodes = [zero if node is None else node for zero, node in zip(zeros, sent, strict=True)]
    return builder.substituted(nodes, dict(zip(leaves, operands, strict=True)))


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
    largest, first = extreme(which)(held, -1, True)
    return shaped(largest, places.shape[:-1]), shaped(picked(table, -1, first), places.shape[:-1])


# operations entry by entry whose results may be whole numbers; all others compute in floats
WHOLE = frozenset(
    ("add", "sub", "mul", "neg", "mod", "pow", "square", "maximum", "minimum")
    + ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
)
# the frameworks' names of parameters, and those of our functions
PARAMETERS = {
    "dim": "axis", "dims": "axis", "axes": "axis", "dimension": "axis", "permutation": "axis",
    "keepdim": "keepdims", "y": "exponent",
}  # fmt: skip

# fmt: off
TABLE = (
    # entry by entry, with parameters
    Row(scaled("add"), "add", "add add_any"),
    Row(scaled("sub"), "sub", "sub"),
    Row(lambda x, other, alpha=1: scaled("sub")(other, x, alpha), "rsub"),
    Row(rounded, "div true_divide", "div"),
    Row(remainder, "fmod", "rem"),
    Row(powered, "pow", "pow integer_pow"),
    Row(limited, "clamp clamp_min clamp_max"),
    Row(lambda low, x, high: limited(x, low, high), "", "clamp"),
    Row(lambda n, x: own("polygamma")(whole(n), x), "polygamma", "polygamma"),
    Row(lambda a, x: a.builder.call("gammainc_derivative", a, x, orders=(1, 0)), "", "igamma_grad_a"),
    Row(chosen, "", "select_n"),
    Row(lambda x, mask, value: pointwise("where", mask, value, x), "masked_fill"),
    Row(finite, "isfinite", "is_finite"),
    # what leaves values as they are
    Row(lambda x: x, "detach alias clone contiguous lift lift_fresh lift_fresh_copy _to_copy to positive",
        "copy stop_gradient convert_element_type reduce_precision optimization_barrier copy_p"),
    Row(copied, "copy copy_to"),
    # shapes that stand as such in a formula
    Row(lambda x, axis: own("transpose")(x, axis), "permute", "transpose"),
    Row(swapped, "t transpose"),
    Row(expanded, "expand"),
    # reductions
    Row("sum", "sum", "reduce_sum"),
    Row("mean", "mean"),
    Row(variance, "var"),
    Row(deviation, "std"),
    Row("prod", "prod", "reduce_prod"),
    Row("max", "amax", "reduce_max"),
    Row("min", "amin", "reduce_min"),
    Row(extreme("max"), "max"),
    Row(extreme("min"), "min"),
    Row("argmax", "argmax", "argmax"),
    Row("argmin", "argmin", "argmin"),
    Row("any", "any", "reduce_or"),
    Row("all", "all", "reduce_and"),
    Row(along("cumsum"), "cumsum", "cumsum"),
    Row(along("cumprod"), "cumprod", "cumprod"),
    Row(lambda x, axis: pointwise("log", along("cumsum")(pointwise("exp", x), axis)), "logcumsumexp _logcumsumexp"),
    Row("softmax", "_softmax softmax"),
    Row("log_softmax", "_log_softmax log_softmax"),
    Row("logsumexp", "logsumexp"),
    # products
    Row(contracted, "mm bmm mv dot matmul vdot"),
    Row(added_product, "addmm baddbmm addmv"),
    Row(dot_general, "", "dot_general"),
    # matrices
    Row("inv", "inverse linalg_inv_ex linalg_inv"),
    Row(several("eigvalsh", "eigvecs"), "_linalg_eigh"),
    Row(several("eigvecs", "eigvalsh"), "", "eigh"),
    Row(singular, "_linalg_svd"),
    Row(orthogonal, "linalg_qr"),
    Row("det", "det _linalg_det linalg_det"),
    Row(several("logabsdet"), "logdet"),
    Row("slogdet", "_linalg_slogdet"),
    Row(factor, "linalg_cholesky_ex cholesky", "cholesky"),
    Row(solved, "_linalg_solve_ex linalg_solve"),
    Row(triangle, "linalg_solve_triangular"),
    Row(lambda x, upper=False: inv(of_factor(x, upper)), "cholesky_inverse"),
    Row(lambda x, factor, upper=False: solved(of_factor(factor, upper), x), "_cholesky_solve_helper cholesky_solve"),
    # at positions that depend on the point
    Row(picked, "gather"),
    Row(put, "scatter"),
    Row(put_up, "scatter_add"),
    Row(sorted_along, "sort"),
    Row(top, "topk", "top_k"),
    Row(ordered, "", "sort"),
)
# fmt: on

ATEN = {name: row for row in TABLE for name in row.aten.split()}
JAX = {name: row for row in TABLE for name in row.jax.split()}


def options(row: Row, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the function of a row takes, by its names of them; one axis is a number, none are all."""
    known = row.parameters
    by_name = {PARAMETERS.get(key, key): value for key, value in parameters.items()}
    if isinstance(by_name.get("axis"), (list, tuple)):
        axes = tuple(map(int, by_name["axis"]))
        by_name["axis"] = axes[0] if len(axes) == 1 else axes or None
    return {key: value for key, value in by_name.items() if key in known}


# --- movement -----------------------------------------------------------------------------------------------------


def moved(
    builder: Builder, xs: Sequence[Node], run: Callable[[list[NDArray[np.float64]]], Any], what: str
) -> list[Node]:
    """The results of an operation that only moves entries about, or leaves zeros; `run` does it on plain arrays.

    It is run on the numbers of the entries, from 1 on, so the result tells what has come from where; and on other
    numbers in other orders (whole ones, decimals of all sizes with a 0 among them, equal ones), so that an operation
    which computes with them, rounds them, or chooses among them, is noticed. Raises Opaque for such a one, which `what`
    names.
    """
    unread = Opaque(f"{what} is not supported")
    sizes = [x.type.size for x in xs]
    count = sum(sizes)
    rng = np.random.default_rng(0)
    labels = np.arange(1.0, count + 1)
    decimals = rng.normal(size=(ORDERS, count)) * 10.0 ** rng.uniform(-4, 4, (ORDERS, count))
    decimals[0, :1] = decimals[1, -1:] = 0.0
    others = [-labels, *(rng.permutation(count) + count + 7.0 for _ in range(ORDERS)), *decimals, np.full(count, np.e)]

    def results(numbers: NDArray[Any]) -> list[NDArray[np.float64]]:
        operands, start = [], 0
        for x, size in zip(xs, sizes, strict=True):
            operands.append(numbers[start : start + size].reshape(x.type.shape).copy())
            start += size
        return [np.asarray(result, np.float64) for result in listed(run(operands))]

    try:
        runs = [results(numbers) for numbers in (labels, *others)]
    except Opaque:
        raise
    except Exception:  # whatever an operation raises on numbers that are none of its own
        raise unread from None
    nodes = []
    for first, *again in zip(*runs, strict=True):
        places = first.reshape(-1).astype(np.int64) - 1
        if not ((first == first.round()) & (first >= 0) & (first <= count)).all():
            raise unread
        for numbers, result in zip(others, again, strict=True):
            if not np.array_equal(np.append(numbers, 0.0)[places], result.reshape(-1)):
                raise unread
        nodes.append(entries(builder, xs, places, first.shape))
    return nodes


def entries(builder: Builder, xs: Sequence[Node], places: NDArray[np.int64], shape: tuple[int, ...]) -> Node:
    """Entries of some nodes, one after the other, in a new order and shape; -1 stands for a zero."""
    if len(xs) == 1 and np.array_equal(places, np.arange(xs[0].type.size)):
        return shaped(xs[0], shape)
    kinds = {x.type.kind for x in xs}
    if len(kinds) > 1:
        raise Opaque("it joins arrays of different dtypes")
    if len(xs) == 1 and (part := rectangle(places, xs[0].type.shape)) is not None:
        start, step, size = part
        return shaped(slice_(xs[0], start=start, step=step, size=size), shape)
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
        taken = slice_(whole, start=(int(places[0]),), step=(int(steps[0]),), size=size)
    else:
        taken = take_static(whole, indices=tuple(map(int, places)), axis=-1)
    return shaped(taken, shape)


def rectangle(places: NDArray[np.int64], shape: tuple[int, ...]) -> list[tuple[int, ...]] | None:
    """Start, step and size along each axis where places are a slice of an array as it is written; else None."""
    if not places.size or not shape or (places < 0).any():
        return None
    axes = [np.unique(along) for along in np.unravel_index(places.reshape(-1), shape)]
    steps = [int(axis[1] - axis[0]) if axis.size > 1 else 1 for axis in axes]
    if not all((np.diff(axis) == step).all() for axis, step in zip(axes, steps, strict=True)):
        return None
    if not np.array_equal(np.ravel_multi_index(np.ix_(*axes), shape).reshape(-1), places.reshape(-1)):
        return None
    return [tuple([int(axis[0]) for axis in axes]), tuple(steps), tuple([axis.size for axis in axes])]


def added_up(builder: Builder, x: Node, places: NDArray[np.int64], shape: tuple[int, ...]) -> Node:
    """Entries added up at positions of an array of zeros; -1 for those that are left out."""
    kept = np.flatnonzero(places >= 0)
    if not kept.size:
        return builder.constant(0, shape)
    flat = entries(builder, [x], kept, kept.shape)
    sums = put_static(flat, indices=tuple(map(int, places[kept])), axis=-1, size=prod(shape))
    return shaped(sums, shape)
