"""A cache of machine code on disk that is safe against damage and against other users.

An entry is one file: a digest, then what numba serialises. numba unpickles its entries, so it only gets entries that
this user wrote: the folder and the file belong to the user, no other user may write to them, and the
digest fits. Where anything goes wrong (a full disk, a read-only folder, another version), the loop is compiled
again without a message.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from gradcli.user_cache import SIZE, cache_root, digest, private


class CompileCache:
    """The entries of one function, in the form in which numba's dispatcher uses its own cache."""

    def __init__(self, identity: bytes) -> None:
        self.identity = identity
        self.cache_path = ""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function for the types of some arguments; None where it has to be compiled."""
        with suppress(Exception):
            target.refresh()
            key = self._key(signature, target.codegen())
            content = read(key)
            if content is not None:
                loads = import_module("numba.core.serialize").loads
                result = import_module("numba.core.compiler").CompileResult
                return result._rebuild(target, *loads(content))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled function, unless it depends on addresses of this process."""
        with suppress(Exception):
            if not compiled.library.has_dynamic_globals and not any(not one.can_cache for one in compiled.lifted):
                dumps = import_module("numba.core.serialize").dumps
                write(self._key(signature, compiled.codegen), dumps(compiled._reduce()))

    def enable(self) -> None:
        """Nothing: it is always on."""

    disable = flush = enable

    def _key(self, signature: Any, codegen: Any) -> bytes:
        versions = (import_module("numba").__version__, sys.version, sys.implementation.cache_tag)
        return digest(self.identity, repr((versions, codegen.magic_tuple(), signature)).encode())


def folder() -> Path | None:
    """The folder of entries; None where there is none that only the user can write to."""
    root = cache_root(os.environ)
    if not root:
        return None
    Path(root).mkdir(mode=0o700, parents=True, exist_ok=True)
    place = Path(root)
    for name in ("gradcli", "loops"):
        place = place / name
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        state = place.lstat()
        if not stat.S_ISDIR(state.st_mode) or not private(state):
            return None
    return place


def read(key: bytes) -> bytes | None:
    """The content of an entry; None where there is none, or not as it was written."""
    place = folder()
    if place is None:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    number = os.open(place / key.hex(), flags)
    with os.fdopen(number, "rb") as file:
        state = os.fstat(number)
        if not stat.S_ISREG(state.st_mode) or not private(state):
            return None
        sealed = file.read()
    content = sealed[SIZE:]
    return content if digest(key, content) == sealed[:SIZE] else None


def write(key: bytes, content: bytes) -> None:
    """Make an entry at once: another process finds all of it or nothing. Raises OSError."""
    place = folder()
    if place is None:
        return
    unfinished = place / f"{key.hex()}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(digest(key, content) + content)
        unfinished.replace(place / key.hex())
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
