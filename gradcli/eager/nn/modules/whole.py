"""A change goes in, it is made to a module and to all below it: training, formats, gradients; knows no forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from gradcli.eager import dtypes
from gradcli.eager.factory import empty
from gradcli.eager.modes import no_grad
from gradcli.eager.nn.modules.tree import Tree
from gradcli.eager.nn.parameter import is_lazy
from gradcli.eager.state import warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.nn.modules.module import Module
    from gradcli.eager.tensor import Tensor


class Whole(Tree):
    """What is done to a whole tree of modules at once."""

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call a function on every module, those below first."""
        done: list[Any] = []
        stack: list[tuple[Any, bool]] = [(self, False)]
        while stack:
            module, ready = stack.pop()
            if ready:
                done.append(module)
                continue
            stack.append((module, True))
            stack.extend((one, False) for one in reversed(list(module.children())))
        for module in done:
            fn(module)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch to training (dropout drops), or with False to evaluation. ValueError unless `mode` is a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:  # allowed: PyTorch's name for a mode of layers, no text is run
        """Switch to evaluation: dropout lets everything through."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter, or fill them with zeros."""
        for parameter in self.parameters():
            clear(parameter, set_to_none)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Change the format of all floats in place, and the device; the parameters stay the same objects.

        TypeError for a format without fractions, UserWarning for a complex one, RuntimeError for an unknown device.
        """
        wanted = dtypes.meant(
            kwargs.get("dtype", next((one for one in map(dtypes.meant, args) if _formats(one)), None))
        )
        if wanted is not None and wanted.kind < 2:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )
        if wanted is not None and wanted.kind == 3:
            warn("some modules do not work as expected with complex parameters", UserWarning)
        others = [one for one in args if not _formats(dtypes.meant(one))]
        elsewhere = {name: one for name, one in kwargs.items() if name != "dtype"}

        def moved(x: Tensor) -> Any:
            return x.to(*args, **kwargs) if x.dtype.kind >= 2 else x.to(*others, **elsewhere)

        return self._apply(moved)

    def _apply(self, function: Callable[[Tensor], Any]) -> Self:
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    if is_lazy(parameter):
                        _retype(parameter, function)
                    elif parameter is not None:
                        parameter._array = function(parameter.detach())._array
                        if parameter._grad is not None:
                            parameter._grad = function(parameter._grad)
                for name, tensor in module._buffers.items():
                    if is_lazy(tensor):
                        _retype(tensor, function)
                    elif tensor is not None:
                        module._buffers[name] = function(tensor)
        return self

    def type(self, dst_type: Any) -> Self:
        """All parameters and buffers in a format, whole numbers too."""
        return self._apply(lambda x: x.type(dst_type))

    def float(self) -> Self:
        """All floats as float32."""
        return self._floats(dtypes.float32)

    def double(self) -> Self:
        """All floats as float64."""
        return self._floats(dtypes.float64)

    def half(self) -> Self:
        """All floats as float16."""
        return self._floats(dtypes.float16)

    def _floats(self, kind: dtypes.dtype) -> Self:
        return self._apply(lambda x: x.to(kind) if x.dtype.is_floating_point else x)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """The module on another device; the entries are those that it has."""
        return self.to(device)

    def cuda(self, device: Any = None) -> Self:
        """The module on a GPU. AssertionError where there is none."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Self:
        """The module itself: everything lives on the processor."""
        return self

    def share_memory(self) -> Self:
        """The module itself: tensors of one process share their memory anyway."""
        return self


def _retype(x: Any, function: Callable[[Tensor], Any]) -> None:
    """Give what has no shape yet the dtype that a function gives to tensors."""
    x._kind = function(empty(0, dtype=x.dtype)).dtype


def _formats(x: Any) -> bool:
    return isinstance(x, dtypes.dtype)


def clear(x: Tensor, set_to_none: bool) -> None:
    """Forget a gradient, or fill it with zeros, without its history."""
    if x._grad is None:
        return
    if set_to_none:
        x.grad = None
    else:
        if x._grad.grad_fn is not None:
            x._grad.detach_()
        else:
            x._grad.requires_grad_(False)
        x._grad.zero_()
