"""A case: one script to be checked, a file of its own or a block of a document."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A `.grad` file, or the block with number `block` (from 1) of a document.

    `text` is the block with blank lines in place of all lines outside of it, so that line numbers are those of the
    document; None for a file of its own.
    """

    path: str
    block: int = 0
    text: str | None = None

    @property
    def name(self) -> str:
        """The case in one line: the path, and which block of it."""
        return f"{self.path} (block {self.block})" if self.block else self.path

    def content(self) -> bytes | None:
        """The bytes of the script; None where the file cannot be read."""
        if self.text is not None:
            return self.text.encode()
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError:
            return None
