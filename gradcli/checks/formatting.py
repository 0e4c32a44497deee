"""Positions, points and nodes as the short texts and lists of reports."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gradcli.graph.node import Node


MOST_ENTRIES = 12
MOST_NODES = 400
_NAMES: ContextVar[Mapping[Node, str] | None] = ContextVar("names", default=None)


def shortened_list(items: Sequence[Any]) -> list[Any]:
    """At most a dozen items, and how many more there are."""
    if len(items) <= MOST_ENTRIES:
        return list(items)
    return [*items[:MOST_ENTRIES], f"... {len(items) - MOST_ENTRIES} more"]


def point_text(values: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """A point as plain numbers and nested lists; a large array is named by its shape."""
    read = [(name, value) for name, value in values.items() if name in used]
    most = 5 * MOST_ENTRIES
    return {name: f"array of shape {list(x.shape)}" if x.size > most else x.tolist() for name, x in read}


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 point", "3 points"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def cut(text: str, digits: int = 17) -> str:
    """A number's digits, cut where there are many."""
    return text if len(text) <= digits + 6 or "e" in text else f"{text[: digits + 3]}..."


def distinct_digits(left: str, right: str, digits: int = 17) -> tuple[str, str]:
    """The digits of two numbers, cut where there are many, but not before they differ."""
    same = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    digits = max(digits, same + 1)
    return cut(left, digits), cut(right, digits)


def plain(value: Any) -> Any:
    """Evidence as JSON data: NumPy numbers become Python numbers, infinities and NaN become words."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, complex):
        return f"{value.real + 0.0!r}{value.imag + 0.0:+}j"  # as it is typed after --at
    if isinstance(value, float):
        if math.isfinite(value):
            return value + 0.0  # without the sign of a zero
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return value


@contextmanager
def called(names: Mapping[Node, str]) -> Iterator[None]:
    """Inside, `node_text` calls parts of a formula by the names that the script gave them."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def down_to(names: Collection[Node], node: Node) -> list[Node]:
    """The nodes that a node is computed from, in order, without those that have names and what is below them."""
    below, pending = {node}, [node]
    while pending and len(below) <= MOST_NODES:
        for arg in pending.pop().args:
            if arg not in below and arg not in names:
                below.add(arg)
                pending.append(arg)
    return sorted(below, key=lambda argument: argument.serial)


def node_text(node: Node, longest: int = 60) -> str:
    """The formula of a node down to what has a name; of a large graph only the name of the operation, and its line."""
    names = _NAMES.get() or {}
    if node in names and not node.args:
        return names[node]
    order = down_to(names, node)
    if len(order) > MOST_NODES:
        return node.primitive.name + ("" if node.span is None else f" in line {node.span.line}")
    from gradcli.graph.node_text import formulas  # a writer, which most processes of exact arithmetic do not need

    # a shared part is repeated: texts may explode
    text = formulas(order, lambda _: "...", names, longest=4 * longest)[node]
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."
