"""Sizes go in, layers that put a frame around rows and images come out; they call `functional.pad`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager.nn import functional
from gradcli.eager.nn.functional.windows import spread
from gradcli.eager.nn.modules.module import Module

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class _Pad(Module):
    """A frame: (left, right, top, bottom), or one width for all; `axes` says how many axes it goes around."""

    axes: ClassVar[int] = 0
    mode: ClassVar[str] = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = spread(padding, 2 * self.axes, "padding")

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with its frame."""
        return functional.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_Pad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding)
        self.value = 0.0


class ConstantPad1d(_ConstantPad):
    """A frame of one number around the last axis."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """A frame of one number around images."""

    axes = 2


class ZeroPad1d(_ZeroPad):
    """A frame of zeros around the last axis."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """A frame of zeros around images."""

    axes = 2


class ReflectionPad1d(_Pad):
    """A frame that turns round at both ends of rows."""

    axes, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """A frame that turns round at the edges of images."""

    axes, mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """A frame that repeats both ends of rows."""

    axes, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """A frame that repeats the edges of images."""

    axes, mode = 2, "replicate"


class CircularPad1d(_Pad):
    """A frame that goes on from the other end of rows."""

    axes, mode = 1, "circular"


class CircularPad2d(_Pad):
    """A frame that goes on from the other side of images."""

    axes, mode = 2, "circular"
