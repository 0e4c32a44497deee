"""Files and folders go in, the scripts among them come out, in one order on every machine. Reads no file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX = ".grad"


def scripts(paths: Iterable[str]) -> list[str]:
    """Every named file, and every .grad file under the named folders; sorted, each once.

    Folders whose name starts with a dot are left out; links to folders are not followed.
    """
    found: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            found.update(_under(path))
        else:
            found.add(os.path.normpath(path))
    return sorted(found, key=lambda path: path.split(os.sep))


def _under(folder: str) -> Iterable[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if name.endswith(SUFFIX):
                yield os.path.normpath(os.path.join(place, name))
