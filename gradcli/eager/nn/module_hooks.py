"""Backward hooks of modules: nodes around a call that run them.

Inputs and outputs of the module pass through one node each, as in PyTorch: what arrives behind the output node are
the gradients of the outputs, what leaves the input node are those of the inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import is_grad_enabled, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager.autograd.function import Function

if TYPE_CHECKING:
    from collections.abc import Callable


class BackwardHookFunction(Function):
    """Tensors as they are, with a node of their own."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """The same memory."""
        return tuple([x.detach() for x in args])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The same gradients."""
        return grads


class BackwardHooks:
    """The hooks of one call of one module."""

    def __init__(self, module: Any, hooks: list[Callable[..., Any]], prehooks: list[Callable[..., Any]]) -> None:
        self.module = module
        self.hooks = hooks
        self.prehooks = prehooks
        self.grad_outputs: Any = None
        self.inputs: list[int] | None = None
        self.count = 0

    def around_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, those that require grad behind a node that calls the hooks."""
        self.count = len(args)
        found, node = _behind(args)
        if node is not None:
            self.inputs = [i for i, x in enumerate(args) if isinstance(x, Tensor)]

            def fired(grads: tuple[Any, ...], _: tuple[Any, ...]) -> Any:
                if self.grad_outputs is None:
                    return None
                full: list[Any] = [None] * self.count
                places = self.inputs or []
                for place, one in zip(places, grads, strict=False):
                    full[place] = one
                changed = self._call(tuple(full))
                self.grad_outputs = None
                return None if changed is None else tuple([changed[place] for place in places])

            node.register_hook(fired)
        return found

    def _call(self, grads: tuple[Any, ...]) -> Any:
        result = None
        for hook in self.hooks:
            answer = hook(self.module, grads if result is None else result, self.grad_outputs)
            if answer is None:
                continue
            result = _gradients(answer, len(grads), "a backward hook", "inputs")
        return result

    def around_outputs(self, result: Any) -> Any:
        """The result, its tensors behind a node that notes their gradients."""
        if not isinstance(result, (Tensor, tuple)):
            warn(
                "backward hooks are called for a module whose output is a tensor or a tuple of tensors, and this is "
                f"{type(result)}",
                UserWarning,
            )
        outputs = result if isinstance(result, tuple) else (result,)
        found, node = _behind(outputs)
        if node is not None:
            places = [i for i, x in enumerate(outputs) if isinstance(x, Tensor)]

            def noted(grads: tuple[Any, ...]) -> Any:
                full: list[Any] = [None] * len(outputs)
                for place, one in zip(places, grads, strict=True):
                    full[place] = one
                self.grad_outputs = tuple(full)
                for hook in self.prehooks:
                    answer = hook(self.module, self.grad_outputs)
                    if answer is not None:
                        self.grad_outputs = _gradients(answer, len(outputs), "a backward pre-hook", "outputs")
                passed = tuple([self.grad_outputs[place] for place in places])
                if self.inputs is None:
                    if self.hooks:
                        warn(
                            "a full backward hook fires for the outputs only, because no input of the module requires "
                            "grad",
                            UserWarning,
                        )
                    self._call((None,) * self.count)
                    self.grad_outputs = None
                return passed

            node.register_prehook(noted)
        return found if isinstance(result, tuple) else found[0]


def _gradients(answer: Any, count: int, what: str, where: str) -> tuple[Any, ...]:
    """What a hook returned; TypeError for what is no tuple or list, RuntimeError for another number of gradients."""
    if not isinstance(answer, (tuple, list)):
        error = RuntimeError if isinstance(answer, Tensor) else TypeError
        raise error(f"{what} returned {type(answer).__name__} where a tuple or None is expected")
    if len(answer) != count:
        raise RuntimeError(f"{what} returned {len(answer)} gradients, but the {where} are {count}")
    return tuple(answer)


def _behind(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The arguments with their tensors behind one node, and that node; None where nothing requires grad."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    if not is_grad_enabled() or not any(x.requires_grad for x in tensors):
        return args, None
    waiting = iter(BackwardHookFunction.apply(*tensors))
    found = tuple([next(waiting) if isinstance(x, Tensor) else x for x in args])
    if type(args) is not tuple:  # a named tuple stays one
        found = type(args)(*found)
    return found, next(x.grad_fn for x in found if isinstance(x, Tensor) and x.grad_fn is not None)
