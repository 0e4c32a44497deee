"""Names and what they stand for go in, the tensors among it come out, by names that a reader of the file knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.running.entries import Size
    from gradcli.eager.running.tensors import Tensors

DEEPEST = 3
MOST, MOST_VISITED = 2000, 50_000  # entries of one container, and of all


class Subject(NamedTuple):
    """A tensor as it was when it was last seen."""

    name: str
    scope: str  # the function that knows the name; empty for the file itself
    leaf: bool
    requires: bool
    retains: bool
    floating: bool
    dtype: str
    node: str
    shape: tuple[int, ...]
    parameter: bool
    grad: str  # none, zero, nan, inf, fine
    norm: float

    @classmethod
    def of(cls, tensors: Tensors, tensor: Any, name: str, scope: str, size: Size | None = None) -> Subject:
        """The state of a tensor now; the size of its `.grad` may be known."""
        flags = tensors.flags(tensor)
        kind, norm = "none", 0.0
        grad = tensors.grad(tensor)
        if grad is not None:
            size = tensors.size(grad) if size is None else size
            norm = size.norm
            kind = "fine" if size.finite else "nan" if tensors.has_nan(grad) else "inf"
            kind = "zero" if norm == 0 and 0 not in flags.shape and tensors.is_zero(grad) else kind
        return cls(name, scope, *flags, kind, norm)


def subjects_of(tensors: Tensors, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors that can be reached from names: itself, in a container, as a parameter, as an attribute.

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
            inner = [(text, one, depth + 1) for text, one in _inside(tensors, name, value)]
            if inner:
                seen.add(id(value))
                waiting.extend(reversed(inner))


def plain_attributes(tensors: Tensors, name: str, module: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Tensors and containers that are plain attributes of a module or of one in it: name, owner, attribute, value."""
    for path, owner in module.named_modules():
        for text, one in vars(owner).items():
            if isinstance(one, (tensors.kind, list, dict, tuple)) and not text.startswith("_"):
                yield ".".join(part for part in (name, path, text) if part), owner, text, one


def _rank(tensors: Tensors, value: Any) -> int:
    """Whose names are taken first: those in a module, then plain ones, then places in a container."""
    return 0 if hasattr(type(value), "named_parameters") else 1 if tensors.is_tensor(value) else 2


def _inside(tensors: Tensors, name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{i}]", one) for i, one in enumerate(value[:MOST])]
    if isinstance(value, dict):
        return [(f"{name}[{key!r}]", one) for key, one in list(value.items())[:MOST]]
    if hasattr(type(value), "named_parameters"):
        own = [(f"{name}.{text}", one) for text, one in value.named_parameters()]
        return own + [(text, one) for text, _, _, one in plain_attributes(tensors, name, value)]
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return [(f"{name}.{text}", one) for text, one in vars(value).items() if not text.startswith("__")]
    return []
