"""Functions that a user wants called go in, a handle that takes them out again comes back; calls nothing itself."""

from __future__ import annotations

import itertools
from typing import Any

_numbers = itertools.count()


class Handle:
    """What `register_hook` returns: `remove()` takes the hook out; also a context that does so at its end."""

    __slots__ = ("hooks", "id")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks = hooks
        self.id = next(_numbers)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook out; nothing happens the second time."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
