"""The node of a declared operation: it runs the derivative rules of the declaration through a plan.

On raw arrays the plan is a function; where a graph is wanted its steps run on tensors, and are recorded in turn. The
`_saved_*` attributes have PyTorch's names: which values are saved, the plan says, what they are called, the row of the
operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager._core import dtypes, events
from gradcli.eager._core.grad_fn import Node, OutputEdge, Packed, class_named, saved_result
from gradcli.eager._core.modes import state
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import numpy_kernels
from gradcli.eager._engine.plan import Vjp

# by the name of a node: what PyTorch calls its operands, and whether `dim` may be several axes; filled from the rows of
# the table of operations
OPERANDS: dict[str, tuple[tuple[str, ...], bool]] = {}
_UNNAMED = (("self", "other", "third"), False)
_PARAMS = {"axis": "dim", "dim": "dim", "keepdims": "keepdim", "keepdim": "keepdim", "n": "exponent", "axes": "dims"}


def saved_names(node: RuleNode) -> tuple[dict[str, int], dict[str, Any]]:
    """By name the positions among the saved values; and parameters, with None for operands that were not needed."""
    operands, several = OPERANDS.get(type(node).__name__, _UNNAMED)
    plan, reads = node.vjp.plan, node.vjp.reads
    names = [f"_saved_{operands[i] if i < len(operands) else f'input{i}'}" for i in range(len(plan.leaves))]
    saved = {names[i]: at for at, i in enumerate(reads)}
    if node.vjp.needs_out:
        saved["_saved_result"] = len(reads)
    every = tuple([moves and i in node.vjp.shown for i, moves in enumerate(plan.differentiable)])
    fixed = dict.fromkeys([names[i] for i in plan.backward(every).reads if operands is not _UNNAMED[0]])
    for key, value in plan.params.items():
        if key in _PARAMS:
            several_axes = key in ("axis", "dim") and type(value) is int and several
            fixed[f"_saved_{_PARAMS[key]}"] = (value,) if several_axes else value
    return saved, fixed


def source_of(x: Tensor) -> Any:
    """Where a gradient of this tensor goes: its node (or an `OutputEdge` of it), the leaf itself, or None."""
    if not x._special:
        return None if not x._requires else x if x._node is None else x._node
    if not x.requires_grad:
        return None
    edge = x._current_edge()
    if edge is None:
        return x if x._stands_for is None else x._stands_for
    return edge[0] if edge[0].outputs == 1 else OutputEdge(*edge)


class RuleNode(Node):
    """The node of a declared operation: its gradients come from the declaration, through a plan."""

    __slots__ = ("broadcast_to", "vjp")
    simple = True
    __init__ = object.__init__  # made without arguments: `record` writes its fields
    vjp: Vjp
    broadcast_to: tuple[Any, ...] | None  # for each edge the shape and format of the input, where they may differ

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the inputs: arrays from arrays, or tensors from tensors where a graph is wanted."""
        self.check_not_freed()
        ct = cts[0]
        if ct is None:
            return [None] * len(self.ins)
        if not create_graph:
            gradients = list(self.vjp.back(self, ct))
            return gradients if self.broadcast_to is None else fit(gradients, self.broadcast_to)
        self.check_versions()
        vjp = self.vjp
        turned = vjp.kind.kind == "c"
        if turned:
            ct = ct.conj()
        steps = vjp.backward.steps
        values = [ct, *[self.tensor_saved(i) for i in range(len(steps.inputs) - 1)]]
        results = steps.on_operands(vjp.kind, values, number, applied_in(vjp.kind))
        if turned:
            results = [result.conj() for result in results]
        gradients = [None if at < 0 else results[at] for at in vjp.where]
        if self.broadcast_to is None:
            return gradients
        pairs = zip(gradients, self.broadcast_to, strict=True)
        return [None if target is None else fitted_tensor(value, *target) for value, target in pairs]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            saved, fixed = saved_names(self)
            if name in saved:
                self.check_not_freed()
                return self.tensor_saved(saved[name])
            if name in fixed:
                return fixed[name]
            spoken = ", ".join({**saved, **fixed}) or "nothing"
            raise AttributeError(f"{self.name()} saved {spoken}, so there is no {name}")
        raise AttributeError(f"{self.name()} has no {name!r}")

    def __dir__(self) -> list[str]:
        saved, fixed = saved_names(self)
        return sorted({*super().__dir__(), *saved, *fixed})


def applied_in(kind: np.dtype[Any]) -> Callable[..., Any]:
    """The function that applies an operation to tensors, in which floats have one format."""

    def applied(primitive: Any, xs: tuple[Any, ...], params: dict[str, Any]) -> Any:
        to_float = primitive.name == "cast" and params["kind"] == "float"
        return xs[0].to(dtypes.of(kind)) if to_float else Tensor.bind(primitive, xs, params)

    return applied


class FixedNode(RuleNode):
    """The node of an operation that moves entries to places that follow from shapes: it saved none of the user's."""

    __slots__ = ()
    keeps = True


def fit(values: Any, broadcast_to: tuple[Any, ...]) -> list[Any]:
    """Gradients in the shapes and formats of their inputs."""
    results: list[Any] = []
    for value, target in zip(values, broadcast_to):  # noqa: B905 - the keyword costs as much as the loop
        if target is None:
            results.append(None)
        elif value is not None and value.shape == target[0] and value.dtype is target[1]:
            results.append(value)
        else:
            results.append(fitted(value, *target))
    return results


def fitted(value: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """A gradient in the shape and format of its input: broadcasting is summed away, and for a real input the real
    part counts.
    """
    if value is None:
        return np.zeros(shape, kind)
    if value.dtype != kind:
        if value.dtype.kind == "c" and kind.kind != "c":
            value = value.real
        value = value.astype(kind)
    if value.shape == shape:
        return value
    extra = value.ndim - len(shape)
    if extra < 0 or 0 < value.size < math.prod(shape):
        return np.broadcast_to(value, shape)
    axes = (*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 and value.shape[i + extra] != 1])
    summed = numpy_kernels.column_sums(value) if axes == (0,) and value.ndim == 2 else np.add.reduce(value, axes)
    return summed if summed.shape == shape else np.reshape(summed, shape)


def fitted_tensor(value: Tensor | None, shape: tuple[int, ...], kind: Any) -> Tensor:
    """A gradient that is a tensor, in the shape and format of its input."""
    result: Tensor = Tensor(np.zeros(shape, kind)) if value is None else value._fitted(shape, kind)
    return result


def number(array: Any) -> Tensor:
    """A number of a formula as an operand; pack hooks are not called for it."""
    tensor = Tensor(array)
    tensor._is_number = True
    return tensor


def kept(x: Tensor) -> Any:
    """What a node keeps of a tensor that it saves: the tensor, or what the pack hook makes of it."""
    if not state.saved_hooks:
        return x
    if x._is_number:
        return Packed(x, lambda same: same, None, x._raw)
    pack, unpack = state.saved_hooks[-1]
    return Packed(_packed(pack, x), unpack, source_of(x), x._raw)


def kept_result(x: Tensor, node: Node, output: int = 0) -> Any:
    """What a node keeps of its own result: the payload, never the tensor, or what the pack hook makes of it."""
    if not state.saved_hooks:
        return saved_result(x._raw, x._counter, output)
    pack, unpack = state.saved_hooks[-1]
    return Packed(_packed(pack, x.detach()), unpack, output, x._raw)


def _packed(pack: Any, x: Tensor) -> Any:
    hooks, grad = state.saved_hooks, state.grad_enabled
    state.saved_hooks = ()
    state.grad_enabled = False
    try:
        return pack(x)
    finally:
        state.saved_hooks, state.grad_enabled = hooks, grad


def renamed(x: Tensor, name: str) -> Tensor:
    """The same tensor, whose node has another name."""
    if isinstance(x._node, RuleNode):
        x._node.__class__ = class_named(RuleNode, name)
        events.report("given_node", x)
    return x
