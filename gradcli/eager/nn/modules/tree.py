"""A module's tables of parameters, buffers and modules go in, walks over the whole tree below it come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.nn.parameter import Parameter
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.nn.modules.module import Module


class Tree:
    """What is below a module, by dotted names."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

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
            if not isinstance(found, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        result: Module = found
        return result

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
        found: Tensor = getattr(owner, name)
        return found
