"""Products that sum over shared axes: matmul, the one bilinear operation, and everything that lowers to it."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import Primitive, bilinear, composite
from gradcli.graph.types import Type, broadcast_shapes, size_of
from gradcli.primitives.axes import described, diagonal, part, permuted, reshaped
from gradcli.primitives.broadcasting import stretch, together
from gradcli.primitives.movement import concat, sum_
from gradcli.primitives.size_arguments import bounded, normalize_axis, whole_number, whole_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.node import Node

_VECTORS = [(Closed(-2, 2), (3,)), (Closed(-2, 2), (3,))]
_MATRICES = [(Closed(-2, 2), (2, 3)), (Closed(-2, 2), (3, 4))]


def _matmul_type(x: Type, y: Type) -> Type:
    if x.rank < 2 or x.rank != y.rank or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise error("GC302", f"cannot multiply the matrices {x} and {y}")
    return Type("float", bounded((*x.shape[:-1], y.shape[-1])))


def _matmul_entries(f: Any, x: Any, y: Any) -> Any:
    rows, inner, columns = x.shape[-2], x.shape[-1], y.shape[-1]
    flat = []
    for block in range(len(x.flat) // (rows * inner) if rows * inner else 0):
        left, right = block * rows * inner, block * inner * columns
        for i in range(rows):
            for j in range(columns):
                flat.append(
                    f.total(x.flat[left + i * inner + k] * y.flat[right + k * columns + j] for k in range(inner))
                )
    return f.array(flat, (*x.shape[:-1], columns))


def _matmul_rewrite(x: Node, y: Node) -> Node | None:
    if x.constant == 0 or y.constant == 0:
        return x.builder.constant(0, (*x.shape[:-1], y.shape[-1]))
    if y.constant == 1:
        rows: Node = stretch(reshaped(sum_(x, axis=(-1,)), (*x.shape[:-1], 1)), (*x.shape[:-1], y.shape[-1]))
        return rows
    if x.constant == 1:
        total = reshaped(sum_(y, axis=(-2,)), (*y.shape[:-2], 1, y.shape[-1]))
        columns: Node = stretch(total, (*x.shape[:-1], y.shape[-1]))
        return columns
    if x.primitive.name == "neg":
        return -(x.args[0] @ y)
    if y.primitive.name == "neg":
        return -(x @ y.args[0])
    return None


def _mismatch(x: Any, y: Any, help: str | None = None, sizes: tuple[int, int] | None = None) -> Exception:
    return error("GC302", f"cannot multiply {described(x)} @ {described(y)}", help=help, sizes=sizes)


def matmul_call(x: Any, y: Any) -> Any:
    """NumPy's `x @ y`: vectors become matrices of one row or column, leading axes are broadcast.

    Raises GradcliError GC302 for scalars and for sizes that do not agree.
    """
    if not x.shape or not y.shape:
        raise _mismatch(x, y, "write * to multiply by a number")
    sizes = x.shape[-1], y.shape[-2 if len(y.shape) > 1 else 0]
    if sizes[0] != sizes[1]:
        left, right = ("entries" if len(x.shape) == 1 else "columns"), ("entries" if len(y.shape) == 1 else "rows")
        hint = f"the left factor has {sizes[0]} {left}, so the right one needs {sizes[0]} {right}, not {sizes[1]}"
        if len(y.shape) == 2 and x.shape[-1] == y.shape[-1]:
            hint = "the sizes agree with the second factor transposed: x @ y.T"
        elif len(x.shape) == 2 and x.shape[0] == y.shape[0]:
            hint = "the sizes agree with the first factor transposed: x.T @ y"
        raise _mismatch(x, y, hint, sizes)
    left = reshaped(x, (1, *x.shape)) if len(x.shape) == 1 else x
    right = reshaped(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    product = _product(left, right)
    shape = list(product.shape)
    if len(y.shape) == 1:
        del shape[-1]
    if len(x.shape) == 1:
        del shape[-1 if len(y.shape) == 1 else -2]
    return reshaped(product, tuple(shape))


def _product(x: Any, y: Any) -> Any:
    """Matrices, or stacks of them; one matrix on the right serves all rows of a stack at once."""
    if len(y.shape) == 2 and len(x.shape) > 2:
        rows = reshaped(x, (size_of(x.shape[:-1]), x.shape[-1]))
        return reshaped(rows @ y, (*x.shape[:-1], y.shape[-1]))
    stacks = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if stacks is None:
        raise _mismatch(x, y)
    return stretch(x, (*stacks, *x.shape[-2:])) @ stretch(y, (*stacks, *y.shape[-2:]))


matmul: Primitive = bilinear(
    "matmul",
    "Matrix product of the last two axes; vectors count as one row or one column.",
    impl=lambda xp, x, y, *, ranks: xp.matmul(x, y),
    entries=_matmul_entries,
    transpose={0: lambda ct, x, y: ct @ y.mT, 1: lambda ct, x, y: x.mT @ ct},
    type_rule=_matmul_type,
    rewrite=_matmul_rewrite,
    call=matmul_call,
    aliases=("mm", "bmm", "mv"),
    domain=[REAL, REAL],
    sample=_MATRICES,
    node="MmBackward0",
    formula="x @ y",
    examples=[("matmul([[1, 2], [3, 4]], [5, 6])", [17, 39]), ("[1, 2] @ [3, 4]", 11)],
    names="numpy. torch.",
    traits="every_size keeps_whole",
)


def _dot(x: Any, y: Any) -> Any:
    if not x.shape or not y.shape:
        left, right = together(x, y)
        return left * right
    if len(y.shape) <= 2:
        return matmul_call(x, y)
    if x.shape[-1] != y.shape[-2]:
        raise _mismatch(x, y)
    rank = len(y.shape)
    first = permuted(y, (-2, *range(-rank, -2), -1))
    columns = reshaped(first, (y.shape[-2], size_of(y.shape) // max(y.shape[-2], 1)))
    rows = reshaped(x, (size_of(x.shape[:-1]), x.shape[-1]))
    return reshaped(rows @ columns, (*x.shape[:-1], *y.shape[:-2], y.shape[-1]))


dot = composite(
    "dot",
    "Sum of products over the last axis of x and the second last of y; of numbers, their product.",
    definition=_dot,
    domain=[REAL, REAL],
    sample=_VECTORS,
    formula="sum of x[i]*y[i]",
    examples=[("dot([1, 2], [3, 4])", 11), ("dot([[1, 2]], [[3], [4]])", [[11]])],
    node="DotBackward0",
    names="numpy. torch.matmul",
    traits="every_size",
)


def _outer(x: Any, y: Any) -> Any:
    rows, columns = size_of(x.shape), size_of(y.shape)
    shape = bounded((rows, columns))
    return stretch(reshaped(x, (rows, 1)), shape) * stretch(reshaped(y, (1, columns)), shape)


outer = composite(
    "outer",
    "The outer product: each entry of x times each entry of y.",
    definition=_outer,
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (3,)), (Closed(-2, 2), (2,))],
    formula="x[i]*y[j]",
    examples=[("outer([1, 2], [3, 4])", [[3, 4], [6, 8]])],
    node="OuterBackward0",
    names="numpy. torch.",
    traits="every_size",
)


def _inner(x: Any, y: Any) -> Any:
    if not x.shape or not y.shape:
        left, right = together(x, y)
        return left * right
    if x.shape[-1] != y.shape[-1]:
        message = f"inner needs last axes of equal size, not {described(x)} and {described(y)}"
        raise error("GC302", message, sizes=(x.shape[-1], y.shape[-1]))
    rows = reshaped(x, (size_of(x.shape[:-1]), x.shape[-1]))
    columns = reshaped(y, (size_of(y.shape[:-1]), y.shape[-1]))
    return reshaped(rows @ columns.mT, (*x.shape[:-1], *y.shape[:-1]))


inner = composite(
    "inner",
    "Sums of products over the last axes of both; for vectors, their dot product.",
    definition=_inner,
    domain=[REAL, REAL],
    sample=_VECTORS,
    formula="sum of x[i]*y[i]",
    examples=[("inner([1, 2], [3, 4])", 11)],
    node="InnerBackward0",
    traits="every_size",
)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        count = whole_number(axes, "the number of axes", 0)
        ours, theirs = tuple(range(len(a.shape) - count, len(a.shape))), tuple(range(count))
    elif isinstance(axes, tuple) and len(axes) == 2:
        ours, theirs = whole_numbers(axes[0], "an axis"), whole_numbers(axes[1], "an axis")
    else:
        raise error(
            "GC306",
            f"the axes of tensordot are a count or a pair, not {number_text(axes)}",
            help="write axes=([1], [0])",
        )
    left = [normalize_axis(axis, len(a.shape)) for axis in ours]
    right = [normalize_axis(axis, len(b.shape)) for axis in theirs]
    if len(set(left)) != len(ours) or len(set(right)) != len(theirs):
        raise error("GC303", f"tensordot sums over each axis once, not over {axes}")
    if [a.shape[axis] for axis in left] != [b.shape[axis] for axis in right]:
        raise error("GC302", f"tensordot needs axes of equal sizes, not {axes} of {described(a)} and {described(b)}")
    kept_left = [axis for axis in range(-len(a.shape), 0) if axis not in left]
    kept_right = [axis for axis in range(-len(b.shape), 0) if axis not in right]
    rows, columns = tuple(a.shape[axis] for axis in kept_left), tuple(b.shape[axis] for axis in kept_right)
    summed = size_of(tuple(a.shape[axis] for axis in left))
    product = reshaped(permuted(a, (*kept_left, *left)), (size_of(rows), summed)) @ reshaped(
        permuted(b, (*right, *kept_right)), (summed, size_of(columns))
    )
    return reshaped(product, (*rows, *columns))


tensordot = composite(
    "tensordot",
    "Sums of products over axes of both: a number of last axes of a and first axes of b, or a pair of lists of axes.",
    definition=_tensordot,
    static=("axes",),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (2, 3)), (Closed(-2, 2), (2, 3))],
    formula="sum of x[..., i]*y[i, ...]",
    examples=[
        ("tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]])", 5),
        ("tensordot([[1, 2], [3, 4]], [5, 6], 1)", [17, 39]),
        ("tensordot([[1, 2], [3, 4]], [[5, 6], [7, 8]], axes=([0], [1]))", [[23, 31], [34, 46]]),
    ],
    node="TensordotBackward0",
)


def _vecdot(x: Any, y: Any, axis: int = -1) -> Any:
    if not x.shape or not y.shape:
        raise error("GC302", f"vecdot needs vectors, not {described(x)} and {described(y)}")
    left, right = together(x, y, verb="take the vecdot of")
    return sum_(left * right, axis=(normalize_axis(axis, len(left.shape)),))


vecdot = composite(
    "vecdot",
    "Sum of products over one axis, the others broadcast.",
    definition=_vecdot,
    static=("axis",),
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (2, 3)), (Closed(-2, 2), (2, 3))],
    formula="sum of x[..., i]*y[..., i]",
    examples=[("vecdot([[1, 2], [3, 4]], [5, 6])", [17, 39])],
    node="LinalgVecdotBackward0",
)


def _trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    rank = len(x.shape)
    if rank < 2:
        raise error("GC321", f"trace needs a matrix, not {described(x)}")
    first, second = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    whole_number(offset, "the offset")
    if first == second:
        raise error("GC303", f"trace needs two different axes, not {axis1} twice")
    others = (axis for axis in range(-rank, 0) if axis not in (first, second))
    return sum_(diagonal(permuted(x, (*others, first, second)), offset), axis=(-1,))


trace = composite(
    "trace",
    "Sum of the diagonal.",
    definition=_trace,
    static=("offset", "axis1", "axis2"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3))],
    formula="sum of x[i, i]",
    examples=[("trace([[1, 2], [3, 4]])", 5)],
    node="TraceBackward0",
    names="numpy. torch.",
    traits="every_size",
)


def _kron(x: Any, y: Any) -> Any:
    rank = max(len(x.shape), len(y.shape))
    ours = (1,) * (rank - len(x.shape)) + x.shape
    theirs = (1,) * (rank - len(y.shape)) + y.shape
    left = tuple(size for n in ours for size in (n, 1))
    right = tuple(size for n in theirs for size in (1, n))
    full = bounded(tuple(size for pair in zip(ours, theirs, strict=True) for size in pair))
    product = stretch(reshaped(x, left), full) * stretch(reshaped(y, right), full)
    return reshaped(product, tuple(n * m for n, m in zip(ours, theirs, strict=True)))


kron = composite(
    "kron",
    "The Kronecker product: y repeated in blocks, each multiplied by an entry of x.",
    definition=_kron,
    domain=[REAL, REAL],
    sample=[(Closed(-2, 2), (2, 2)), (Closed(-2, 2), (1, 2))],
    formula="[[x[0, 0]*y, ...], ...]",
    examples=[("kron([1, 2], [3, 4])", [3, 4, 6, 8])],
    node="KronBackward0",
    names="numpy. torch.",
)


def _cross(x: Any, y: Any, axis: int = -1) -> Any:
    left, right = together(x, y, verb="take the cross product of")
    if not left.shape or left.shape[normalize_axis(axis, len(left.shape))] != 3:
        message = f"cross needs vectors of 3 entries, not {described(x)} and {described(y)}"
        raise error("GC302", message, sizes=(left.shape[-1], 3) if left.shape else None)
    at = normalize_axis(axis, len(left.shape))

    def turned(v: Any, by: int) -> Any:
        return concat(part(v, at, by, 3 - by), part(v, at, 0, by), axis=at)

    return turned(left, 1) * turned(right, 2) - turned(left, 2) * turned(right, 1)


cross = composite(
    "cross",
    "The cross product of vectors of three entries.",
    definition=_cross,
    static=("axis",),
    domain=[REAL, REAL],
    sample=_VECTORS,
    formula="x × y",
    examples=[("cross([1, 0, 0], [0, 1, 0])", [0, 0, 1])],
    node="LinalgCrossBackward0",
    names="numpy. torch.linalg.",
)
