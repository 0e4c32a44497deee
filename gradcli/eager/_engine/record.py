"""Recording: an operation runs on the payloads of tensors in PyTorch's result type, and its result gets a node.

This is the long way, which every operation can take: formats are joined, the plan of the operation runs on raw arrays,
and a node keeps what the plan of its gradients will read. (Operators on tensors of one float format take the short
way of `fastpath.py`, which does the same.) Broadcasting leaves no node; its gradient is summed by the node itself.

PyTorch's `eigh`, `qr`, `svd` and `slogdet` are one node with several outputs. Here each output has its own
rule, and the node (`SeveralNode`) adds up their gradients; their results are named tuples that print as PyTorch's.
"""

from __future__ import annotations

import math
import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.eager._core import devices, dtypes, events, tracer
from gradcli.eager._core.grad_fn import Node, class_named, versions
from gradcli.eager._core.modes import PLAIN, SILENT, SPECIAL, place, recording, sequence, state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.plan import WARM, Vjp, plan_of
from gradcli.eager._engine.rule_node import RuleNode, kept, kept_result, number, source_of
from gradcli.graph.primitive import Closed
from gradcli.primitives import catalogue
from gradcli.primitives.movement import reshape, sum_

Gradient = Callable[..., tuple[Tensor | None, ...]]
# the nodes of `cast`, of `fitted`, and of copies into other memory
TO_COPY, SUMMED, COPY = "ToCopyBackward0", "SumBackward1", "CopyBackwards"


def kind_of(xs: tuple[Any, ...], keep_dtype: tuple[int, ...], keep_integer: bool) -> np.dtype[Any]:
    """The format that an operation computes in."""
    used = [x for i, x in enumerate(xs) if i not in keep_dtype]
    arrays = [x._raw for x in used if isinstance(x, Tensor)]
    numbers = [x for x in used if not isinstance(x, Tensor)]
    first: np.dtype[Any] | None = arrays[0].dtype if arrays else None
    if first is not None and first in dtypes.FLOATS and all(x.dtype is first for x in arrays):
        if complex not in map(type, numbers):
            return first
    with_axes = [dtypes.of(x.dtype) for x in arrays if x.ndim]
    without = [dtypes.of(x.dtype) for x in arrays if not x.ndim]
    common = dtypes.common(with_axes, without, list(map(dtypes.of_number, numbers)))
    return common.np if keep_integer or common.kind >= 2 else dtypes.get_default_dtype().np


def manner(
    function: Any, pointwise: bool | None = None, keep_integer: bool | None = None, keep_dtype: Any = None
) -> tuple[bool, bool, tuple[int, ...]]:
    """Whether a function works entry by entry, whether whole numbers stay whole, and which operands keep their format.

    What is not given is known of a declared operation.
    """
    return (
        bool(getattr(function, "pointwise", False)) if pointwise is None else pointwise,
        bool(getattr(function, "keeps_whole", False)) if keep_integer is None else keep_integer,
        getattr(function, "data_operands", ()) if keep_dtype is None else keep_dtype,
    )


INDEX_ERRORS = {"GC303", "GC305"}
_KINDS = {"f": "float", "c": "float", "i": "int", "u": "int", "b": "bool"}


@cache
def operation(name: str) -> Callable[..., Any]:
    """A declared operation as scripts call it, by its name: a function of operands, for `record` and for formulas."""
    primitive = catalogue()[name]
    return primitive.call or (primitive.definition if primitive.kind == "composite" else None) or primitive


def declared(name: str, *xs: Any, **params: Any) -> Any:
    """A declared operation on operands."""
    return operation(name)(*xs, **params)


def apply(primitive: Any, xs: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
    """A declared operation on tensors and numbers, under the name that its declaration gives to its node."""
    for x in xs:
        if isinstance(x, Closed):
            xs = tuple([_opened(x) for x in xs])
            break
    return record(primitive, xs, params, primitive.node_name(params))


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
    edges: int | tuple[int, ...] | None = None,
    view: bool = False,
    **how: Any,
) -> Tensor:
    """The result of `function(*xs, **params)`, a function of operands such as a primitive.

    `edges`: which operands, or how many of them, the node shows; else all that do not keep their format. `view`: the
    result may share memory. `how` it is computed is said in `manner`. Raises RuntimeError or IndexError where operands
    do not fit.
    """
    key, operands = None, xs
    if state.mode != SPECIAL or state.recorder_only:
        signature = (function, name, edges, view, *params.values())
        key = fastpath.key_of(signature, xs)
        if key is None:
            operands = fastpath.with_numbers(xs)
            key = fastpath.key_of(signature, operands)
        recipe = fastpath.recipes.get(key)
        if recipe is not None:
            recorder_only = state.recorder_only
            if recorder_only:  # as if nobody recorded it
                state.mode = PLAIN if state._grad else SILENT
            try:
                result: Tensor | None = recipe.follow(recipe, *operands)
            finally:
                if recorder_only:
                    state.mode = SPECIAL
            if result is not None:
                if events.own.current is not None:
                    events.own.current.operation(name, xs, result)
                return result
    if tracer.traced(xs):
        return tracer.own.current.operation(function, xs, params, name, {"edges": edges, "view": view}, **how)  # type: ignore[no-any-return]
    pointwise, keep_integer, keep_dtype = manner(function, **how)
    if name.startswith(("Sub", "Rsub", "Neg")) and any(
        isinstance(x, bool) or (isinstance(x, Tensor) and x._raw.dtype.kind == "b") for x in xs
    ):
        raise RuntimeError("the `-` operator is not supported for bool tensors: use `^` or `~`, or .int() first")
    kind = kind_of(xs, keep_dtype, keep_integer)
    arrays, mixed = _arrays(xs, keep_dtype, kind, pointwise, view)
    kinds = tuple([_KINDS[array.dtype.kind] for array in arrays])
    try:
        plan = plan_of(function, () if pointwise else tuple([x.shape for x in arrays]), kinds, params, pointwise)
        recorded = recording() and kind.kind in "fc"
        sources = [
            source_of(x) if recorded and moves and isinstance(x, Tensor) and x._raw.dtype.kind in "fc" else None
            for x, moves in zip(xs, plan.differentiable, strict=True)
        ]
        mask = tuple([source is not None for source in sources])
        out, *more = plan.value(kind, arrays, mask)
    except GradcliError as wrong:
        first = wrong.diagnostics[0]
        message = re.sub(r"\b[fib]\d+\[", "[", first.message)  # the formats of the program, not of the tensors
        raise (IndexError if first.code in INDEX_ERRORS else RuntimeError)(message) from None
    except ValueError as wrong:
        raise RuntimeError(_mismatch([array.shape for array in arrays]) or str(wrong)) from None
    if kind.kind in "iu" and getattr(function, "__name__", "") in ("remainder", "fmod") and not np.all(arrays[1]):
        raise RuntimeError("ZeroDivisionError: integer division by zero")
    if out.dtype != kind and out.dtype.kind in "fc" and kind.kind in "fc":
        out = out.astype(kind)
    elif kind.kind in "iu" and out.dtype.kind == "f" and keep_integer:
        out = out.astype(kind)  # an operation that keeps whole numbers, computed in floats
    if not view and isinstance(out, np.ndarray) and (out.base is not None or any(out is array for array in arrays)):
        out = out.copy()
    if edges is None:
        edges = tuple([i for i in range(len(xs)) if i not in keep_dtype])
    shown = edges if isinstance(edges, tuple) else tuple(range(edges))
    if key is not None and not mixed and plan.used >= WARM and out.dtype == kind and kind.kind == "f":
        if pointwise or all(isinstance(x._raw, np.ndarray) for x in operands):
            fastpath.recipes.keep(key, fastpath.TensorRecipe(plan, kind, name, shown, view, arrays))
    result = Tensor(out)
    if True in mask and out.dtype.kind in "fc":
        vjp = plan.vjp(mask, kind, shown, mixed or out.dtype != kind)
        node = class_named(RuleNode, name)()
        node.ins = tuple([sources[i] for i in shown])
        _attach(result, node, xs, arrays, more, vjp)
    if state.dual is not None and not view:  # the tangent of a view is a view
        state.dual.passed(plan, xs, arrays, kind, result)
    return events.noted(name, xs, result)


def _arrays(
    xs: tuple[Any, ...], keep_dtype: tuple[int, ...], kind: np.dtype[Any], pointwise: bool, view: bool
) -> tuple[list[Any], bool]:
    """The payloads in the format of the computation, and whether any of them had another one."""
    arrays: list[Any] = []
    mixed = False
    for i, x in enumerate(xs):
        if isinstance(x, Tensor):
            array = x._array if view else x._raw
            if array.dtype != kind and i not in keep_dtype:
                mixed = True
                array = array.astype(kind)
        elif i in keep_dtype:
            array = np.asarray(x)
        else:
            array = _number_in(kind, x) if pointwise else np.asarray(x, dtype=kind)
        arrays.append(array if pointwise else np.asarray(array) if isinstance(array, np.generic) else array)
    if not all(isinstance(array, (np.ndarray, np.generic)) for array in arrays):
        devices.same(arrays)
    return arrays, mixed


def _number_in(kind: np.dtype[Any], x: Any) -> Any:
    """A Python number in a format; whole numbers that are too large for it wrap around, as in PyTorch."""
    try:
        return kind.type(x)
    except OverflowError:
        return np.asarray(x).astype(kind)[()]


def _attach(result: Tensor, node: RuleNode, xs: tuple[Any, ...], arrays: list[Any], more: list[Any], vjp: Vjp) -> None:
    """Give a result its node, which saves `more` arrays too; RuntimeError for an inference tensor to be saved."""
    node.place = place()
    node._seq = next(sequence)
    node.extra = None
    node.vjp = vjp
    saved = []
    for i in vjp.reads:
        x = xs[i]
        if isinstance(x, Tensor) and x._inference:
            raise RuntimeError(
                f"inference tensors cannot be saved for backward, and {type(node).__name__} has to save one; clone() "
                "it outside inference_mode"
            )
        saved.append(kept(x if isinstance(x, Tensor) else number(arrays[i])))
    if vjp.needs_out:
        saved.append(kept_result(result, node))
    node.saved = (*saved, *[kept(number(array)) for array in more])
    node.vers = versions(node.saved)
    types = [(x._raw.shape, x._raw.dtype) if isinstance(x, Tensor) else None for x in xs]
    node.broadcast_to = vjp.fitted_to(types, result._raw.shape)
    result._requires = True
    result._node = node


def noded(
    results: tuple[Tensor, ...], base: type[Node], name: str, sources: Any, saved: Any = (), **fields: Any
) -> None:
    """Give the results of one operation a node of a class, made here, with these fields."""
    node = class_named(base, name)(tuple(sources), saved, place())
    for field, value in {"outputs": len(results), **fields}.items():
        setattr(node, field, value)
    for i, result in enumerate(results):
        result._requires, result._edge = True, (node, i)


def with_gradient(
    result: Tensor, xs: tuple[Tensor, ...], name: str, gradient: Gradient, *, save: bool = False, tangent: Any = None
) -> Tensor:
    """A result whose gradient is written as a function of tensors; `save`: it reads the operands.

    `tangent`: the tangent of the result from that of the operand.
    """
    if state._grad and not state._inference and any(x.requires_grad for x in xs):
        saved = tuple([kept(x) for x in xs]) if save else ()
        noded((result,), GradientNode, name, [source_of(x) for x in xs], saved, gradient=gradient)
    if tangent is not None and state.dual is not None and xs[0]._tangent is not None:
        state.dual.give(result, tangent(xs[0]._tangent))
    return events.noted(name, xs, result)


class GradientNode(Node):
    """A node whose gradient is a function of tensors, so that it can be differentiated again.

    The function takes the gradients of the results, then what was saved.
    """

    __slots__ = ("gradient", "outputs")
    gradient: Gradient
    outputs: int

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs."""
        self.check_not_freed()
        if all(ct is None for ct in cts):
            return [None] * len(self.ins)
        self.check_versions()
        tensors = [ct if ct is None or isinstance(ct, Tensor) else Tensor(ct) for ct in cts]
        xs = [x if isinstance(x, Tensor) else x.tensor() for x in self.saved or ()]
        gradients = self.gradient(*tensors, *xs)
        if create_graph:
            return list(gradients)
        return [None if gradient is None else gradient._raw for gradient in gradients]


def cast(x: Tensor, to: dtypes.dtype) -> Tensor:
    """The entries in another format; the tensor itself where it has it."""
    if x.dtype is to:
        return x
    if isinstance(x, tracer.Traced):
        return tracer.own.current.cast(x, to)  # type: ignore[no-any-return]
    raw, kind = x._raw, x._raw.dtype
    result = Tensor((raw.real if raw.dtype.kind == "c" and to.np.kind != "c" else raw).astype(to.np))
    if to.kind < 2:
        return events.noted(TO_COPY, (x,), result)
    return with_gradient(
        result,
        (x,),
        TO_COPY,
        lambda ct: (fitted(ct, ct._raw.shape, kind),),
        tangent=lambda tangent: cast(tangent, to),
    )


def copied(x: Tensor, name: str) -> Tensor:
    """The entries in memory of their own, with a node of this name."""
    if isinstance(x, tracer.Traced):
        return tracer.own.current.copied(x)  # type: ignore[no-any-return]
    result = Tensor(x._raw.copy())
    return with_gradient(result, (x,), name, lambda ct: (ct,), tangent=lambda tangent: copied(tangent, name))


def _summed(x: Any, *, shape: tuple[int, ...]) -> Any:
    """The transpose of broadcasting, in graph operations."""
    extra = len(x.shape) - len(shape)
    axes = [i for i in range(len(x.shape)) if i < extra or (shape[i - extra] == 1 and x.shape[i] != 1)]
    total = sum_(x, axis=tuple(i - len(x.shape) for i in axes))
    return total if total.shape == shape else reshape(total, shape=shape)


def fitted(value: Tensor, shape: tuple[int, ...], kind: Any) -> Tensor:
    """A gradient in the shape and format of its input, recorded: broadcasting is summed away."""
    if value._raw.dtype != kind:
        if value._raw.dtype.kind == "c" and kind.kind != "c":
            value = value.real
        value = cast(value, dtypes.of(kind))
    if value._raw.shape != shape:
        if 0 < value._raw.size < math.prod(shape):
            expanded: Tensor = value.expand(shape)
            return expanded
        value = record(_summed, (value,), {"shape": shape}, SUMMED)
    return value


class SeveralNode(Node):
    """The node of several results: for each output the node with its rule, or None where there is no gradient."""

    __slots__ = ("outputs", "parts")
    outputs: int
    parts: tuple[Any, ...]

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs: the sum over the outputs."""
        self.check_not_freed()
        total: list[Any] = [None] * len(self.ins)
        for ct, part in zip(cts, self.parts, strict=True):
            if ct is None or part is None:  # nothing flows through a step, as in PyTorch's
                continue
            for i, gradient in enumerate(part.run([ct], create_graph)):
                if gradient is not None:
                    total[i] = gradient if total[i] is None else total[i] + gradient
        return total

    def release(self) -> None:
        """Free what the parts saved."""
        super().release()
        for part in self.parts:
            if part is not None:
                part.release()


def one_node(name: str, *results: Tensor | None) -> tuple[Tensor, ...]:
    """The results as outputs of one node in this order; None stands for an output that was not requested."""
    present = [x for x in results if x is not None]
    nodes = [None if x is None else x._node for x in results]
    recorded = [node for node in nodes if node is not None]
    if not recorded or any(isinstance(x, tracer.Traced) for x in present):
        return tuple(present)
    saved = tuple([value for node in recorded for value in node.saved or ()])
    node = class_named(SeveralNode, name)(recorded[0].ins, saved, recorded[-1].place)
    node.vers = versions(saved)
    node.outputs, node.parts = len(results), tuple(nodes)
    for i, x in enumerate(results):
        if x is not None:
            x._requires, x._edge = True, (node, i)
            events.report("given_node", x)
    return tuple(present)


HOME = "torch.return_types"


def shown(result: Any) -> str:
    """A result as PyTorch prints it."""
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"{HOME}.{type(result).__name__}(\n{fields})"


@cache
def fields(name: str, names: str) -> Any:
    """The type of the results of one operation: a named tuple that has the name of the operation.

    >>> fields("max", "values indices")(values=3, indices=0)
    torch.return_types.max(
    values=3,
    indices=0)
    """
    return type(name, (namedtuple(name, names),), {"__slots__": (), "__module__": HOME, "__repr__": shown})


def _mismatch(shapes: Sequence[tuple[int, ...]]) -> str:
    """What PyTorch says of shapes that cannot be broadcast together, and the shapes; empty where they can be."""
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    for dimension in reversed(range(rank)):
        sizes = list(dict.fromkeys(shape[dimension] for shape in aligned if shape[dimension] != 1))
        if len(sizes) > 1:
            message = f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]})"
            message += f" at non-singleton dimension {dimension}"
            return f"{message}; the shapes are {' and '.join(str(list(shape)) for shape in shapes)}"
    return ""
