"""Layers that learn the size of their input from the first call, and are ordinary layers from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.nn.modules import convolution, layers, norms
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


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
        return int(input.shape[1])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args[:1], **({} if args else {"input": kwargs["input"]}))
        del self._options
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*args, **kwargs)


class LazyLinear(_Lazy, layers.Linear):
    """`Linear` whose `in_features` is the last axis of the first input."""

    cls_to_become, size = layers.Linear, "in_features"

    def _size_of(self, input: Tensor) -> int:
        return int(input.shape[-1])


class _LazyConvolution(_Lazy, convolution._Convolution):
    size = "in_channels"

    def _size_of(self, input: Tensor) -> int:
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise RuntimeError(
                f"Expected {self.axes + 1}D (unbatched) or {self.axes + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {list(input.shape)}"
            )
        return int(input.shape[-self.axes - 1])


class LazyConv1d(_LazyConvolution, convolution.Conv1d):
    """`Conv1d` whose `in_channels` are those of the first input."""

    cls_to_become = convolution.Conv1d


class LazyConv2d(_LazyConvolution, convolution.Conv2d):
    """`Conv2d` whose `in_channels` are those of the first input."""

    cls_to_become = convolution.Conv2d


class LazyConv3d(_LazyConvolution, convolution.Conv3d):
    """`Conv3d` whose `in_channels` are those of the first input."""

    cls_to_become = convolution.Conv3d


class LazyConvTranspose1d(_LazyConvolution, convolution.ConvTranspose1d):
    """`ConvTranspose1d` whose `in_channels` are those of the first input."""

    cls_to_become = convolution.ConvTranspose1d


class LazyConvTranspose2d(_LazyConvolution, convolution.ConvTranspose2d):
    """`ConvTranspose2d` whose `in_channels` are those of the first input."""

    cls_to_become = convolution.ConvTranspose2d


class LazyBatchNorm1d(_Lazy, norms.BatchNorm1d):
    """`BatchNorm1d` whose `num_features` are the channels of the first input."""

    cls_to_become, size = norms.BatchNorm1d, "num_features"


class LazyBatchNorm2d(_Lazy, norms.BatchNorm2d):
    """`BatchNorm2d` whose `num_features` are the channels of the first input."""

    cls_to_become, size = norms.BatchNorm2d, "num_features"


class LazyBatchNorm3d(_Lazy, norms.BatchNorm3d):
    """`BatchNorm3d` whose `num_features` are the channels of the first input."""

    cls_to_become, size = norms.BatchNorm3d, "num_features"
