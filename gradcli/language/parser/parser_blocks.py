"""Parses the statements of a whole script and collects every error on the way.

After an error the parser goes on at the next statement. Open blocks lie on a list, so nothing recurses.

    script = { line }       line = simple { ";" simple } NEWLINE | header ":" suite
    header = function | loop | "if" value | "elif" value | "else"
    function = "def" name [ ".vjp" ] "(" [ name { "," name } ] ")"
    loop   = "for" name "in" "range" "(" values ")"
    suite  = simple { ";" simple } NEWLINE | NEWLINE INDENT { line } DEDENT

On one line, `return` ends a function's suite: what follows the `;` belongs to the script.
"""

from __future__ import annotations

from gradcli.base.diagnostics import ERROR, Diagnostic, Span, cover
from gradcli.language.comments.pragmas import read_remark
from gradcli.language.lexer import BROKEN, DEDENT, END, INDENT, NAME, NEWLINE
from gradcli.language.parser import messages
from gradcli.language.parser.parser_errors import Stop
from gradcli.language.parser.parser_simple import ENDS, SimpleParser
from gradcli.language.syntax import (
    Assert,
    Assign,
    Call,
    ExpressionStatement,
    For,
    FunctionDef,
    If,
    Name,
    Return,
    Statement,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source
    from gradcli.language.syntax import Expression

HEADERS = frozenset(("def", "for", "if", "elif", "else"))
CODES = {"def": "GC124", "for": "GC126", "if": "GC127", "elif": "GC127", "else": "GC127"}
SKIPPED = frozenset(("class", "while", "with", "try", "except", "finally", "async"))  # their blocks too


class OpenBlock:
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


class BlockParser(SimpleParser):
    """The whole parser: lines, blocks and recovery; settings and expectations in comments; headers."""

    def __init__(self, source: Source, tokens: Tokens, limits: Limits) -> None:
        super().__init__(source, tokens, limits)
        self.errors: list[Diagnostic] = list(tokens.diagnostics)
        self.top: list[Statement] = []  # the statements outside all blocks
        self.remarked = bool(tokens.remarks)
        self.expect: str | None = None  # what the first line expects of the file
        self.blocks: list[OpenBlock] = []
        self.chain: OpenBlock | None = None  # an if whose elif or else comes next

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
                self.blocks.append(OpenBlock("stray", span, self.body()))
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
                self.chain = OpenBlock("broken", self.span(start, start), [])
                self.chain.branches.append((None, [], self.chain.span))
            return i
        i += 2
        if kind in SKIPPED:
            depth = 1
            while depth:
                depth += {INDENT: 1, DEDENT: -1}.get(kinds[i], 0)
                i += 1
            return i
        block = OpenBlock("broken", self.span(start, start), [])
        if kind in ("if", "elif"):
            block.branches.append((None, block.body, block.span))
        if kind == "def":
            self.in_function = True
        self.push(block)
        return i

    # blocks -----------------------------------------------------------------------------------------------

    def push(self, block: OpenBlock) -> None:
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

    def finish(self, block: OpenBlock) -> None:
        """Add the statement that a complete block stands for to the block around it."""
        body, name = block.body, block.name
        span = cover(block.span, body[-1].span) if body else block.span
        if block.kind == "def" and name is not None:
            broken = any(problem.span is not None and problem.span.line >= name.span.line for problem in self.errors)
            if not self.returned and not broken:  # an error in the body may be its return
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

    def branch(self, i: int, chain: OpenBlock | None) -> OpenBlock:
        """Return the block of the if, elif or else at token `i`; `chain` is the if that it may belong to."""
        kind = self.kinds[i]
        if kind == "if":
            if chain is not None:
                self.finish(chain)
            chain = OpenBlock("if", self.span(i, i), [])
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

    # headers ---

    def define(self, i: int) -> OpenBlock:
        """Return the block of the def at token `i`."""
        kinds, texts = self.kinds, self.texts
        if self.depth:
            message = "a function is defined at the top level of a script"
            raise self.stop("GC124", message, i, help="move it up")
        block = OpenBlock("def", self.span(i, i), [])
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

    def loop(self, i: int) -> OpenBlock:
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
        left = getattr(call, "left", None)  # `range(3) x = 2` is a product so far
        if type(left) is Call and left.function.id == "range":
            raise self.stop("GC124", "a colon is missing after this `for`", i, i + 3, help="end the header with `:`")
        if type(call) is not Call or call.function.id != "range" or call.method:
            name = f"len({messages.shown(call.id)})" if type(call) is Name else "n"
            message = "a loop runs over a range"
            raise self.stop(
                "GC126", message, i + 3, self.position - 1, help=f"write for i in range({name}): and use x[i]"
            )
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.stop("GC126", "range takes one to three bounds", i + 3, self.position - 1, help=hint)
        block = OpenBlock("for", self.span(i, i), [])
        block.name = target
        block.bounds = call.args
        self.defined.add(target.id)
        return block

    # pragmas ---

    def report(self, diagnostic: Diagnostic) -> None:
        """Keep an error, unless characters of its line were reported already."""
        if diagnostic.span is None or diagnostic.span.line not in self.tokens.broken:
            self.errors.append(diagnostic)

    def remark(self, first: int, newline: int, statement: Statement | None) -> None:
        """Give the pragmas between two tokens to the last statement of that line."""
        remarks = self.tokens.remarks
        for index in [index for index in remarks if first <= index <= newline]:
            line, _, comment = remarks[index]
            remark = read_remark(comment)
            if remark.empty:
                del remarks[index]
                continue
            if remark.expect is not None and remark.expect.startswith("error") and line == self.source.first_line:
                self.expect, remark.expect = remark.expect, None
            if remark.problem is None and self.takes(statement, remark.expect, remark.rtol):
                del remarks[index]

    def takes(self, statement: Statement | None, expect: str | None, rtol: float | None) -> bool:
        """Put a pragma into a statement, or report that it does not belong there."""
        if expect is not None and expect.startswith("error"):
            return False
        if type(statement) is Assert:
            statement.rtol = rtol if rtol is not None else statement.rtol
            statement.expect = expect or statement.expect
            return True
        if rtol is not None:
            return False
        if type(statement) is ExpressionStatement or type(statement) is Assign:
            statement.expect = expect
            return not self.depth
        return expect is None

    def leftovers(self) -> None:
        """Report the pragmas that are empty, or beside a statement that they cannot apply to."""
        if not self.remarked:
            return
        for index, (line, column, comment) in sorted(self.tokens.remarks.items()):
            remark = read_remark(comment)
            if remark.empty:
                continue
            span = Span(line, column, line, column + len(comment))
            if remark.problem is None and index == -self.source.first_line and remark.rtol is None:
                self.expect = remark.expect
                continue
            message, hint = remark.problem or (
                "this pragma has no meaning here",
                "write it beside an assert or the output; # expect: error GC301 on the first line",
            )
            self.report(Diagnostic("GC128", message, span, (), hint, ERROR, self.source))
        kinds: tuple[type[Statement], ...] = (ExpressionStatement, Assign)
        outputs = [next((s for s in reversed(self.top) if type(s) is kind), None) for kind in kinds]
        output = next((s for s in outputs if s is not None), None)
        for statement in self.top:
            if isinstance(statement, (ExpressionStatement, Assign)) and statement is not output:
                if statement.expect is not None:
                    message = "this statement is not the output, so nothing can be expected of it"
                    hint = "write the pragma beside an assert or the last expression"
                    self.report(Diagnostic("GC128", message, statement.span, (), hint, ERROR, self.source))
