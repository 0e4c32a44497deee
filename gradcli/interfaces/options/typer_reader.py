"""Reads any command line with typer, built from the declarations; writes all usage messages.

Loaded only if the direct reader returns None: importing typer takes longer than a small calculation.
"""

from __future__ import annotations

import inspect
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from gradcli.base.diagnostics import error, visible
from gradcli.interfaces.commands import COMMANDS, GROUPS, declaration
from gradcli.interfaces.options.direct_reader import ParsedCommand, Words
from gradcli.interfaces.options.shared_options import EVALUATION, OUTPUT, joined_point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.interfaces.options.declaration import Declaration, Option

OVERVIEW = """Values, gradients and checked derivatives of expressions.

\b
  gradcli grad "(x*y+x)**2" --at x=2,y=3
  gradcli check "x**2*sin(y)" --claim "x = 2*x*sin(y)"
  gradcli trace "(x*y+x)**2" --at x=2,y=3

An expression is written as for NumPy; a script is a .grad file of statements. Each command has its own --help with
examples. Results go to standard output, everything else to standard error."""


HELP_ALL = "--help-all"
# what people call a command that has another name
SYNONYMS = {
    "diff": "derive", "differentiate": "derive", "derivative": "derive", "gradient": "grad", "test": "check",
    "verify": "check", "gradcheck": "check", "evaluate": "eval", "value": "eval", "draw": "graph",
    "version": "--version", "-V": "--version",
}  # fmt: skip
LONGEST = 1000  # characters of a message: it repeats what was typed
KINDS: dict[str, Any] = {"text": str, "int": int, "float": float, "flag": bool, "table": str}
TOP = {"version": "Show the version.", "show_settings": "Show all settings and where they come from."}


# headings of the options that many commands share; a command's own come first
SECTIONS = {
    **{option.name: "Point and numbers" for option in EVALUATION},
    **{option.name: "Output" for option in OUTPUT},
}
# those of them that the short help leaves out
RARE = SECTIONS.keys() - {"at", "wrt", "dtype", "format", "output"}


def full(argv: Sequence[str], colour: bool = False) -> ParsedCommand | None:
    """The call that typer reads; None if typer has printed the help. Raises GradcliError (GC721)."""
    argv = [*argv[1:2], "--help"] if argv[:1] == ["help"] else argv
    chosen = next((token for token in argv if not token.startswith("-")), None)
    if argv[1:] and argv[0][2:].replace("-", "_") in TOP:
        raise error("GC721", f"{argv[0]} stands alone", help="leave out what follows it, or the option itself")
    words = Words(argv) if argv[:1] == [chosen] and chosen in COMMANDS else None
    arguments = list(argv) or ["--help"]
    if words is not None:
        arguments = [argv[0], *words.options] if words.missing else [argv[0], *words.options, "--", *words.operands]
    everything = HELP_ALL in arguments
    command, calls = built(chosen, colour, everything)
    calls.clear()
    try:
        command.main(
            args=["--help" if word == HELP_ALL else word for word in arguments],
            prog_name="gradcli",
            standalone_mode=False,
            windows_expand_args=False,
        )
    except Exception as problem:
        format_message = getattr(problem, "format_message", None)
        if format_message is None:
            raise
        message = re.sub(r"Value error, |, unable to parse.*", "", format_message()).replace(
            "Input should", "it should"
        )
        shown = message if len(message) <= LONGEST else visible(message, LONGEST)
        raise error("GC721", shown, help=split_point(words) or usage_help(chosen, message, argv, words)) from None
    if not calls or words is None:
        return calls[0] if calls else None
    if words.rest:
        calls[0].arguments[words.declared.operands[-1].name] = tuple(words.rest)
    return calls[0]._replace(notes=tuple(words.notes))


class GroupedOptions(TyperCommand):
    """The help of a command, with its options under headings."""

    def get_help(self, ctx: Any) -> str:
        return coloured(super().get_help(ctx)) if ctx.color else super().get_help(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        headings = {**SECTIONS, **declaration(str(ctx.info_name)).headings}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                own = "Arguments" if param.param_type_name == "argument" else "Options"
                sections.setdefault(headings.get((param.name or "").removesuffix("_"), own), []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class GroupedCommands(TyperGroup):
    """The overview, with the commands under headings."""

    def get_help(self, ctx: Any) -> str:
        return coloured(super().get_help(ctx)) if ctx.color else super().get_help(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, COMMANDS))
        rest = [name for name in COMMANDS if not any(name in names for names in GROUPS.values())]
        for title, names in (*GROUPS.items(), *([("More", rest)] if rest else [])):
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), COMMANDS[name][1]) for name in names])


def coloured(text: str) -> str:
    """Help for a terminal with colours: headings bold, names of commands and options and examples in cyan."""
    text = re.sub(r"^(?:Usage|[A-Z][A-Za-z ,]+):(?= |$)", "\x1b[1m\\g<0>\x1b[0m", text, flags=re.MULTILINE)
    words = rf"^  (?:-[^ ,]+(?:, -[^ ,]+)*|(?:{'|'.join(COMMANDS)})(?=  )|  gradcli .*)"
    return re.sub(words, "\x1b[36m\\g<0>\x1b[0m", text, flags=re.MULTILINE)


@lru_cache
def built(chosen: str | None, colour: bool, everything: bool) -> tuple[Any, list[ParsedCommand]]:
    """typer's command line, complete for one command, and the list to which it appends the calls that it reads."""
    calls: list[ParsedCommand] = []
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "color": colour or None},
        cls=GroupedCommands,
    )

    def root(version: bool, show_settings: bool) -> None:
        flags = (("--version", version), ("--show-settings", show_settings))
        calls.extend(ParsedCommand(name, {}) for name, requested in flags if requested)

    annotate(
        root,
        {name: (bool, typer.Option(False, "--" + name.replace("_", "-"), help=text)) for name, text in TOP.items()},
    )
    app.callback(invoke_without_command=True, help=OVERVIEW)(root)
    for name, (_, summary) in COMMANDS.items():
        if name == chosen:
            declared = declaration(name)
            names = {option.name for option in declared.options}
            hidden = set[str]() if everything else names - (declared.common or names - RARE)
            more = f"gradcli {name} {HELP_ALL} shows {len(hidden)} more options, and details." if hidden else None
            function = receiver(name, declared, calls, hidden)
            app.command(name, help=help_text(declared, everything), epilog=more, cls=GroupedOptions)(function)
        else:
            app.command(name, help=summary)(lambda: None)
    return get_command(app), calls


def help_text(declared: Declaration, everything: bool) -> str:
    """The docstring, laid out for typer: examples stay as they are; its details only if `everything` is shown."""
    text, _, rest = inspect.cleandoc(declared.function.__doc__ or "").partition("Details:\n\n")
    details, _, examples = rest.rpartition("Examples:\n")
    text = f"{text}{details if everything else ''}Examples:\n{examples}" if rest else text
    return text.replace("Examples:\n", "\b\nExamples:\n")


def receiver(name: str, declared: Declaration, calls: list[ParsedCommand], hidden: set[str]) -> Callable[..., None]:
    """The function whose signature typer reads; it only records the arguments. Help leaves out `hidden` options."""

    def receive(**arguments: Any) -> None:
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
        passed = {key.removesuffix("_"): v for key, v in values.items() if v is not None and v is not False and v != ()}
        calls.append(ParsedCommand(name, passed))

    parameters: dict[str, tuple[Any, Any]] = {}
    for operand in declared.operands:
        default = ... if operand.required else None
        kind: Any = list[str] if operand.many or operand.rest else str
        parameters[operand.name] = (
            kind if operand.required else kind | None,
            typer.Argument(
                default, metavar=operand.metavar.strip("[]").removesuffix(" ..."), help=operand.help, show_default=False
            ),
        )
    for option in declared.options:
        kind = Literal[option.choices] if option.choices else KINDS[option.kind]
        kind = list[kind] if option.many else kind
        flag = option.kind == "flag"
        parameters[f"{option.name}_"] = (  # a name may be a keyword of Python: import
            kind if flag else kind | None,
            typer.Option(
                False if flag else None,
                *option.spellings,
                help=option_help(option),
                metavar=None if option.choices or flag else option.metavar,
                min=option.low,
                max=option.high,
                show_default=False,
                hidden=option.name in hidden,
            ),
        )
    annotate(receive, parameters)
    return receive


def option_help(option: Option) -> str:
    """What an option does, with its default."""
    default = "" if option.default in (None, (), False) else f" Default: {option.default}."
    return option.help + default


def annotate(function: Any, parameters: dict[str, tuple[Any, Any]]) -> None:
    """Give a function the signature that typer reads."""
    function.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    function.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in parameters.items()
        ]
    )


def split_point(words: Words | None) -> str | None:
    """The next step for a point that is split by a space, `--at x=2 y=3`."""
    if words is None:
        return None
    return joined_point([word[5:] for word in words.options if word.startswith("--at=")], words.operands)


def usage_help(chosen: str | None, message: str, argv: Sequence[str], words: Words | None) -> str:
    """The next step after a command line that could not be read."""
    if words is not None:
        return command_help(words, message, argv)
    chosen = "-V" if argv[:1] == ["-V"] else chosen
    if chosen in SYNONYMS:
        return f"did you mean `{SYNONYMS[chosen]}`? gradcli --help lists the commands"
    command = next((word for word in argv[1:] if word in COMMANDS), None) if argv[0][:1] == "-" else None
    if command is not None:
        return f"options stand behind the command: gradcli {command} ... {visible(argv[0], 80)}"
    if chosen is not None and not chosen.isidentifier():
        return f'name a command first, for example: gradcli grad "{visible(chosen, 200)}"'
    return "gradcli --help lists the commands"


def command_help(words: Words, message: str, argv: Sequence[str]) -> str:
    """The next step after the command line of a command that could not be read."""
    chosen, options = words.declared.name, {option.name for option in words.declared.options}
    if message.startswith("Missing argument"):
        if words.options and words.options[-1] == f"{argv[-2]}={argv[-1]}":
            value, option = visible(argv[-1], 80), visible(argv[-2], 80)
            return f"`{value}` is read as the value of {option}; see gradcli {chosen} --help"
        return f"for example {example(chosen)}"
    missing = re.search(r"Option '(--[a-z-]+)' requires an argument", message)
    if missing is not None:
        form = f"write {missing[1]} {words.known[missing[1]].metavar}; gradcli {chosen} --help"
        return f"for example {text}" if (text := example(chosen, f" {missing[1]} ")) else form
    word = re.search(r"'--format'.* '(\w+)' is not one of", message)
    if word is not None and word[1] in options:
        return f"write --{word[1]}, or see gradcli {chosen} --help"
    extra = re.search(r"unexpected extra argument\S* \((.*)\)", message) if "at" in options else None
    if extra is not None and re.match(r"\w+=", extra[1]):
        return f'a point stands after --at: gradcli {chosen} "x*y" --at x=2,y=3'
    if extra is not None:
        return f'an expression with spaces stands in quotes: gradcli {chosen} "x + 1"'
    unknown = next((word for word in words.options if word[:1] == "-" != word[1:2]), None)
    if unknown is not None and "expression" in options and message.startswith("No such option"):
        return f"for the expression write -e {visible(unknown, 200)}; gradcli {chosen} --help lists the options"
    if chosen == "derive" and message.startswith("No such option: --at"):
        return 'a formula needs no point; for numbers at one, run gradcli grad "x*y" --at x=2,y=3'
    return f"gradcli {chosen} --help"


def example(command: str, part: str = "") -> str:
    """The first example of a command that contains a text, as its help shows it; empty if there is none."""
    lines = map(str.strip, (declaration(command).function.__doc__ or "").splitlines())
    return next((line for line in lines if line.startswith(f"gradcli {command} ") and part in line), "")
