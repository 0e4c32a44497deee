"""Flattens nested tuples, lists and dictionaries into a list of leaves, and nests them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def flatten(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves from left to right, and what puts others in their places.

    >>> leaves, rebuild = flatten({"a": 1, "b": (2, [3])})
    >>> leaves, rebuild([10, 20, 30])
    ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    if isinstance(tree, dict):
        keys = list(tree)
        return _joined([tree[key] for key in keys], lambda parts: type(tree)(zip(keys, parts, strict=True)))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _joined(list(tree), lambda parts: type(tree)(*parts))
    if isinstance(tree, (tuple, list)):
        return _joined(list(tree), lambda parts: type(tree)(parts))
    return [tree], lambda leaves: leaves[0]


def _joined(parts: list[Any], build: Callable[[list[Any]], Any]) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    found = [flatten(part) for part in parts]

    def rebuild(leaves: Sequence[Any]) -> Any:
        made, start = [], 0
        for inner, again in found:
            made.append(again(leaves[start : start + len(inner)]))
            start += len(inner)
        return build(made)

    return [leaf for inner, _ in found for leaf in inner], rebuild


def spread(given: Any, tree: Any) -> list[Any]:
    """One value for each leaf of a tree: the same for all, or nested like the tree. ValueError where it is not."""
    if isinstance(tree, dict) and isinstance(given, dict):
        if set(given) != set(tree):
            raise ValueError(f"the keys {sorted(given)} do not fit {sorted(tree)}")
        return [one for key in tree for one in spread(given[key], tree[key])]
    if isinstance(tree, (tuple, list)) and isinstance(given, (tuple, list)):
        if len(given) != len(tree):
            raise ValueError(f"{len(given)} values do not fit {len(tree)} places")
        return [one for inner, part in zip(given, tree, strict=True) for one in spread(inner, part)]
    if isinstance(given, (tuple, list, dict)):
        raise ValueError(f"{given!r} is nested where the tree is not")
    return [given] * len(flatten(tree)[0])
