"""Output for the documentation, generated while it is built, so that no page can show what gradcli no longer prints.

Before Sphinx reads a page, its special fences are replaced:

```{gradcli}                  each line is a command; the block becomes a console session with its output
:exit: 1                      (optional) the exit code that the last command must have, 0 otherwise

```{python}                   the block is executed; what it prints follows it
```{picture} EXPRESSION       the graph of an expression, drawn by `gradcli graph`
```{reference} NAME           a reference made from the declarations: commands, operations, diagnostics

A command that ends with another exit code, or a Python block that fails, stops the build.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ExtensionError

from gradcli.base.codes import CODES, FAMILIES
from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options.typer_reader import option_help
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]  # commands run here, so that they may name samples
DRAWINGS = Path(__file__).parents[1] / "_generated"
FENCE = re.compile(r"^```\{(gradcli|python|picture|reference)\}[ ]*(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
WIDEST = 82  # characters of a command that a page shows without scrolling
ENVIRONMENT = {
    **os.environ,
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "PYTHONPATH": str(ROOT),
    "PYTHONIOENCODING": "utf-8",
}


def run(arguments: list[str], expected: int = 0) -> str:
    """What a Python process prints, a refusal (exit code 2) on standard error.

    Raises ExtensionError where its exit code is another than the expected one.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    if done.returncode != expected:
        raise ExtensionError(f"{shlex.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout + (done.stderr if expected == 2 else "")


def console(_: str, body: str) -> str:
    """A console session: each command with what it prints."""
    lines = body.splitlines()
    code = 0
    if lines and (option := re.fullmatch(r":exit: (\d+)", lines[0])):
        code = int(option[1])
        del lines[0]
    commands: list[str] = []
    for line in lines:
        if line.startswith("gradcli "):
            commands.append(line)
        else:  # a quoted script goes on over several lines
            commands[-1] += f"\n{line}"
    session = []
    for command in commands:
        printed = run(["-m", *shlex.split(command)], code if command is commands[-1] else 0)
        session.append(f"$ {wrapped(command)}\n{printed.rstrip()}\n")
    return "```console\n" + "\n".join(session) + "```"


def wrapped(command: str) -> str:
    """A command of one long line on several, each but the first with an option."""
    if len(command) <= WIDEST or "\n" in command:
        return command
    first, *options = command.split(" --")
    lines = [first]
    for option in options:
        together = f"{lines[-1]} --{option}"
        if len(together) + 4 <= WIDEST:
            lines[-1] = together
        else:
            lines.append(f"--{option}")
    return " \\\n    ".join(lines)


def python(_: str, body: str) -> str:
    """A Python program, and what it prints."""
    printed = run(["-c", body])
    return f"```python\n{body}```" + (f"\n\n```text\n{printed.rstrip()}\n```" if printed else "")


def picture(expression: str, body: str) -> str:
    """The drawing of an expression's graph; the body holds further arguments of `gradcli graph`."""
    DRAWINGS.mkdir(exist_ok=True)
    name = hashlib.sha256(f"{expression}\n{body}".encode()).hexdigest()[:16] + ".svg"
    run(["-m", "gradcli", "graph", expression, *shlex.split(body), "-o", str(DRAWINGS / name)])
    return f"![the graph of {expression}](/_generated/{name})"


def commands() -> str:
    """Every command: what it does, its arguments and its options, as the parser knows them."""
    parts = []
    for name in COMMANDS:
        one = declaration(name)
        operands = " ".join(operand.metavar for operand in one.operands)
        text, _, examples = paragraphs(one.function.__doc__ or "")
        parts += [f"## gradcli {name}", f"```text\ngradcli {name} [OPTIONS] {operands}".rstrip() + "\n```", text]
        parts += [f"```console\n{examples}\n```"] if examples else []
        rows = [(operand.metavar, operand.help) for operand in one.operands]
        rows += [
            (", ".join(option.spellings) + f" {option.metavar}".rstrip(), option_help(option)) for option in one.options
        ]
        parts += [f"`{spelled}`\n: {cell(help)}" for spelled, help in rows]
    return "\n\n".join(parts)


def paragraphs(docstring: str) -> tuple[str, str, str]:
    """The prose of a command's docstring, and its examples with a prompt."""
    lines = [line.removeprefix("    ") for line in docstring.strip().splitlines()]
    text, found, examples = "\n".join(lines).replace("Details:\n\n", "").partition("Examples:\n")
    shown = "\n".join(f"$ {line.strip()}" for line in examples.strip().splitlines())
    return prose(text.strip()), found, shown


def prose(text: str) -> str:
    """A text in which Markdown means nothing but its code spans."""
    return re.sub(r"([*_<>\[\]#])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", text)


def cell(text: str) -> str:
    return prose(" ".join(text.split())).replace("|", "\\|")


def operations() -> str:
    """Every operation of the language, one row each."""
    rows = ["| operation | kind | what it computes | other names |", "|---|---|---|---|"]
    for _, one in sorted(catalogue().items()):
        if not one.internal:
            rows.append(f"| `{one.form}` | {one.kind} | {cell(one.summary)} | {cell(', '.join(one.aliases))} |")
    return "\n".join(rows)


def diagnostics() -> str:
    """Every code: what it means, the reason, an example, and what to do."""
    parts = []
    for family, title in FAMILIES.items():
        parts.append(f"## {family}xx: {title}")
        for code, one in CODES.items():
            if code.startswith(family):
                parts += [f"### {code}: {prose(one.title)}", prose(f"{one.what} {one.why}")]
                parts += [f"```text\n{one.example}\n```", f"**What to do:** {prose(one.instead)}"]
    return "\n\n".join(parts)


REFERENCES = {"commands": commands, "operations": operations, "diagnostics": diagnostics}


def reference(name: str, _: str) -> str:
    """A reference by its name."""
    return REFERENCES[name.strip()]()


FENCES: dict[str, Callable[[str, str], str]] = {
    "gradcli": console,
    "python": python,
    "picture": picture,
    "reference": reference,
}


def generated(text: str) -> str:
    """A page with its special fences replaced by what they stand for."""
    return FENCE.sub(lambda match: FENCES[match[1]](match[2], match[3]), text)


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Sphinx is about to read a page."""
    source[0] = generated(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
