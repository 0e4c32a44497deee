"""The law of the two readers: the direct one declines, or reads exactly what typer reads."""

from __future__ import annotations

import inspect
import random
import shlex
from typing import Any

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options.direct_reader import ParsedCommand, direct
from gradcli.interfaces.options.typer_reader import full
from tests.support.rows import all_rows

LINES = 10_000
OPERANDS = ["x**2", "-x**2", "(x*y+x)**2", "loss.grad", "-", "--", "", "a b", " -x", "x=1", "--x", "-5", "α", "GC301"]
OPERANDS += ["sin", "bash", "-x", "-f", "--x**2", "-h*2", "x;y", "[1,2]", "-.5", "--5", "- x", "models/"]
TEXTS = [
    "x=2,y=3",
    "x=-2",
    "-x",
    "",
    "x",
    "json",
    "plain",
    "float64",
    "nodes=5",
    "a=b=c",
    "=",
    "5",
    "007",
    "1_000",
    " 5",
]
TEXTS += ["-1", "0", "+3", "2.5", "1e3", "nan", "²", "10", "certified", "all", "out.json", "always", "--format", "5."]


def read(argv: list[str]) -> ParsedCommand | None:
    """What typer makes of a line: a call, or None for help and errors."""
    try:
        return full(argv)
    except GradcliError:
        return None


def random_line(chance: random.Random) -> list[str]:
    """A command line of which about half are in order."""
    command = chance.choice([*COMMANDS, *COMMANDS, *COMMANDS, "grd", "--version"])
    argv = [command]
    options = declaration(command).options if command in COMMANDS else ()
    tidy = chance.random() < 0.7
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        option = chance.choice(options) if options else None
        if option is None or (not tidy and chance.random() < 0.1):
            argv.append(chance.choice(["--fromat", "--help", "-h", "-x", "-f", "-vv", "--out", "--version", "--at"]))
            continue
        name = chance.choice(option.spellings)
        if option.kind == "flag":
            argv.append(name + ("" if tidy or chance.random() < 0.8 else "=1"))
            continue
        fit = {
            "int": ["1", "7", "25"],
            "float": ["2", "0.5", "10.25"],
            "text": ["x=2", "y", "a/b"],
            "table": ["x=2", "y"],
        }[option.kind]
        text = chance.choice(option.choices or fit) if tidy or chance.random() < 0.5 else chance.choice(TEXTS)
        joined = f"{name}{text}" if len(name) == 2 else f"{name}={text}"
        argv += [joined] if chance.random() < 0.4 else [name, text]
    for _ in range(chance.choice([0, 1, 1, 1, 1, 2])):
        place = chance.randrange(1, len(argv) + 1)
        operand = chance.choice(["x**2", "sin(x)", "-", "a.grad"]) if tidy else chance.choice(OPERANDS)
        argv.insert(place if chance.random() < 0.3 else len(argv), operand)
    return argv


def test_direct_reader_declines_or_equals_typer(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(20)
    accepted = 0
    for _ in range(LINES):
        argv = random_line(chance)
        try:
            call = direct(argv)
        except GradcliError:
            continue
        if call is not None:
            accepted += 1
            assert call == read(argv), argv
    assert accepted > LINES // 3


def test_every_plain_line_is_read_directly() -> None:
    call = direct(["grad", "x**2", "--at", "x=2", "--at=y=3", "--format", "json", "--order", "2"])
    assert call == ParsedCommand("grad", {"script": "x**2", "at": ("x=2", "y=3"), "format": "json", "order": 2})
    assert direct(["check", "a", "b", "--docs"]) == ParsedCommand("check", {"targets": ("a", "b"), "docs": True})
    assert direct(["--version"]) == ParsedCommand("--version", {})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "grad",
        "grad --help",
        "grad -x",
        "grad x -h",
        "grad x --order 0",
        "grad x --order two",
        "grad x --format pdf",
        "grad x y",
        "grad x --at",
        "nothing x",
        "check x --docs=1",
    ],
)
def test_direct_reader_declines(line: str) -> None:
    assert direct(line.split()) is None


@pytest.mark.parametrize(
    "expression",
    ["-x**2", "--x**2", "-.5*x", "-f*2", "-(x)", "-2", "-.5", "-exp(x)", "-floor(x)", "-e**x", "-x/2", "-x @ y", "-|x|", "-x²",
     "-x\n", "-x > 0", "-[1,2]", "-2x", "-θ/2", "-k(x)"],
)  # fmt: skip
def test_an_expression_may_start_with_a_minus(expression: str) -> None:
    for argv in (["grad", expression, "--at", "x=3"], ["grad", "--at", "x=3", expression, "-f", "json"]):
        for call in (direct(argv), full(argv)):
            assert call is not None
            assert call.arguments["script"] == expression
            assert call.arguments["at"] == ("x=3",)


@all_rows(
    ("line", "arguments"),
    [
        (["grad", "x", "-f", "table"], {"script": "x", "format": "table"}),
        (["grad", "-ftable", "x"], {"script": "x", "format": "table"}),
        (["grad", "-f=json", "x"], {"script": "x", "format": "json"}),
        (["grad", "x", "-ograph.json"], {"script": "x", "output": "graph.json"}),
        (["grad", "x", "-o=a/b.json"], {"script": "x", "output": "a/b.json"}),
        (["grad", "x", "-o", "-x"], {"script": "x", "output": "-x"}),
        (["grad", "--at=-x", "x"], {"script": "x", "at": ("-x",)}),
        (["grad", "-e", "-x"], {"script": "-x\n"}),
        (["grad", "--expression", "a.grad"], {"script": "a.grad\n"}),
        (["grad", "--expression=a-b"], {"script": "a-b\n"}),
        (["grad", "--", "-x"], {"script": "-x"}),
        (["grad", "--at", "x=1", "--", "--at"], {"script": "--at", "at": ("x=1",)}),
        (["grad", ""], {"script": ""}),
        (["check", "-x"], {"fail_fast": True}),
        (["check", "-j4", "a", "b"], {"jobs": 4, "targets": ("a", "b")}),
        (["check", "-xj", "4"], {"fail_fast": True, "jobs": 4}),
        (["check", "-xvj4"], {"fail_fast": True, "show": "files", "jobs": 4}),
        (["check", "-q"], {"show": "summary"}),
        (["check", "-v"], {"show": "files"}),
        (["check", "-vv"], {"show": "all"}),
        (["check", "-kloss", "-k", "a*b"], {"keyword": "a*b"}),
        (["check", "--", "-x"], {"targets": ("-x",)}),
        (["check", "-e", "x", "-q"], {"targets": ("x\n",), "show": "summary"}),
        (["check", "--out", "a.json"], {"output": "a.json"}),
        (["check", "--lenient", "--allow-kink", "--allow=empty"], {"allow": ("inconclusive", "kink", "empty")}),
        (["check", "--verdict", "KINK", "--tap"], {"show": "KINK", "format": "tap"}),
        (["run", "-o", "a.json", "a.py", "-o", "b", "--trace"], {"output": "a.json", "file": "a.py", "args": ("-o", "b", "--trace")}),
        (["run", "a.py", "--trace", "-q"], {"trace": True, "file": "a.py", "args": ("-q",)}),
        (["run", "--", "a.py", "--trace"], {"file": "a.py", "args": ("--trace",)}),
        (["run", "a.py", "--", "--trace"], {"file": "a.py", "args": ("--trace",)}),
        (["audit", "-j2", "--", "python", "-c", "x"], {"jobs": 2, "args": ("python", "-c", "x")}),
        (["audit", "python", "-j2"], {"args": ("python", "-j2")}),
        (["why", "a.py", "--at=x=2", "-x"], {"file": "a.py", "at": ("x=2",), "args": ("-x",)}),
    ],
    ids=lambda line: " ".join(line) if isinstance(line, list) else "",
)  # fmt: skip
def test_short_joined_and_earlier_spellings(line: list[str], arguments: dict[str, Any]) -> None:
    calls = direct(line), full(line)
    assert [(call.command, call.arguments) for call in calls if call] == [(line[0], arguments)] * 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("check -z", "No such option: -z"),
        ("check -xz", "No such option: -z"),
        ("check -x.grad", "No such option: -."),
        ("grad -x", "No such option: -x"),
        ("grad -q x", "No such option: -q"),
        ("grad x --fromat json", "No such option: --fromat"),
        ("grad x -f", "'--format' requires an argument"),
        ("grad x --at --format json", "'--at' requires an argument"),
        ("check --claim", "'--claim' requires an argument"),
        ("check -fpdf", "'pdf' is not one of"),
        ("check -jfour", "it should be a valid integer"),
        ("check --fail-fast=1", "does not take a value"),
        ("check --lenient=1", "No such option"),
        ("grad -ex", "`-ex` is an option with its value, or an expression"),
        ("grad -ea+b", "is an option with its value, or an expression"),
        ("check -ka*b", "is an option with its value, or an expression"),
        ("check -k*slow", "is an option with its value, or an expression"),
        ("grad x -o/tmp/a.json", "is an option with its value, or an expression"),
        ("audit -z python", "No such option: -z"),
        ("--version check a.grad", "--version stands alone"),
        ("--show-settings check", "--show-settings stands alone"),
        ("--color never check a.grad", "No such option: --color"),
    ],
)
def test_what_is_no_option_is_a_usage_error(line: str, told: str) -> None:
    with pytest.raises(GradcliError) as caught:
        assert not (direct(line.split()) or full(line.split()))
    assert told in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].help


def hint_of(line: list[str]) -> str:
    """The advice for a command line that cannot be read."""
    with pytest.raises(GradcliError) as caught:
        assert not (direct(line) or full(line))
    return caught.value.diagnostics[0].help or ""


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_missing_is_shown_by_an_example(command: str) -> None:
    """For each option that takes a value, and for each operand: an example that can be read, or the form."""
    declared = declaration(command)
    for option in declared.options:
        if option.kind != "flag":
            operands = [] if any(operand.rest for operand in declared.operands) else ["x"]
            hint = hint_of([command, *operands, option.spellings[0]])
            if hint.startswith("for example "):
                assert direct(shlex.split(hint.removeprefix("for example gradcli ")))
                assert option.spellings[0] in hint
            else:
                assert hint == f"write {option.spellings[0]} {option.metavar}; gradcli {command} --help"
    if any(operand.required and not operand.many for operand in declared.operands):
        assert hint_of([command]).startswith(f"for example gradcli {command} ")


def test_options_stand_behind_the_command() -> None:
    assert hint_of(["--color", "never", "grad", "x"]) == "options stand behind the command: gradcli grad ... --color"
    assert hint_of(["-V"]) == hint_of(["version"]) == "did you mean `--version`? gradcli --help lists the commands"
    assert hint_of(["grad", "--at", "x=2"]) == "`x=2` is read as the value of --at; see gradcli grad --help"


def test_earlier_spellings_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert direct(["check", "x*y", "--lenient", "--dodge"]).notes == (  # type: ignore[union-attr]
        "--lenient is now --allow inconclusive",
        "--dodge is now --avoid-kinks",
    )
    for command in COMMANDS:
        declared = declaration(command)
        known = declared.spelled()
        for earlier, meaning in {**declared.renamed, **declared.short}.items():
            name, equals, value = meaning.partition("=")
            assert name in known and earlier not in known
            assert not equals or value == "*{}*" or known[name].plain(value) is not None


def test_no_short_spelling_means_two_things() -> None:
    meanings: dict[str, set[str]] = {}
    for command in COMMANDS:
        declared = declaration(command)
        for spelling, option in declared.spelled().items():
            if not spelling.startswith("--"):
                meanings.setdefault(spelling, set()).add(option.spellings[0])
        for spelling, meaning in declared.short.items():
            meanings.setdefault(spelling, set()).add(meaning)
    meanings["-v"].discard("--show=all")  # of audit, which shows no lines for files
    assert all(len(options) == 1 for options in meanings.values()), meanings
    assert meanings.keys() == {"-f", "-o", "-e", "-x", "-q", "-v", "-vv", "-j", "-k"}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_function_takes_what_is_declared(command: str) -> None:
    declared = declaration(command)
    parameters = list(inspect.signature(declared.function).parameters)
    assert parameters[0] == "output"
    assert sorted(parameters[1:]) == sorted(declared.arguments(declared.defaults()))
    assert declared.name == command


def test_a_group_holds_the_options_under_its_headings() -> None:
    declared = declaration("check")
    for group in declared.groups:
        headings = {declared.headings.get(name) for name in group._fields}
        own = {name for name, heading in declared.headings.items() if heading in headings}
        assert not own or own == set(group._fields)


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_values_that_the_option_accepts(command: str) -> None:
    for option in declaration(command).options:
        assert option.default in (None, ()) or option.accepts(option.default), option.name


def test_help_has_two_tiers(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for line in ("check --help", "check -h", "help check", "check --help-all", "grad --help", "grad --help-all"):
        assert full(line.split()) is None
        shown.append(capsys.readouterr().out)
    short, same, again, whole, grad, grad_all = shown
    assert short == same == again
    for one, wanted, detail in ((short, whole, "Verdicts: PROVED"), (grad, grad_all, "--order N adds")):
        assert detail not in one and detail in wanted and "Details" not in wanted
        assert len(one.splitlines()) < 0.8 * len(wanted.splitlines())
    assert " --limit " not in grad and " --limit " in grad_all
    declared = declaration("check")
    for option in declared.options:
        assert (option.spellings[0] in whole) and (f" {option.spellings[0]} " in short) == (
            option.name in declared.common
        )
    hidden = len(declared.options) - len(declared.common)
    assert f"gradcli check --help-all shows {hidden} more options, and details." in " ".join(short.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert full([command, "--help"]) is None
    told = capsys.readouterr().out
    assert f"  gradcli {command}" in told
    assert all(len(line) <= 80 for line in told.splitlines())
    assert COMMANDS[command][1] in told
