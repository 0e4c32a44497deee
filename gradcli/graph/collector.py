"""Pauses Python's collector of cycles while a graph or a plan is built."""

from __future__ import annotations

import gc


class uncollected:
    """A context without the collector of cycles: what is built is many small objects, none of which is garbage.

    While they become more, the collector would walk through all of them again and again.
    """

    __slots__ = ("usual",)

    def __enter__(self) -> None:
        self.usual = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self.usual:
            gc.enable()
