"""Finds the scripts and blocks of documents of a check by walking folders, without files that git ignores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gradcli.base.diagnostics import error, visible
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.discovery.documents import blocks, is_document
from gradcli.batch.discovery.gitignore import IGNORE, Patterns, is_ignored, parse_pattern, read_patterns, rules_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SUFFIX = ".grad"


def find_cases(
    paths: Iterable[str], select: Sequence[str] = (), exclude: Sequence[str] = (), docs: bool = False
) -> list[BatchCase]:
    """Every named file, and the .grad files under the named folders; sorted by path, each once.

    With `docs`, documents (.md, .markdown, .rst) are taken like scripts, and each of their gradcli blocks is a case.

    A named file is always taken. Under a folder, names that start with a dot, links to folders, pipes and devices are
    skipped, and so are files that the .gitignore files there and above, up to the root of the repository, ignore. A
    broken link and a folder that cannot be read are taken, so that their errors are reported. `select` and `exclude`
    are patterns as in a .gitignore file, relative to the current folder: with `select` only files that match one of
    them are taken; files that match `exclude` are not.

    Raises GradcliError GC721 for a pattern that cannot be read, and for a named document without `docs`.
    """
    cases: list[BatchCase] = []
    for path in find_files(paths, select, exclude, docs):
        cases += blocks(path) if docs and is_document(path) else [BatchCase(path)]
    return cases


def find_files(
    paths: Iterable[str],
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    docs: bool = False,
    read: set[str] | None = None,
) -> list[str]:
    """The files of `find_cases`; `read` receives the folders and .gitignore files that decide on them."""
    wanted, unwanted = option("--select", select), option("--exclude", exclude)
    files: set[str] = set()
    for path in paths:
        if not os.path.isdir(path):
            if is_document(path) and not docs:
                shown = visible(path, 200)
                raise error("GC721", f"{shown} is a document, not a script", help="add --docs to check its blocks")
            files.add(os.path.normpath(path))
            continue
        for file in walk(path, docs, set() if read is None else read):
            place = os.path.relpath(file).replace(os.sep, "/") if select or exclude else file
            if (not select or wanted.within(place) or os.path.isdir(file)) and not unwanted.within(place):
                files.add(file)
    return sorted(files, key=lambda path: path.split(os.sep))


def nothing_found(
    paths: Sequence[str], select: Sequence[str] = (), exclude: Sequence[str] = (), docs: bool = False
) -> str:
    """The reason why `find_cases` finds nothing, and what to do, in one line."""
    names = ["this folder" if path == "." else visible(path, 60) for path in paths[:3]]
    where = "in " + " and ".join(names) + (" and others" if len(paths) > 3 else "")
    kinds = "scripts and blocks" if docs else "scripts"
    if exclude and (count := len(find_cases(paths, select, (), docs))):
        return f"--exclude {visible(' --exclude '.join(exclude))} leaves out all {kinds} {where} ({count:,})"
    if select and (count := len(find_cases(paths, (), (), docs))):
        phrase = f"--select {visible(' --select '.join(select))} takes none of the {kinds} {where} ({count:,})"
        return f"{phrase}; write it as in .gitignore: a/b or *.grad"
    if all(map(is_document, paths)):
        return f"no gradcli blocks {where}; a block begins with ```gradcli or .. code-block:: gradcli"
    if docs:
        return f"no .grad files and no documents with gradcli blocks {where}; name a file or folder that has some"
    documents = any(map(blocks, find_files(paths, (), (), True)))
    hint = "add --docs for blocks in documents" if documents else "name a file or folder that has some"
    return f"no .grad files {where}; {hint}"


def option(name: str, patterns: Sequence[str]) -> Patterns:
    """The patterns of an option; raises GC721 for a malformed one."""
    for pattern in patterns:
        if parse_pattern(pattern) is None:
            raise error(
                "GC721", f"{name} cannot read the pattern `{visible(pattern, 200)}`", help="write a/b or *.grad"
            )
    return Patterns(patterns)


def walk(folder: str, docs: bool, read: set[str]) -> Iterator[str]:
    """The scripts under a folder that git would not ignore, and with `docs` the documents; also unreadable folders.

    `read` receives the folders and the .gitignore files that were read.
    """
    start = os.path.abspath(folder)
    rules = {start: rules_above(start, read)}
    unreadable: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=unreadable.append):
        absolute = os.path.abspath(place)
        read.add(absolute)
        known = rules.pop(absolute)
        if IGNORE in files:
            known = [*known, (absolute, read_patterns(absolute, read))]
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not is_ignored(known, os.path.join(absolute, name), True)
        )
        rules |= {os.path.join(absolute, name): known for name in folders}
        for name in files:
            wanted = not name.startswith(".") and (name.lower().endswith(SUFFIX) or (docs and is_document(name)))
            path = os.path.join(absolute, name)
            if wanted and not is_ignored(known, path, False) and (os.path.isfile(path) or not os.path.exists(path)):
                yield os.path.normpath(os.path.join(place, name))
    yield from (os.path.normpath(problem.filename) for problem in unreadable if os.path.isdir(problem.filename))
