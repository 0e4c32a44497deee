"""The declarations of a command's operands and options: plain data for both readers of the command line.

The checks of a value (`plain`, `accepts`) are here, so that the command line and the configuration agree.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# how a kind of value is spelled in help
METAVARS = {"text": "TEXT", "int": "N", "float": "NUMBER"}


class PositionalArgument(NamedTuple):
    """A positional argument. `many`: any number of them; `required`: at least one.

    `rest`: everything that follows the operands before it, whatever it looks like, except options of the command
    that stand directly behind them. `expression`: it may be the text of an expression, for which there is `-e TEXT`.
    """

    name: str
    metavar: str
    help: str
    required: bool = True
    many: bool = False
    rest: bool = False
    expression: bool = False


class Option:
    """An option: its spellings, the kind of its value (text, texts, int, float, flag, table), default and help.

    Texts may be given repeatedly and arrive as a tuple; in the configuration they are a list or one text. A table is
    NAME=TEXT, repeatedly, on the command line, and a table of texts in the configuration.

    A `setting` may also be set in the configuration; `bounds` are the least and the greatest number. The first
    spelling names the parameter: `--why-topo` is `why_topo`.
    """

    def __init__(
        self,
        *spellings: str,
        help: str,
        kind: str = "text",
        default: object = None,
        metavar: str | None = None,
        choices: tuple[str, ...] = (),
        bounds: tuple[float | None, float | None] = (None, None),
        setting: bool = False,
    ) -> None:
        self.spellings = spellings
        self.name = spellings[0].removeprefix("--").replace("-", "_")
        self.help = help
        self.many = kind in ("texts", "table")
        self.kind = "text" if kind == "texts" else kind
        self.default = () if self.many else False if kind == "flag" else default
        self.metavar = metavar or ("|".join(choices) if choices else METAVARS.get(kind, ""))
        self.choices = choices
        self.low, self.high = bounds
        self.setting = setting

    def plain(self, text: str) -> object:
        """The value of a plainly spelled argument, or None if the full reader has to read it."""
        value: object = text
        if self.kind == "table":
            return text
        if self.kind == "int":
            if not (text.isascii() and text.isdigit() and len(text) < 19):
                return None
            value = int(text)
        elif self.kind == "float":
            whole, _, decimals = text.partition(".")
            if not (
                whole.isascii() and whole.isdigit() and (not decimals or (decimals.isascii() and decimals.isdigit()))
            ):
                return None
            value = float(text)
        return value if self.accepts(value) else None

    def accepts(self, value: object) -> bool:
        """Whether a value of the configuration or of an argument has the right kind, choice and range."""
        if isinstance(value, list) and self.many and self.kind != "table":
            return all(isinstance(item, str) and self.accepts(item) for item in value)
        if self.kind == "flag":
            return isinstance(value, bool)
        if self.kind == "table":
            return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        if self.kind == "text":
            return isinstance(value, str) and (not self.choices or value in self.choices)
        if isinstance(value, bool) or not isinstance(value, int if self.kind == "int" else (int, float)):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def expected(self) -> str:
        """What a value has to be, in words."""
        if self.kind == "flag":
            return "true or false"
        if self.choices:
            return "one of " + ", ".join(self.choices)
        word = {"int": "a whole number", "float": "a number", "text": "a text", "table": "a table of texts"}[self.kind]
        low = "" if self.low is None else f" of at least {self.low:g}"
        high = "" if self.high is None else f"{' and' if low else ' of'} at most {self.high:g}"
        return (f"{word} or a list" if self.many and self.kind == "text" else word) + low + high


class PresentationOption(Option):
    """An option that concerns how a result is shown, and does not reach the function."""


EXPRESSION = PresentationOption(
    "--expression",
    "-e",
    metavar="TEXT",
    help="An expression, even if TEXT looks like a path or an option.",
)
RENAMED = {"--out": "--output"}  # in every command


class Declaration(NamedTuple):
    """A command: the annotated function that it calls, its operands and its options.

    The function takes the output first, then every operand and option by name. Its docstring is the help text; the
    short help leaves out its `Details:`, and where some options are `common`, all others. `groups` are named tuples
    whose fields are options: the function takes the tuple, called as its class is, in place of them. Options stand
    in the help under their `headings`.

    `short` has what a short spelling stands for, `{"-q": "--show=summary"}`; `renamed` what earlier spellings
    stand for, which take a value if the option does and it is not given here.
    `conflicts` has options that do not go with others. `endings` are endings of the output file that mean no format,
    each with an option or operand, and the values of it that write such a file, () for any.
    """

    function: Callable[..., int]
    operands: tuple[PositionalArgument, ...]
    own: tuple[Option, ...]
    groups: tuple[Any, ...] = ()
    headings: Mapping[str, str] = {}
    common: frozenset[str] = frozenset()
    short: Mapping[str, str] = {}
    renamed: Mapping[str, str] = {}
    conflicts: Mapping[str, tuple[str, ...]] = {}
    endings: Mapping[str, tuple[str, tuple[object, ...]]] = {}

    @property
    def options(self) -> tuple[Option, ...]:
        """The options, with `-e` where an operand may be an expression."""
        return self.own if not any(operand.expression for operand in self.operands) else (*self.own, EXPRESSION)

    @property
    def name(self) -> str:
        return self.function.__module__.rpartition(".")[2]

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise GradcliError for options on the command line that do not go together, or name no file."""
        for option in self.options:
            if option.metavar in ("FILE", "FOLDER") and "" in (value := arguments.get(option.name), *(value or ())):
                raise error("GC721", f"{option.spellings[0]} has no name", help=f"write {option.spellings[0]} FILE")
        for name, others in self.conflicts.items():
            for other in others:
                if name in arguments and other in arguments:
                    first, second = (text.replace("_", "-") for text in (other, name))
                    raise error("GC721", f"--{first} does not go with --{second}", help="leave one of them out")

    def spelled(self) -> dict[str, Option]:
        """Every spelling of every option."""
        return {spelling: option for option in self.options for spelling in option.spellings}

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the function by name, without the options for presenting a result."""
        names = [operand.name for operand in self.operands]
        names += [option.name for option in self.options if not isinstance(option, PresentationOption)]
        groups = {
            kind.__name__.lower(): kind(**{name: values[name] for name in kind._fields if name in values})
            for kind in self.groups
        }
        inside = {name for kind in self.groups for name in kind._fields}
        return {name: values[name] for name in names if name not in inside} | groups

    def defaults(self) -> dict[str, Any]:
        """The value of each operand and option that is not given."""
        values: dict[str, Any] = {each.name: () if each.many or each.rest else None for each in self.operands}
        values.update((option.name, option.default) for option in self.options)
        return values
