"""A table of limited size for what is made once for each operation, shape and format; the oldest entries go first."""

from __future__ import annotations

import threading
from typing import Any


class Cache(dict[Any, Any]):
    """A dictionary whose values have a `size`; `keep` adds to it and holds the sum of all sizes below `limit`.

    Reading is that of a dictionary. A value larger than the limit is not kept.

    >>> from types import SimpleNamespace
    >>> cache = Cache(limit=8)
    >>> for k in range(5):
    ...     cache.keep(k, SimpleNamespace(size=2))
    >>> list(cache), cache.total
    ([1, 2, 3, 4], 8)
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.total = 0
        self._lock = threading.Lock()

    def keep(self, key: Any, value: Any) -> None:
        """Add a value, or replace one; drop the oldest ones until all fit."""
        if value.size > self.limit:
            return
        with self._lock:
            before = self.pop(key, None)
            if before is not None:
                self.total -= before.size
            self[key] = value
            self.total += value.size
            while self.total > self.limit:
                self.total -= self.pop(next(iter(self))).size

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            super().clear()
            self.total = 0
