"""The names that a user's file has for tensors, and the parameters that its modules do not register."""

from __future__ import annotations

import re
from dis import get_instructions
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.recording.runs.source_lines import SourceLine, statement_in
from gradcli.recording.runs.tensors import TensorReader, flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType


def names_at_end(frame: FrameType, owners: set[int]) -> dict[str, Any]:
    """The names of a function; `self` only the first time that a method of this object ends."""
    names = dict(frame.f_locals)
    owner = names.get("self")
    if owner is not None and id(owner) in owners:  # a method called again and again
        del names["self"]
    owners.add(id(owner))
    return names


class Loose(NamedTuple):
    """An attribute of a module whose parameters `parameters()` leaves out; tensors by their numbers in the record."""

    module: str  # the class of the module
    name: str  # of the attribute, as the file spells it: `model.layers`
    attribute: str
    kind: str  # list, dict, tuple, tensor
    layers: int  # how many modules it holds; 0 where it holds parameters themselves
    tensors: tuple[int, ...]
    registered: tuple[int, ...]  # the parameters that `parameters()` gives
    line: SourceLine | None  # where the attribute is first assigned


def loose_in(
    tensors: TensorReader,
    names: dict[str, Any],
    mark: Callable[[Any], int],
    made_of: Callable[[Any, SourceLine], tuple[int, ...]],
) -> Iterator[Loose]:
    """The attributes with loose parameters of the modules among the values of some names.

    `made_of` gives the leaves of a tensor that a line has computed.
    """
    for name, module in names.items():
        if not hasattr(type(module), "named_modules"):
            continue
        known = list(module.parameters())
        registered = {id(parameter) for parameter in known}
        for text, owner, attribute, value in plain_attributes(tensors, name, module):
            layers, left = 0, list[Any]()
            computed: tuple[int, ...] = ()
            if tensors.is_tensor(value) and tensors.seq(value) is not None:
                line = assigned(owner, attribute)
                computed = () if line is None else made_of(value, line)
            for item in flat(list(value.values()) if isinstance(value, dict) else [value]):
                held = [p for p in parameters_of(tensors, item) if id(p) not in registered]
                layers += bool(held) and not tensors.is_tensor(item)
                left += held
            if left or computed:
                kind = next((kind.__name__ for kind in (list, dict, tuple) if isinstance(value, kind)), "tensor")
                marks, others = computed or tuple(map(mark, left)), tuple(map(mark, known))
                yield Loose(
                    type(owner).__name__, text, attribute, kind, layers, marks, others, assigned(owner, attribute)
                )


def optimizers_of(tensors: TensorReader, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The optimizers that names hold, directly or as an attribute of an object of the file."""
    for name, value in names.items():
        if issubclass(type(value), tensors.optimizer):
            yield name, value
        elif type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
            held = [(text, item) for text, item in vars(value).items() if issubclass(type(item), tensors.optimizer)]
            yield from ((f"{name}.{text}", item) for text, item in held)


def parameters_of(tensors: TensorReader, value: Any) -> list[Any]:
    """The parameters of a module, or a leaf that requires grad itself."""
    if tensors.is_tensor(value):
        return [value] if tensors.seq(value) is None and tensors.requires(value) else []
    return list(value.parameters()) if hasattr(type(value), "named_modules") else []


def assigned(owner: Any, attribute: str) -> SourceLine | None:
    """The line of `__init__` that first assigns an attribute; None where it does not."""
    for kind in type(owner).__mro__:
        code: CodeType | None = getattr(vars(kind).get("__init__"), "__code__", None)
        if code is None:
            continue
        for step in get_instructions(code):
            if step.opname == "STORE_ATTR" and step.argval == attribute:
                return statement_in(code, step.offset)
    return None


DEEPEST = 3
MISSPELT = re.compile(r"requires?d?_?[gG]rads?_?")
MOST, MOST_VISITED = 2000, 50_000  # entries of one container, and of all


def misspelt(owner: Any) -> list[str]:
    """The attributes of a tensor or a module that someone took for `requires_grad`; a module has none of that name."""
    known = getattr(owner, "__dict__", None)
    return [name for name in known if MISSPELT.fullmatch(name)] if known else []


def subjects_of(tensors: TensorReader, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors that names hold: directly, in a container, as a parameter of a module, or as an attribute.

    A tensor comes once for each of its names, the best one first.
    """
    seen: set[int] = set()
    first = sorted(names.items(), key=lambda pair: _rank(tensors, pair[1]))
    waiting = [(name, value, 0) for name, value in first if not name.startswith("__")][::-1]
    visited = 0
    while waiting and visited < MOST_VISITED:
        name, value, depth = waiting.pop()
        visited += 1
        if tensors.is_tensor(value):
            yield name, value
        elif depth < DEEPEST and id(value) not in seen:
            inner = [(text, item, depth + 1) for text, item in _inside(tensors, name, value)]
            if inner:
                seen.add(id(value))
                waiting.extend(reversed(inner))


def plain_attributes(tensors: TensorReader, name: str, module: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Tensors and containers that are plain attributes of a module or of one in it: name, owner, attribute, value."""
    for path, owner in module.named_modules():
        for text, value in [*vars(owner).items(), *getattr(owner, "_buffers", {}).items()]:
            if issubclass(type(value), (tensors.kind, list, dict, tuple)) and not text.startswith("_"):
                yield ".".join(part for part in (name, path, text) if part), owner, text, value


def _rank(tensors: TensorReader, value: Any) -> int:
    """The order of names: parameters of a module first, then plain names, then places in a container."""
    return 0 if hasattr(type(value), "named_parameters") else 1 if tensors.is_tensor(value) else 2


def _inside(tensors: TensorReader, name: str, value: Any) -> list[tuple[str, Any]]:
    if issubclass(type(value), (list, tuple)):  # `isinstance` reads `__class__`, which lazy settings compute
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:MOST])]
    if issubclass(type(value), dict):
        return [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:MOST]]
    if hasattr(type(value), "named_parameters"):
        own = [(f"{name}.{text}", item) for text, item in value.named_parameters()]
        return own + [(text, item) for text, _, _, item in plain_attributes(tensors, name, value)]
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return [(f"{name}.{text}", item) for text, item in vars(value).items() if not text.startswith("__")]
    return []
