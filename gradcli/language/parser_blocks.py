"""Parses the statements of a whole script and collects every error on the way.

After an error the parser goes on at the next statement. Open blocks lie on a list, so nothing recurses.

    script = { line }       line = simple { ";" simple } NEWLINE | header ":" suite
    header = function | loop | "if" value | "elif" value | "else"
    suite  = simple { ";" simple } NEWLINE | NEWLINE INDENT { line } DEDENT

On one line, `return` ends a function's suite: what follows the `;` belongs to the script.
"""

from __future__ import annotations

from gradcli.diagnostics import ERROR, Diagnostic, Span, cover
from gradcli.language import messages
from gradcli.language.lexer import BROKEN, DEDENT, END, INDENT, NEWLINE
from gradcli.language.parser_errors import Stop
from gradcli.language.parser_headers import Block, HeaderParser
from gradcli.language.parser_simple import ENDS
from gradcli.language.syntax import For, FunctionDef, If, Return, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

HEADERS = frozenset(("def", "for", "if", "elif", "else"))
CODES = {"def": "GC124", "for": "GC126", "if": "GC127", "elif": "GC127", "else": "GC127"}
SKIPPED = frozenset(("class", "while", "with", "try", "except", "finally", "async"))  # their blocks too


class BlockParser(HeaderParser):
    """The whole parser: lines, blocks and recovery."""

    def __init__(self, source: Source, tokens: Tokens, limits: Limits) -> None:
        super().__init__(source, tokens, limits)
        self.blocks: list[Block] = []
        self.chain: Block | None = None  # an if whose elif or else comes next

    def script(self) -> list[Statement]:
        """Return the statements of the text; self.errors holds what is wrong with it."""
        kinds = self.kinds
        last: Statement | None = None
        line = i = 0  # `line`: index of the first token of the present line
        while True:
            kind = kinds[i]
            if kind == NEWLINE:
                if self.tokens.remarks:
                    self.remark(line, i, last)
                last = None
                i += 1
                line = i
                if self.blocks and self.blocks[-1].inline:
                    self.end_block(i)
            elif kind == DEDENT:
                i += 1
                self.end_block(i)
            elif kind == END:
                break
            elif kind == INDENT:
                span = Span(self.lines[i], 1, self.lines[i], max(self.columns[i], 2))
                self.report(
                    Diagnostic(
                        "GC111", "this line is indented, but no block begins above it", span, (), "remove the spaces"
                    )
                )
                self.blocks.append(Block("stray", span, self.body()))
                i += 1
            else:
                try:
                    if kind in HEADERS:
                        i = self.header(i)
                    else:
                        last = self.simple(i)
                        self.body().append(last)
                        i = self.position
                        if kinds[i] == ";":
                            i += 1
                            if type(last) is Return and self.blocks[-1].inline and self.blocks[-1].kind == "def":
                                self.end_block(i)
                        elif kinds[i] != NEWLINE:
                            raise self.unexpected(i)
                except Stop as stop:
                    if stop.diagnostic is not None:
                        self.report(stop.diagnostic)
                    last = None
                    i = self.recover(i)
        self.leftovers()
        return self.top

    def body(self) -> list[Statement]:
        """Return the list that the next statement belongs to."""
        return self.blocks[-1].body if self.blocks else self.top

    def recover(self, start: int) -> int:
        """Return where to go on after an error in the statement that starts at token `start`."""
        kinds = self.kinds
        kind, i = kinds[start], start
        header = kind in HEADERS or kind in SKIPPED
        depth = 0  # a ; inside brackets ends nothing
        while kinds[i] != NEWLINE and (header or depth > 0 or kinds[i] != ";"):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(kinds[i], 0)
            i += 1
        for index in [index for index in self.tokens.remarks if start <= index <= i]:
            del self.tokens.remarks[index]
        if kinds[i] == ";":
            return i + 1
        if not header or kinds[i + 1] != INDENT:
            if kind in ("if", "elif") and kinds[i + 1] in ("elif", "else"):
                self.chain = Block("broken", self.span(start, start), [])
                self.chain.branches.append((None, [], self.chain.span))
            return i
        i += 2
        if kind in SKIPPED:
            depth = 1
            while depth:
                depth += {INDENT: 1, DEDENT: -1}.get(kinds[i], 0)
                i += 1
            return i
        block = Block("broken", self.span(start, start), [])
        if kind in ("if", "elif"):
            block.branches.append((None, block.body, block.span))
        if kind == "def":
            self.in_function = True
        self.push(block)
        return i

    # blocks -----------------------------------------------------------------------------------------------

    def push(self, block: Block) -> None:
        """Open a block."""
        self.blocks.append(block)
        self.depth += 1

    def end_block(self, i: int) -> None:
        """Close the innermost block; token `i` is what follows."""
        block = self.blocks.pop()
        if block.kind == "stray":
            return
        self.depth -= 1
        if block.kind == "def" or not self.depth:
            self.in_function = False
        if block.branches and block.orelse is None and self.kinds[i] in ("elif", "else"):
            self.chain = block
            return
        self.finish(block)

    def finish(self, block: Block) -> None:
        """Add the statement that a complete block stands for to the block around it."""
        body, name = block.body, block.name
        span = cover(block.span, body[-1].span) if body else block.span
        if block.kind == "def" and name is not None:
            if not self.returned:
                message = f"the function `{messages.shown(name.id)}` returns nothing"
                self.report(
                    Diagnostic("GC124", message, name.span, (), "end it with return and a value", ERROR, self.source)
                )
            self.body().append(FunctionDef(name, block.rule, block.params, tuple(body), span))
        elif block.kind == "for" and name is not None:
            self.body().append(For(name, block.bounds, tuple(body), span))
        elif block.kind == "if":
            orelse = tuple(block.orelse or ())
            for test, branch, start in reversed(block.branches):
                if test is not None:
                    statement = If(test, tuple(branch), orelse, cover(start, span))
                    orelse = (statement,)
            self.body().extend(orelse)

    def header(self, i: int) -> int:
        """Open the block whose header starts at token `i`; return the index of its suite's first token."""
        kind = self.kinds[i]
        if self.blocks and self.blocks[-1].inline:
            message = "a block cannot start inside a block on the same line"
            raise self.stop("GC111", message, i, help="write the inner block on lines of its own")
        if self.kinds[i + 1] == "=":
            raise self.stop("GC132", f"`{kind}` is a reserved word", i, help="choose another name")
        if self.depth >= self.limits.nesting:
            message = f"blocks are nested more than {self.limits.nesting} deep"
            raise self.stop("GC502", message, i, help="raise it with --limit nesting=1000")
        chain, self.chain = self.chain, None
        if kind == "def":
            block = self.define(i)
        elif kind == "for":
            block = self.loop(i)
        else:
            try:
                block = self.branch(i, chain)
            except Stop:
                if chain is not None:
                    self.finish(chain)
                raise
        colon = self.position
        if self.kinds[colon] != ":":
            if self.kinds[colon] != BROKEN and (
                self.kinds[colon] in ENDS or self.kinds[colon] == "return" or kind in ("def", "for", "else")
            ):
                message = f"a colon is missing after this `{kind}`"
                raise self.stop(CODES[kind], message, i, colon - 1, help="end the header with `:`")
            raise self.unexpected(colon)
        if self.kinds[colon + 1] == NEWLINE:
            if self.kinds[colon + 2] != INDENT:
                message = f"an indented block is expected after this `{kind}`"
                raise self.stop("GC111", message, i, colon, help="indent the lines that belong to it")
            after = colon + 3
        else:
            block.inline = True
            after = colon + 1
        if kind == "def":
            self.in_function, self.returned = True, False
        self.push(block)
        return after

    def branch(self, i: int, chain: Block | None) -> Block:
        """Return the block of the if, elif or else at token `i`; `chain` is the if that it may belong to."""
        kind = self.kinds[i]
        if kind == "if":
            if chain is not None:
                self.finish(chain)
            chain = Block("if", self.span(i, i), [])
        elif chain is None:
            message = f"`{kind}` has no `if`"
            raise self.stop("GC127", message, i, help="write it at the indentation of its `if`")
        body: list[Statement] = []
        if kind == "else":
            if self.kinds[i + 1] == "if":
                raise self.stop("GC127", "`else if` is written `elif`", i, i + 1, help="write elif")
            chain.orelse = body
            self.position = i + 1
        else:
            if self.kinds[i + 1] == ":" or self.kinds[i + 1] in ENDS:
                raise self.stop("GC127", f"`{kind}` has no condition", i, help=f"write {kind} n > 2:")
            test = self.expression(i + 1)
            chain.branches.append((test, body, self.span(i, i)))
        chain.body = body
        chain.inline = False
        return chain
