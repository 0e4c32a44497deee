"""Reads command lines: `Words` finds the options and operands of any of them, `direct` the values of most.

An argument that begins with a minus is an option, unless it holds a character that options do not have, or begins like
a number: `-x` and `-j4` are options, `-x**2` and `-2` are expressions. `-e` and `--` lift the rule. For help, and for
options or values that it does not know, `direct` returns None. The full reader, which uses the same declarations and
the same words, then writes all messages.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options.declaration import EXPRESSION, RENAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9-]*(=.*)?|-[A-Za-z][A-Za-z0-9_.~%:\\,-]*", re.DOTALL)


class ParsedCommand(NamedTuple):
    """A command with its arguments; `arguments` has only those on the command line. `notes` are on its spelling."""

    command: str
    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


class Words:
    """The parts of a command line that begins with a command.

    `options` are written as `--name` or `--name=value`; what is not known stands among them as it is, and a `missing`
    value leaves its option without one. `rest` is what a `rest` operand takes: it begins behind the operands before it
    and the options that follow them, or at `--`. Raises GradcliError GC721 for an ambiguous argument.
    """

    __slots__ = ("declared", "known", "missing", "notes", "operands", "options", "rest", "waiting")

    def __init__(self, argv: Sequence[str]) -> None:
        self.declared = declaration(argv[0])
        self.known = self.declared.spelled()
        self.options: list[str] = []
        self.operands: list[str] = []
        self.rest: list[str] = []
        self.notes: list[str] = []
        self.missing = False
        self.waiting = [*reversed(argv[1:])]
        before = sum(not operand.rest for operand in self.declared.operands)
        takes_rest = before < len(self.declared.operands)
        while self.waiting:
            word = self.waiting.pop()
            full = takes_rest and len(self.operands) == before
            if word == "--":
                count = before - len(self.operands) if takes_rest else len(self.waiting)
                following = [*reversed(self.waiting)]
                self.operands, self.rest = self.operands + following[:count], following[count:]
                return
            option = self.is_option(word)
            if full and not (option and (not before or self.is_own(word))):
                self.rest = [word, *reversed(self.waiting)]
                return
            if not option:
                self.operands.append(word)
            elif word.startswith("--"):
                self.long(word)
            else:
                self.short(word)

    def is_own(self, word: str) -> bool:
        """Whether an argument is an option of the command in a long spelling."""
        name = word.partition("=")[0]
        return name.startswith("--") and (name in self.known or name in RENAMED or name in self.declared.renamed)

    def is_option(self, word: str) -> bool:
        """Whether an argument is an option; raises GC721 for one that could be an expression as well."""
        if OPTION.fullmatch(word):
            return True
        if word[:1] != "-" or not word[1:2].isalpha():
            return False
        option, joined = self.known.get(word[:2]), word[2:]
        if option is not None and option.kind != "flag" and joined[:1] == "=" != joined[1:2]:
            return True
        free = option is not None and option.kind == "text" and not option.choices
        if option is EXPRESSION:
            free = joined[0].isalnum()
        if free and "(" not in word and not re.search(r"\s", word):
            self.ambiguous(word)
        return False

    def ambiguous(self, word: str) -> None:
        """Raise GradcliError for an option with its value behind it that could be an expression."""
        from shlex import quote

        shown = visible(word, 200)
        hint = f"write {word[:2]} {quote(word[2:])}, or -e {quote(word)} for the expression"
        raise error("GC721", f"`{shown}` is an option with its value, or an expression", help=visible(hint, 500))

    def long(self, word: str) -> None:
        """Read an option in a long spelling, and its value."""
        name, equals, value = word.partition("=")
        meaning = {**RENAMED, **self.declared.renamed}.get(name, name)
        option = self.known.get(meaning.partition("=")[0])
        if meaning != name:
            self.notes.append(f"{name} is now {meaning.replace('=', ' ')}")
        if option is None or (equals and (option.kind == "flag" or "=" in meaning)):
            self.options.append(word)
        elif option.kind == "flag" or "=" in meaning:
            self.options.append(meaning)
        else:
            self.take(meaning, equals + value)

    def short(self, word: str) -> None:
        """Read options in short spellings, of which the last may have its value behind it."""
        meanings = {"-h": "--help", **self.declared.short}
        if word in meanings:
            meanings = {"-" + word[1:2]: meanings[word]}
            word = word[:2]
        for at, letter in enumerate(word[1:], 2):
            option = self.known.get(f"-{letter}")
            meaning = meanings.get(f"-{letter}") or (option.spellings[0] if option is not None else "")
            if not meaning:
                self.options.append(word)
                return
            if option is EXPRESSION and word[at:]:
                self.ambiguous(word)
            if "=" not in meaning and option is not None and option.kind != "flag":
                self.take(meaning, "=" + word[at:].removeprefix("=") if word[at:] else "")
                return
            self.options.append(meaning)

    def take(self, name: str, joined: str) -> None:
        """Read the value of an option: what is joined to it behind `=`, or the next argument."""
        after = self.waiting[-1] if self.waiting else None
        if not joined and (after is None or (self.is_own(after) and name not in EXPRESSION.spellings)):
            self.options.append(name)
            self.missing = True
            self.waiting.clear()
            return
        value = joined[1:] if joined else self.waiting.pop()
        if name in EXPRESSION.spellings:
            self.operands.append(f"{value}\n")  # no name of a file or an option has a line break
        else:
            self.options.append(f"{name}={value}")


def direct(argv: Sequence[str]) -> ParsedCommand | None:
    """The call of a command line whose options and values it knows, or None for any other."""
    if not argv or argv[0] not in COMMANDS:
        return ParsedCommand("--version", {}) if list(argv) == ["--version"] else None
    words = Words(argv)
    arguments: dict[str, Any] = {}
    for word in words.options:
        name, equals, text = word.partition("=")
        option = words.known.get(name)
        if option is None or (option.kind == "flag") == bool(equals):
            return None
        value = True if option.kind == "flag" else option.plain(text)
        if value is None:
            return None
        arguments[option.name] = (*arguments.get(option.name, ()), value) if option.many else value
    return ParsedCommand(argv[0], arguments, tuple(words.notes)) if assigned(words, arguments) else None


def assigned(words: Words, arguments: dict[str, Any]) -> bool:
    """Assign the operands to their names; False if their number is wrong."""
    operands = words.operands
    for operand in words.declared.operands:
        if operand.rest:
            if words.rest:
                arguments[operand.name] = tuple(words.rest)
        elif operand.many and operands:
            arguments[operand.name], operands = tuple(operands), []
        elif operands:
            arguments[operand.name], operands = operands[0], operands[1:]
        elif operand.required:
            return False
    return not operands
