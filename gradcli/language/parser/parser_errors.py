"""The base of the parsers: token lists, open brackets, and the errors for tokens that cannot stand in a place."""

from __future__ import annotations

from gradcli.base.diagnostics import ERROR, Diagnostic, Span
from gradcli.language.lexer import BROKEN, END, NEWLINE
from gradcli.language.parser import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source
    from gradcli.language.syntax import Clause, Expression, Item, Keyword, Name

# kinds of bracket; BARS are those of |x| and ||x||
ROOT, GROUP, LIST, CALL, INDEX, BARS = range(6)


class Stop(Exception):
    """Parsing of the statement ends here; `diagnostic` says why, unless its characters were reported."""

    def __init__(self, diagnostic: Diagnostic | None) -> None:
        self.diagnostic = diagnostic


class Clauses:
    """The comprehension of an open bracket: its item, the complete clauses, and the one that is being read."""

    __slots__ = ("complete", "conditions", "first", "item", "over", "target")

    def __init__(self, item: Expression, first: int, target: Name) -> None:
        self.item = item
        self.first = first  # index of the `for` of the clause that is being read
        self.target = target
        self.over: Expression | None = None  # what it runs over, once that is known
        self.conditions: list[Expression] = []
        self.complete: list[Clause] = []


class Frame:
    """An open bracket, or the whole expression (ROOT): what it belongs to and what it holds so far."""

    __slots__ = (
        "base",
        "clauses",
        "closer",
        "comma",
        "item",
        "items",
        "keyword",
        "keywords",
        "kind",
        "method",
        "open",
        "parts",
        "prefix",
        "slots",
        "start",
    )

    def __init__(self, kind: int, closer: str, open: int, start: int, base: Expression | None = None) -> None:
        self.kind = kind
        self.closer = closer  # the token that ends it
        self.open = open  # index of the bracket's token
        self.start = start  # index of the first token of the whole: of f in f(x)
        self.base = base  # the function of a call, the value of a subscript
        self.item = open + 1  # index of the first token of the present item
        self.items: list[Expression] = []
        self.slots: list[Item] = []  # the items of a subscript
        self.keywords: list[Keyword] | None = None
        self.keyword = -1  # index of the name in NAME=..., while its value is read
        self.parts: list[Expression | None] | None = None  # a slice's parts before each colon
        self.clauses: Clauses | None = None  # of a comprehension, behind its first `for`
        self.comma = False  # a comma was seen (in a ROOT: commas are allowed)
        self.method = False
        self.prefix: str | None = None


class TokenReader:
    """The tokens of one text, the place in them, and the errors of what stands there."""

    def __init__(self, source: Source, tokens: Tokens, limits: Limits) -> None:
        self.source = source
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.lines = tokens.lines
        self.columns = tokens.columns
        self.limits = limits
        self.position = 0  # the first token after the last expression
        self.depth = 0  # blocks around the present statement
        self.notes: list[Diagnostic] = []
        self.plain_names: frozenset[str] | None = None  # what is used without a dot before or after it, once computed

    def span(self, first: int, last: int) -> Span:
        """Return the span from token `first` to token `last`, both included."""
        lines, columns = self.lines, self.columns
        place = (lines[first], columns[first], lines[last], columns[last] + len(self.texts[last]))
        return tuple.__new__(Span, place)  # there is one for every part of a text, and this takes half the time

    def stop(
        self,
        code: str,
        message: str,
        first: int,
        last: int | None = None,
        help: str | None = None,
        labels: tuple[tuple[Span, str], ...] = (),
    ) -> Stop:
        """Return the exception that ends a statement with an error at tokens `first` to `last`."""
        span = self.span(first, first if last is None else last)
        return Stop(Diagnostic(code, message, span, labels, help, ERROR, self.source))

    def too_deep(self, i: int) -> Stop:
        """Return the error for a bracket, sign or power beyond the limit."""
        message = f"the expression is nested more than {self.limits.nesting} deep"
        return self.stop("GC502", message, i, help="name an inner part, or raise it with --limit nesting=1000")

    def no_power_of_function(self, i: int) -> None:
        """Raise the error for `sin²(`, `sin^2 x`, `sin^-1(` and `d²/dx² x`, where token `i` comes behind the power."""
        kinds, texts = self.kinds, self.texts
        first = i - 3 - (kinds[i - 2] == "-")
        if first < 0 or kinds[first + 1] not in ("**", "^"):
            return
        name, power = texts[first], texts[i - 1]
        if name in messages.WITH_POWERS:
            sign = "-" if kinds[i - 2] == "-" else ""
            inverse = f"a{name}(x) for the inverse, or " if sign and power == "1" and name in messages.INVERTED else ""
            meant = f"{inverse}{name}(x)**{sign}{power}"
            hint = f"write {meant} for the power of the value"
            raise self.stop("GC139", f"`{name}` to a power may be applied or multiplied", first, i - 1, help=hint)
        if kinds[first - 1] == "/" and (leaf := messages.differential(name)):
            hint = (
                f"write grad(grad({self.rest(i)}, {leaf}), {leaf}); `gradcli derive --order {power}` shows the formula"
            )
            raise self.stop("GC139", f"`/{name}` is no derivative here", first - 1, first, help=hint)

    def rest(self, i: int) -> str:
        """Return the statement from token `i` on, for a message."""
        end = next(at for at in range(i, len(self.kinds)) if self.kinds[at] in (NEWLINE, END, ";"))
        return messages.shown("".join(self.texts[i:end]))

    def bracket(self, i: int, frames: list[Frame]) -> Stop | None:
        """Return the error for token `i` if it ends an open bracket wrongly, else None."""
        kind, frame = self.kinds[i], frames[-1]
        if frame.kind == ROOT:
            return None
        opened = self.span(frame.open, frame.open)
        shown = self.kinds[frame.open]
        if kind in (NEWLINE, END, ";"):
            return self.stop("GC113", f"`{shown}` is never closed", frame.open, help=f"add `{frame.closer}`")
        if kind in (")", "]") and kind != frame.closer:
            message = f"`{shown}` is closed by `{kind}`"
            return self.stop("GC113", message, i, help=f"write `{frame.closer}`", labels=((opened, "opened here"),))
        return None

    def no_operand(self, i: int, frames: list[Frame]) -> Stop:
        """Return the error for token `i`, which stands where a value is due."""
        kind, frame = self.kinds[i], frames[-1]
        if kind == BROKEN:
            return Stop(None)
        before = self.kinds[i - 1] if i else NEWLINE
        if wrong := self.bracket(i, frames):
            if kind in (")", "]") or before in ("(", "[", ",", "="):
                return wrong
        elif kind in (")", "]") and frame.kind == ROOT and before in (NEWLINE, ";"):
            return self.unmatched(i)
        call, index = frame.kind == CALL, frame.kind == INDEX
        code, message, hint = messages.before_operand(self.kinds, self.texts, i, call, index)
        return self.stop(code, message, i, help=hint)

    def no_operator(self, i: int, frames: list[Frame]) -> Stop:
        """Return the error for token `i`, which stands where an operator or a closing bracket is due."""
        if self.kinds[i] == BROKEN:
            return Stop(None)
        return self.bracket(i, frames) or self.unexpected(i, frames[-1].kind)

    def unmatched(self, i: int) -> Stop:
        """Return the error for a closing bracket that closes nothing."""
        kind = self.kinds[i]
        opener = "(" if kind == ")" else "["
        return self.stop("GC113", f"`{kind}` closes nothing", i, help=f"remove it, or add `{opener}` before")

    def unexpected(self, i: int, bracket: int = ROOT) -> Stop:
        """Return the error for token `i` after a complete expression, in a kind of bracket or in none."""
        kind = self.kinds[i]
        if kind == BROKEN:
            return Stop(None)
        if kind in (")", "]") and bracket == ROOT:
            return self.unmatched(i)
        call, inside = bracket == CALL, bracket != ROOT
        code, message, hint = messages.after_operand(self.kinds, self.texts, i, self.touches(i), call, inside)
        if code == "GC114" and self.kinds[i - 2] == "/" and (leaf := messages.differential(self.texts[i - 1])):
            hint = f"write grad({self.rest(i)}, {leaf}); `gradcli derive` shows the formula"
        labels: tuple[tuple[Span, str], ...] = ()
        if code == "GC114":
            labels = ((self.span(i - 1, i - 1), "a value ends here"),)
        return self.stop(code, message, i, help=hint, labels=labels)

    def touches(self, i: int) -> bool:
        """Return whether token `i` follows the one before it without a space."""
        before = i - 1
        if self.lines[i] != self.lines[before]:
            return False
        return self.columns[before] + len(self.texts[before]) == self.columns[i]
