"""Attributes go in, a tree of parameters, buffers and modules comes out, with one call; computes nothing itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from gradcli.eager.hooks import Handle
from gradcli.eager.nn.modules.hooking import BackwardHooks
from gradcli.eager.nn.modules.saving import load, save
from gradcli.eager.nn.modules.whole import Whole
from gradcli.eager.nn.parameter import Buffer, Parameter
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TABLES = ("_parameters", "_buffers", "_modules")


class Module(Whole):
    """Base of layers and models. A subclass calls `super().__init__()`, assigns its parts, and defines `forward`.

    >>> import gradcli.eager as torch
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> model(torch.ones(2))
    tensor([2., 2.], grad_fn=<MulBackward0>)
    >>> [name for name, _ in model.named_parameters()]
    ['factor']
    """

    training: bool

    def __init__(self) -> None:
        for name, value in {
            "training": True,
            "_parameters": {},
            "_buffers": {},
            "_non_persistent": set(),
            "_modules": {},
            "_forward_pre_hooks": OrderedDict(),
            "_forward_hooks": OrderedDict(),
            "_backward_hooks": OrderedDict(),
            "_backward_pre_hooks": OrderedDict(),
        }.items():
            object.__setattr__(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes; written by the subclass, NotImplementedError here."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            if with_kwargs:
                answer = hook(self, args, kwargs)
                if answer is not None:
                    args, kwargs = answer
            else:
                answer = hook(self, args)
                if answer is not None:
                    args = answer if isinstance(answer, tuple) else (answer,)
        around = None
        if self._backward_hooks or self._backward_pre_hooks:
            around = BackwardHooks(self, list(self._backward_hooks.values()), list(self._backward_pre_hooks.values()))
            args = around.around_inputs(args)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            answer = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if answer is not None:
                result = answer
        return result if around is None else around.around_outputs(result)

    # --- hooks --------------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call `hook(module, args)` before each call; what it returns replaces the arguments."""
        return _hooked(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after each call; what it returns replaces the output."""
        return _hooked(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` in backward; what it returns replaces grad_input."""
        return _hooked(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` in backward, first; what it returns replaces grad_output."""
        return _hooked(self._backward_pre_hooks, hook, prepend)

    # --- attributes ---------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """List a parameter under a name, or None to reserve the name."""
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign {type(param).__name__} as parameter {name!r}: an nn.Parameter is needed")
        if param is not None and not param.is_leaf:
            raise ValueError(f"parameter {name!r} must be a leaf: it was computed, so it could not be trained")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """List a tensor that belongs to the state but is not trained."""
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign {type(tensor).__name__} as buffer {name!r}: a tensor is needed")
        self._buffers[name] = tensor
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """List a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, what: str, table: Mapping[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"the name of a {what} is a string, not {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in _TABLES:
            if table in own and name in own[table]:
                return own[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if isinstance(value, Parameter):
            self._assign(name, value, "parameter", self.register_parameter)
        elif name in tables.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign {type(value).__name__} as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self._parameters[name] = None
        elif isinstance(value, Module):
            self._assign(name, value, "module", self.add_module)
        elif name in tables.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign {type(value).__name__} as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self._assign(name, value, "buffer", self.register_buffer)
            if not value.persistent:
                self._non_persistent.add(name)
        elif name in tables.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign {type(value).__name__} as buffer '{name}' (torch.Tensor or None expected)"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _assign(self, name: str, value: Any, what: str, register: Callable[[str, Any], None]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what}s before Module.__init__() call")
        self.__dict__.pop(name, None)
        for table in _TABLES:
            self.__dict__[table].pop(name, None) if table != _table_of(what) else None
        register(name, value)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    # --- state ----------------------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names; they share memory with the module."""
        return save(self, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy a state into the module. RuntimeError names the keys that are missing, unexpected or of other sizes."""
        return load(self, state_dict, strict, assign)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Nothing has to be done: `torch.compile` changes nothing either."""

    # --- text ---------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the parentheses of the printed module."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [f"({name}): " + indented(repr(module)) for name, module in self._modules.items()]
        if not below and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        inner = "\n  ".join([*lines, *below])
        return f"{self._get_name()}(\n  {inner}\n)" if inner else f"{self._get_name()}()"


def indented(text: str) -> str:
    """All lines but the first moved to the right by two."""
    return text.replace("\n", "\n  ")


def _hooked(table: Any, hook: Any, prepend: bool) -> Handle:
    handle = Handle(table, hook)
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _table_of(what: str) -> str:
    return f"_{what}s"
