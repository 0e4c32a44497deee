"""The law of the two readers: the direct one declines, or reads exactly what typer reads."""

from __future__ import annotations

import inspect
import random

import pytest

from gradcli.commands import COMMANDS, declaration
from gradcli.commands._direct import Call, direct, exposed, shielded
from gradcli.commands._full import full
from gradcli.diagnostics import GradcliError

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


def read(argv: list[str]) -> Call | None:
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
            argv.append(chance.choice(["--fromat", "--help", "-h", "-x", "-f", "--version", "--at"]))
            continue
        name = option.spellings[0] if tidy else chance.choice(option.spellings)
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
        argv += [f"{name}={text}"] if chance.random() < 0.4 else [name, text]
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
        call = direct(argv)
        if call is not None:
            accepted += 1
            assert call == read(argv), argv
    assert accepted > LINES // 3


def test_every_plain_line_is_read_directly() -> None:
    call = direct(["grad", "x**2", "--at", "x=2", "--at=y=3", "--format", "json", "--order", "2"])
    assert call == Call("grad", {"script": "x**2", "at": ("x=2", "y=3"), "format": "json", "order": 2})
    assert direct(["check", "a", "b", "--lenient"]) == Call("check", {"targets": ("a", "b"), "lenient": True})
    assert direct(["--version"]) == Call("--version", {})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "grad",
        "grad --help",
        "grad -x",
        "grad x -f json",
        "grad x --order 0",
        "grad x --order two",
        "grad x --format pdf",
        "grad x --at -x",
        "grad x y",
        "grad x --at",
        "nothing x",
        "check x --lenient=1",
    ],
)
def test_direct_reader_declines(line: str) -> None:
    assert direct(line.split()) is None


@pytest.mark.parametrize("expression", ["-x**2", "-x", "--x**2", "-.5*x", "-f*2", "-(x)", "-2"])
def test_an_expression_may_start_with_a_minus(expression: str) -> None:
    for argv in (["grad", expression, "--at", "x=3"], ["grad", "--at", "x=3", expression, "-f", "json"]):
        call = full(argv)
        assert call is not None
        assert call.arguments["script"] == expression
        assert call.arguments["at"] == ("x=3",)


def test_shielding_keeps_options_and_what_follows_a_double_dash() -> None:
    assert shielded(["grad", "-x", "--at", "-y", "-o", "-z"]) == ["grad", " -x", "--at", "-y", "-o", "-z"]
    assert shielded(["grad", "--fromat", "-h", "-f", "json"]) == ["grad", "--fromat", "-h", "-f", "json"]
    assert shielded(["grad", "--", "-x"]) == ["grad", "--", "-x"]
    assert [exposed(text) for text in (" -x", "  -x", "-x", " x")] == ["-x", " -x", "-x", " x"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_function_takes_what_is_declared(command: str) -> None:
    declared = declaration(command)
    parameters = list(inspect.signature(declared.function).parameters)
    assert parameters == ["output", *declared.arguments(declared.defaults())]
    assert declared.name == command


def test_a_group_holds_the_options_under_one_heading() -> None:
    declared = declaration("check")
    for group in declared.groups:
        headings = {declared.headings.get(name) for name in group._fields}
        assert len(headings) == 1
        own = {name for name, heading in declared.headings.items() if heading in headings}
        assert not own or own == set(group._fields)


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_values_that_the_option_accepts(command: str) -> None:
    for option in declaration(command).options:
        assert option.default in (None, ()) or option.accepts(option.default), option.name
        assert {spelling for spelling in option.spellings if len(spelling) == 2} <= {"-f", "-o"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert full([command, "--help"]) is None
    told = capsys.readouterr().out
    assert f"  gradcli {command}" in told
    assert all(len(line) <= 80 for line in told.splitlines())
    assert COMMANDS[command][1] in told
