"""An open bracket and the token after an item go in; the finished group, list, call or subscript comes out.

This is the half of the expression parser that knows what may stand between brackets and after a dot.
"""

from __future__ import annotations

from gradcli.diagnostics import ERROR, Diagnostic, Span
from gradcli.language import messages
from gradcli.language.lexer import BROKEN, END, NAME, NEWLINE, STRING
from gradcli.language.literals import exact_ratio
from gradcli.language.syntax import (
    Call,
    Expression,
    Item,
    Keyword,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    String,
    Subscript,
    Transpose,
    Tuple,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

MODULES = frozenset(("np", "numpy", "jnp", "torch", "math"))
SUBMODULES = frozenset(("linalg", "special", "nn", "functional", "random"))
CONSTANTS = frozenset(("pi", "e", "inf", "nan"))
STRING_FUNCTIONS = frozenset(("load", "einsum"))  # the first argument is a string
STRING_KEYWORDS = frozenset(("approximate", "mode", "ord"))
ENDS_TUPLE = frozenset((NEWLINE, END, ";", "=", ")", "]", ":", "in"))

# kinds of bracket
ROOT, GROUP, LIST, CALL, INDEX = range(5)
# what delimit() says comes next
OPERAND, OPERATOR, DONE = range(3)


class Stop(Exception):
    """Parsing of the statement ends here; `diagnostic` says why, unless the characters were already reported."""

    def __init__(self, diagnostic: Diagnostic | None) -> None:
        self.diagnostic = diagnostic


class Frame:
    """An open bracket, or the whole expression (ROOT): what it belongs to and what it holds so far."""

    __slots__ = (
        "base",
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
        self.comma = False  # a comma was seen (in a ROOT: commas are allowed)
        self.method = False
        self.prefix: str | None = None


class BracketParser:
    """The tokens of one text, the place in them, and everything about brackets, dots and rare operands."""

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

    def span(self, first: int, last: int) -> Span:
        """Return the span from token `first` to token `last`, both included."""
        end = self.columns[last] + len(self.texts[last])
        return Span(self.lines[first], self.columns[first], self.lines[last], end)

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

    # operands ---------------------------------------------------------------------------------------------

    def number(self, i: int) -> Number:
        """Return the Number at token `i`."""
        text, span = self.texts[i], self.span(i, i)
        if len(text) < 16 and text.isdigit():
            return Number(text, (int(text), 1), span)
        ratio, diagnostic = exact_ratio(text, span, self.limits)
        if diagnostic is not None:
            diagnostic.source = self.source
            if diagnostic.severity == ERROR:
                raise Stop(diagnostic)
            self.notes.append(diagnostic)
        return Number(text, ratio, span)

    def rare_operand(self, i: int, frame: Frame, power: int) -> Expression | None:
        """Return the operand at token `i` if it is a string, True, False or None in its place; else None."""
        kind = self.kinds[i]
        if kind == STRING and frame.kind == CALL:
            if frame.keyword >= 0:
                allowed = i == frame.keyword + 2 and self.texts[frame.keyword] in STRING_KEYWORDS
            else:
                allowed = i == frame.item and not frame.items and self.function(frame) in STRING_FUNCTIONS
            if allowed and self.kinds[i + 1] in (",", ")"):
                return String(self.texts[i][1:-1], self.span(i, i))
        if kind == "True" or kind == "False":
            return Number(kind, (1 if kind == "True" else 0, 1), self.span(i, i))
        if kind == "None" and power == 0 and self.none_fits(i, i + 1, frame):
            return Name("None", self.span(i, i))
        return None

    def function(self, frame: Frame) -> str:
        """Return the name of the function whose call `frame` is; "" for other brackets."""
        return frame.base.id if frame.kind == CALL and type(frame.base) is Name else ""

    def none_fits(self, i: int, after: int, frame: Frame) -> bool:
        """Tell whether None at token `i` is a whole item of a subscript, or a keyword's whole value."""
        if self.kinds[after] != "," and self.kinds[after] != frame.closer:
            return False
        if frame.kind == INDEX:
            return i == frame.item
        return frame.kind == CALL and frame.keyword >= 0 and i == frame.keyword + 2

    def keyword(self, frame: Frame, i: int) -> None:
        """Begin the argument NAME=... whose name is token `i`."""
        name = self.texts[i]
        if i != frame.item:
            raise self.stop("GC115", "`=` inside an expression", i + 1, help="did you mean `==`?")
        for other in frame.keywords or ():
            if other.name == name:
                raise self.stop(
                    "GC130",
                    f"`{messages.shown(name)}=` is given twice",
                    i,
                    labels=((other.span, "first given here"),),
                )
        frame.keyword = i

    # after a dot ------------------------------------------------------------------------------------------

    def dot(self, values: list[Expression], starts: list[int], frame: Frame, power: int) -> Frame | None:
        """Read what follows the dot at self.position: .T, a method call, or a name after a module's prefix.

        Returns the open bracket of a call, or None when the value on the stack is complete.
        """
        i, kinds, texts = self.position, self.kinds, self.texts
        value, start = values[-1], starts[-1]
        if kinds[i + 1] != NAME:
            raise self.stop("GC117", "a name is expected after the dot", i, help="write x.sum() or x.T")
        name = texts[i + 1]
        prefix = None
        if type(value) is Name and start == i - 1 and value.id in MODULES:
            prefix = value.id
            i += 1
            while texts[i] in SUBMODULES and kinds[i + 1] == "." and kinds[i + 2] == NAME:
                prefix = f"{prefix}.{texts[i]}"
                i += 2
            name = texts[i]
            if kinds[i + 1] != "(":
                self.position = i + 1
                if name in CONSTANTS:
                    values[-1] = Name(name, self.span(start, i))
                    return None
                if name == "newaxis" and power == 0 and self.none_fits(start, i + 1, frame):
                    values[-1] = Name("None", self.span(start, i))
                    return None
                raise self.attribute(i, prefix)
        else:
            i += 1
            if kinds[i + 1] != "(":
                if name != "T":
                    raise self.attribute(i, None)
                values[-1] = Transpose(value, self.span(start, i))
                self.position = i + 1
                return None
            if name == "T":
                raise self.stop("GC117", "`.T` is not called", i, i + 1, help="write .T without brackets")
        self.dunder(i)
        opened = Frame(CALL, ")", i + 1, start, Name(name, self.span(i, i)))
        values.pop()
        starts.pop()
        opened.prefix = prefix
        if prefix is None:
            opened.method = True
            opened.items.append(value)
        return opened

    def attribute(self, i: int, prefix: str | None) -> Stop:
        """Return the error for the attribute at token `i`."""
        name = self.texts[i]
        hint = messages.ATTRIBUTES.get(name)
        if prefix is not None:
            shown = messages.shown(f"{prefix}.{name}")
            hint = hint or f"write a function after it, such as {prefix.partition('.')[0]}.sin(x)"
            return self.stop("GC117", f"`{shown}` is not a function call", i, help=hint)
        self.dunder(i)
        hint = hint or f"call a function, such as {messages.shown(name)}(x)"
        return self.stop("GC117", f"there are no attributes: `.{messages.shown(name)}`", i - 1, i, help=hint)

    def dunder(self, i: int) -> None:
        """Refuse one of Python's internal names."""
        name = self.texts[i]
        if name.startswith("__") and name.endswith("__"):
            message = f"`{messages.shown(name)}` is Python's; a script cannot reach Python"
            raise self.stop("GC117", message, i, help="use the functions of the language")

    # between brackets -------------------------------------------------------------------------------------

    def delimit(
        self, kind: str, present: bool, values: list[Expression], starts: list[int], frames: list[Frame]
    ) -> int:
        """Handle the token at self.position, which ends an item (`present`) or stands where one is due.

        Moves past the token and returns OPERAND or OPERATOR for what must follow (OPERATOR: a bracket was closed,
        its value lies on the stack), or returns DONE before a token that belongs to the statement.
        """
        frame = frames[-1]
        i = self.position
        if kind == frame.closer or (kind == "," and frame.kind != ROOT):
            item = self.item_before(i, frame, values.pop() if present else None)
            if present:
                starts.pop()
            if item is None:
                if kind == "," or frame.keyword >= 0 or (frame.kind == INDEX and not frame.slots):
                    raise self.no_operand(i, frames)
            elif frame.kind == INDEX:
                frame.slots.append(item)
            elif frame.keyword >= 0:
                if frame.keywords is None:
                    frame.keywords = []
                span = self.span(frame.keyword, i - 1)
                frame.keywords.append(Keyword(self.texts[frame.keyword], item, span))
                frame.keyword = -1
            elif isinstance(item, Expression):
                if frame.keywords:
                    message = "a value stands after a named argument"
                    raise self.stop("GC130", message, frame.item, i - 1, "put the values first")
                frame.items.append(item)
            self.position = i + 1
            if kind == ",":
                frame.comma = True
                frame.item = i + 1
                return OPERAND
            values.append(self.close(frame, i))
            starts.append(frame.start)
            frames.pop()
            return OPERATOR
        if frame.kind == ROOT:
            if kind == "," and frame.comma:
                if not present:
                    raise self.no_operand(i, frames)
                frame.items.append(values.pop())
                starts.pop()
                self.position = i + 1
                if self.kinds[i + 1] not in ENDS_TUPLE:
                    return OPERAND
                present = False
            elif not present:
                raise self.no_operand(i, frames)
            if frame.items:
                items = [*frame.items, *values] if present else frame.items
                values[:] = [Tuple(tuple(items), self.span(frame.start, self.position - 1))]
            return DONE
        if kind == ":" and self.slice_fits(frame):
            if frame.parts is None:
                frame.parts = []
            elif len(frame.parts) == 2:
                raise self.stop("GC129", "a slice has at most two colons", i, help="write start:stop:step")
            frame.parts.append(values.pop() if present else None)
            if present:
                starts.pop()
            self.position = i + 1
            return OPERAND
        raise self.no_operator(i, frames) if present else self.no_operand(i, frames)

    def slice_fits(self, frame: Frame) -> bool:
        """Tell whether a colon may stand in this bracket now."""
        return frame.kind == INDEX or (frame.keyword >= 0 and self.function(frame) == "load")

    def item_before(self, i: int, frame: Frame, value: Expression | None) -> Item | None:
        """Return the item that ends before token `i`, with `value` as its last part."""
        if frame.parts is not None:
            parts = [*frame.parts, value, None]
            frame.parts = None
            first = frame.keyword + 2 if frame.keyword >= 0 else frame.item
            return Slice(parts[0], parts[1], parts[2], self.span(first, i - 1))
        if frame.kind == INDEX and type(value) is Name and value.id == "None":
            return NewAxis(value.span)
        return value

    def close(self, frame: Frame, i: int) -> Expression:
        """Return what the bracket that token `i` closes stands for."""
        items = frame.items
        if frame.kind == GROUP and len(items) == 1 and not frame.comma:
            return items[0]
        span = self.span(frame.start, i)
        if frame.kind == CALL and type(frame.base) is Name:
            keywords = () if frame.keywords is None else tuple(frame.keywords)
            return Call(frame.base, tuple(items), keywords, frame.method, frame.prefix, span)
        if frame.kind == INDEX and frame.base is not None:
            return Subscript(frame.base, tuple(frame.slots), span)
        return Tuple(tuple(items), span) if frame.kind == GROUP else List(tuple(items), span)

    # errors -----------------------------------------------------------------------------------------------

    def too_deep(self, i: int) -> Stop:
        """Return the error for a bracket, sign or power beyond the limit."""
        message = f"the expression is nested more than {self.limits.nesting} deep"
        return self.stop(
            "GC502", message, i, help="name an inner part, or raise it with --limit nesting=1000"
        )

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
            return self.stop(
                "GC113", message, i, help=f"write `{frame.closer}`", labels=((opened, "opened here"),)
            )
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
        """Return the error for token `i` after a complete expression, inside a kind of bracket or outside all."""
        kind = self.kinds[i]
        if kind == BROKEN:
            return Stop(None)
        if kind in (")", "]") and bracket == ROOT:
            return self.unmatched(i)
        call, inside = bracket == CALL, bracket != ROOT
        code, message, hint = messages.after_operand(self.kinds, self.texts, i, self.touches(i), call, inside)
        labels: tuple[tuple[Span, str], ...] = ()
        if code == "GC114":
            labels = ((self.span(i - 1, i - 1), "a value ends here"),)
        return self.stop(code, message, i, help=hint, labels=labels)

    def touches(self, i: int) -> bool:
        """Tell whether token `i` follows the one before it without a space."""
        before = i - 1
        if self.lines[i] != self.lines[before]:
            return False
        return self.columns[before] + len(self.texts[before]) == self.columns[i]

    def check_number(self, i: int) -> None:
        """Refuse a product such as 0x10, 1j or 1_a that Python reads as one literal: number `i` and a name."""
        text, name = self.texts[i], self.texts[i + 1]
        if not self.touches(i + 1):
            return
        if name in ("j", "J"):
            hint = f"write {messages.shown(text)}*{name} if {name} is a name"
            raise self.stop(
                "GC106", f"`{messages.shown(text + name)}`: there are no complex literals", i, i + 1, hint
            )
        if text == "0" and len(name) > 1 and name[0] in "xXbBoO" and name[1].isdigit() | (name[0] in "xX"):
            base = {"x": 16, "b": 2, "o": 8}[name[0].lower()]
            digits = "0123456789abcdef"[:base]
            if set(name[1:].lower().replace("_", "")) <= set(digits):
                message = f"`{messages.shown(text + name)}`: numbers are decimal"
                raise self.stop("GC106", message, i, i + 1, "write the number in decimal")
        if name[0] == "_":
            message = f"`{messages.shown(text + name)}` is neither a number nor a name"
            raise self.stop(
                "GC106", message, i, i + 1, "digits are grouped as in 1_000; write a product with `*`"
            )
