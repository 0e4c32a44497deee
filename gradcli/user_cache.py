"""Caches in the user's home folder: where they are, who may write to them, and digests that show damage."""

from __future__ import annotations

import os
import stat
from hashlib import blake2b

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
    """Whether a file or folder is the user's, and nobody else's to write to; Windows keeps profiles apart itself."""
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
