"""Pairs of things that belong together go in, the groups that they make come out; what the things are is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Item = TypeVar("Item")


class Groups(Generic[Item]):
    """Things in groups, each of which has one of its things as its root (R. Tarjan, Journal of the ACM 22, 1975).

    >>> groups = Groups()
    >>> groups.join("a", "b")
    >>> groups.root("a") == groups.root("b") != groups.root("c")
    True
    """

    __slots__ = ("_parent",)

    def __init__(self) -> None:
        self._parent: dict[Item, Item] = {}

    def __iter__(self) -> Iterator[Item]:
        return iter(self._parent)

    def root(self, item: Item) -> Item:
        """The root of its group; of a new one, the thing itself."""
        parent = self._parent
        while parent.setdefault(item, item) != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, one: Item, other: Item) -> None:
        """Make the groups of two things one."""
        self._parent[self.root(one)] = self.root(other)
