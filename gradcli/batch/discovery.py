"""Which scripts a check of folders is about: a walk that leaves out what git ignores. Reads no script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SUFFIX = ".grad"
IGNORE = ".gitignore"


def scripts(paths: Iterable[str], select: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
    """Every named file, and the .grad files under the named folders; sorted, each once.

    A file that is named is always taken. Under a folder, names that start with a dot and links to folders are left
    out, and so is what the .gitignore files there and above, up to the root of the repository, say. `select` and
    `exclude` are patterns as in a .gitignore file, relative to the current folder: with `select` only files that match
    one of them are taken, and never one that matches `exclude`.

    Raises GradcliError GC721 for a pattern that cannot be read.
    """
    wanted, unwanted = specification("--select", select), specification("--exclude", exclude)
    found: set[str] = set()
    for path in paths:
        if not os.path.isdir(path):
            found.add(os.path.normpath(path))
            continue
        for file in walk(path):
            place = os.path.relpath(file)
            if (not select or wanted.match_file(place)) and not unwanted.match_file(place):
                found.add(file)
    return sorted(found, key=lambda path: path.split(os.sep))


def specification(option: str, patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns of an option as one specification."""
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as problem:
        raise error("GC721", f"cannot read the pattern of {option}: {visible(str(problem), 200)}") from None


def walk(folder: str) -> Iterator[str]:
    """The scripts under a folder that git would not ignore."""
    rules = {os.path.abspath(folder): above(os.path.abspath(folder))}
    for place, folders, files in os.walk(folder):
        known = rules.pop(os.path.abspath(place))
        if IGNORE in files:
            known = [*known, (os.path.abspath(place), ignored_in(place))]
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not is_ignored(known, place, name + "/")
        )
        for name in folders:
            rules[os.path.abspath(os.path.join(place, name))] = known
        for name in files:
            if name.endswith(SUFFIX) and not is_ignored(known, place, name):
                yield os.path.normpath(os.path.join(place, name))


Rules = list[tuple[str, GitIgnoreSpec]]  # the folder of a .gitignore file, and what it says; the innermost comes last


def above(folder: str) -> Rules:
    """The .gitignore files of the folders above one, if it lies in a repository: from the repository's root down."""
    found: Rules = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []  # no repository
        folder = parent
        if os.path.isfile(os.path.join(folder, IGNORE)):
            found.insert(0, (folder, ignored_in(folder)))
    return found


def ignored_in(folder: str) -> GitIgnoreSpec:
    """What the .gitignore file of a folder says; nothing where it cannot be read."""
    try:
        with open(os.path.join(folder, IGNORE), encoding="utf-8", errors="replace") as file:
            return GitIgnoreSpec.from_lines(file)
    except (OSError, ValueError):
        return GitIgnoreSpec.from_lines(())


def is_ignored(rules: Rules, folder: str, name: str) -> bool:
    """Whether an entry of a folder is ignored: the innermost .gitignore file that speaks of it decides."""
    path = os.path.join(os.path.abspath(folder), name)
    for root, rule in reversed(rules):
        verdict = rule.check_file(os.path.relpath(path, root) + ("/" if name.endswith("/") else "")).include
        if verdict is not None:
            return verdict
    return False
