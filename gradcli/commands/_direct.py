"""Reads a plain command line fast: known command, known `--long value` or `--long=value`, the right number of operands.

For anything else (help, short or unknown options, an operand that starts with a minus) it returns None. The full
reader, which uses the same declarations, then reads the command line and writes all messages.
"""

from __future__ import annotations

from gradcli.commands import COMMANDS, declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.commands._declaration import Operand


class Call:
    """A command with its arguments; `arguments` has only those on the command line."""

    __slots__ = ("arguments", "command")

    def __init__(self, command: str, arguments: dict[str, Any]) -> None:
        self.command = command
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and (self.command, self.arguments) == (other.command, other.arguments)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Call({self.command!r}, {self.arguments!r})"


def direct(argv: Sequence[str]) -> Call | None:
    """The call for a plainly spelled command line, or None for any other."""
    if not argv or argv[0] not in COMMANDS:
        return Call("--version", {}) if list(argv) == ["--version"] else None
    declared = declaration(argv[0])
    options = {name: option for name, option in declared.spelled().items() if name.startswith("--")}
    argv, arguments = parted(argv)
    operands: list[str] = []
    rest = iter(argv[1:])
    for token in rest:
        if not token.startswith("--"):
            if not token or (token.startswith("-") and token != "-"):
                return None
            operands.append(token)
            continue
        name, equals, text = token.partition("=")
        option = options.get(name)
        if option is None:
            return None
        if option.kind == "flag":
            if equals:
                return None
            arguments[option.name] = True
            continue
        if not equals:
            text = next(rest, "-")
        value = None if text.startswith("-") or not text else option.plain(text)
        if value is None:
            return None
        arguments[option.name] = (*arguments.get(option.name, ()), value) if option.many else value
    plain = tuple(operand for operand in declared.operands if not operand.rest)
    return Call(argv[0], arguments) if assigned(plain, operands, arguments) else None


def parted(argv: Sequence[str]) -> tuple[Sequence[str], dict[str, Any]]:
    """The command line without the arguments of a `rest` operand, and the value of that operand by its name.

    After the operands before it, options of the command are still read, up to the first argument that is not an option;
    `--` ends them at once.
    """
    declared = declaration(argv[0]) if argv and argv[0] in COMMANDS else None
    taker = next((operand for operand in declared.operands if operand.rest), None) if declared else None
    if declared is None or taker is None:
        return argv, {}
    options, missing = declared.spelled(), len(declared.operands) - 1
    at = 1
    while at < len(argv):
        name, equals, _ = argv[at].partition("=")
        option = options.get(name)
        if option is not None and (missing or name.startswith("--")):
            at += 1 if option.kind == "flag" or equals else 2
        elif argv[at] == "--":
            if not missing:
                return argv[:at], {taker.name: tuple(argv[at + 1 :])} if argv[at + 1 :] else {}
            return argv, {}
        elif missing:
            missing -= not (argv[at].startswith("-") and len(argv[at]) > 1)
            at += 1
        elif len(declared.operands) == 1 and argv[at].startswith("-"):  # the full reader says what is wrong with it
            return argv, {}
        else:
            return argv[:at], {taker.name: tuple(argv[at:])}
    return argv, {}


def assigned(declared: Sequence[Operand], operands: list[str], arguments: dict[str, Any]) -> bool:
    """Assign the operands to their names; False if their number is wrong."""
    for operand in declared:
        if operand.many and operands:
            arguments[operand.name], operands = tuple(operands), []
        elif operands:
            arguments[operand.name], operands = operands[0], operands[1:]
        elif operand.required:
            return False
    return not operands


def shielded(argv: Sequence[str]) -> list[str]:
    """The arguments with a space before each operand that starts with a minus: it is not an option to typer.

    What looks like a long option (`--word`) is not changed: if it is none, typer says so. `exposed` undoes it.
    """
    options = declaration(argv[0]).spelled() if argv and argv[0] in COMMANDS else {}
    result: list[str] = []
    rest = iter(argv)
    for token in rest:
        if token == "--":
            return [*result, token, *rest]
        name, equals, _ = token.partition("=")
        option = options.get(name)
        word = name.startswith("--") and name[2:3].isalpha() and name[2:].replace("-", "").isalnum()
        if token.lstrip(" ").startswith("-") and token != "-" and option is None and not word and token != "-h":
            token = " " + token
        result.append(token)
        if option is not None and option.kind != "flag" and not equals:
            result += [value for value in [next(rest, None)] if value is not None]
    return result


def exposed(operand: str) -> str:
    """An operand without the space that `shielded` put before it."""
    return operand[1:] if operand[:1] == " " and operand.lstrip(" ").startswith("-") else operand
