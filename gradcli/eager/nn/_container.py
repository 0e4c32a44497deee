"""Modules that hold modules or parameters, in order or by name: Sequential, ModuleList, ModuleDict, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager._core.tensor import Tensor
from gradcli.eager.nn._module import Module, indented
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def _place(index: Any, count: int) -> int:
    at = int(index)
    if not -count <= at < count:
        raise IndexError(f"index {at} is out of range")
    return at % count


class _Holder(Module):
    """Modules or parameters, which stand in one of the tables of a module."""

    _table: ClassVar[str] = "_modules"

    @property
    def _held(self) -> dict[str, Any]:
        return self.__dict__[self._table]

    def _put(self, name: str, value: Any) -> None:
        """Hold a module under a name, or a parameter; a plain tensor becomes one."""
        if self._table == "_modules":
            self.add_module(name, value)
        else:
            plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
            setattr(self, name, Parameter(value) if plain else value)

    def __len__(self) -> int:
        return len(self._held)


class _Listed(_Holder):
    """Modules or parameters in a row; their names are their positions."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._held.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            found: Any = type(self).__new__(type(self))
            Module.__init__(found)
            return found.extend(list(self)[index])
        return list(self)[_place(index, len(self))]

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(str(_place(index, len(self))), value)

    def __delitem__(self, index: Any) -> None:
        kept = list(self)
        del kept[index if isinstance(index, slice) else _place(index, len(self))]
        self._held.clear()
        self.extend(kept)

    def append(self, value: Any) -> Any:
        """Put a module or parameter at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Put modules or parameters at the end."""
        for one in list(values):
            self.append(one)
        return self

    def insert(self, index: int, value: Any) -> Any:
        """Put a module or parameter before a position."""
        found = list(self)
        found.insert(index, value)
        self._held.clear()
        return self.extend(found)

    def pop(self, key: int) -> Any:
        """Take a module or parameter out."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Listed):
    """Modules called one after the other.

    >>> import gradcli.eager as torch
    >>> from gradcli.eager import nn
    >>> nn.Sequential(nn.ReLU(), nn.Flatten(0))(torch.tensor([[-1.0, 2.0]]))
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

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __repr__(self) -> str:
        texts = [repr(one) for one in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for i in range(1, len(texts) + 1):
            if i == len(texts) or texts[i] != texts[start]:
                many = f"({start}-{i - 1}): {i - start} x " if i - start > 1 else f"({start}): "
                lines.append(many + indented(texts[start]))
                start = i
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class _Named(_Holder):
    """Modules or parameters by name."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        self.update(values or {})

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        del self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def update(self, values: Any) -> None:
        """Add modules or parameters by name."""
        for name, value in dict(values).items():
            self[name] = value

    def keys(self) -> Any:
        """The names."""
        return self._held.keys()

    def values(self) -> Any:
        """The modules or parameters."""
        return self._held.values()

    def items(self) -> Any:
        """Names and modules or parameters."""
        return self._held.items()


class ModuleDict(_Named):
    """Modules by name, all of which count as parts of their owner."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__(modules)


class ParameterList(_Listed):
    """Parameters in a list; plain tensors become parameters."""

    _table = "_parameters"

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __repr__(self) -> str:
        lines = [
            f"\n    ({i}): Parameter containing: [{x.dtype} of size {'x'.join(map(str, x.shape))}]"
            for i, x in enumerate(self)
        ]
        return f"{self._get_name()}({''.join(lines)}\n)" if lines else f"{self._get_name()}()"


class ParameterDict(_Named):
    """Parameters by name; plain tensors become parameters."""

    _table = "_parameters"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__(parameters)

    def __repr__(self) -> str:
        names = {"float32": "FloatTensor", "float64": "DoubleTensor"}
        lines = [
            f"  ({name}): Parameter containing: [torch.{names.get(x.dtype.name, x.dtype.name)} of size "
            f"{'x'.join(map(str, x.shape))}]"
            for name, x in self._parameters.items()
            if x is not None
        ]
        return f"{self._get_name()}({chr(10).join(lines)})"
