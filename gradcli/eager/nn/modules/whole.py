"""A change goes in, it is made to a module and to all below it: training, formats, gradients; knows no forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from gradcli.eager import dtypes
from gradcli.eager.modes import no_grad
from gradcli.eager.nn.modules.tree import Tree

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

    def eval(self) -> Self:
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
        """Change the format of all floats in place; the parameters stay the same objects.

        RuntimeError for a device other than the processor, TypeError for a format without fractions.
        """
        wanted = kwargs.get("dtype", next((one for one in args if isinstance(one, dtypes.dtype)), None))
        if wanted is not None and not wanted.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got {wanted}")

        def moved(x: Tensor) -> Any:
            if not x.dtype.is_floating_point:
                return x.to(*[one for one in args if not isinstance(one, dtypes.dtype)])
            return x.to(*args, **kwargs)

        return self._apply(moved)

    def _apply(self, function: Callable[[Tensor], Any]) -> Self:
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    if parameter is not None:
                        parameter._array = function(parameter.detach())._array
                        if parameter._grad is not None:
                            parameter._grad = function(parameter._grad)
                for name, tensor in module._buffers.items():
                    if tensor is not None:
                        module._buffers[name] = function(tensor)
        return self

    def float(self) -> Self:
        """All floats as float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """All floats as float64."""
        return self.to(dtypes.float64)

    def cpu(self) -> Self:
        """The module itself: everything lives on the processor."""
        return self

    def share_memory(self) -> Self:
        """The module itself: tensors of one process share their memory anyway."""
        return self


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
