"""Parameters that a module does not register: in a plain list, dictionary or tuple, or a plain tensor."""

from __future__ import annotations

from dis import get_instructions
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.eager.running.entries import flat
from gradcli.eager.running.places import Line, statement_in
from gradcli.eager.running.subjects import plain_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from gradcli.eager.running.tensors import Tensors


class Loose(NamedTuple):
    """An attribute of a module whose parameters `parameters()` leaves out; tensors by their numbers in the record."""

    module: str  # the class of the module
    name: str  # of the attribute, as the file spells it: `model.layers`
    attribute: str
    kind: str  # list, dict, tuple, tensor
    layers: int  # how many modules it holds; 0 where it holds parameters themselves
    tensors: tuple[int, ...]
    registered: tuple[int, ...]  # the parameters that `parameters()` gives
    line: Line | None  # where the attribute is first assigned


def loose_in(tensors: Tensors, names: dict[str, Any], mark: Callable[[Any], int]) -> Iterator[Loose]:
    """The attributes with loose parameters of the modules among the values of some names."""
    for name, module in names.items():
        if not hasattr(type(module), "named_modules"):
            continue
        known = list(module.parameters())
        registered = {id(one) for one in known}
        for text, owner, attribute, value in plain_attributes(tensors, name, module):
            layers, left = 0, []
            for one in flat(list(value.values()) if isinstance(value, dict) else [value]):
                held = [p for p in parameters_of(tensors, one) if id(p) not in registered]
                layers += bool(held) and not tensors.is_tensor(one)
                left += held
            if left:
                kind = next((kind.__name__ for kind in (list, dict, tuple) if isinstance(value, kind)), "tensor")
                marks, others = tuple(map(mark, left)), tuple(map(mark, known))
                yield Loose(
                    type(owner).__name__, text, attribute, kind, layers, marks, others, assigned(owner, attribute)
                )


def parameters_of(tensors: Tensors, value: Any) -> list[Any]:
    """The parameters of a module, or a leaf that requires grad itself."""
    if tensors.is_tensor(value):
        return [value] if tensors.seq(value) is None and tensors.requires(value) else []
    return list(value.parameters()) if hasattr(type(value), "named_modules") else []


def assigned(owner: Any, attribute: str) -> Line | None:
    """The line of `__init__` that first assigns an attribute; None where it does not."""
    for kind in type(owner).__mro__:
        code: CodeType | None = getattr(vars(kind).get("__init__"), "__code__", None)
        if code is None:
            continue
        for step in get_instructions(code):
            if step.opname == "STORE_ATTR" and step.argval == attribute:
                return statement_in(code, step.offset)
    return None
