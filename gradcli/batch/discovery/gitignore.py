"""The patterns of .gitignore files, and which files of a folder git ignores (gitignore(5))."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

IGNORE = ".gitignore"
# a pattern piece by piece (gitignore(5), "Pattern format"), and the regular expression it means
PIECE = re.compile(r"/\*\*(?=/)|^\*\*/|\*+|\?|\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL)
PIECES = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "?": "[^/]"}


class Patterns:
    """The lines of a .gitignore file; paths are relative to its folder, with `/` between names."""

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [parse_pattern(line.rstrip("\r\n")) for line in lines]
        self.rules = [rule for rule in rules if rule is not None][::-1]

    def decision(self, path: str, folder: bool) -> bool | None:
        """Whether the last pattern that matches says "ignored"; None where no pattern matches."""
        for negated, folders_only, form in self.rules:
            if (folder or not folders_only) and form.fullmatch(path):
                return not negated
        return None

    def within(self, path: str) -> bool:
        """Whether a file or one of the folders that it lies in matches."""
        parts = path.split("/")
        places = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return any(self.decision(place, place != path) for place in places)


def parse_pattern(line: str) -> tuple[bool, bool, re.Pattern[str]] | None:
    """A line as (negated, for folders only, expression); None for a comment, an empty line and what git cannot read."""
    line = re.sub(r"(?<!\\) +$", "", line)
    negated, line = line.startswith("!"), line.removeprefix("!")
    folders_only, line = line.endswith("/"), line.removesuffix("/")
    if not line or (line.startswith("#") and not negated):
        return None
    anchored, line = "/" in line, line.removeprefix("/")
    start, inside, _ = line.rpartition("/**") if line.endswith("/**") else (line, "", "")  # everything in a folder
    text = ".+" if line == "**" else "".join(map(to_regex, PIECE.findall(start))) + ("/.+" if inside else "")
    try:
        return negated, folders_only, re.compile(text if anchored else f"(?:.*/)?{text}", re.DOTALL)
    except re.error:
        return None


def to_regex(piece: str) -> str:
    """A piece of a pattern as a regular expression."""
    if piece in PIECES:
        return PIECES[piece]
    if piece.startswith("*"):
        return "[^/]*"
    if piece.startswith("[") and len(piece) > 1:
        inside = piece[1:-1]
        inverse = inside[:1] in ("!", "^")
        inside = inside[1:] if inverse else inside
        return f"(?!/)[{'^' if inverse else ''}{inside.replace('[', chr(92) + '[')}]"
    return re.escape(piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece)


Rules = list[tuple[str, Patterns]]  # folders with a .gitignore file and what it says, the innermost last


def rules_above(folder: str, read: set[str]) -> Rules:
    """The .gitignore files of the folders above one, if it lies in a repository: from the repository's root down."""
    rules: Rules = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []  # no repository
        folder = parent
        if os.path.isfile(os.path.join(folder, IGNORE)):
            rules.insert(0, (folder, read_patterns(folder, read)))
    return rules


def read_patterns(folder: str, read: set[str]) -> Patterns:
    """The patterns of a folder's .gitignore file; none if it cannot be read."""
    path = os.path.join(folder, IGNORE)
    read.add(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return Patterns(file)
    except OSError:
        return Patterns(())


def is_ignored(rules: Rules, path: str, folder: bool) -> bool:
    """Whether an entry of a folder that is not ignored is ignored: the innermost file with a pattern for it decides."""
    for root, patterns in reversed(rules):
        ignored = patterns.decision(os.path.relpath(path, root).replace(os.sep, "/"), folder)
        if ignored is not None:
            return ignored
    return False
