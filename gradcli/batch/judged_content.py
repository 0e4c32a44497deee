"""Digests of what a check judges, so that a baseline accepts a failure only as long as nothing of it has changed.

Of a script these are the statement of the check and the statements and data files that it needs, without comments; of
Python functions the files with their code; always the options that matter. Lines and other claims do not count.
"""

from __future__ import annotations

import ast
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import GradcliError
from gradcli.language.parser import parse
from gradcli.language.syntax import Assert, Call, FunctionDef, Name, String, nodes_of
from gradcli.language.unparse import unparse
from gradcli.lowering.assigned_names import assigned_names
from gradcli.lowering.points import array_of, read_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.report import Check
    from gradcli.language.source import Source
    from gradcli.language.syntax import Script, Statement

# options that change how failures count, or how they are shown, but not what is judged
ELSEWHERE = ("limits", "timeout", "require", "allow_kink", "lenient", "steps", "witnesses", "backend")


def digests(source: Source | None, python: Sequence[str | None], options: Mapping[str, Any]) -> Callable[[Check], str]:
    """A function that gives the digest of what a check of this script, or of these Python targets, judges."""
    about = {key: value for key, value in options.items() if key not in ELSEWHERE}
    point = read_point(about.pop("at"), options["limits"])[0]
    shared = [
        repr(sorted(about.items())),
        *(f"{name} = {array_of(value).tolist()}" for name, value in sorted(point.items())),
    ]
    try:
        script = None if source is None else parse(source)
    except GradcliError:
        script = None  # with the limits that were given it can be read
        shared += [] if source is None else [source.text]
    if python:
        files = {path: None for target in python if target for path in python_files(target)}
        shared += [_content(path) for path in files]

    def digest(check: Check) -> str:
        parts = [*shared, check.kind, check.leaf or "", *(_parts(script, check, about) if script is not None else ())]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    return digest


def _parts(script: Script, check: Check, options: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a script that a check depends on."""
    folder = os.path.dirname(script.source.path or "")
    for directive in script.directives:
        if directive.covers(check.line):
            yield repr((sorted(directive.settings.items()), directive.codes))
    yield from (script.source.line(line.line) for line in script.expected if line.line == check.line)
    own = [step for step in script.statements if check.line and step.span.line <= check.line <= step.span.end_line]
    kept = [step for step in script.statements if not isinstance(step, Assert)]
    if own and check.kind in ("claim", "gradient") and not options.get("claims"):
        kept = needed(script, own)
    for statement in kept:
        yield unparse(statement)
        for node in nodes_of(statement):
            if isinstance(node, Call) and node.function.id == "load":
                yield from (_content(os.path.join(folder, arg.text)) for arg in node.args if isinstance(arg, String))


def needed(script: Script, own: Sequence[Statement]) -> list[Statement]:
    """Some statements of a script, and all that assign or define a name in them or in these."""
    kept = set(own)
    pending = list(own)
    names: set[str] = set()
    while pending:
        names.update(node.id for node in nodes_of(pending.pop()) if isinstance(node, Name))
        for statement in script.statements:
            bound = {statement.name.id} if isinstance(statement, FunctionDef) else set(assigned_names([statement]))
            if statement not in kept and names & bound:
                kept.add(statement)
                pending.append(statement)
    return [statement for statement in script.statements if statement in kept]


def python_files(target: str) -> Iterator[str]:
    """The file of a target such as losses.py:f or package.losses:f, and those beside it that it imports."""
    module = target.rpartition(":")[0]
    first = module if module.endswith(".py") else module.replace(".", os.sep) + ".py"
    pending, seen = [os.path.abspath(first)], set[str]()
    while pending:
        path = pending.pop()
        if path in seen or not os.path.isfile(path):
            continue
        seen.add(path)
        yield path
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                origin = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in [*origin, *(alias.name for alias in node.names)]:
                    place = os.path.join(os.path.dirname(path), *name.split("."))
                    pending += [f"{place}.py", os.path.join(place, "__init__.py")]


def _content(path: str) -> str:
    """A digest of the content of a file; empty for one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ""
