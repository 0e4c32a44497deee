"""Reads configuration files, gradcli.toml or [tool.gradcli] in pyproject.toml, and turns them into option values.

Keys are the names of options declared with `setting`; a table named like a command holds keys for that command
alone, the table `limits` what `--limit` takes. Any other key is an error. The nearest file counts, from the
current folder up to the root of the project (the nearest folder with .git, else with pyproject.toml, else the
current folder), and only if it belongs to the user or to root. The user's own file (gradcli/gradcli.toml in
the configuration folder of the user) adds settings that the project does not have, but never for `check`: a verdict
must not depend on who runs it. If a setting lets `check` accept more than the defaults do, a note says so.
"""

from __future__ import annotations

import os
from importlib import import_module

from gradcli.base.diagnostics import NOTE, Diagnostic, GradcliError, did_you_mean, error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import COMMANDS, declaration, room
from gradcli.interfaces.options.shared_options import EVALUATION, OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.interfaces.options.declaration import Declaration, Option
    from gradcli.language import limits

    Table = dict[str, Any]
else:
    limits = room("limits")

COMMON = {option.name: option for option in (*OUTPUT, *EVALUATION) if option.setting}
JUDGING = {"check": ("check",), "freeze": ("check", "freeze")}  # commands that judge: the tables that they read
# settings with which a check may pass that fails without them, by (value, default)
LOOSER: dict[str, Callable[[Any, Any], bool]] = {
    "allow": lambda value, default: bool(value),
    "baseline": lambda value, default: True,
    "avoid_kinks": lambda value, default: value is True,
    "samples": lambda value, default: value < default,
    "dtype": lambda value, default: value != default,
}


class CommandSettings(NamedTuple):
    """The settings of one command, and the file of each; the command line overrides them.

    `notes` are diagnostics on files that are ignored, `problems` are those on what is wrong in a file and ignored.
    """

    values: dict[str, Any]
    origins: dict[str, str]
    notes: list[Diagnostic]
    problems: list[Diagnostic]

    def files_to_import(self, typed: Sequence[str] | None) -> list[str]:
        """The files of `--import`, else those of the settings, from the folder of their file; a note says so."""
        if typed is not None or not self.values.get("import"):
            return list(typed or ())
        place = self.origins["import"]
        files = [os.path.relpath(os.path.join(os.path.dirname(place), path)) for path in self.values["import"]]
        message = f"{visible(os.path.relpath(place), 200)} has {visible(', '.join(files), 200)} executed"
        self.notes.append(Diagnostic("GC727", message, help="import names files with operations", severity=NOTE))
        return files

    def loosening(self, declared: Declaration, arguments: Mapping[str, Any]) -> list[Diagnostic]:
        """A note on settings with which a check may pass that fails by default; `given` overrides them."""
        lines: dict[str, list[str]] = {}
        defaults = declared.defaults()
        for name, value in self.values.items():
            if name == "limits":
                looser = bool(value) and not arguments.get("limit")
                line = ", ".join(f"limits.{key} = {limit}" for key, limit in value.items())
            else:
                looser = name not in arguments and name in LOOSER and LOOSER[name](value, defaults[name])
                line = f"{name.replace('_', '-')} = {toml(value)}"
            if looser:
                lines.setdefault(self.origins[name], []).append(line)
        return [
            Diagnostic(
                "GC727",
                f"{visible(os.path.relpath(path), 200)} permits more than the defaults do: {', '.join(sorted(names))}",
                help="a verdict of `check` rests on these settings; gradcli --show-settings lists all",
                severity=NOTE,
            )
            for path, names in lines.items()
        ]


def load(command: str, declared: Declaration, folder: str, environment: Mapping[str, str]) -> CommandSettings:
    """The settings for a command that runs in a folder; raises GC722 to GC724 if a file is wrong."""
    settings = readable(command, declared, folder, environment)
    if settings.problems:
        raise GradcliError(*settings.problems)
    return settings


def readable(command: str, declared: Declaration, folder: str, environment: Mapping[str, str]) -> CommandSettings:
    """The settings for a command that runs in a folder, and what is wrong with their files."""
    settings = CommandSettings({}, {}, [], [])
    files = [nearest(folder, settings)]
    if command not in JUDGING:
        files.insert(0, personal(environment, settings))
    known = {option.name: option for option in declared.options if option.setting}
    for file in files:
        if file is None:
            continue
        path, table = file
        tables = [table, *(table.get(name, {}) for name in JUDGING.get(command, (command,)))]
        for key, value in [pair for part in tables if isinstance(part, dict) for pair in pairs(part)]:
            name, value = present(key, value, declared)
            if name == "limits":
                if any(wrong_limits(value, path)):
                    continue
                settings.values["limits"] = {**settings.values.get("limits", {}), **value}
            elif name in known and known[name].accepts(value):  # a format that this command lacks does not concern it
                if known[name].many and not isinstance(value, dict):
                    before = settings.values.get(name, ()) if name != key else ()
                    value = (*before, *([value] if isinstance(value, str) else value))
                settings.values[name] = value
            else:
                continue
            settings.origins[name] = path
    return settings


def present(key: str, value: Any, declared: Declaration) -> tuple[str, Any]:
    """The name and the value that stand today for those of an earlier version."""
    meaning = declared.renamed.get("--" + key.replace("_", "-"))
    if meaning is None:
        return key, value
    name, equals, word = meaning[2:].partition("=")
    return name.replace("-", "_"), (word if value is True else [] if value is False else None) if equals else value


def pairs(table: Table) -> Iterator[tuple[str, Any]]:
    """The keys of a table as option names."""
    return ((key.replace("-", "_"), value) for key, value in table.items())


def nearest(folder: str, settings: CommandSettings) -> tuple[str, Table] | None:
    """The nearest configuration from a folder up to the root of its project; adds to the notes and the problems."""
    for place in project(folder):
        own = os.path.join(place, "gradcli.toml")
        if os.path.isfile(own) and trusted(own, settings.notes):
            return own, checked(read(own, settings), own, settings)
        shared = os.path.join(place, "pyproject.toml")
        if os.path.isfile(shared) and mentions(shared) and trusted(shared, settings.notes):
            tool = read(shared, settings).get("tool")
            table = tool.get("gradcli") if isinstance(tool, dict) else None
            if table is not None:
                return shared, checked(table, shared, settings)
    return None


def project(folder: str) -> list[str]:
    """A folder and those above it up to the root of its project; the folder alone outside of projects."""
    above = [folder]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    for mark in (".git", "pyproject.toml"):
        for count, place in enumerate(above, 1):
            if os.path.exists(os.path.join(place, mark)):
                return above[:count]
    return [folder]


def trusted(path: str, notes: list[Diagnostic]) -> bool:
    """Whether a file, and what it links to, belongs to the user or to root; adds a note if not."""
    if not hasattr(os, "geteuid"):
        return True
    mine = (0, os.geteuid())
    try:
        if os.lstat(path).st_uid in mine and os.stat(path).st_uid in mine:
            return True
    except OSError:
        return True  # reading it says what is wrong
    message = f"the settings in {visible(path, 200)} are not used: the file belongs to another user"
    notes.append(Diagnostic("GC727", message, severity=NOTE))
    return False


def personal(environment: Mapping[str, str], settings: CommandSettings) -> tuple[str, Table] | None:
    """The user's own file, checked."""
    home = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(home, "gradcli", "gradcli.toml")
    if not os.path.isabs(path) or not os.path.isfile(path):
        return None
    return path, checked(read(path, settings), path, settings)


def mentions(path: str) -> bool:
    """Whether a file may contain settings: the files of most projects need no parsing, which costs 10 ms."""
    text = content(path).translate(None, b" \t\"'\0")  # UTF-16 has the last
    return b"tool.gradcli" in text or b"[tool]" in text


def content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as problem:
        raise error("GC724", f"cannot read {visible(path, 200)}: {(problem.strerror or '').lower()}") from None


def read(path: str, settings: CommandSettings) -> Table:
    """A TOML file as tables; what cannot be read is a problem (GC724)."""
    toml = import_module("tomllib")  # loaded only where there is a file to read
    try:
        table: Table = toml.loads(content(path).decode("utf-8"))
    except GradcliError as problem:
        settings.problems.extend(problem.diagnostics)
    except (ValueError, RecursionError) as problem:
        why = (
            f"is not TOML: {visible(str(problem), 200)}" if isinstance(problem, ValueError) else "is nested too deeply"
        )
        settings.problems.append(Diagnostic("GC724", f"{visible(path, 200)} {why}"))
    else:
        return table
    return {}


def checked(table: Any, path: str, settings: CommandSettings) -> Table:
    """The table; keys that are unknown and values that do not fit are problems (GC722, GC723)."""
    if not isinstance(table, dict):
        settings.problems.append(Diagnostic("GC723", f"`tool.gradcli` in {visible(path, 200)} has to be a table"))
        return {}
    faults = [*wrong(table, COMMON, path, ""), *wrong_limits(table.get("limits", {}), path)]
    for command in COMMANDS:
        if command in table:
            options = {option.name: option for option in declaration(command).options if option.setting}
            faults += wrong(table[command], options, path, f"{command}.", declaration(command))
    settings.problems.extend(note for fault in faults for note in fault.diagnostics)
    return table


def wrong(
    table: Any, options: Mapping[str, Option], path: str, prefix: str, declared: Declaration | None = None
) -> Iterator[GradcliError]:
    """The unknown keys and the unfit values of a table, which is that of a command if it is `declared`."""
    if not isinstance(table, dict):
        yield error("GC723", f"`{prefix[:-1]}` in {visible(path, 200)} has to be a table")
        return
    for key, value in table.items():
        name = key.replace("-", "_")
        name, value = present(name, value, declared) if declared is not None else (name, value)
        option = options.get(name)
        if option is not None:
            if not option.accepts(value):
                shown = visible(repr(value))
                yield error("GC723", f"`{prefix}{key} = {shown}` in {visible(path, 200)}: expected {option.expected()}")
        elif prefix or (key != "limits" and key not in COMMANDS):
            names = [name.replace("_", "-") for name in options]
            guess = did_you_mean(key, names if prefix else [*names, "limits", *COMMANDS])
            hint = f"did you mean `{guess}`?" if guess else f"the keys are {', '.join(names) or 'none'}"
            owner = next(
                (command for command in COMMANDS if not prefix and key.replace("-", "_") in setting_names(command)),
                None,
            )
            if owner is not None:
                table = f"tool.gradcli.{owner}" if path.endswith("pyproject.toml") else owner
                hint = f"`{key}` is a setting of {owner}: write it under [{table}]"
            yield error("GC722", f"unknown key `{visible(prefix + key)}` in {visible(path, 200)}", help=hint)


def setting_names(command: str) -> list[str]:
    """The options of a command that a configuration file may set."""
    return [option.name for option in declaration(command).options if option.setting]


def wrong_limits(table: Any, path: str) -> Iterator[GradcliError]:
    """The limits that `--limit` would not accept."""
    if not isinstance(table, dict):
        yield error("GC723", f"`limits` in {visible(path, 200)} has to be a table")
    elif table:
        try:
            limits.make_limits(table)
        except GradcliError as problem:
            yield problem


def setting_lines(folder: str, environment: Mapping[str, str], problems: list[Diagnostic]) -> Iterator[str]:
    """Every setting with its value and its source, as TOML; what is wrong with the files is added to the problems."""
    shared = readable("grad", declaration("grad"), folder, environment)
    problems += shared.problems
    yield from (setting_line(option, shared) for option in COMMON.values())
    yield from ("", "[limits]")
    own = shared.values.get("limits", {})
    for name, value in limits.make_limits(own).as_dict().items():
        yield f"{name} = {value}  # {shared.origins['limits'] if name in own else 'default'}"
    for command in ("check", "audit"):
        settings = readable(command, declaration(command), folder, environment)
        yield from ("", f"[{command}]")
        for option in declaration(command).options:
            if option.setting and option.name not in COMMON:
                yield setting_line(option, settings)


def setting_line(option: Option, settings: CommandSettings) -> str:
    """The line of one setting; a setting without a value is a comment."""
    key = option.name.replace("_", "-")
    value = settings.values.get(option.name, option.default)
    if value in (None, ()):
        return f"# {key} is not set"
    return f"{key} = {toml(value)}  # {visible(settings.origins.get(option.name, 'default'), 200)}"


def toml(value: Any) -> str:
    """A value as a configuration file has it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    return f'"{visible(value, 200)}"' if isinstance(value, str) else str(value).lower()
