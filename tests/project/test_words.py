"""One word for one thing, the field's: in what is printed, in help texts and in the documents.

The first column is what is not written, the second what is written instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options.declaration import Declaration

ROOT = Path(__file__).parents[2]
GENERATED = ("execution/cuda/", "execution/compiler/")  # strings there are code
WORDS: list[tuple[str, str]] = [
    (r"(?:\ba|\ban|\bthe|\bthis|\beach|\bevery|\bearlier|\bfirst|\blast|\bnext|\bof|\ball|\d|\}) turns?\b(?! into)|\bturns of\b", "iteration"),
    (r"(?:^|\W)turn \{", "iteration"),
    (r"\bremarks?\b|(?<!TAP )\bdirectives?\b", "pragma"),
    (r"\bpulls? back\b|(?<!\.)\bpullback", "vjp"),
    (r"\bpush(?:es)? forward\b", "jvp"),
    (r"\bcotangent flows?\b|\bthe flow of\b", "cotangent"),
    (r"\bcures?\b|\bcured\b|\bmend(?:s|ed)?\b", "fix"),
    (r"\bslips?\b", "mistake"),
    (r"\brungs?\b|\bladders?\b", "sequence of steps"),
    (r"\bgerms?\b", "log-Puiseux expansion"),
    (r"\blanes?\b", "fiber"),
    (r"\bbackward sweeps?\b|\breverse sweeps?\b", "backward pass"),
    (r"\bstretche[sd]\b|\bstretch\b", "broadcast"),
    (r"\bspellings?\b", "rewrite"),
    (r"\bnone that exists\b", "unknown backend"),
    (r"\bbeside them\b(?=.*\bMiB\b)", "temporaries"),
    (r"(?-i:\bagrees: (?:yes|no)\b)", "agrees with the claim"),
]  # fmt: skip
CODE = re.compile(r"`[^`]*`|\[[^]]*\]\([^)]*\)")  # code and links, which have names of files
# options that mean one thing, and have other words where a command has fewer forms of it
ALIKE = {
    "--allow", "--at", "--box", "--claim", "--dtype", "--format", "--jobs", "--order", "--quiz", "--sarif", "--show",
    "--step-sizes", "--timeout",
}  # fmt: skip
FORBIDDEN = [(re.compile(pattern, re.IGNORECASE), word) for pattern, word in WORDS]


def wrong(text: str) -> Iterator[str]:
    for pattern, word in FORBIDDEN:
        for match in pattern.finditer(text):
            yield f"{text[max(0, match.start() - 40) : match.end() + 40]!r}: write {word}"


def printed(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file that can be printed: strings with words in them, but not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [str(x.value) if isinstance(x, ast.Constant) else "{}" for x in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | docstrings:
            if " " in node.value.strip():
                yield node.lineno, node.value


def test_printed_texts_have_the_words_of_the_field() -> None:
    files = [path for path in sorted((ROOT / "gradcli").rglob("*.py")) if not any(x in str(path) for x in GENERATED)]
    assert len(files) > 300
    found = [
        f"{path.relative_to(ROOT)}:{line}: {problem}"
        for path in files
        if any(pattern.search(path.read_text(encoding="utf-8")) for pattern, _ in FORBIDDEN)  # parsing takes longer
        for line, text in printed(path)
        for problem in wrong(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["docs", "samples", "."])
def test_documents_have_the_words_of_the_field(folder: str) -> None:
    paths = [*(ROOT / folder).rglob("*.md")] if folder != "." else [*ROOT.glob("*.md"), ROOT / "gradcli" / "README.md"]
    texts = [path for path in sorted(paths) if path.name != "CHANGELOG.md" and "found" not in path.parts]
    assert texts
    found = [
        f"{path.relative_to(ROOT)}:{number}: {problem}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for problem in wrong(CODE.sub("", line))
    ]
    assert not found, "\n".join(found)


def test_help_has_the_words_of_the_field_and_a_name_of_an_option_one_meaning() -> None:
    found: list[str] = []
    meanings: dict[str, dict[str, str]] = {}
    for name in COMMANDS:
        declared: Declaration = declaration(name)
        found += wrong(declared.function.__doc__ or "")
        for option in declared.options:
            meanings.setdefault(option.spellings[0], {})[name] = option.help
    assert not found, "\n".join(found)
    several = {option for option, helps in meanings.items() if len({*helps.values()}) > 1}
    assert several <= ALIKE, "an option with other words in another command: is it the same thing?"
