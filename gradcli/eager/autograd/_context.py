"""`ctx`, which a Function fills in forward and reads in backward, and the node that runs that backward."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import modes
from gradcli.eager._core.modes import state
from gradcli.eager._core.node import Node, Packed, Saved, versions
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.rule_node import fitted_tensor, kept, kept_result
from gradcli.eager._ops.inplace import refuse, rewrite
from gradcli.eager._ops.views import expand

if TYPE_CHECKING:
    Function = Any  # of `function.py`, which stands on this module


class Context:
    """The `ctx` that forward and backward of a Function receive; users keep what they like on it."""

    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()
    _node: Any = None  # a weak reference
    _to_save: tuple[Any, ...] = ()
    _fixed: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `saved_tensors` in backward; None is allowed."""
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                raise TypeError("save_for_backward can only save tensors; keep others as attributes of ctx")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_for_forward`."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Results that need no gradient."""
        self._fixed = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward changed in place and returns."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive come as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved; RuntimeError once it was freed, or where it was changed in place since."""
        node = self._node()
        return self._to_save if node is None or self._to_save else node.saved_tensors

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """Those of the node."""
        return self._node().next_functions  # type: ignore[no-any-return]

    def name(self) -> str:
        """The name of the node."""
        return self._node().name()  # type: ignore[no-any-return]


class FunctionNode(Node):
    """The node of a Function's result."""

    __slots__ = ("context", "outputs", "owner", "results", "slots")
    context: Context
    owner: type[Function]
    slots: list[Any]  # for each argument the shape and format of a tensor, else None
    results: list[Any]  # for each result the shape and format of a tensor, else None

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What forward saved; RuntimeError once it was freed, or where it was changed in place since."""
        self.check_not_freed()
        self.check_versions()
        found: list[Any] = []
        for one in self.saved or ():
            if type(one) is Packed:
                found.append(one.attached(self))
            elif type(one) is Saved:
                result = Tensor(one._raw, True, one._count)
                result._edge = (self, one.output)
                if one.tangent is not None and state.dual is not None:
                    state.dual.give(result, one.tangent)
                found.append(result)
            else:
                found.append(one)
        return tuple(found)

    def __getattr__(self, name: str) -> Any:
        if name in Node.__slots__ or name in FunctionNode.__slots__:
            raise AttributeError(name)
        return getattr(self.context, name)

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """What the class's backward returns, fitted to the inputs."""
        self.check_not_freed()
        given = []
        for ct, result in zip(cts, self.results, strict=True):
            if ct is None and result is not None and self.context._materialize:
                ct = np.zeros(*result)
            given.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        with modes.set_grad_enabled(create_graph):
            return self.asked(given, create_graph)

    def asked(self, given: list[Any], create_graph: bool) -> list[Any]:
        """What backward answers to the gradients of the results, fitted to the inputs that are tensors."""
        answer = self.owner.way()(self.context, *given)
        return self._fitted(answer if isinstance(answer, tuple) else (answer,), create_graph)

    def _fitted(self, values: tuple[Any, ...], create_graph: bool) -> list[Any]:
        count = len(self.slots)
        if len(values) > count and all(value is None for value in values[count:]):
            values = values[:count]
        if len(values) != count:
            raise RuntimeError(
                f"{self.name()} returned an incorrect number of gradients (expected {count}, got {len(values)})"
            )
        found = []
        for value, slot in zip(values, self.slots, strict=True):
            if slot is None:
                if value is not None:
                    raise RuntimeError(f"{self.name()} returned a gradient for an input that is not a tensor")
                continue
            if value is not None:
                if not isinstance(value, Tensor):
                    raise TypeError(f"{self.name()} returned {type(value).__name__} where a tensor or None is expected")
                value = self._one(value, slot, create_graph)
            found.append(value)
        return found

    def _one(self, value: Tensor, slot: Any, create_graph: bool) -> Any:
        shape, kind = slot
        try:
            fits = np.broadcast_shapes(value._raw.shape, shape) in (shape, value._raw.shape)
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"{self.name()} returned a gradient of shape {list(value.shape)}, but expected one expandable to "
                f"{list(shape)}"
            )
        if value._raw.size < math.prod(shape):
            value = expand(value, shape)
        fitted = fitted_tensor(value, shape, kind)
        return fitted if create_graph else fitted._raw


_classes: weakref.WeakKeyDictionary[type[Function], type[FunctionNode]] = weakref.WeakKeyDictionary()


def class_of(owner: type[Function]) -> type[FunctionNode]:
    """The class of the nodes of a Function; it lives as long as the Function."""
    found = _classes.get(owner)
    if found is None:
        members = {"__module__": "torch.autograd.function", "__slots__": ()}
        found = _classes[owner] = type(f"{owner.__name__}Backward", (FunctionNode,), members)
    return found


def attach(node: FunctionNode, outputs: list[Any], answers: list[Any]) -> None:
    """Give the results of a Function its node, which keeps what was saved."""
    node.outputs = len(outputs)
    node.results = [(out._raw.shape, out._raw.dtype) if isinstance(out, Tensor) else None for out in outputs]
    context = node.context
    for x in context._dirty:
        refuse(x)
    saved: list[Any] = []
    for one in context._to_save:
        at = next((i for i, out in enumerate(answers) if one is out), None)
        if one is None:
            saved.append(None)
        elif at is None:
            saved.append(kept(one))
        else:  # a node never holds its own output
            saved.append(kept_result(one, node, at))
    context._to_save = ()
    node.saved = tuple(saved)
    node.vers = versions(node.saved)
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor) or out.dtype.kind < 2 or any(out is one for one in context._fixed):
            continue
        if any(out is x for x in context._dirty):
            made = Tensor(out._array)
            made._requires, made._edge = True, (node, i)
            rewrite(out, made)
        else:
            out._requires, out._edge = True, (node, i)
