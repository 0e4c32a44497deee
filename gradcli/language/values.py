"""Reads the text of `--at`: names with the expressions or files that give them values. Opens no file."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import GradcliError, Span, error, visible
from gradcli.language.characters import FORBIDDEN
from gradcli.language.lexer import RESERVED, WORD
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse_expression
from gradcli.language.source import Source, text_too_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Expression

NAME = re.compile(rf"\s*+({WORD})\s*+=(?!=)\s*+")
BARE = rf"[\s;]({WORD})\s*+=(?!=)"  # NAME= inside a value
SPECIAL = re.compile(r"[()\[\],\"']")
HELP = "write NAME=VALUE, as in x=2,y=[1,2,3],X=@data.npy"
RANGE_HELP = "check and plot take ranges by --box x=0:1; many points are read from a file by --points"


class FileReference:
    """The `@PATH` of a binding; `span` is where the path stands."""

    __slots__ = ("path", "span")

    def __init__(self, path: str, span: Span) -> None:
        self.path = path
        self.span = span

    def __repr__(self) -> str:
        return f"FileReference({self.path!r})"


class Binding:
    """One NAME=VALUE. Spans point into `source`, the whole text of the option."""

    __slots__ = ("name", "source", "span", "value")

    def __init__(self, name: str, value: Expression | FileReference, span: Span, source: Source) -> None:
        self.name = name
        self.value = value
        self.span = span
        self.source = source

    def __repr__(self) -> str:
        return f"Binding({self.name!r}, {self.value!r})"


def parse_at(text: str, limits: Limits = DEFAULT_LIMITS) -> list[Binding]:
    """Return the bindings of a text such as "x=2,y=[1,2,3],X=@data.npy,z=randn(3,4)", in order.

    A path extends to the comma before the next NAME=, or to the end. Raises GC701 for text of another form or a name
    that comes twice, GC1xx and GC5xx for a value that is not an expression.
    """
    source = Source(text, "--at")
    text = source.text
    if len(text) > limits.text:
        raise text_too_long(source.name, limits)
    bindings: dict[str, Binding] = {}
    at, name, start = 0, "", 0
    while True:
        match = NAME.match(text, at)
        if match is None:
            raise no_binding(source, at, split_array(text, name, start))
        name, start = leaf_named(match[1]), match.end()
        span = source.span(match.start(1), match.end(1))
        if name in RESERVED:
            raise error("GC701", f"`{name}` is a reserved word, not the name of a leaf", span, source=source)
        if name in bindings:
            labels = ((bindings[name].span, "first given here"),)
            message = f"`{visible(name)}` is given twice"
            raise error("GC701", message, span, labels=labels, source=source)
        value: Expression | FileReference
        if text.startswith("@", start):
            end = path_end(text, start)
            value = file_reference(source, start, end)
        else:
            end = value_end(text, start)
            if not text[start:end].strip():
                message = f"`{visible(name)}` has no value"
                raise error("GC701", message, span, help=HELP, source=source)
            try:
                value = parse_expression(source, limits, start, end)
            except GradcliError:
                if missing := re.compile(BARE).search(text, start, end):
                    place = source.span(missing.start(1), missing.end(1))
                    message = f"a comma is missing before `{visible(missing[1])}=`"
                    raise error("GC701", message, place, help=HELP, source=source) from None
                if ":" in text[start:end] and '"' not in text[start:end]:
                    message, place = f"`{visible(name)}` takes a value, not a range", source.span(start, end)
                    raise error("GC701", message, place, help=RANGE_HELP, source=source) from None
                raise
        bindings[name] = Binding(name, value, source.span(match.start(1), end), source)
        if end >= len(text):
            return list(bindings.values())
        at = end + 1


def value_end(text: str, start: int) -> int:
    """Return the offset of the comma that ends the value at offset `start`, or of the end of the text."""
    depth, at = 0, start
    while match := SPECIAL.search(text, at):
        at, char = match.end(), match[0]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ",":
            if depth <= 0:
                return match.start()
        else:
            closing = text.find(char, at)
            if closing < 0:
                break
            at = closing + 1
    return len(text)


def path_end(text: str, start: int) -> int:
    """Return the offset of the first comma after `start` that precedes NAME=, or of the end of the text."""
    at = text.find(",", start)
    while at >= 0:
        if NAME.match(text, at + 1):
            return at
        at = text.find(",", at + 1)
    return len(text)


def file_reference(source: Source, start: int, end: int) -> FileReference:
    """Return the reference to the path after the @ at offset `start`."""
    path = source.text[start + 1 : end].strip()
    span = source.span(start, end)
    if not path or FORBIDDEN.search(path):
        what = "the path after @ is missing" if not path else f"`{visible(path)}` is not a path"
        raise error("GC701", what, span, help="write X=@data.npy", source=source)
    return FileReference(path, span)


def split_array(text: str, name: str, start: int) -> str:
    """Return help for an array without brackets, as in `x=2,3`: the value of `name` starts at offset `start`."""
    entries = text[start : path_end(text, start)].strip()
    whole = bool(name) and not entries.startswith("@") and "=" not in entries
    return f"write {visible(name)}=[{visible(entries, 60)}] for an array" if whole else HELP


def no_binding(source: Source, at: int, hint: str) -> GradcliError:
    """Return the error for the text at offset `at`, which does not start with NAME=."""
    end = value_end(source.text, at)
    piece = source.text[at:end].strip()
    span = source.span(at, end)
    if not piece:
        message, hint = "a NAME=VALUE is missing", HELP
    else:
        message = f"`{visible(piece)}` is not NAME=VALUE"
        if ":" in piece and "=" not in piece:
            hint = f"write {visible(piece.replace(':', '=', 1))}"
        elif "==" in piece:
            hint = f"write {visible(piece.replace('==', '=', 1))}"
    return error("GC701", message, span, help=hint, source=source)


def leaf_named(word: str) -> str:
    """The leaf that a word of an option means: `lambda`, which is a word of Python, is λ, as in LaTeX."""
    return "λ" if word == "lambda" else word


def leaf_of(target: str) -> tuple[str, int]:
    """The leaf that a claim is about, and the order of the derivative: 2 for `hessian(x)`.

    >>> leaf_of("x"), leaf_of("hessian(x)")
    (('x', 1), ('x', 2))
    """
    inner = target.removeprefix("hessian(").removesuffix(")")
    return (leaf_named(inner.strip()), 2) if target == f"hessian({inner})" else (leaf_named(target), 1)
