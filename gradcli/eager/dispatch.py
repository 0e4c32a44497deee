"""An operation and tensors go in, the tensor of the result comes out, with its node where recording is on.

Every operation passes here: formats are joined, the plan of the operation runs on raw arrays, and a node keeps what
the plan of its gradients will read. Broadcasting leaves no node; its gradient is summed by the node itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import GradcliError
from gradcli.eager import dtypes
from gradcli.eager.nodes import Node, Saved, class_named
from gradcli.eager.plans import Backward, names_for, plan_of
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor
from gradcli.graph.operand import Closed
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

# operations that whole numbers go through as whole numbers; all others compute in floats
WHOLE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "power",
        "abs",
        "sign",
        "maximum",
        "minimum",
        "clamp",
        "floor",
        "ceil",
        "trunc",
        "round",
        "mod",
        "where",
        "matmul",
        "sum",
        "prod",
        "cumsum",
        "max",
        "min",
        "reshape",
        "broadcast",
        "permute",
        "slice",
        "unslice",
        "concat",
        "take_static",
        "put_static",
        "take_along",
        "put_along",
        "tril",
        "triu",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "and",
        "or",
        "not",
        "any",
        "all",
        "argmax",
        "argmin",
        "argsort",
        "sort",
        "is_max",
        "is_min",
        "cast",
        "hold",
        "relu",
    ]
)
# operands that are data of their own format: conditions and positions
APART = {"where": (0,), "take_along": (1,), "put_along": (1,)}
INDEX_ERRORS = {"GC303", "GC305"}


def apply(primitive: Any, xs: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
    """A declared operation on tensors and numbers, under the name that its declaration gives to its node."""
    if any(isinstance(x, Closed) for x in xs):
        xs = tuple([_opened(x) for x in xs])
    return record(primitive, xs, params, node_name(primitive, params))


def node_name(primitive: Any, params: dict[str, Any]) -> str:
    """PyTorch's name of an operation's node, or one made from ours."""
    node = primitive.node
    if node:
        return str(node(**params)) if callable(node) else str(node)
    return "".join(part.capitalize() for part in primitive.name.split("_")) + "Backward0"


def _opened(x: Any) -> Any:
    if not isinstance(x, Closed):
        return x
    primitive = catalogue()[x.primitive] if isinstance(x.primitive, str) else x.primitive
    inner = [_opened(y) for y in x.xs]
    return apply(primitive, tuple([y if isinstance(y, Tensor) else Tensor(np.asarray(float(y))) for y in inner]), {})


def record(
    function: Callable[..., Any],
    xs: tuple[Any, ...],
    params: dict[str, Any],
    name: str,
    *,
    pointwise: bool | None = None,
    whole: bool | None = None,
    apart: tuple[int, ...] | None = None,
    edges: int | tuple[int, ...] | None = None,
    view: bool = False,
) -> Tensor:
    """The result of `function(*xs, **params)`, a function of operands such as a primitive.

    `whole`: whole numbers stay whole. `apart`: operands that keep their own format. `edges`: which operands, or how
    many of them, the node shows. `view`: the result may share memory. Raises RuntimeError or IndexError where operands
    do not fit.
    """
    known = getattr(function, "name", "")
    if pointwise is None:
        pointwise = bool(getattr(function, "pointwise", False))
    if apart is None:
        apart = APART.get(known, ())
    kind = _kind(xs, apart, known in WHOLE if whole is None else whole)
    arrays = []
    for i, x in enumerate(xs):
        array = x._array if isinstance(x, Tensor) else np.asarray(x, dtype=None if i in apart else kind)
        arrays.append(array if i in apart or array.dtype == kind else array.astype(kind))
    kinds = tuple([_KINDS[array.dtype.kind] for array in arrays])
    try:
        plan = plan_of(function, tuple([array.shape for array in arrays]), kinds, params, pointwise)
        out = plan.forward.on_arrays(names_for(kind), kind, arrays)[0]
    except GradcliError as wrong:
        first = wrong.diagnostics[0]
        raise (IndexError if first.code in INDEX_ERRORS else RuntimeError)(first.message) from None
    except ValueError as wrong:
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        raise RuntimeError(f"the sizes of tensors of shapes {shapes} must match, or be 1: {wrong}") from None
    out = np.asarray(out)
    if out.dtype.kind == "f" and out.dtype != kind and kind.kind == "f":
        out = out.astype(kind)
    if not view and (out.base is not None or any(out is array for array in arrays)):
        out = out.copy()
    result = Tensor(out)
    if recording():
        mask = tuple(
            [
                isinstance(x, Tensor) and x.requires_grad and moves
                for x, moves in zip(xs, plan.differentiable, strict=True)
            ]
        )
        if True in mask and out.dtype.kind == "f":
            attach(result, xs, arrays, plan.backward(mask), mask, name, kind, edges)
    return result


_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def _kind(xs: tuple[Any, ...], apart: tuple[int, ...], whole: bool) -> np.dtype[Any]:
    """The format that an operation computes in."""
    with_axes: list[dtypes.dtype] = []
    without: list[dtypes.dtype] = []
    numbers: list[dtypes.dtype] = []
    for i, x in enumerate(xs):
        if i in apart:
            continue
        if isinstance(x, Tensor):
            (with_axes if x._array.ndim else without).append(dtypes.of(x._array.dtype))
        else:
            numbers.append(dtypes.of_number(x))
    found = dtypes.common(with_axes, without, numbers)
    return found.np if whole or found.is_floating_point else dtypes.get_default_dtype().np


def attach(
    result: Tensor,
    xs: tuple[Any, ...],
    arrays: list[Any],
    backward: Backward,
    mask: tuple[bool, ...],
    name: str,
    kind: np.dtype[Any],
    edges: int | tuple[int, ...] | None,
) -> None:
    """Give a result its node; RuntimeError where an inference tensor would have to be saved."""
    saved = []
    for i in backward.reads:
        x = xs[i]
        if isinstance(x, Tensor):
            if x._inference:
                raise RuntimeError(
                    f"inference tensors cannot be saved for backward, and {name} has to save one; clone() it outside "
                    "inference_mode"
                )
            saved.append(Saved(x, arrays[i], x._counter))
        else:
            number = Tensor(arrays[i])
            saved.append(Saved(number, arrays[i], number._counter))
    if backward.needs_out:
        saved.append(Saved(None, result._array, result._counter))
    shown = edges if isinstance(edges, tuple) else range(len(xs) if edges is None else edges)
    inputs = tuple([source_of(xs[i]) if mask[i] else None for i in shown])
    node = class_named(RuleNode, name)(inputs, tuple(saved), place())
    assert isinstance(node, RuleNode)
    node.plan = backward
    node.kind = kind
    node.out_kind = result._array.dtype
    node.targets = tuple([(at, i, xs[i]._array.shape, xs[i]._array.dtype) for at, i in enumerate(shown) if mask[i]])
    result._requires = True
    result._edge = (node, 0)


def source_of(x: Tensor) -> Any:
    """Where a gradient of this tensor goes: (node, output number), the leaf itself, or None."""
    if not x.requires_grad:
        return None
    edge = x._current_edge()
    return x if edge is None else edge


class RuleNode(Node):
    """The node of a declared operation: its gradients come from the declaration, through a plan."""

    __slots__ = ("kind", "out_kind", "plan", "targets")
    plan: Backward
    kind: np.dtype[Any]
    out_kind: np.dtype[Any]
    targets: tuple[Any, ...]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs: arrays from arrays, or tensors from tensors where a graph is wanted."""
        self.check_not_freed()
        found: list[Any] = [None] * len(self.inputs)
        ct = cts[0]
        if ct is None:
            return found
        name, where = self.name(), self.place
        saved = [one.checked(name, where) for one in self.saved]
        if create_graph:
            values = [ct, *[self.tensor_saved(one) for one in self.saved]]
            results = self.plan.steps.on_operands(self.kind, values, Tensor, self._applied)
        else:
            kind = self.kind
            saved = [
                array if array.dtype.kind in "biu" or array.dtype == kind else array.astype(kind) for array in saved
            ]
            results = self.plan.steps.on_arrays(names_for(kind), kind, [ct, *saved])
        known = dict(zip(self.plan.positions, results, strict=True))
        for at, position, shape, kind in self.targets:
            value = known.get(position)
            if create_graph:
                found[at] = _fitted_tensor(value, shape, kind)
            else:
                found[at] = fitted(value, shape, kind)
        return found

    def _applied(self, primitive: Any, xs: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
        if primitive.name == "cast" and params["kind"] == "float":
            return Tensor(xs[0]._array.astype(self.kind))
        return apply(primitive, xs, params)

    def tensor_saved(self, one: Saved) -> Tensor:
        """A saved value as a tensor: the operand itself, or the result with this node as its `grad_fn`."""
        if one.tensor is not None:
            return one.tensor
        result = Tensor(one.array, True, one.counter)
        result._edge = (self, 0)
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            names = [f"_saved_{('self', 'other', 'third')[i]}" for i in self.plan.reads]
            if self.plan.needs_out:
                names.append("_saved_result")
            if name in names:
                self.check_not_freed()
                return self.tensor_saved(self.saved[names.index(name)])
            raise AttributeError(f"{self.name()} saved {', '.join(names) or 'nothing'}, so there is no {name}")
        raise AttributeError(f"{self.name()} has no {name!r}")


def fitted(value: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """A gradient in the shape and format of its input: broadcasting is summed away."""
    if value is None:
        return np.zeros(shape, kind)
    array = np.asarray(value)
    if array.shape != shape:
        extra = array.ndim - len(shape)
        if extra < 0 or array.size < int(np.prod(shape, dtype=np.int64)):
            return np.broadcast_to(array, shape).astype(kind)
        axes = (*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 and array.shape[i + extra] != 1])
        array = np.asarray(array.sum(axis=axes)).reshape(shape)
    return array if array.dtype == kind else array.astype(kind)


def _summed(x: Any, *, shape: tuple[int, ...]) -> Any:
    """The transpose of broadcasting, in graph operations."""
    extra = len(x.shape) - len(shape)
    axes = [i for i in range(len(x.shape)) if i < extra or (shape[i - extra] == 1 and x.shape[i] != 1)]
    found = catalogue()["sum"](x, axis=tuple(i - len(x.shape) for i in axes))
    return found if found.shape == shape else catalogue()["reshape"](found, shape=shape)


def _fitted_tensor(value: Tensor | None, shape: tuple[int, ...], kind: Any) -> Tensor:
    if value is None:
        return Tensor(np.zeros(shape, kind))
    if value._array.shape != shape:
        value = record(_summed, (value,), {"shape": shape}, "SumBackward1")
    return value if value._array.dtype == kind else cast(value, dtypes.of(kind))


class CastNode(Node):
    """A change of format; its gradient is changed back."""

    __slots__ = ("kind",)
    kind: np.dtype[Any]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradient in the format of the input."""
        if cts[0] is None:
            return [None]
        return [cast(cts[0], dtypes.of(self.kind)) if create_graph else cts[0].astype(self.kind)]


def cast(x: Tensor, to: dtypes.dtype) -> Tensor:
    """The entries in another format; the tensor itself where it has it."""
    if x.dtype is to:
        return x
    result = Tensor(x._array.astype(to.np))
    if recording() and x.requires_grad and to.is_floating_point:
        node = class_named(CastNode, "ToCopyBackward0")((source_of(x),), (), place())
        assert isinstance(node, CastNode)
        node.kind = x._array.dtype
        result._requires, result._edge = True, (node, 0)
    return result
