"""Layers that learn the size of their input from the first call, and are ordinary layers from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.nn._module import Module
from gradcli.eager.nn.modules import conv, linear, normalization
from gradcli.eager.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

if TYPE_CHECKING:
    from gradcli.eager._core.tensor import Tensor


class _Lazy(Module):
    """A layer made without the size of its input, `size`; its parameters have no shape until it is called.

    >>> import gradcli.eager as torch
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
        for name, value in self._parameters.items():
            if value is not None:
                self._parameters[name] = UninitializedParameter(dtype=value.dtype)
        for name, tensor in self._buffers.items():
            if tensor is not None and tensor.ndim:
                self._buffers[name] = UninitializedBuffer(dtype=tensor.dtype)

    def has_uninitialized_params(self) -> bool:
        """Whether parameters or buffers have no shape yet."""
        return any(is_lazy(x) for x in (*self._parameters.values(), *self._buffers.values()))

    def reset_parameters(self) -> None:
        """Start again from new random numbers, once there are any."""
        if getattr(self, self.size):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and buffers the shapes and values of a new layer for this input."""
        if self.has_uninitialized_params():
            args, kwargs = self._options
            waiting: list[Any] = [*self._parameters.values(), *self._buffers.values()]
            kinds = [x.dtype for x in waiting if is_lazy(x)]
            fresh = self.cls_to_become(self._size_of(input), *args, **{**kwargs, "dtype": kinds[0]})  # type: ignore[call-arg]
            for own, new in ((self._parameters, fresh._parameters), (self._buffers, fresh._buffers)):
                for name, x in own.items():
                    if is_lazy(x):
                        x._fill(new[name]._raw)  # type: ignore[union-attr]
            object.__setattr__(self, self.size, getattr(fresh, self.size))
        elif self._parameters.get("weight") is not None:  # loaded from a state
            object.__setattr__(self, self.size, self._size_of(input))

    def _size_of(self, input: Tensor) -> int:
        """The size that the layer takes over from its input."""
        return int(input.shape[self.dim])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args[:1], **({} if args else {"input": kwargs["input"]}))
        del self._options
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*args, **kwargs)


class _LazyConv(_Lazy):
    def _size_of(self, input: Tensor) -> int:
        axes: int = self._axes
        if input.ndim not in (axes + 1, axes + 2):
            raise RuntimeError(
                f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {list(input.shape)}"
            )
        return super()._size_of(input)


def _lazy(layer: type[Module], size: str, dim: int, base: type[_Lazy] = _Lazy) -> Any:
    """`layer` whose size of the input is that of the first one."""
    name, doc = f"Lazy{layer.__name__}", f"`{layer.__name__}` whose `{size}` are those of the first input."
    body = {"__module__": __name__, "__qualname__": name, "__doc__": doc, "cls_to_become": layer}
    return type(name, (base, layer), {**body, "size": size, "dim": dim})


LazyLinear = _lazy(linear.Linear, "in_features", -1)
LazyConv1d = _lazy(conv.Conv1d, "in_channels", -2, _LazyConv)
LazyConv2d = _lazy(conv.Conv2d, "in_channels", -3, _LazyConv)
LazyConv3d = _lazy(conv.Conv3d, "in_channels", -4, _LazyConv)
LazyConvTranspose1d = _lazy(conv.ConvTranspose1d, "in_channels", -2, _LazyConv)
LazyConvTranspose2d = _lazy(conv.ConvTranspose2d, "in_channels", -3, _LazyConv)
LazyConvTranspose3d = _lazy(conv.ConvTranspose3d, "in_channels", -4, _LazyConv)
LazyBatchNorm1d = _lazy(normalization.BatchNorm1d, "num_features", 1)
LazyBatchNorm2d = _lazy(normalization.BatchNorm2d, "num_features", 1)
LazyBatchNorm3d = _lazy(normalization.BatchNorm3d, "num_features", 1)
