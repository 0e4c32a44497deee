"""Layers that take the size of their input from the first call, and are ordinary layers from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager.nn._module import Module
from gradcli.eager.nn.modules import conv, linear, normalization
from gradcli.eager.nn.parameter import UninitializedBuffer, UninitializedParameter, UninitializedTensor


class _Lazy(Module):
    """A layer made without `size`, the size of its input; its parameters have no shape until it is called.

    >>> layer = torch.nn.LazyLinear(2)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(torch.ones(1, 3)).shape, layer
    (torch.Size([1, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: type[Module]
    size: str
    dim: int  # of the input, which has this size

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, *args, **kwargs)  # type: ignore[call-arg]
        self._options = (args, kwargs)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = UninitializedParameter(parameter.dtype, True)
        for name, buffer in self._buffers.items():
            if buffer is not None and buffer.ndim:
                self._buffers[name] = UninitializedBuffer(buffer.dtype)

    def _waiting(self) -> dict[str, UninitializedTensor]:
        tensors = {**self._parameters, **self._buffers}
        return {name: x for name, x in tensors.items() if isinstance(x, UninitializedTensor)}

    def has_uninitialized_params(self) -> bool:
        """Whether parameters or buffers have no shape yet."""
        return bool(self._waiting())

    def reset_parameters(self) -> None:
        """Nothing, until there are entries to draw."""

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and buffers the shapes and values of a new layer for this input."""
        args, kwargs = self._options
        waiting = self._waiting()
        if not waiting:
            return
        kwargs["dtype"] = next(iter(waiting.values())).dtype
        new: Any = self.cls_to_become(self._size_of(input), *args, **kwargs)  # type: ignore[call-arg]
        for name, x in waiting.items():
            x._fill(getattr(new, name)._raw)
        object.__setattr__(self, self.size, getattr(new, self.size))

    def _size_of(self, input: Tensor) -> int:
        if self.dim < -1 and input.ndim not in (-self.dim, 1 - self.dim):
            raise RuntimeError(f"Expected {-self.dim}D or {1 - self.dim}D input, but got size {list(input.shape)}")
        return int(input.shape[self.dim])

    def _apply_here(self, function: Callable[[Tensor], Any]) -> None:
        for x in self._waiting().values():
            x._dtype = function(Tensor(x._dtype.np.type(0))).dtype

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args[:1], **({} if args else {"input": kwargs["input"]}))
        del self._options
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*args, **kwargs)


def _lazy(layer: type[Module], size: str, dim: int) -> Any:
    """`layer` whose size of the input is that of the first one."""
    name, doc = f"Lazy{layer.__name__}", f"`{layer.__name__}` whose `{size}` are those of the first input."
    body = {"__module__": __name__, "__qualname__": name, "__doc__": doc, "cls_to_become": layer}
    return type(name, (_Lazy, layer), {**body, "size": size, "dim": dim})


LazyLinear = _lazy(linear.Linear, "in_features", -1)
LazyConv1d = _lazy(conv.Conv1d, "in_channels", -2)
LazyConv2d = _lazy(conv.Conv2d, "in_channels", -3)
LazyConv3d = _lazy(conv.Conv3d, "in_channels", -4)
LazyConvTranspose1d = _lazy(conv.ConvTranspose1d, "in_channels", -2)
LazyConvTranspose2d = _lazy(conv.ConvTranspose2d, "in_channels", -3)
LazyBatchNorm1d = _lazy(normalization.BatchNorm1d, "num_features", 1)
LazyBatchNorm2d = _lazy(normalization.BatchNorm2d, "num_features", 1)
LazyBatchNorm3d = _lazy(normalization.BatchNorm3d, "num_features", 1)
