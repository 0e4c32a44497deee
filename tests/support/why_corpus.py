"""Faulty programs of PyTorch and JAX, each with the right one beside it; in `right.txt` only right ones.

They stand in `tests/observe/why_programs/`, those of JAX in `jax/`.

A program begins with `=== title | reason /words/`: the reason that `why` must give, and a pattern that message and fix
must match. The lines that may be named end in `#!`; those that end in `#-` are in the faulty program only, and what
follows `#+` is in the right one only. Four imports and a seed stand before each program.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "observe" / "why_programs"
PRELUDES = {
    "torch": "import torch\nfrom torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n",
    "jax": "import jax\nimport jax.numpy as jnp\nfrom jax import lax\nimport numpy as np\n",
}
HEAD = re.compile(r"=== (?P<title>[^|]+)(?: \| (?P<reason>[\w-]+)(?: /(?P<words>.+)/)?)?")
MARKED = re.compile(r"\s*#(?P<marks>!|-|!-)$")


class Case(NamedTuple):
    """A faulty program of PyTorch or JAX, the right one, and what is to be said."""

    kind: str
    title: str
    reason: str  # empty for a right program
    words: str
    lines: frozenset[int]
    faulty: str
    right: str


def cases() -> list[Case]:
    """All programs, in the order of the files."""
    folders = {"torch": FOLDER, "jax": FOLDER / "jax"}
    files = [(kind, path) for kind, folder in folders.items() for path in sorted(folder.glob("[a-z]*.txt"))]
    return [case for kind, path in files for case in parsed(kind, path.read_text(encoding="utf-8"))]


def parsed(kind: str, text: str) -> list[Case]:
    """The programs of one file."""
    found, prelude = list[Case](), PRELUDES[kind]
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
                lines.add(len(faulty) + prelude.count("\n"))
        texts = [prelude + "\n".join(lines) + "\n" for lines in (faulty, right)]
        found.append(Case(kind, match["title"], match["reason"] or "", match["words"] or "", frozenset(lines), *texts))
    return found
