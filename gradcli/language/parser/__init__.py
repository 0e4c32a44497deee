"""The parser: reads a script or an expression into a syntax tree, or reports all of its errors at once.

The grammar stands in the modules that read it: parser_blocks (lines and blocks), parser_simple (statements),
parser_expressions (operators), parser_brackets (calls, subscripts, lists).
"""

from __future__ import annotations

from gradcli.base.diagnostics import ERROR, Diagnostic, GradcliError, Span
from gradcli.language.lexer import END, NEWLINE, tokenise
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser.parser_blocks import BlockParser
from gradcli.language.parser.parser_errors import Stop
from gradcli.language.parser.parser_expressions import ExpressionParser
from gradcli.language.source import Source
from gradcli.language.syntax import Expression, Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Directive, Expected, Statement

NOTHING = "no expression to evaluate"


def parse(source: Source | str, limits: Limits = DEFAULT_LIMITS) -> Script:
    """Return the tree of a script.

    Raises GradcliError with every error of the text, in the order of their places: GC1xx, or GC5xx for a
    text beyond `limits`. Notes (GC108) are in the script's `diagnostics`.

    >>> parse("x = 2\\nx**2").statements
    (Assign(targets=<1 items>, value=<Number>, operator=None, shape=None, const=False, expect=None), \
ExpressionStatement(value=<Binary>, expect=None))
    """
    if not isinstance(source, Source):
        source = Source(source)
    source = in_the_language(source, limits)
    tokens = tokenise(source, limits)
    parser = BlockParser(source, tokens, limits)
    statements = parser.script()
    if parser.last_formula is not None and statements and statements[-1] is parser.last_formula:
        statements.append(parser.called(parser.last_formula))
    directives, expected = comments(parser, statements) if tokens.directives and statements else ((), ())
    if parser.errors:
        raise failure(parser.errors, source)
    if not statements:
        line, hint = source.first_line, "write an expression, such as x**2 + 1"
        raise GradcliError(Diagnostic("GC101", NOTHING, Span(line, 1, line, 1), (), hint, source=source))
    first, last = statements[0].span, statements[-1].span
    span = Span(first.line, first.column, last.end_line, last.end_column)
    return Script(tuple(statements), source, parser.expect, tuple(parser.notes), span, directives, expected)


def in_the_language(source: Source, limits: Limits) -> Source:
    """Return the source with its LaTeX, if there is any, translated."""
    text = source.text
    if any(sign in text for sign in ("\\", "$", "{", "^T")) and len(text) <= limits.text:
        from gradcli.language.latex import translated

        return translated(source)
    return source


def comments(parser: BlockParser, statements: list[Statement]) -> tuple[tuple[Directive, ...], tuple[Expected, ...]]:
    """Return the pragmas and the expected results in the comments of a script; the parser gets their problems."""
    from gradcli.language.comments import directives, inline_expectations

    layout = directives.StatementLines(statements, parser.source)
    read: list[Directive] = []
    stated: list[Expected] = []
    for line, column, comment, alone in parser.tokens.directives:
        if comment.startswith(inline_expectations.MARK):
            expected, problems = inline_expectations.read_expected(comment, line, column)
            if not alone:
                span = Span(line, column, line, column + len(comment))
                hint = "write it on a line of its own"
                problems = [Diagnostic("GC136", "an expected result follows a statement", span, (), hint)]
            elif expected is not None:
                stated.append(expected)
                if expected.directive is not None:
                    read.append(expected.directive)
        elif (start := directives.directive_at(comment)) >= 0:
            directive, problems = directives.read_directive(comment[start:], line, column + start)
            layout.place(directive, alone, problems)
            read.append(directive)
        else:
            continue
        for problem in problems:
            if problem.severity == ERROR:
                parser.report(problem)
            else:
                parser.notes.append(problem.with_source(parser.source))
    return tuple(read), tuple(stated)


def parse_expression(
    source: Source | str, limits: Limits = DEFAULT_LIMITS, start: int = 0, end: int | None = None
) -> Expression:
    """Return the tree of one expression: the whole text, or the part from offset `start` to `end`.

    Raises GradcliError as `parse` does.
    """
    if isinstance(source, str):
        source = Source(source)
    tokens = tokenise(source, limits, start, end)
    if tokens.diagnostics:
        raise failure(tokens.diagnostics, source)
    parser = ExpressionParser(source, tokens, limits)
    try:
        if tokens.kinds[0] == END:
            raise parser.stop("GC101", NOTHING, 0)
        value = parser.expression(0)
        after = parser.position
        if tokens.kinds[after] != NEWLINE:
            raise parser.unexpected(after)
        if tokens.kinds[after + 1] != END:
            raise parser.stop("GC131", "one expression is expected, not several lines", after + 1)
    except Stop as stop:
        if stop.diagnostic is None:
            raise
        raise GradcliError(stop.diagnostic) from None
    return value


def failure(errors: list[Diagnostic], source: Source) -> GradcliError:
    """Return the error that holds `errors` in the order of their places."""
    start = Span(1, 1, 1, 1)
    ordered = sorted(errors, key=lambda diagnostic: diagnostic.span or start)
    return GradcliError(*(diagnostic.with_source(source) for diagnostic in ordered))
