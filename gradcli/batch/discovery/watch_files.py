"""Watches the files of a check: it polls them in short intervals, and a change starts the next run.

A poll is one `stat` for each file and folder. Folders are only searched anew where one of them has changed, so that
10,000 unchanged files cost a few hundredths of a second. A file that was written within the last moments is read as
well: two writes may have the same time.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gradcli.batch.discovery.walk import find_files
from gradcli.lowering.data_files.loading import signature_of, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    State = tuple[tuple[int, int, int, int] | None, str | None]

QUIET = 0.1  # seconds without a further change before a change counts: editors write a file in several steps
RACY = 2_000_000_000  # nanoseconds in which two writes may have the same time
LONGEST = 2.0  # seconds after which it counts anyway


def changes(
    paths: Sequence[str],
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    docs: bool = False,
    *,
    also: Callable[[], Iterable[str]] = tuple,
    interval: float = 0.5,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Yield at once, and again after each change of the files that `walk.find_cases` finds for these arguments.

    A change is a file that is written, added or removed. The paths that `also` returns belong to the run too - data
    files that scripts opened, a configuration file -, and need not exist. Changes while the caller is busy count too.
    It ends at an interrupt (Ctrl-C) while it waits.
    """
    read: set[str] = set()  # the folders and .gitignore files that decide which files there are

    def discovered() -> list[str]:
        read.clear()
        read.update(paths)
        return find_files(paths, select, exclude, docs, read)

    files = discovered()
    trail, about, data = state(read), state(files), state(also())
    unsettled = True  # what is added while folders are searched may be missed: they are searched once more
    while True:
        yield
        changed_at: float | None = None
        try:
            data |= state([path for path in also() if path not in data])
            while True:
                now = state(trail, trail)
                moved, trail = differ(trail, now), now
                if moved or unsettled:
                    files, unsettled = discovered(), moved
                    trail = state(read, trail)
                before, about, data = {**data, **about}, state(files, about), state(data, data)
                changed = differ(before, {**data, **about})
                if changed_at is not None and (not changed or clock() - changed_at >= LONGEST):
                    break
                if changed and changed_at is None:
                    changed_at = clock()
                sleep(interval if changed_at is None else min(QUIET, interval))
        except KeyboardInterrupt:
            return


def state(paths: Iterable[str], before: Mapping[str, State] | None = None) -> dict[str, State]:
    """The signatures of some paths, and digests of what was written just now, or just before the last state."""
    now = time.time_ns()
    states: dict[str, State] = {}
    for path in paths:
        signature = signature_of(path)
        old, digest = (before or {}).get(path, (None, None))
        recent = signature is not None and now - max(signature[2:]) < RACY
        known = digest if signature == old else None
        content = content_of(path) if recent or known is not None else None
        states[path] = signature, None if content == known and not recent else content
    return states


def differ(before: Mapping[str, State], after: Mapping[str, State]) -> bool:
    """Whether a path is new or gone, or was written."""
    return before.keys() != after.keys() or any(
        old[0] != new[0] or (None not in (old[1], new[1]) and old[1] != new[1])
        for old, new in zip(before.values(), map(after.__getitem__, before), strict=True)
    )


def content_of(path: str) -> str | None:
    """The names in a folder, or a digest of a file."""
    return "\n".join(sorted(os.listdir(path))) if os.path.isdir(path) else state_of(path)
