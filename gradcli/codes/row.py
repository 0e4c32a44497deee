"""The form of one row of the catalogue: five texts."""

from __future__ import annotations


class CodeDoc:
    """The documentation of one code: a short title, what it means, why, an example, what to do instead."""

    __slots__ = ("example", "instead", "title", "what", "why")

    def __init__(self, title: str, what: str, why: str, example: str, instead: str) -> None:
        self.title = title
        self.what = what
        self.why = why
        self.example = example
        self.instead = instead
