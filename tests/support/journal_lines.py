"""Keys and lines for the tests of the journal; processes that write to one import this alone, as it is light."""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING, Any

from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

STAMP = b"a stamp"


def key_of(number: int) -> bytes:
    return Journal.key(BatchCase(f"scripts/{number}.grad"), b"x**%d" % number, STAMP)


def line_of(number: int) -> str:
    chance = random.Random(number)
    text = "".join(chance.choice("abcdefgh") for _ in range(chance.randrange(20, 4000)))
    report = {"report": {"number": number, "text": text, "name": "\udc80é"}, "seconds": [0.5]}
    return json.dumps({**report, "opened": [], "clock": False})


def filled(folder: Path | str | None, count: int = 30, **more: Any) -> Journal:
    """A journal with some lines, of which every second one failed."""
    journal = Journal(None if folder is None else str(folder), **more)
    for number in range(count):
        journal.put(key_of(number), line_of(number))
        journal.remember(f"/p/{number}.grad", number % 3, number % 2 == 0)
    return journal


def codes(journal: Journal) -> list[str]:
    return [note.code for note in journal.notes]


def write(folder: str, first: int, last: int) -> None:
    """Store lines and print the number of each one that is stored, then the codes of the notes."""
    journal = Journal(folder)
    for number in range(first, last):
        journal.put(key_of(number), line_of(number))
        journal.remember(f"/{number}", 0, True)
        print(number, flush=True)
    journal.close()
    print(codes(journal))


def write_with_limit(folder: str, limit: int) -> None:
    """Store lines while no file may grow over a limit, and print the codes of the notes."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    journal = filled(folder)
    assert all(journal.get(key_of(number)) in (None, line_of(number)) for number in range(30))
    journal.close()
    print(codes(journal))


if __name__ == "__main__":
    {"write": write, "write_with_limit": write_with_limit}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
