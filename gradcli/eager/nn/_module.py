"""Modules: trees of parameters, buffers and modules with one call; and those that hold others in order or by name.

Backward hooks are nodes around a call: inputs and outputs of the module pass through one node each, as in PyTorch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self

from gradcli.eager._core import dtypes, events
from gradcli.eager._core.modes import is_grad_enabled, no_grad, warn
from gradcli.eager._core.tensor import Handle, Tensor
from gradcli.eager.autograd.function import Function
from gradcli.eager.nn.parameter import Parameter, clear


class BackwardHookFunction(Function):
    """The identity on tensors, with a node of its own."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """The same memory."""
        return tuple([x.detach() for x in args])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The same gradients."""
        return grads


class BackwardHooks:
    """The backward hooks of one call of a module; `args` are its arguments, which pass through a node."""

    def __init__(self, module: Module, args: tuple[Any, ...]) -> None:
        self.module, self.hooks = module, list(module._backward_hooks.values())
        self.grad_outputs: Any = None
        self.args, self.node, self.places = _through_node(args)
        if self.node is not None:
            self.node.register_hook(self._at_inputs)

    def _at_inputs(self, grads: tuple[Any, ...], _: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None:
            return None
        replaced = self._call(_placed(grads, self.places, len(self.args)))
        return tuple([replaced[place] for place in self.places])

    def _call(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            answer = hook(self.module, grads, self.grad_outputs)
            if answer is not None:
                if not isinstance(answer, (tuple, list)) or len(answer) != len(grads):
                    raise RuntimeError(f"a backward hook must return None or a tuple of {len(grads)} gradients")
                grads = tuple(answer)
        self.grad_outputs = None
        return grads

    def around(self, result: Any) -> Any:
        """The result of the call, its tensors passed through a node that keeps their gradients for the hooks."""
        outputs = result if isinstance(result, tuple) else (result,)
        passed, node, places = _through_node(outputs)
        if node is None:
            return result

        def keep(grads: tuple[Any, ...]) -> None:
            self.grad_outputs = _placed(grads, places, len(outputs))
            if self.node is None:
                warn("a full backward hook fires for outputs only: no input of the module requires grad")
                self._call((None,) * len(self.args))

        node.register_prehook(keep)
        return passed if isinstance(result, tuple) else passed[0]


def _placed(grads: Sequence[Any], places: list[int], count: int) -> tuple[Any, ...]:
    """Gradients at their places among so many values, None elsewhere."""
    full = dict(zip(places, grads, strict=False))
    return tuple([full.get(i) for i in range(count)])


def _through_node(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, list[int]]:
    """Values, the tensors among them passed through one node; that node, None where nothing requires grad; places."""
    places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    if not is_grad_enabled() or not any(args[i].requires_grad for i in places):
        return args, None, places
    values = list(args)
    for i, x in zip(places, BackwardHookFunction.apply(*[args[i] for i in places]), strict=True):
        values[i] = x
    passed = tuple(values) if type(args) is tuple else type(args)(*values)  # a named tuple stays one
    return passed, next(x.grad_fn for x in values if isinstance(x, Tensor) and x.grad_fn is not None), places


class IncompatibleKeys(NamedTuple):
    """The keys that a state lacked, and those that nothing requested."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _floats(kind: dtypes.dtype) -> Callable[[Any], Any]:
    """The method that changes the format of all floats."""

    def method(self: Module) -> Module:
        return self._apply(lambda x: x.to(kind) if x.dtype.is_floating_point else x)

    method.__doc__ = f"All floats as {kind.name}."
    return method


class Module:
    """Base of layers and models. A subclass calls `super().__init__()`, assigns its parts, and defines `forward`.

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
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        own: dict[str, Any] = vars(self)
        own.update(training=True, _parameters={}, _buffers={}, _non_persistent=set(), _modules={})
        own |= {f"_{name}_hooks": OrderedDict() for name in ("forward_pre", "forward", "backward")}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes; written by the subclass, NotImplementedError here."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            answer = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if answer is not None and with_kwargs:
                args, kwargs = answer
            elif answer is not None:
                args = answer if isinstance(answer, tuple) else (answer,)
        backward = BackwardHooks(self, args) if self._backward_hooks else None
        args = args if backward is None else backward.args
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            answer = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = result if answer is None else answer
        return result if backward is None else backward.around(result)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args)` before each call; what it returns replaces the arguments.

        `with_kwargs`: it is `hook(module, args, kwargs)`, and returns both or None.
        """
        return Handle(self._forward_pre_hooks, (hook, with_kwargs))

    def register_forward_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args, output)` after each call; what it returns replaces the output.

        `with_kwargs`: it is `hook(module, args, kwargs, output)`.
        """
        return Handle(self._forward_hooks, (events.counted("register_forward_hook", self, hook), with_kwargs))

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, grad_input, grad_output)` in backward; what it returns replaces grad_input."""
        return Handle(self._backward_hooks, events.counted("register_full_backward_hook", self, hook))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """List a parameter under a name, or None to reserve the name."""
        self._register("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """List a tensor that belongs to the state but is not trained."""
        self._register("_buffers", name, tensor)
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """List a module under a name."""
        self._register("_modules", name, module)

    def _register(self, table: str, name: str, value: Any) -> None:
        kind, what, title = _TABLES[table]
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"the name of a {what} is a string, not {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"cannot assign {type(value).__name__} as {what} {name!r} ({title} or None expected)")
        if isinstance(value, Parameter) and not value.is_leaf:
            raise ValueError(f"parameter {name!r} must be a leaf: it was computed, so it could not be trained")
        self.__dict__[table][name] = value

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in _TABLES:
            if table in own and name in own[table]:
                return own[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        for table, (kind, _, _) in _TABLES.items():
            new = isinstance(value, kind) and table != "_buffers"  # a tensor becomes one by `register_buffer` only
            if new and "_parameters" in own:
                for other in (own, *[own[key] for key in _TABLES if key != table]):
                    other.pop(name, None)
            if new or name in own.get(table, ()):
                self._register(table, name, value)
                return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    # --- the tree ------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once, without their names."""
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        below: Any = self.named_modules(None, prefix, once) if recurse else [(prefix, self)]
        for path, module in below:
            for name, value in getattr(module, table).items():
                if value is None or id(value) in seen:
                    continue
                if once:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and those below, with their dotted names, each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and those below, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and those below, with their dotted names, each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and those below, each once."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name; AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            module, owner = getattr(module, name, None), module
            if not isinstance(module, Module):
                raise AttributeError(f"{type(owner).__name__} has no attribute `{name}` that is an nn.Module")
        return module

    # --- changes of the whole tree -------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call a function on every module, those below first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
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
        kinds = [dtypes.meant(arg) for arg in (*args, kwargs.get("dtype"))]
        wanted = next((kind for kind in kinds if isinstance(kind, dtypes.dtype)), None)
        if wanted is not None and wanted.kind < 2:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, not {wanted}")
        if wanted is not None and wanted.kind == 3:
            warn("some modules do not work as expected with complex parameters", UserWarning)
        others = [arg for arg, kind in zip(args, kinds, strict=False) if not isinstance(kind, dtypes.dtype)]
        elsewhere = {name: value for name, value in kwargs.items() if name != "dtype"}

        def moved(x: Tensor) -> Any:
            return x.to(*args, **kwargs) if x.dtype.kind >= 2 else x.to(*others, **elsewhere)

        return self._apply(moved)

    def _apply(self, function: Callable[[Tensor], Any]) -> Self:
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    if parameter is not None:
                        parameter.data = function(parameter.detach())
                        if parameter._grad is not None:
                            parameter._grad = function(parameter._grad)
                for name, tensor in module._buffers.items():
                    if tensor is not None:
                        module._buffers[name] = function(tensor)
        return self

    float, double, half = (_floats(dtypes.float32), _floats(dtypes.float64), _floats(dtypes.float16))

    def cuda(self, device: Any = None) -> Self:
        """The module on a GPU. AssertionError where there is none."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Self:
        """The module itself: everything lives on the processor."""
        return self

    def _state(self) -> Iterator[tuple[str, Module, str, Any]]:
        """Of each parameter and persistent buffer the dotted name, the module it belongs to, its own name, itself."""
        for path, module in self.named_modules(remove_duplicate=False):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module._non_persistent:
                    yield f"{path}.{name}" if path else name, module, name, value

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names; they share memory with the module."""
        return OrderedDict(
            (prefix + path, value if keep_vars else value.detach()) for path, _, _, value in self._state()
        )

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy a state into the module, or with `assign` put its tensors there.

        RuntimeError names the keys that are missing, unexpected or of other sizes.
        """
        wanted = {path: (module, name, value) for path, module, name, value in self._state()}
        missing = [path for path in wanted if path not in state_dict]
        unexpected = [path for path in state_dict if path not in wanted]
        problems = []
        for kind, paths in (("Missing", missing), ("Unexpected", unexpected)):
            if strict and paths:
                listed = ", ".join([f'"{path}"' for path in paths])
                problems.append(f"{kind} key(s) in state_dict: {listed}. ")
        with no_grad():
            for path, (owner, name, value) in wanted.items():
                if path not in state_dict:
                    continue
                new = state_dict[path]
                if not isinstance(new, Tensor):
                    problems.append(f'While copying the parameter named "{path}", a tensor was expected.')
                elif new.shape != value.shape:
                    problems.append(
                        f"size mismatch for {path}: copying a param with shape {new.shape} from checkpoint, the "
                        f"shape in current model is {value.shape}."
                    )
                elif not assign:
                    value.copy_(new)
                elif name in owner._parameters and not isinstance(new, Parameter):
                    setattr(owner, name, Parameter(new, value.requires_grad))
                else:
                    setattr(owner, name, new)
        if problems:
            text = "".join(f"\n\t{problem}" for problem in problems)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:{text}")
        return IncompatibleKeys(missing, unexpected)

    def extra_repr(self) -> str:
        """The text in the parentheses of the printed module."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        lines, below = self.extra_repr().splitlines(), [text.replace("\n", "\n  ") for text in self._shown_parts()]
        inner = "\n  ".join([*lines, *below])
        if below or len(lines) > 1:
            inner = f"\n  {inner}\n"
        return f"{self._get_name()}({inner})"

    def _shown_parts(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self._modules.items()]


# the tables of a module: the class of what stands in each, what messages call it, and the name of the class
_TABLES: dict[str, tuple[type[Any], str, str]] = {
    "_parameters": (Parameter, "parameter", "torch.nn.Parameter"),
    "_modules": (Module, "child module", "torch.nn.Module"),
    "_buffers": (Tensor, "buffer", "torch.Tensor"),
}


class _Holder(Module):
    """Modules or parameters, which stand in one of the tables of a module."""

    _table: ClassVar[str] = "_modules"

    @property
    def _held(self) -> dict[str, Any]:
        return self.__dict__[self._table]

    def _put(self, name: str, value: Any) -> None:
        """Hold a module or parameter under a name; among parameters, a plain tensor becomes one."""
        plain = self._table == "_parameters" and isinstance(value, Tensor) and not isinstance(value, Parameter)
        self._register(self._table, name, Parameter(value) if plain else value)

    def __len__(self) -> int:
        return len(self._held)

    def _sizes_shown(self, kind: Callable[[Any], str]) -> str:
        """The text of parameters: a line each, with a name of the dtype and the size."""
        rows = [(name, kind(x.dtype), "x".join(map(str, x.shape))) for name, x in self._held.items()]
        return "\n".join([f"  ({name}): Parameter containing: [{dtype} of size {size}]" for name, dtype, size in rows])


class _Listed(_Holder):
    """Modules or parameters in a row; their names are their positions."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._held.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part: Any = type(self).__new__(type(self))
            Module.__init__(part)
            return part.extend(list(self)[index])
        return list(self)[self._place(index)]

    def _place(self, index: Any) -> int:
        if not -len(self) <= int(index) < len(self):
            raise IndexError(f"index {index} is out of range")
        return int(index) % len(self)

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(str(self._place(index)), value)

    def __delitem__(self, index: Any) -> None:
        kept = list(self)
        del kept[index if isinstance(index, slice) else self._place(index)]
        self._held.clear()
        self.extend(kept)

    def append(self, value: Any) -> Self:
        """Put a module or parameter at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Put modules or parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend


class Sequential(_Listed):
    """Modules called one after the other.

    >>> Sequential(torch.nn.ReLU(), torch.nn.Flatten(0))(torch.tensor([[-1.0, 2.0]]))
    tensor([0., 2.])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        parts = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in parts:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        modules: dict[str, Any] = self._modules
        for module in modules.values():
            input = module(input)
        return input


class ModuleList(_Listed):
    """Modules in a list, all of which count as parts of their owner."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _shown_parts(self) -> list[str]:
        lines, start = [], 0
        for text, equal in groupby(map(repr, self)):
            count = len(list(equal))
            lines.append(f"({start}-{start + count - 1}): {count} x {text}" if count > 1 else f"({start}): {text}")
            start += count
        return lines


class ParameterList(_Listed):
    """Parameters in a list; plain tensors become parameters."""

    _table = "_parameters"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def extra_repr(self) -> str:
        return self._sizes_shown(str)


class _Named(_Holder, MutableMapping[str, Any]):
    """Modules or parameters by name."""

    __eq__, __hash__ = object.__eq__, object.__hash__  # modules are equal to themselves only

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        del self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def keys(self) -> Any:
        """The names."""
        return self._held.keys()


class ModuleDict(_Named):
    """Modules by name, all of which count as parts of their owner."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})


class ParameterDict(_Named):
    """Parameters by name; plain tensors become parameters."""

    _table = "_parameters"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def extra_repr(self) -> str:
        names = {"float32": "FloatTensor", "float64": "DoubleTensor"}
        return self._sizes_shown(lambda kind: f"torch.{names.get(kind.name, kind.name)}")
