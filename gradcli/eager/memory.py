"""What belongs to a piece of memory: its shape as people read it, and how often it was changed. Holds no entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gradcli.eager.state import Place


class Size(tuple[int, ...]):
    """A shape, printed as PyTorch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of entries."""
        return int(np.prod(self, dtype=np.int64))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Counter:
    """How often a piece of memory was changed in place, and where the last time."""

    value = 0  # of the class until the first change: most tensors are never changed
    place: Place = None

    def bump(self, place: Place) -> None:
        """Count one more change."""
        self.value += 1
        self.place = place
