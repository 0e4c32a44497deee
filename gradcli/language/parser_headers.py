"""Parses the headers of functions and loops, which open a block.

function = "def" name [ ".vjp" ] "(" [ name { "," name } ] ")"
loop     = "for" name "in" "range" "(" values ")"
"""

from __future__ import annotations

from gradcli.language import messages
from gradcli.language.lexer import BROKEN, NAME
from gradcli.language.parser_errors import Stop
from gradcli.language.parser_remarks import RemarkParser
from gradcli.language.parser_simple import ENDS
from gradcli.language.syntax import Call, Name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.diagnostics import Span
    from gradcli.language.syntax import Expression, Statement


class Block:
    """An open block: its header and the statements so far. A broken one is read for its errors only."""

    __slots__ = ("body", "bounds", "branches", "inline", "kind", "name", "orelse", "params", "rule", "span")

    def __init__(self, kind: str, span: Span, body: list[Statement]) -> None:
        self.kind = kind  # "def", "for", "if"; "stray" for needless indentation; "broken"
        self.span = span
        self.body = body
        self.inline = False
        self.name: Name | None = None
        self.rule: str | None = None
        self.params: tuple[Name, ...] = ()
        self.bounds: tuple[Expression, ...] = ()
        self.branches: list[tuple[Expression | None, list[Statement], Span]] = []
        self.orelse: list[Statement] | None = None


class HeaderParser(RemarkParser):
    """Headers of functions and of loops; `BlockParser` gives them their bodies."""

    def define(self, i: int) -> Block:
        """Return the block of the def at token `i`."""
        kinds, texts = self.kinds, self.texts
        if self.depth:
            message = "a function is defined at the top level of a script"
            raise self.stop("GC124", message, i, help="move it up")
        block = Block("def", self.span(i, i), [])
        at = i + 1
        block.name = self.plain_name(at, "a name is expected after `def`")
        at += 1
        if kinds[at] == ".":
            if texts[at + 1] != "vjp":
                message = "the only rule of a function is .vjp"
                raise self.stop("GC124", message, at, at + 1, help="write def f.vjp(a, b, ct): return (..., ...)")
            block.rule = "vjp"
            at += 2
        if kinds[at] != "(":
            message = "the parameters in brackets are missing"
            raise self.stop("GC124", message, i, at - 1, help="write def f(a, b): return ...")
        params: dict[str, Name] = {}
        at += 1
        while kinds[at] != ")":
            name = self.plain_name(at, "a parameter is a plain name")
            if name.id in params:
                labels = ((params[name.id].span, "first here"),)
                raise self.stop("GC124", f"the parameter `{messages.shown(name.id)}` is given twice", at, labels=labels)
            params[name.id] = name
            at += 1
            if kinds[at] == ",":
                at += 1
            elif kinds[at] != ")":
                hint = "parameters have no defaults and no types: def f(a, b): return ..."
                if kinds[at] in ENDS:
                    raise self.stop("GC113", "`(` is never closed", i, at - 1, help="add `)`")
                what = messages.described(kinds[at], texts[at])
                raise self.stop("GC124", f"unexpected {what} in the parameters", at, help=hint)
        block.params = tuple(params.values())
        self.position = at + 1
        if kinds[at + 1] == "->":
            raise self.stop("GC124", "a function has no types", at + 1, help="write def f(a): return ...")
        return block

    def plain_name(self, i: int, message: str) -> Name:
        """Return the name at token `i`, or stop with `message`."""
        kind = self.kinds[i]
        if kind == BROKEN:
            raise Stop(None)
        if kind != NAME:
            hint = None
            if kind in messages.WORDS:
                hint = f"`{kind}` is a reserved word"
            raise self.stop("GC124", message, i, help=hint)
        return Name(self.texts[i], self.span(i, i))

    def loop(self, i: int) -> Block:
        """Return the block of the for at token `i`."""
        kinds = self.kinds
        hint = "write for i in range(n):"
        if BROKEN in kinds[i + 1 : i + 5]:
            raise Stop(None)
        if kinds[i + 1] != NAME or kinds[i + 2] != "in":
            message = "a loop has one index and a range"
            raise self.stop("GC126", message, i, i + 1 if kinds[i + 1] in ENDS else i + 2, help=hint)
        target = Name(self.texts[i + 1], self.span(i + 1, i + 1))
        if kinds[i + 3] in ENDS or kinds[i + 3] == ":":
            raise self.stop("GC126", "a range is missing after `in`", i, i + 2, help=hint)
        call = self.expression(i + 3)
        if type(call) is not Call or call.function.id != "range" or call.method:
            name = f"len({messages.shown(call.id)})" if type(call) is Name else "n"
            message = "a loop runs over a range"
            raise self.stop(
                "GC126", message, i + 3, self.position - 1, help=f"write for i in range({name}): and use x[i]"
            )
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.stop("GC126", "range takes one to three bounds", i + 3, self.position - 1, help=hint)
        block = Block("for", self.span(i, i), [])
        block.name = target
        block.bounds = call.args
        self.defined.add(target.id)
        return block
