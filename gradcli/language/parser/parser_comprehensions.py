"""Parses the clauses of comprehensions and generators: a `for` after an item in brackets.

comprehension = "[" value clause { clause } "]"     generator = name "(" value clause { clause } ")"
clause        = "for" name "in" ( "range" "(" values ")" | value ) { "if" value }
"""

from __future__ import annotations

from gradcli.language.lexer import BROKEN, NAME
from gradcli.language.parser import messages
from gradcli.language.parser.parser_errors import CALL, LIST, Clauses, Frame, Stop, TokenReader
from gradcli.language.syntax import Call, Clause, Comprehension, Expression, Name

FORM = "write [x**2 for x in xs] or [i*x for i in range(n)]"


class ComprehensionParser(TokenReader):
    """The tokens of one text, with the part of a bracket that follows a `for`."""

    def comprehend(self, frame: Frame, i: int, value: Expression) -> None:
        """Take the value before token `i`, a `for` or an `if` of a comprehension, and move past the clause's head."""
        kind, clauses = self.kinds[i], frame.clauses
        if clauses is None:
            if frame.kind == CALL and (frame.items or frame.keywords or frame.keyword >= 0):
                message = "a generator is the only argument of a call"
                raise self.stop("GC120", message, i, help="put it in brackets of its own: [x**2 for x in xs]")
            if frame.items or frame.comma:
                message = "a comprehension has one item"
                raise self.stop("GC120", message, i, help="put brackets around a row: [[x, x**2] for x in xs]")
            frame.clauses = Clauses(value, i, self.target(i))
            return
        self.take(clauses, value)
        if kind == "if":
            self.position = i + 1
            return
        clauses.complete.append(self.clause(clauses, i - 1))
        clauses.first, clauses.target, clauses.over, clauses.conditions = i, self.target(i), None, []

    def target(self, i: int) -> Name:
        """Return the variable of the `for` at token `i`; self.position is then what it runs over."""
        kinds = self.kinds
        if BROKEN in kinds[i + 1 : i + 3]:
            raise Stop(None)
        if kinds[i + 1] == NAME and kinds[i + 2] == ",":
            message = "a comprehension's loop has one variable"
            hint = "write for i in range(n) and use x[i], y[i], or for row in table and use row[0], row[1]"
            raise self.stop("GC120", message, i + 1, i + 2, help=hint)
        if kinds[i + 1] != NAME:
            what = messages.described(kinds[i + 1], self.texts[i + 1])
            raise self.stop("GC120", f"a name is expected after `for`, not {what}", i, help=FORM)
        if kinds[i + 2] != "in":
            raise self.stop("GC120", "`in` is missing after the variable of a comprehension", i, i + 1, help=FORM)
        self.position = i + 3
        return Name(self.texts[i + 1], self.span(i + 1, i + 1))

    def take(self, clauses: Clauses, value: Expression) -> None:
        """Add a value to the clause that is being read: what it runs over, or a condition."""
        if clauses.over is None:
            clauses.over = value
        else:
            clauses.conditions.append(value)

    def clause(self, clauses: Clauses, last: int) -> Clause:
        """Return the clause that ends with token `last`."""
        over, span = clauses.over, self.span(clauses.first, last)
        conditions = tuple(clauses.conditions)
        if type(over) is not Call or over.function.id != "range" or over.method:
            return Clause(clauses.target, (), over, conditions, span)
        if over.keywords or not 1 <= len(over.args) <= 3:
            first = clauses.first + 3
            raise self.stop("GC120", "range takes one to three bounds", first, last, help="write range(n)")
        return Clause(clauses.target, over.args, None, conditions, span)

    def comprehended(self, frame: Frame, i: int, value: Expression) -> Comprehension:
        """Return the comprehension whose last value stands before token `i`, the end of its bracket."""
        clauses = frame.clauses
        assert clauses is not None
        if self.kinds[i] == ",":
            message = "a comprehension must be alone in its brackets"
            hint = "put it in brackets of its own: sum([x**2 for x in xs], axis=0)"
            raise self.stop("GC120", message, i, help=hint)
        self.take(clauses, value)
        whole = (*clauses.complete, self.clause(clauses, i - 1))
        frame.clauses = None
        first, last = (frame.open, i) if frame.kind == LIST else (frame.item, i - 1)
        return Comprehension(clauses.item, whole, frame.kind == CALL, self.span(first, last))
