"""Caches in the user's home folder: where they are, who may write to them, and digests that show damage.

A sealed entry is one file: a digest, then its content. It is read only if it belongs to this user, as does its folder,
no other user may write to them, and the digest fits.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SIZE = 32  # bytes of a digest
OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root(environment: Mapping[str, str]) -> str:
    """The folder of all caches of the user, `$XDG_CACHE_HOME` or `~/.cache`; empty where there is no home."""
    root = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):
        root = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return root if os.path.isabs(root) else ""


def private(state: os.stat_result) -> bool:
    """Whether a file or folder is the user's and only the user may write to it; on Windows, profiles are separate."""
    if not hasattr(os, "geteuid"):
        return True
    return state.st_uid == os.geteuid() and not state.st_mode & OTHERS


def digest(*parts: bytes) -> bytes:
    """A digest of some parts, each with its length."""
    hashed = blake2b(digest_size=SIZE)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()


def private_folder(name: str) -> Path | None:
    """The folder of sealed entries of one kind; None where there is none that only the user can write to."""
    root = cache_root(os.environ)
    if not root:
        return None
    Path(root).mkdir(mode=0o700, parents=True, exist_ok=True)
    place = Path(root)
    for part in ("gradcli", name):
        place = place / part
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        state = place.lstat()
        if not stat.S_ISDIR(state.st_mode) or not private(state):
            return None
    return place


def read_sealed(folder: str, key: bytes) -> bytes | None:
    """The content of an entry; None or OSError where there is none, or not as it was written."""
    place = private_folder(folder)
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


def write_sealed(folder: str, key: bytes, content: bytes) -> None:
    """Make an entry at once: another process finds all of it or nothing. Raises OSError."""
    place = private_folder(folder)
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
