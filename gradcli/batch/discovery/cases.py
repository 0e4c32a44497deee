"""A case: one script to check, a file or a block of a document."""

from __future__ import annotations

import os
from typing import NamedTuple

from gradcli.language.limits import DEFAULT_LIMITS, Limits
from gradcli.language.source import Source

LARGEST = 2**26  # bytes of a script that are read at once: no limit on texts is as high


class BatchCase(NamedTuple):
    """A `.grad` file, or the block with number `block` (from 1) of a document.

    `text` is the block and `line` the line of the document where it begins; None and 1 for a file of its own.
    """

    path: str
    block: int = 0
    text: str | None = None
    line: int = 1

    @property
    def name(self) -> str:
        """The case in one line: the path, and which block of it."""
        return f"{self.path} (block {self.block})" if self.block else self.path

    def content(self) -> bytes | None:
        """The bytes of the script; of a block, with an empty line for every line of the document above it.

        So lines have the same numbers as in the document. None if the file cannot be read, or if only a worker, which
        can be killed, should read it: a device or a pipe, which may have no end.
        """
        if self.text is not None:
            return ("\n" * (self.line - 1) + self.text).encode("utf-8", "surrogateescape")
        try:
            if not os.path.isfile(self.path) or os.path.getsize(self.path) > LARGEST:
                return None
            with open(self.path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def source(self) -> Source:
        """The text of the script."""
        return Source((self.content() or b"").decode("utf-8", "replace"), self.name, self.path)


def block_limits(content: bytes, limits: Limits = DEFAULT_LIMITS) -> Limits:
    """The limits for the content of a block: the empty lines above it do not count towards the length of the text.

    >>> block_limits(b"\\n" * 999 + b"x**2", Limits(text=100)).text
    1099
    """
    above = len(content) - len(content.lstrip(b"\n"))
    return Limits(**{**limits.as_dict(), "text": limits.text + above})
