"""A row of the catalogue of diagnostic codes: five texts."""

from __future__ import annotations


class CodeDoc:
    """The documentation of one code: a short title, what it means, the reason, an example, and what to do."""

    __slots__ = ("example", "instead", "title", "what", "why")

    def __init__(self, title: str, what: str, why: str, example: str, instead: str) -> None:
        self.title = title
        self.what = what
        self.why = why
        self.example = example
        self.instead = instead
