"""Attaches the settings and expectations in comments to the statements that they concern."""

from __future__ import annotations

from gradcli.diagnostics import ERROR, Diagnostic, Span
from gradcli.language.parser_simple import SimpleParser
from gradcli.language.remarks import read_remark
from gradcli.language.syntax import Assert, Assign, ExpressionStatement, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source


class RemarkParser(SimpleParser):
    """The statement parser with the errors found so far, and with `# rtol=` and `# expect:`."""

    def __init__(self, source: Source, tokens: Tokens, limits: Limits) -> None:
        super().__init__(source, tokens, limits)
        self.errors: list[Diagnostic] = list(tokens.diagnostics)
        self.top: list[Statement] = []  # the statements outside all blocks
        self.remarked = bool(tokens.remarks)
        self.expect: str | None = None  # what the first line expects of the file

    def report(self, diagnostic: Diagnostic) -> None:
        """Keep an error, unless characters of its line were reported already."""
        if diagnostic.span is None or diagnostic.span.line not in self.tokens.broken:
            self.errors.append(diagnostic)

    def remark(self, first: int, newline: int, statement: Statement | None) -> None:
        """Give the remarks between two tokens to the last statement of that line."""
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
        """Put a remark into a statement, or report that it does not belong there."""
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
        """Report the remarks that are empty, or beside a statement that they cannot apply to."""
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
                "this remark has no meaning here",
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
                    hint = "write the remark beside an assert or the last expression"
                    self.report(Diagnostic("GC128", message, statement.span, (), hint, ERROR, self.source))
