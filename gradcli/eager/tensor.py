"""The tensor: an array with `requires_grad`, `grad_fn`, `.grad` and a version; computes nothing itself.

Operators come from `Operand`, functions and methods from the modules beside this one; every operation ends in
`dispatch`. Views and `detach()` share memory and the version counter.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import did_you_mean
from gradcli.eager import dtypes
from gradcli.eager.hooks import Handle
from gradcli.eager.state import Place, state
from gradcli.graph.operand import Operand
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable

    from gradcli.eager.nodes import AccumulateGrad, Node
    from gradcli.graph.primitive import Primitive

    Edge = tuple[Node, int]


class Size(tuple[int, ...]):
    """A shape, printed as PyTorch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of entries."""
        return int(np.prod(self, dtype=np.int64))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Counter:
    """How often a piece of memory was changed in place, and where the last time."""

    __slots__ = ("place", "value")

    def __init__(self) -> None:
        self.value = 0
        self.place: Place = None

    def bump(self, place: Place) -> None:
        """Count one more change."""
        self.value += 1
        self.place = place


class Tensor(Operand):
    """An array that remembers how it was computed, if it requires a gradient."""

    __array_priority__ = 1000
    # rare state: the class holds the defaults, so a plain tensor pays nothing for it
    _edge: Edge | None = None
    _grad: Tensor | None = None
    _base: Tensor | None = None
    _path: tuple[Any, ...] = ()
    _made = ""  # how a view was made, where that forbids changing it in place: "no_grad" or "several"
    _seen = 0  # of a view: the version of the memory that its own history belongs to
    _hooks: dict[int, Any] | None = None
    _post_hooks: dict[int, Any] | None = None
    _retains = False
    _accumulator: weakref.ref[AccumulateGrad] | None = None

    def __init__(self, array: Any, requires_grad: bool = False, counter: Counter | None = None) -> None:
        self._array = array if type(array) is np.ndarray else np.asarray(array)
        self._requires = requires_grad
        self._counter = Counter() if counter is None else counter
        self._inference = state.inference

    # --- as an operand of rules and operators -----------------------------------------------------------

    def bind(self, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
        from gradcli.eager.dispatch import apply

        return apply(primitive, xs, params)

    def named(self, name: str) -> Primitive:
        return catalogue()[name]

    @property
    def shape(self) -> Size:
        return Size(self._array.shape)

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.dtype:
        """The format of its entries."""
        return dtypes.of(self._array.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def device(self) -> str:
        """Where it lives: always the processor."""
        return "cpu"

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self._requires or (self._base is not None and self._base._requires)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not self.is_leaf:
            if value:
                return
            raise RuntimeError(
                "requires_grad can be changed only on leaf tensors; use detach() to get one that does not require grad"
            )
        if value and not self.dtype.is_floating_point:
            raise RuntimeError(f"only tensors of floating point dtype can require gradients, and this is {self.dtype}")
        if value and self._inference and not state.inference:
            raise RuntimeError("an inference tensor cannot require grad outside inference mode; clone() it first")
        self._requires = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`; RuntimeError for formats without gradients."""
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
        return self._counter.value

    def _current_edge(self) -> Edge | None:
        self._renew()
        return self._edge

    def _renew(self) -> None:
        """Take over the history of the base where the memory has been changed in place."""
        if self._base is not None and self._counter.value != self._seen and self._base._requires:
            from gradcli.eager.inplace import renew

            renew(self)

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

    # --- .grad --------------------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """What backward has added up so far; UserWarning for a tensor that does not keep it."""
        if self._grad is None and not self.is_leaf and not self._retains:
            warnings.warn(
                "the .grad of a tensor that is not a leaf is not filled by backward(); call retain_grad() on it first, "
                "or look at the leaf",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

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

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` made it keep its gradient."""
        return self._retains

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf; RuntimeError where no gradient will come."""
        from gradcli.eager.engine import retain

        retain(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call `hook(grad)` when the gradient has arrived; what it returns replaces it."""
        from gradcli.eager.engine import hook_on

        return hook_on(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(leaf)` after backward has added to `.grad`; RuntimeError for a tensor that is not a leaf."""
        if not self.is_leaf or not self._requires:
            raise RuntimeError("post accumulate grad hooks belong to leaf tensors that require grad")
        if self._post_hooks is None:
            self._post_hooks = {}
        return Handle(self._post_hooks, hook)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add the gradient of this tensor into the `.grad` of the leaves."""
        from gradcli.eager.engine import backward

        backward(self, gradient, retain_graph, create_graph, inputs)

    # --- out of tensors -------------------------------------------------------------------------------------

    def item(self) -> Any:
        """The only entry as a Python number; RuntimeError for several."""
        if self._array.size != 1:
            raise RuntimeError(f"a tensor with {self._array.size} elements cannot be converted to a Scalar")
        return self._array.reshape(-1)[0].item()

    def tolist(self) -> Any:
        """The entries as nested lists, or a number."""
        return self._array.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The array itself; RuntimeError for a tensor that requires grad: `.detach().numpy()`."""
        if self.requires_grad and not force:
            raise RuntimeError("numpy() on a tensor that requires grad would lose its history; use detach().numpy()")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def detach(self) -> Tensor:
        """The same memory and version without the history."""
        found = Tensor(self._array, False, self._counter)
        found._inference = self._inference
        return found

    @property
    def data(self) -> Tensor:
        """The same memory without the history and with a version of its own: changes are not noticed."""
        return Tensor(self._array)

    def data_ptr(self) -> int:
        """The address of the first entry."""
        return int(self._array.__array_interface__["data"][0])

    def __float__(self) -> float:
        return float(self._one("float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _one(self, what: str) -> Any:
        if self._array.size != 1:
            raise ValueError(f"only one element tensors can be converted to {what}, and this has {self._array.size}")
        return self.item()

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise RuntimeError("the truth value of a tensor with several elements is ambiguous: use any() or all()")
        return bool(self.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a 0-d tensor has no len()")
        return len(self._array)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        from gradcli.eager.text import shown

        return shown(self)

    def __format__(self, how: str) -> str:
        if not self._array.ndim:
            return format(self.item(), how)
        if how:
            raise TypeError("only a 0-d tensor can be formatted with a format specification")
        return repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only leaf tensors can be deep-copied; use clone() or detach() for others")
        found = Tensor(self._array.copy(), self._requires)
        memo[id(self)] = found
        if self._grad is not None:
            found._grad = self._grad.__deepcopy__(memo)
        return found

    def __getattr__(self, name: str) -> Any:
        meant = did_you_mean(name, dir(type(self))) if not name.startswith("__") else None
        hint = f"; the nearest that exists is {meant}" if meant else ""
        raise AttributeError(f"gradcli's tensors have no {name!r}{hint}", name=name, obj=None)


Tensor.__module__ = "torch"
