"""`typing.NamedTuple` without importing typing, which costs 3 ms."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Maker(type):
        def __new__(mcs, name, bases, space):
            if not bases:
                return super().__new__(mcs, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = [space[field] for field in fields if field in space]
            record = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
            for key, value in space.items():
                if key not in fields and key not in ("__annotations__", "__classcell__", "__qualname__"):
                    setattr(record, key, value)
            return record

    class NamedTuple(metaclass=_Maker):
        """Base of a class whose annotations are the fields of a named tuple."""


__all__ = ["NamedTuple"]
