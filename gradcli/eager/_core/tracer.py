"""Stand-ins for tensors while a function is recorded: they have a shape and a dtype, and no entries.

`own.current` is None unless a function is being recorded. A stand-in refers to the node of the graph that computes it.
What reads its entries by any way that the recording does not see is a RuntimeError, never a wrong constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core.events import per_thread
from gradcli.eager._core.tensor import Tensor
from gradcli.graph.node import Node

# the recording that is going on in this thread; how many transforms of `func` are open: backward() is refused in them
own = per_thread(current=None, inside=0)
_SHARING = (np.may_share_memory, np.shares_memory)


def refused(what: str) -> RuntimeError:
    """The error for something that needs the entries of a stand-in."""
    return RuntimeError(
        f"{what} needs concrete entries, which tensors do not have while a function is recorded (vmap, record); "
        "compute with tensors only, and use torch.where instead of `if`"
    )


class Hidden:
    """The payload of a stand-in: shape, format and layout without entries."""

    __slots__ = ("like",)

    def __init__(self, like: Any) -> None:
        self.like = like

    def reshape(self, *shape: Any) -> Hidden:
        """The layout of another shape."""
        return Hidden(self.like.reshape(*shape))

    def __len__(self) -> int:
        return len(self.like)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise refused("a conversion to an array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise refused(ufunc.__name__)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _SHARING:
            return function(*[x.like if isinstance(x, Hidden) else x for x in args], **kwargs)
        raise refused(function.__name__)

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "flags", "base"):
            return getattr(self.like, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(f"{name}()")

    def __getitem__(self, index: Any) -> Any:
        raise refused("an entry")


class Traced(Tensor):
    """A tensor that stands for its values at every point of a recording."""

    _special = True  # operators take the long way, on which the recording stands
    _graph: Node

    def __init__(self, like: Any, graph: Node) -> None:
        self._raw = Hidden(like)
        self._node = self._count = None
        self._requires = False
        self._graph = graph

    def backward(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("backward() was called inside a transform: use func.grad or func.vjp there")

    def __bool__(self) -> bool:
        return bool(own.current.decided(self))

    def detach(self) -> Tensor:
        stopped: Tensor = own.current.stopped(self)
        return stopped

    def __repr__(self) -> str:
        return f"Traced({self.dtype}{list(self.shape)})"

    def __format__(self, how: str) -> str:
        return repr(self)


def _refusing(what: str) -> Any:
    def refuse(self: Traced, *args: Any, **kwargs: Any) -> Any:
        raise refused(what)

    return refuse


for _name in ("requires_grad_", "item", "tolist", "numpy", "__float__", "__int__", "__deepcopy__"):
    setattr(Traced, _name, _refusing(f"{_name.removeprefix('__').removesuffix('__')}()"))
Traced.__array__ = _refusing("a conversion to an array")  # type: ignore[method-assign]
Traced.__index__ = _refusing("the use as an index")  # type: ignore[method-assign]


def known(x: Tensor) -> Any:
    """The entries of a tensor as an array; None for a stand-in."""
    return None if type(x) is Traced else x._array


def traced(xs: tuple[Any, ...]) -> bool:
    """Whether a function is recorded, and a stand-in is among the operands."""
    return own.current is not None and any(type(x) is Traced for x in xs)
