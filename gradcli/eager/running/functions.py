"""The frame that runs goes in at each event of a record; those of functions that have ended meanwhile come out.

A frame is held until the next event: where it is no longer on the stack, its function has come to its end, and its
names are as it left them. Following every call by `sys.settrace` tells the same, but costs as much as the run itself,
and takes the place of a debugger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class Functions:
    """The functions of a user's files that run now, the innermost last."""

    def __init__(self, own: Callable[[str], bool]) -> None:
        self.own = own  # whether a file is the user's
        self.innermost: FrameType | None = None  # of any file outside this package
        self.running: list[FrameType] = []

    def turned(self, frame: FrameType | None) -> list[FrameType]:
        """Another frame than before runs: the frames that have ended, the innermost first."""
        self.innermost = frame
        stack = []
        while frame is not None:
            code = frame.f_code
            if code.co_name != "<module>" and self.own(code.co_filename):
                stack.append(frame)
            frame = frame.f_back
        ended = [one for one in reversed(self.running) if not any(one is other for other in stack)]
        self.running = stack[::-1]
        return ended

    def left(self) -> list[FrameType]:
        """No function runs any more: the frames that have ended."""
        ended, self.running, self.innermost = self.running[::-1], [], None
        return ended


def names_at_end(frame: FrameType, owners: set[int]) -> dict[str, Any]:
    """The names of a function; `self` only the first time that a method of this object ends."""
    names = dict(frame.f_locals)
    owner = names.get("self")
    if owner is not None and id(owner) in owners:  # a method called again and again
        del names["self"]
    owners.add(id(owner))
    return names
