"""The tensor: an array with `requires_grad`, `grad_fn`, `.grad` and a version counter.

The class computes nothing: functions, methods and operators are installed by `_ops/install.py`. Views and
`detach()` share memory and the version counter. The payload (`_raw`) of a 0-d tensor is a NumPy scalar, which computes
ten times as fast as an array without axes; it becomes an array (`_array`) when memory has to be shared.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.eager._core import devices, dtypes, events, printing
from gradcli.eager._core.modes import SPECIAL, Place, once, state, sweeps, warn
from gradcli.eager._core.unsupported import advice
from gradcli.graph.primitive import Operand, Primitive
from gradcli.primitives import addresses, catalogue

Node = Any  # of `node.py`, which imports this module
Edge = tuple[Node, int]
_numbers = itertools.count()


class Handle:
    """What `register_hook` returns: `remove()` takes the hook out; also a context that does so at its end."""

    __slots__ = ("hooks", "id")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks = hooks
        self.id = next(_numbers)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook out; nothing happens the second time."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Size(tuple[int, ...]):
    """A shape, printed as PyTorch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of entries."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Counter:
    """How often a piece of memory was changed in place, and where the last time."""

    value = 0  # of the class until the first change: most tensors are never changed
    place: Place = None

    def bump(self, place: Place) -> None:
        """Count one more change."""
        self.value += 1
        self.place = place


class Tensor(Operand):
    """An array that remembers how it was computed, if it requires a gradient."""

    __slots__ = ("__dict__", "__weakref__", "_count", "_node", "_raw", "_requires")
    __array_priority__ = 1000
    _raw: Any
    _count: Counter | None
    _node: Node | None
    _requires: bool
    # rare state: the class holds the defaults, so a plain tensor pays nothing for it
    _seq = 0  # as the end of an edge a tensor is a leaf; nodes have positive numbers
    _nr = 0  # which of its node's outputs it is
    _special = False  # a view, an output of several, an inference tensor or a dual: operators take the long way
    _inference = False
    _grad: Tensor | None = None
    _added = 0  # of a .grad: how many backwards have added into it since it was None or zero
    _mark = -1  # its number in the record of a run, if someone records
    _base: Tensor | None = None
    _path: tuple[Any, ...] = ()
    _frozen_by = ""  # of a view that refuses in-place changes: "no_grad" or "several"
    _seen = 0  # of a view: the version of the memory that its own history belongs to
    _hooks: dict[int, Any] | None = None
    _post_hooks: dict[int, Any] | None = None
    _leaf_hooks: Any = None  # those of its AccumulateGrad
    _retains = False
    _accumulator: weakref.ref[Node] | None = None
    _own_tangent: Any = None
    _dual_root = False  # of a view: tangents of its base are none of its own, as for what `make_dual` returns
    _dual_base: Tensor | None = None  # of a view of such a tensor: that tensor
    _is_number = False  # whether it stands for a number of a formula
    _is_param = False  # whether it is printed as a parameter
    _stands_for: Tensor | None = None  # of an unpacked leaf: the leaf whose gradient its gradient is

    # installed by `_ops/install.py`, with all methods and operators of the tables
    bind: Any
    backward: Any
    register_hook: Any
    retain_grad: Any
    _entries: Any  # of `torch.Tensor([1, 2])` and `torch.Tensor(2, 3)`
    _take_over: Any  # the history that the base of a view has now
    _fitted: Any  # a gradient in the shape and dtype of its input

    def __init__(self, array: Any = (), requires_grad: bool = False, counter: Counter | None = None) -> None:
        if isinstance(array, (np.ndarray, np.generic)):
            self._raw = array
        else:  # what programs write: torch.Tensor([1, 2]), torch.Tensor(2, 3)
            self._raw, requires_grad, counter = self._entries(array, requires_grad, counter), False, None
        self._node = None
        self._requires = requires_grad
        self._count = counter
        if state.mode == SPECIAL and state.inference:
            self._inference = self._special = True

    @property
    def _array(self) -> Any:
        """The payload as an array; from now on it is one, so that memory can be shared."""
        raw = self._raw
        if isinstance(raw, np.generic):
            raw = self._raw = np.asarray(raw)
        return raw

    @property
    def _counter(self) -> Counter:
        """The version counter, made when someone shares it."""
        if self._count is None:
            self._count = Counter()
        return self._count

    @property
    def _edge(self) -> Edge | None:
        """(node, number of its output) of the operation that made it, before in-place changes of a base are seen."""
        return None if self._node is None else (self._node, self._nr)

    @_edge.setter
    def _edge(self, edge: Edge | None) -> None:
        if edge is None:
            self._node = None
            return
        self._node = edge[0]
        if edge[1] != self._nr:
            self._nr = edge[1]
        if edge[0].outputs > 1:
            self._special = True

    def named(self, name: str) -> Primitive:
        return catalogue()[name]

    @property
    def shape(self) -> Size:
        return Size(self._raw.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The format of its entries."""
        return dtypes.of(self._raw.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self._raw.ndim)

    @property
    def device(self) -> devices.device:
        """Where it lives: the processor, or a GPU."""
        return devices.of(self._raw)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self._requires or (self._base is not None and self._base._requires)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if not self.is_leaf:
            if value:
                return
            raise RuntimeError(
                "requires_grad can be changed only on leaf tensors; use detach() to get one that does not require grad"
            )
        if value and self.dtype.kind < 2:
            raise RuntimeError(
                f"only tensors of floating point and complex dtype can require gradients, and this is {self.dtype}"
            )
        if value and self._inference and not state.inference:
            raise RuntimeError("an inference tensor cannot require grad outside inference mode; clone() it first")
        self._requires = value
        events.report("froze", self, value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`; RuntimeError for formats without gradients, TypeError for what is no bool."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        return self._current_edge() is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made it; None for a leaf."""
        edge = self._current_edge()
        return None if edge is None else edge[0]

    @property
    def output_nr(self) -> int:
        """Which of its node's outputs it is."""
        edge = self._current_edge()
        return 0 if edge is None else edge[1]

    @property
    def _version(self) -> int:
        if self._inference:
            raise RuntimeError("inference tensors do not track a version counter")
        return 0 if self._count is None else self._count.value

    def _current_edge(self) -> Edge | None:
        self._renew()
        return self._edge

    def _renew(self) -> None:
        """Take over the history of the base where the memory has been changed in place."""
        if self._base is not None and self._counter.value != self._seen and self._base._requires:
            self._take_over()

    @property
    def _tangent(self) -> Any:
        """The tangent of a dual tensor; that of a view is a view of its base's."""
        if self._own_tangent is None and self._base is not None and state.dual is not None:
            state.dual.look_up(self)
        return self._own_tangent

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

    @property
    def grad(self) -> Tensor | None:
        """What backward has added up so far; UserWarning for a tensor that does not keep it."""
        if self._grad is None and not self.is_leaf and not self._retains:
            warn(
                "the .grad of a tensor that is not a leaf is not filled by backward(); call retain_grad() on it first, "
                "or look at the leaf",
                UserWarning,
            )
        events.report("grad_read", self)
        return self._grad

    @grad.deleter
    def grad(self) -> None:
        self._grad = None
        events.report("grad_set", self, None)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f".grad is a tensor or None, not {type(value).__name__}")
            if value is self:
                raise RuntimeError("a tensor cannot be its own .grad")
            if value.shape != self.shape or value.dtype is not self.dtype:
                raise RuntimeError(
                    f"this .grad is {value.dtype}{list(value.shape)}, but the tensor is {self.dtype}{list(self.shape)}"
                )
        self._grad = value
        events.report("grad_set", self, value)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` made it keep its gradient."""
        return self._retains

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(leaf)` after backward has added to `.grad`; RuntimeError for a tensor that is not a leaf."""
        if not self.is_leaf or not self._requires:
            raise RuntimeError("post accumulate grad hooks belong to leaf tensors that require grad")
        if self._post_hooks is None:
            self._post_hooks = {}
        sweeps.watched = True
        events.report("hooked", self, "register_post_accumulate_grad_hook")
        return Handle(self._post_hooks, hook)

    # --- as numbers, lists, arrays and text ---------------------------------------------------------------

    def item(self) -> Any:
        """The only entry as a Python number; RuntimeError for several."""
        if self._raw.size != 1:
            raise RuntimeError(f"a tensor with {self._raw.size} elements cannot be converted to a Scalar")
        events.report("cut", "item()", (self,), None)
        return self._raw.item()

    def tolist(self) -> Any:
        """The entries as nested lists, or a number."""
        events.report("cut", "tolist()", (self,), None)
        return self._raw.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The array itself; RuntimeError for a tensor that requires grad: `.detach().numpy()`."""
        if self.requires_grad and not force:
            raise RuntimeError("numpy() on a tensor that requires grad would lose its history; use detach().numpy()")
        events.report("cut", "numpy()", (self,), None)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def detach(self) -> Tensor:
        """The same memory and version without the history."""
        result = Tensor(self._array, False, self._counter)
        result._inference = self._inference
        events.report("cut", "detach()", (self,), result)
        return result

    @property
    def data(self) -> Tensor:
        """The same memory without the history and with a version of its own: changes are not noticed."""
        result = Tensor(self._array)
        events.report("cut", ".data", (self,), result)
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f".data is a tensor, not {type(value).__name__}")
        if self.requires_grad and value._raw.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._raw = value._array
        events.report("refilled", self)

    def data_ptr(self) -> int:
        """The address of the first entry."""
        return int(self._array.__array_interface__["data"][0])

    def __float__(self) -> float:
        return float(self._one("float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self._raw.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _one(self, what: str) -> Any:
        if self._raw.size != 1:
            raise ValueError(f"only one element tensors can be converted to {what}, and this has {self._raw.size}")
        if self.requires_grad:
            once(
                "number", f"{what}() of a tensor that requires grad leaves the graph: use detach() or item() explicitly"
            )
        return self.item()

    def __bool__(self) -> bool:
        if self._raw.size != 1:
            raise RuntimeError("the truth value of a tensor with several elements is ambiguous: use any() or all()")
        return bool(self.item())

    def __len__(self) -> int:
        if not self._raw.ndim:
            raise TypeError("a 0-d tensor has no len()")
        return len(self._array)

    def __repr__(self) -> str:
        return printing.shown(self)

    def __format__(self, how: str) -> str:
        if not self._raw.ndim:
            return format(self.item(), how)
        if how:
            raise TypeError("only a 0-d tensor can be formatted with a format specification")
        return repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only leaf tensors can be deep-copied; use clone() or detach() for others")
        copy = memo[id(self)] = Tensor(self._array.copy(), self._requires)
        copy.__class__ = type(self)
        events.report("born", copy)
        if self._grad is not None:
            copy._grad = self._grad.__deepcopy__(memo)
        return copy

    def __getattr__(self, name: str) -> Any:
        """A declared operation of `torch.special` as a method."""
        primitive = None if name.startswith("_") else addresses().get(f"torch.special.{name}")
        if primitive is not None and not primitive.static:
            return partial(primitive, self)
        hint = advice("", name, dir(type(self)))
        raise AttributeError(f"gradcli's tensors have no {name!r}{hint}", name=name, obj=None)


Tensor.__module__ = "torch"
