"""Faulty programs of PyTorch, each with the right one beside it, in `tests/observe/why_programs/*.txt`; in `right.txt` only right ones.

A program begins with `=== title | reason /words/`: the reason that `why` must give, and a pattern that message and fix
must match. The lines that may be named end in `#!`; those that end in `#-` are in the faulty program only, and what
follows `#+` is in the right one only. Four imports and a seed stand before each program.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "observe" / "why_programs"
PRELUDE = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"
HEAD = re.compile(r"=== (?P<title>[^|]+)(?: \| (?P<reason>[\w-]+)(?: /(?P<words>.+)/)?)?")
MARKED = re.compile(r"\s*#(?P<marks>!|-|!-)$")


class Case(NamedTuple):
    """A faulty program, the right one, and what is to be said."""

    title: str
    reason: str  # empty for a right program
    words: str
    lines: frozenset[int]
    faulty: str
    right: str


def cases() -> list[Case]:
    """All programs, in the order of the files."""
    return [case for path in sorted(FOLDER.glob("[a-z]*.txt")) for case in parsed(path.read_text(encoding="utf-8"))]


def parsed(text: str) -> list[Case]:
    """The programs of one file."""
    found: list[Case] = []
    for part in re.split(r"^(?==== )", text, flags=re.MULTILINE)[1:]:
        head, *body = part.splitlines()
        match = HEAD.fullmatch(head)
        assert match is not None, head
        faulty, right, lines = [], [], set()
        for line in body:
            added = re.match(r"(?P<indent>\s*)#\+ (?P<code>.*)", line)
            if added:
                right.append(added["indent"] + added["code"])
                continue
            marks = MARKED.search(line)
            code = MARKED.sub("", line)
            faulty.append(code)
            if marks is None or "-" not in marks["marks"]:
                right.append(code)
            if marks is not None and "!" in marks["marks"]:
                lines.add(len(faulty) + PRELUDE.count("\n"))
        texts = [PRELUDE + "\n".join(lines) + "\n" for lines in (faulty, right)]
        found.append(Case(match["title"], match["reason"] or "", match["words"] or "", frozenset(lines), *texts))
    return found
