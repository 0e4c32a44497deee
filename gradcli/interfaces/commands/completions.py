"""`gradcli completions`: print a completion script for a shell, made from the declarations of all commands.

The scripts are static text: completing a word never starts Python.
"""

from __future__ import annotations

from gradcli.base.codes import CODES, VERDICTS
from gradcli.base.diagnostics import error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import COMMANDS, declaration, room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli import primitives
    from gradcli.interfaces.options.shared_options import CommandOutput
else:
    primitives = room("primitives")

TOP = (("--help", "Show help."), ("--version", "Show the version."), ("--show-settings", "Show the settings."))
PATHS = ("FILE", "FOLDER")


class Offer(NamedTuple):
    """The completions of one command: its summary, its operands and options, and words for its operand."""

    summary: str
    operands: tuple[PositionalArgument, ...]
    options: tuple[Option, ...]
    words: Sequence[str] = ()


def bash(offers: Mapping[str, Offer]) -> str:
    """A function for bash's `complete -F`."""
    first = " ".join([*offers, *(name for name, _ in TOP)])
    lines = [
        "# bash completion for gradcli",
        "_gradcli() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word",
        "    if [[ $cur == '=' ]]; then cur=",
        "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        "        [[ $word == -* ]] || { command=$word; break; }",
        "    done",
        "    COMPREPLY=()",
        "    case $command in",
        f"    '') COMPREPLY=($(compgen -W '{first}' -- \"$cur\")) ;;",
    ]
    for command, offer in offers.items():
        spellings = " ".join([*(name for option in offer.options for name in option.spellings), "--help"])
        lines += [f"    {command})", "        case $prev in"]
        for option in offer.options:
            if option.kind != "flag":
                names = "|".join(option.spellings)
                lines.append(f"        {names}) {bash_values(option)} return ;;")
        operand = f"-W '{' '.join(offer.words)}'" if offer.words else "-f"
        lines += [
            "        esac",
            "        if [[ $cur == -* ]]; then",
            f"            COMPREPLY=($(compgen -W '{spellings}' -- \"$cur\"))",
            "        else",
            f'            COMPREPLY=($(compgen {operand} -- "$cur"))',
            "        fi ;;",
        ]
    return "\n".join([*lines, "    esac", "}", "complete -o bashdefault -F _gradcli gradcli"])


def bash_values(option: Option) -> str:
    if option.choices:
        return f"COMPREPLY=($(compgen -W '{' '.join(option.choices)}' -- \"$cur\"));"
    return 'COMPREPLY=($(compgen -f -- "$cur"));' if option.metavar in PATHS else ""


def zsh(offers: Mapping[str, Offer]) -> str:
    """A `#compdef` function for zsh, to be put into a folder of $fpath or to be sourced."""
    lines = ["#compdef gradcli", "_gradcli() {", "    local -a commands", "    commands=("]
    lines += [f"        {quoted(f'{command}:{offer.summary}')}" for command, offer in offers.items()]
    lines += ["    )", "    if (( CURRENT == 2 )); then", "        _describe command commands"]
    lines += ["        _arguments " + " ".join(quoted(f"{name}[{summary}]") for name, summary in TOP), "        return"]
    lines += ["    fi", "    local command=$words[2]", "    shift words", "    (( CURRENT-- ))", "    case $command in"]
    for command, offer in offers.items():
        parts = [zsh_option(option) for option in offer.options]
        parts.append(quoted("--help[Show help.]"))
        for operand in offer.operands:
            action = f"({' '.join(offer.words)})" if offer.words else "_files"
            parts.append(quoted(f"{'*' if operand.many else '1'}:{operand.name}:{action}"))
        body = " \\\n            ".join(parts)
        lines += [f"    {command})", f"        _arguments {body} ;;"]
    lines += [
        "    esac",
        "}",
        'if [[ $funcstack[1] == _gradcli ]]; then _gradcli "$@"; else compdef _gradcli gradcli; fi',
    ]
    return "\n".join(lines)


def zsh_option(option: Option) -> str:
    summary = option.help.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    value = ""
    if option.kind != "flag":
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.metavar in PATHS else " "
        value = f":{option.name}:{action}"
    repeated = "*" if option.many else ""
    if len(option.spellings) == 1:
        return quoted(f"{repeated}{option.spellings[0]}[{summary}]{value}")
    group = f"({' '.join(option.spellings)})"
    return f"{quoted(group)}{{{','.join(option.spellings)}}}{quoted(f'[{summary}]{value}')}"


def fish(offers: Mapping[str, Offer]) -> str:
    """`complete` commands for fish."""
    lines = ["# fish completion for gradcli"]
    lines += [
        f"complete -c gradcli -n __fish_use_subcommand -l {name[2:]} -d {quoted(summary)}" for name, summary in TOP
    ]
    for command, offer in offers.items():
        lines.append(f"complete -c gradcli -n __fish_use_subcommand -f -a {command} -d {quoted(offer.summary)}")
        seen = f"complete -c gradcli -n '__fish_seen_subcommand_from {command}'"
        if offer.words:
            lines.append(f"{seen} -f -a {quoted(' '.join(offer.words))}")
        for option in offer.options:
            names = " ".join(fish_name(spelling) for spelling in option.spellings)
            choices = f" -x -a {quoted(' '.join(option.choices))}" if option.choices else ""
            value = "" if option.kind == "flag" else choices or (" -r -F" if option.metavar in PATHS else " -x")
            lines.append(f"{seen} {names}{value} -d {quoted(option.help)}")
    return "\n".join(lines)


def fish_name(spelling: str) -> str:
    return f"-l {spelling[2:]}" if spelling.startswith("--") else f"-s {spelling[1:]}"


def quoted(text: str) -> str:
    """The text in single quotes, for all three shells."""
    return "'" + text.replace("'", "'\\''") + "'"


def offers() -> dict[str, Offer]:
    """The completions of every command."""
    operations = sorted(name for name, primitive in primitives.catalogue().items() if not primitive.internal)
    words = {
        "ops": operations,
        "explain": [*sorted(CODES), *(word for word in VERDICTS if " " not in word)],
        "completions": sorted(SHELLS),
    }
    completions_of = {}
    for command, (_, summary) in COMMANDS.items():
        declared = declaration(command)
        short = [
            Option(name, help=f"Is {meaning}.", kind="text" if "{}" in meaning else "flag")
            for name, meaning in declared.short.items()
            if len(name) == 2
        ]
        completions_of[command] = Offer(summary, declared.operands, (*declared.options, *short), words.get(command, ()))
    return completions_of


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def completions(output: CommandOutput, shell: str) -> int:
    """Print a completion script for bash, zsh or fish.

    The script is static: completing a word never starts Python. For bash, source it in ~/.bashrc. Run this
    again after an upgrade.

    Examples:
      gradcli completions bash > ~/.gradcli.bash
      gradcli completions zsh > "${fpath[1]}/_gradcli"
      gradcli completions fish > ~/.config/fish/completions/gradcli.fish
    """
    if shell not in SHELLS:
        raise error("GC721", f"unknown shell `{visible(shell)}`", help="choose bash, zsh or fish")
    output.line(SHELLS[shell](offers()))
    return 0


SHELL = PositionalArgument("shell", "bash|zsh|fish", "The shell.")
ENDINGS = {f".{shell}": ("shell", (shell,)) for shell in SHELLS}
DECLARATION = Declaration(completions, (SHELL,), presentation("plain"), endings=ENDINGS)
