"""The base of layers and models: a tree of parameters, buffers and modules with one call.

Backward hooks are nodes around a call: inputs and outputs of the module pass through one node each, as in PyTorch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gradcli.eager._core import dtypes
from gradcli.eager._core.modes import is_grad_enabled, no_grad, warn
from gradcli.eager._core.tensor import Handle, Tensor
from gradcli.eager._ops.creation import empty
from gradcli.eager.autograd.function import Function
from gradcli.eager.nn.parameter import Buffer, Parameter, clear, is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


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
    """The backward hooks of one call of one module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.hooks, self.prehooks = list(module._backward_hooks.values()), list(module._backward_pre_hooks.values())
        self.grad_outputs: Any = None
        self.count = 0  # of the inputs
        self.places: list[int] | None = None  # where inputs are that stand behind a node

    def around_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, those that require grad behind a node that calls the hooks."""
        self.count = len(args)
        found, node, places = _behind(args)
        if node is None:
            return args
        self.places = places

        def fired(grads: tuple[Any, ...], _: tuple[Any, ...]) -> Any:
            if self.grad_outputs is None:
                return None
            changed = self._call(_placed(grads, places, self.count))
            self.grad_outputs = None
            return None if changed is None else tuple([changed[place] for place in places])

        node.register_hook(fired)
        return found

    def _call(self, grads: tuple[Any, ...]) -> Any:
        result = None
        for hook in self.hooks:
            answer = hook(self.module, grads if result is None else result, self.grad_outputs)
            if answer is not None:
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
        found, node, places = _behind(outputs)
        if node is None:
            return result

        def noted(grads: tuple[Any, ...]) -> Any:
            self.grad_outputs = _placed(grads, places, len(outputs))
            for hook in self.prehooks:
                answer = hook(self.module, self.grad_outputs)
                if answer is not None:
                    self.grad_outputs = _gradients(answer, len(outputs), "a backward pre-hook", "outputs")
            passed = tuple([self.grad_outputs[place] for place in places])
            if self.places is None:
                if self.hooks:
                    warn(
                        "a full backward hook fires for the outputs only, because no input of the module requires grad",
                        UserWarning,
                    )
                self._call((None,) * self.count)
                self.grad_outputs = None
            return passed

        node.register_prehook(noted)
        return found if isinstance(result, tuple) else found[0]


def _placed(grads: Sequence[Any], places: list[int], count: int) -> tuple[Any, ...]:
    """Gradients at their places among so many values, None elsewhere."""
    full = dict(zip(places, grads, strict=False))
    return tuple([full.get(i) for i in range(count)])


def _gradients(answer: Any, count: int, what: str, where: str) -> tuple[Any, ...]:
    """What a hook returned; TypeError for what is not a tuple or list, RuntimeError for another number of gradients."""
    if not isinstance(answer, (tuple, list)):
        error = RuntimeError if isinstance(answer, Tensor) else TypeError
        raise error(f"{what} returned {type(answer).__name__} where a tuple or None is expected")
    if len(answer) != count:
        raise RuntimeError(f"{what} returned {len(answer)} gradients, but the {where} are {count}")
    return tuple(answer)


def _behind(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, list[int]]:
    """Values, the tensors among them behind one node; that node, None where nothing requires grad; their places."""
    places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    if not is_grad_enabled() or not any(args[i].requires_grad for i in places):
        return args, None, places
    values = list(args)
    for i, x in zip(places, BackwardHookFunction.apply(*[args[i] for i in places]), strict=True):
        values[i] = x
    found = tuple(values) if type(args) is tuple else type(args)(*values)  # a named tuple stays one
    return found, next(x.grad_fn for x in values if isinstance(x, Tensor) and x.grad_fn is not None), places


# the tables of a module: what stands in each, and what it may be
_TABLES = {"_parameters": "torch.nn.Parameter", "_modules": "torch.nn.Module", "_buffers": "torch.Tensor"}


class IncompatibleKeys(NamedTuple):
    """The keys that a state lacked, and those that nothing requested."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module:
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
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

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
            around = BackwardHooks(self)
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
        kinds: tuple[Any, ...] = (Parameter, Module, Buffer)
        registers = ("register_parameter", "add_module", "register_buffer")
        for (table, wanted), kind, register in zip(_TABLES.items(), kinds, registers, strict=True):
            if isinstance(value, kind):
                what = table[1:-1]
                if "_parameters" not in self.__dict__:
                    raise AttributeError(f"cannot assign {what}s before Module.__init__() call")
                self.__dict__.pop(name, None)
                for other in _TABLES:
                    if other != table:
                        self.__dict__[other].pop(name, None)
                getattr(self, register)(name, value)
                if kind is Buffer and not value.persistent:
                    self._non_persistent.add(name)
                return
            if name in self.__dict__.get(table, ()):
                if value is not None and not (kind is Buffer and isinstance(value, Tensor)):
                    what = "child module" if kind is Module else table[1:-1]
                    raise TypeError(
                        f"cannot assign {type(value).__name__} as {what} '{name}' ({wanted} or None expected)"
                    )
                self.__dict__[table][name] = value
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
        seen: set[int] = set() if memo is None else {id(one) for one in memo}
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            if remove_duplicate:
                seen.add(id(module))
            yield path, module
            below = [(f"{path}.{name}" if path else name, one) for name, one in module._modules.items()]
            stack.extend((name, one) for name, one in reversed(below) if one is not None)

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
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name; AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name; AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(owner, name)

    # --- changes of the whole tree -------------------------------------------------------------------------------

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
                        parameter.data = function(parameter.detach())
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

    def cuda(self, device: Any = None) -> Self:
        """The module on a GPU. AssertionError where there is none."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Self:
        """The module itself: everything lives on the processor."""
        return self

    def share_memory(self) -> Self:
        """The module itself: tensors of one process share their memory anyway."""
        return self

    # --- state ----------------------------------------------------------------------------------------------

    def _state(self) -> Iterator[tuple[str, Module, str, Any]]:
        """Of each parameter and persistent buffer the dotted name, the module it belongs to, its own name, itself."""
        for path, module in self.named_modules(remove_duplicate=False):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module._non_persistent:
                    yield f"{path}.{name}" if path else name, module, name, value

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names; they share memory with the module."""
        return OrderedDict(
            (prefix + path, value if keep_vars or is_lazy(value) else value.detach())
            for path, _, _, value in self._state()
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
            for path in [path for path in wanted if path in state_dict]:
                problems += _loaded(path, *wanted[path], state_dict[path], assign)
        if problems:
            text = "".join(f"\n\t{problem}" for problem in problems)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:{text}")
        return IncompatibleKeys(missing, unexpected)

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


def _loaded(path: str, owner: Module, name: str, value: Any, given: Any, assign: bool) -> list[str]:
    """Copy or put one entry of a state; what is wrong with it."""
    if not isinstance(given, Tensor):
        return [f'While copying the parameter named "{path}", a tensor was expected.']
    if is_lazy(value):
        if not is_lazy(given):
            value.materialize(given.shape)
            value.copy_(given)
    elif given.shape != value.shape:
        return [
            f"size mismatch for {path}: copying a param with shape {given.shape} from checkpoint, the shape in "
            f"current model is {value.shape}."
        ]
    elif not assign:
        value.copy_(given)
    elif name in owner._parameters:
        owner._parameters[name] = given if isinstance(given, Parameter) else Parameter(given, value.requires_grad)
    else:
        owner._buffers[name] = given
    return []


def indented(text: str) -> str:
    """All lines but the first moved to the right by two."""
    return text.replace("\n", "\n  ")


def _hooked(table: Any, hook: Any, prepend: bool) -> Handle:
    handle = Handle(table, hook)
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _retype(x: Any, function: Callable[[Tensor], Any]) -> None:
    """Give what has no shape yet the dtype that a function gives to tensors."""
    x._kind = function(empty(0, dtype=x.dtype)).dtype


def _formats(x: Any) -> bool:
    return isinstance(x, dtypes.dtype)
