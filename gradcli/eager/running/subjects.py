"""Names and what they stand for go in, the tensors among it come out, by names that a reader of the file knows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.eager.running.entries import size_of
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import Traced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager import dtypes

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
    grad: str  # none, zero, nan, inf, fine
    norm: float
    added: int
    node: str
    shape: tuple[int, ...]
    parameter: bool

    @classmethod
    def of(cls, tensor: Tensor, name: str, scope: str) -> Subject:
        """The state of a tensor now."""
        edge = tensor._edge
        kind, norm, added = "none", 0.0, 0
        found = tensor._grad
        if found is not None:
            array = found._raw
            norm, finite = size_of(array)
            kind = "fine" if finite else "nan" if np.isnan(array).any() else "inf"
            kind = "zero" if norm == 0 and array.size and not np.any(array) else kind
            added = found._added
        return cls(
            name,
            scope,
            edge is None,
            tensor.requires_grad,
            tensor._retains,
            tensor._raw.dtype.kind in "fc",
            _spoken(tensor.dtype),
            kind,
            norm,
            added,
            "" if edge is None else type(edge[0]).__name__,
            tensor._raw.shape,
            type(tensor).__name__ == "Parameter",
        )


@cache
def _spoken(kind: dtypes.dtype) -> str:
    """The name of a format without the library's."""
    return str(kind).removeprefix("torch.")


def subjects_of(names: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that can be reached from names: itself, in a container, as a parameter, as an attribute.

    A tensor comes once for each of its names, the best one first.
    """
    seen: set[int] = set()
    first = sorted(names.items(), key=lambda pair: _rank(pair[1]))
    waiting = [(name, value, 0) for name, value in first if not name.startswith("__")][::-1]
    visited = 0
    while waiting and visited < MOST_VISITED:
        name, value, depth = waiting.pop()
        visited += 1
        if isinstance(value, Tensor):
            if not isinstance(value, Traced):  # a stand-in has no entries
                yield name, value
        elif depth < DEEPEST and id(value) not in seen:
            inner = [(text, one, depth + 1) for text, one in _inside(name, value)]
            if inner:
                seen.add(id(value))
                waiting.extend(reversed(inner))


def plain_attributes(name: str, module: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Tensors and containers that are plain attributes of a module or of one in it: name, owner, attribute, value."""
    for path, owner in module.named_modules():
        for text, one in vars(owner).items():
            if isinstance(one, (Tensor, list, dict, tuple)) and not text.startswith("_"):
                yield ".".join(part for part in (name, path, text) if part), owner, text, one


def _rank(value: Any) -> int:
    """Whose names are taken first: those in a module, then plain ones, then places in a container."""
    return 0 if hasattr(type(value), "named_parameters") else 1 if isinstance(value, Tensor) else 2


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{i}]", one) for i, one in enumerate(value[:MOST])]
    if isinstance(value, dict):
        return [(f"{name}[{key!r}]", one) for key, one in list(value.items())[:MOST]]
    if hasattr(type(value), "named_parameters"):
        own = [(f"{name}.{text}", one) for text, one in value.named_parameters()]
        return own + [(text, one) for text, _, _, one in plain_attributes(name, value)]
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return [(f"{name}.{text}", one) for text, one in vars(value).items() if not text.startswith("__")]
    return []
