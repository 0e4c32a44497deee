"""Watches `apply` of every subclass of `torch.autograd.Function`, and custom operations with `register_autograd`."""

from __future__ import annotations

import inspect
from functools import wraps

from gradcli.audit.watching import recorder
from gradcli.audit.watching.recorder import HandWrittenGradient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def watch(module: ModuleType) -> None:
    """Replace `Function.apply`, or `CustomOpDef.__call__`."""
    if hasattr(module, "CustomOpDef"):
        watch_operations(module)
        return
    torch = module.torch  # not yet whole
    function = module.Function
    apply = function.apply.__func__
    rules = recorder.state.rules

    def watched(cls: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        gradient = rules[cls] if cls in rules else first_seen(cls)
        if gradient is not None and recorder.watching():
            if not torch.is_grad_enabled() or not any(getattr(arg, "requires_grad", False) for arg in args):
                gradient.untracked += 1
            elif recorder.due(gradient):
                keep(gradient, cls, args, options)
        return apply(cls, *args, **options)

    watched.__name__, watched.__qualname__, watched.__doc__ = apply.__name__, apply.__qualname__, apply.__doc__
    function.apply = classmethod(watched)


def watch_operations(module: ModuleType) -> None:
    """Replace the call of a custom operation. One that is called as `torch.ops.NAMESPACE.NAME` is not seen."""
    definition = module.CustomOpDef
    call = definition.__call__
    rules = recorder.state.rules

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        backward = getattr(self, "_backward_fn", None)
        if backward is not None and recorder.watching():
            with recorder.guarded():
                if backward not in rules:
                    wanted = recorder.wanted(backward.__module__)
                    rules[backward] = entered(str(self._qualname), backward) if wanted else None
                gradient = rules[backward]
                if gradient is not None and not any(getattr(arg, "requires_grad", False) for arg in args):
                    gradient.untracked += 1
                elif gradient is not None and recorder.due(gradient):
                    keep(gradient, self, args, options)
        return call(self, *args, **options)

    definition.__call__ = watched


def entered(name: str, backward: Any, forward: Any = None) -> HandWrittenGradient:
    """A rule by its name, at the line of its backward."""
    code = getattr(inspect.unwrap(backward), "__code__", None) or forward.__code__
    gradient = HandWrittenGradient("PyTorch", "backward", name, code.co_filename, code.co_firstlineno, ())
    gradient.caller = recorder.caller_of("torch")
    return recorder.known(gradient)


def keep(gradient: HandWrittenGradient, cls: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Keep a call that is due, unless its tensors lie where a copy of the process cannot read them."""
    away = next((str(arg.device) for arg in args if hasattr(arg, "device") and str(arg.device) != "cpu"), None)
    if away is not None:
        with recorder.guarded():
            recorder.skipped(gradient, f"its tensors are on {away}, which a copy of the process cannot use")
        return
    recorder.keep_copy(gradient, args, lambda: subject(cls, args, options))


def first_seen(cls: Any) -> HandWrittenGradient | None:
    """A Function that is called for the first time; None where it is left alone."""
    if not recorder.watching():
        return None
    gradient = None
    with recorder.guarded():
        if recorder.wanted(cls.__module__):
            backward = getattr(cls, "backward", cls.forward)
            gradient = entered(f"{cls.__module__}.{cls.__qualname__}", backward, cls.forward)
    recorder.state.rules[cls] = gradient
    return gradient


def subject(cls: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
    """A Function as the function of its arguments, and those that required a gradient as what moves."""
    import torch

    torch.set_default_dtype(torch.float64)
    point = tuple(arg.detach().clone() if isinstance(arg, torch.Tensor) else arg for arg in args)
    point = tuple(value.double() if is_float(value) else value for value in point)
    is_class = isinstance(cls, type)
    given_names = [] if is_class else list(inspect.signature(cls._init_fn).parameters)
    names = parameter_names(cls, len(args)) if is_class else given_names[: len(args)]
    moving = [name for name, arg in zip(names, args, strict=True) if getattr(arg, "requires_grad", False)]
    apply = cls.apply if is_class else cls

    @wraps(apply)  # by which the checks see that it is a rule
    def function(*moved: Any) -> Any:
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):
            # a Function that works in place refuses a leaf
            return apply(*(x.clone() if isinstance(x, torch.Tensor) else x for x in moved), **options)

    return function, {"wrt": moving, "names": names}, point


def parameter_names(cls: Any, count: int) -> list[str]:
    """The names that `forward` has for its arguments; x0, x1, ... where it takes any number of them."""
    parameters = list(inspect.signature(cls.forward).parameters.values())
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return [f"x{i}" for i in range(count)]
    names = [parameter.name for parameter in parameters]
    names = names[1:] if len(names) > count else names  # the context
    return names if len(names) == count else [f"x{i}" for i in range(count)]


def is_float(value: Any) -> bool:
    """Whether a value is a tensor of real numbers."""
    return hasattr(value, "is_floating_point") and bool(value.is_floating_point())
