"""Which scripts and blocks of documents a check is about: a walk of folders that leaves out what git ignores."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gradcli.batch.cases import Case
from gradcli.batch.documents import blocks, is_document
from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SUFFIX = ".grad"
IGNORE = ".gitignore"
# a pattern of a .gitignore file piece by piece (gitignore(5), "Pattern format"), and the regular expression it means
PIECE = re.compile(r"/\*\*(?=/)|^\*\*/|\*+|\?|\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL)
PIECES = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "?": "[^/]"}


def cases(
    paths: Iterable[str], select: Sequence[str] = (), exclude: Sequence[str] = (), docs: bool = False
) -> list[Case]:
    """Every named file, and the .grad files under the named folders; sorted by path, each once.

    With `docs`, documents (.md, .markdown, .rst) are taken like scripts, and each of their gradcli blocks is a case.

    A file that is named is always taken. Under a folder, names that start with a dot and links to folders are left
    out, and so is what the .gitignore files there and above, up to the root of the repository, say. `select` and
    `exclude` are patterns as in a .gitignore file, relative to the current folder: with `select` only files that match
    one of them are taken, and never one that matches `exclude`.

    Raises GradcliError GC721 for a pattern that cannot be read, and for a named document without `docs`.
    """
    found: list[Case] = []
    for path in matching_files(paths, select, exclude, docs):
        found += blocks(path) if docs and is_document(path) else [Case(path)]
    return found


def matching_files(
    paths: Iterable[str],
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    docs: bool = False,
    read: set[str] | None = None,
) -> list[str]:
    """The files that `cases` is about; the folders and .gitignore files that decide which they are go into `read`."""
    wanted, unwanted = option("--select", select), option("--exclude", exclude)
    found: set[str] = set()
    for path in paths:
        if not os.path.isdir(path):
            if is_document(path) and not docs:
                shown = visible(path, 200)
                raise error("GC721", f"{shown} is a document, not a script", help="add --docs to check its blocks")
            found.add(os.path.normpath(path))
            continue
        for file in walk(path, docs, set() if read is None else read):
            place = os.path.relpath(file).replace(os.sep, "/") if select or exclude else file
            if (not select or wanted.within(place)) and not unwanted.within(place):
                found.add(file)
    return sorted(found, key=lambda path: path.split(os.sep))


def nothing_found(
    paths: Sequence[str], select: Sequence[str] = (), exclude: Sequence[str] = (), docs: bool = False
) -> str:
    """Why `cases` finds nothing, and what to do: a text of one line."""
    names = ["this folder" if path == "." else visible(path, 60) for path in paths[:3]]
    where = "in " + " and ".join(names) + (" and others" if len(paths) > 3 else "")
    kinds = "scripts and blocks" if docs else "scripts"
    if exclude and (count := len(cases(paths, select, (), docs))):
        return f"--exclude {visible(' --exclude '.join(exclude))} leaves out all {kinds} {where} ({count:,})"
    if select and (count := len(cases(paths, (), (), docs))):
        told = f"--select {visible(' --select '.join(select))} takes none of the {kinds} {where} ({count:,})"
        return f"{told}; write it as in .gitignore: a/b or *.grad"
    if all(map(is_document, paths)):
        return f"no gradcli blocks {where}; a block begins with ```gradcli or .. code-block:: gradcli"
    if docs:
        return f"no .grad files and no documents with gradcli blocks {where}; name a file or folder that has some"
    documents = any(map(blocks, matching_files(paths, (), (), True)))
    hint = "add --docs for blocks in documents" if documents else "name a file or folder that has some"
    return f"no .grad files {where}; {hint}"


class Patterns:
    """The lines of a .gitignore file; paths are relative to its folder, with `/` between names."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = [translated(line.rstrip("\r\n")) for line in lines]
        self.rules = [rule for rule in found if rule is not None][::-1]

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


def translated(line: str) -> tuple[bool, bool, re.Pattern[str]] | None:
    """A line as (negated, for folders only, expression); None for a comment, an empty line and what git cannot read."""
    line = re.sub(r"(?<!\\) +$", "", line)
    negated, line = line.startswith("!"), line.removeprefix("!")
    folders_only, line = line.endswith("/"), line.removesuffix("/")
    if not line or (line.startswith("#") and not negated):
        return None
    anchored, line = "/" in line, line.removeprefix("/")
    start, inside, _ = line.rpartition("/**") if line.endswith("/**") else (line, "", "")  # everything in a folder
    text = ".+" if line == "**" else "".join(map(expression, PIECE.findall(start))) + ("/.+" if inside else "")
    try:
        return negated, folders_only, re.compile(text if anchored else f"(?:.*/)?{text}", re.DOTALL)
    except re.error:
        return None


def expression(piece: str) -> str:
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


def option(name: str, patterns: Sequence[str]) -> Patterns:
    """The patterns of an option; GC721 for one that means nothing."""
    for pattern in patterns:
        if translated(pattern) is None:
            raise error(
                "GC721", f"{name} cannot read the pattern `{visible(pattern, 200)}`", help="write a/b or *.grad"
            )
    return Patterns(patterns)


Rules = list[tuple[str, Patterns]]  # folders with a .gitignore file and what it says, the innermost last


def walk(folder: str, docs: bool, read: set[str]) -> Iterator[str]:
    """The scripts under a folder that git would not ignore, and with `docs` the documents.

    The folders and the .gitignore files that were read go into `read`.
    """
    start = os.path.abspath(folder)
    rules = {start: above(start, read)}
    for place, folders, files in os.walk(folder):
        here = os.path.abspath(place)
        read.add(here)
        known = rules.pop(here)
        if IGNORE in files:
            known = [*known, (here, ignored_in(here, read))]
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not is_ignored(known, os.path.join(here, name), True)
        )
        rules |= {os.path.join(here, name): known for name in folders}
        for name in files:
            wanted = not name.startswith(".") and (name.endswith(SUFFIX) or (docs and is_document(name)))
            if wanted and not is_ignored(known, os.path.join(here, name), False):
                yield os.path.normpath(os.path.join(place, name))


def above(folder: str, read: set[str]) -> Rules:
    """The .gitignore files of the folders above one, if it lies in a repository: from the repository's root down."""
    found: Rules = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []  # no repository
        folder = parent
        if os.path.isfile(os.path.join(folder, IGNORE)):
            found.insert(0, (folder, ignored_in(folder, read)))
    return found


def ignored_in(folder: str, read: set[str]) -> Patterns:
    """What the .gitignore file of a folder says; nothing where it cannot be read."""
    path = os.path.join(folder, IGNORE)
    read.add(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return Patterns(file)
    except OSError:
        return Patterns(())


def is_ignored(rules: Rules, path: str, folder: bool) -> bool:
    """Whether an entry is ignored, where its folder is not: the innermost file that speaks of it decides."""
    for root, patterns in reversed(rules):
        found = patterns.decision(os.path.relpath(path, root).replace(os.sep, "/"), folder)
        if found is not None:
            return found
    return False
