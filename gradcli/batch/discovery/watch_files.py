"""Watches the files of a check: it polls them in short intervals, and a change starts the next run.

A poll is one `stat` for each file and folder. Folders are only searched anew where one of them has changed, so that
10,000 unchanged files cost a few hundredths of a second.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gradcli.batch.discovery.walk import find_files
from gradcli.data.loading import signature_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Signature = tuple[int, int, int] | None

QUIET = 0.1  # seconds without a further change before a change counts: editors write a file in several steps
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
            data = {path: data[path] if path in data else signature_of(path) for path in also()}
            while True:
                moved = state(trail) != trail
                if moved or unsettled:
                    files, unsettled = discovered(), moved
                    trail = state(read)
                before, about, data = (about, data), state(files), state(data)
                changed = before != (about, data)
                if changed_at is not None and (not changed or clock() - changed_at >= LONGEST):
                    break
                if changed and changed_at is None:
                    changed_at = clock()
                sleep(interval if changed_at is None else min(QUIET, interval))
        except KeyboardInterrupt:
            return


def state(paths: Iterable[str]) -> dict[str, Signature]:
    """The signatures of some paths."""
    return {path: signature_of(path) for path in paths}
