"""Parses what stands in brackets and after dots: groups, lists, calls and subscripts."""

from __future__ import annotations

import re
from math import gcd

from gradcli.base.diagnostics import ERROR, NOTE, Diagnostic, Span, visible
from gradcli.language.lexer import END, NAME, NEWLINE, STRING
from gradcli.language.parser import messages
from gradcli.language.parser.parser_comprehensions import ComprehensionParser
from gradcli.language.parser.parser_errors import BARS, CALL, GROUP, INDEX, LIST, ROOT, Frame, Stop
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
    from gradcli.base.diagnostics import Span
    from gradcli.language.limits import Limits


LARGEST_EXPONENT = 400
CHUNK = 4000  # Python refuses to read an int of more than 4,300 digits at once


def exact_ratio(text: str, span: Span, limits: Limits) -> tuple[tuple[int, int], Diagnostic | None]:
    """Return (numerator, denominator) in lowest terms, and a note or an error if there is something to say.

    Errors: GC503 for too many digits, GC504 for a decimal exponent over 400, GC107 beyond float64. A note:
    GC108 for a number that is not zero but whose float64 is.
    """
    plain = text.replace("_", "")
    mantissa, _, exponent = plain.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = len(whole) + len(fraction)
    shown = f"`{visible(text, 24)}`"
    if digits > limits.digits:
        message = f"the number {shown} has {digits} digits, more than the limit of {limits.digits}"
        return (0, 1), Diagnostic("GC503", message, span, (), "a float64 keeps 17 digits")
    size = exponent.lstrip("+-").lstrip("0")
    if len(size) > 3 or (size and int(size) > LARGEST_EXPONENT):
        message = f"the exponent of {shown} is larger than {LARGEST_EXPONENT}"
        return (0, 1), Diagnostic("GC504", message, span, (), "float64 reaches from 5e-324 to 1.8e308")
    near = float(plain)
    if near == float("inf"):
        message = f"the number {shown} is larger than the largest float64, 1.8e308"
        return (0, 1), Diagnostic("GC107", message, span, (), "write inf for infinity")
    numerator = read_digits(whole + fraction)
    power = int(exponent or "0") - len(fraction)
    note = None
    if near == 0.0 and numerator:
        message = f"the number {shown} is smaller than the smallest float64, 4.9e-324: as a float it is 0"
        note = Diagnostic("GC108", message, span, (), None, NOTE)
    if power >= 0:
        return (numerator * 10**power, 1), note
    denominator = 10**-power
    common = gcd(numerator, denominator)
    return (numerator // common, denominator // common), note


def read_digits(digits: str) -> int:
    """Return the integer that a string of decimal digits spells, whatever its length."""
    value = int(digits[:CHUNK] or "0")
    for at in range(CHUNK, len(digits), CHUNK):
        piece = digits[at : at + CHUNK]
        value = value * 10 ** len(piece) + int(piece)
    return value


MODULES = frozenset(("np", "numpy", "jnp", "torch", "math", "scipy", "jax"))
# Usual names of modules that a leaf may have too: they are modules where the script uses them for nothing else.
SHORT_MODULES = frozenset(
    ("sp", "special", "stats", "linalg", "nn", "F", "lax", "jsp", "optim", "optimize", "plt", "tf")
)
FUNCTIONAL = re.compile(r"(lu|softmax|sigmoid|softplus|mish|tanh|_loss|entropy|logits|kl_div|similarity|pad)$")
SUBMODULES = frozenset(
    ("linalg", "special", "nn", "functional", "random", "fft", "numpy", "scipy", "stats", "lax", "autograd")
    + ("distributions", "optimize", "integrate", "interpolate", "signal", "optim", "pyplot")
)
DISTRIBUTIONS = frozenset(("norm", "t", "gamma", "beta", "chi2", "poisson", "dirichlet", "multivariate_normal"))
DENSITIES = frozenset(("logpdf", "logpmf", "pdf", "pmf", "cdf", "ppf"))
FLOATS = frozenset(("float64", "float32", "float16", "double", "float", "float_"))
WITHOUT_MEANING = frozenset(("dtype", "device", "requires_grad"))  # keywords of libraries: every number is a float here
CONSTANTS = frozenset(("pi", "e", "inf", "nan"))
STRING_PLACES = {"load": 0, "einsum": 0, "norm": 1, "convolve": 2}  # where an argument may be a string
STRING_KEYWORDS = frozenset(("approximate", "mode", "ord", "reduction", "dtype", "device"))
ENDS_TUPLE = frozenset((NEWLINE, END, ";", "=", ")", "]", ":", "in"))
# Defaults of a library that differ from those here: by library and function, the keyword, its value, and how many
# positional arguments leave it open.
DEFAULTS: dict[tuple[str, str], tuple[str, str, int]] = {
    ("torch", "std"): ("ddof", "1", 2),
    ("torch", "var"): ("ddof", "1", 2),
    **{
        (module, name): ("axis", "None", 1)
        for module in ("scipy", "special", "sp")
        for name in ("softmax", "log_softmax")
    },
}

# what delimit() says comes next
OPERAND, OPERATOR, DONE = range(3)


class BracketParser(ComprehensionParser):
    """Everything about brackets, dots and rare operands."""

    # operands ---------------------------------------------------------------------------------------------

    def number(self, i: int) -> Number:
        """Return the Number at token `i`."""
        text, span = self.texts[i], self.span(i, i)
        if self.texts[i + 1] in ("j", "J") and self.touches(i + 1) and self.source.name != "--at":
            ratio, diagnostic = exact_ratio(text, span, self.limits)
            if diagnostic is None:
                return Number(text + "j", ratio, self.span(i, i + 1))
        if len(text) < 16 and len(text) <= self.limits.digits:  # most numbers: short and without exponent
            if text.isdigit():
                return Number(text, (int(text), 1), span)
            whole, _, fraction = text.partition(".")
            digits = whole + fraction
            if digits.isdigit():
                numerator, denominator = int(digits), 10 ** len(fraction)
                common = gcd(numerator, denominator)
                return Number(text, (numerator // common, denominator // common), span)
        ratio, diagnostic = exact_ratio(text, span, self.limits)
        if diagnostic is not None:
            diagnostic = diagnostic.with_source(self.source)
            if diagnostic.severity == ERROR:
                raise Stop(diagnostic)
            self.notes.append(diagnostic)
        return Number(text, ratio, span)

    def check_number(self, i: int) -> None:
        """Refuse 0x10 and 1_a, which Python reads as one literal: number `i` and the name after it."""
        text, name = self.texts[i], self.texts[i + 1]
        if not self.touches(i + 1):
            return
        if text == "0" and len(name) > 1 and name[0] in "xXbBoO" and name[1].isdigit() | (name[0] in "xX"):
            base = {"x": 16, "b": 2, "o": 8}[name[0].lower()]
            digits = "0123456789abcdef"[:base]
            if set(name[1:].lower().replace("_", "")) <= set(digits):
                message = f"`{messages.shown(text + name)}`: numbers are decimal"
                raise self.stop("GC106", message, i, i + 1, "write the number in decimal")
        if name[0] == "_":
            message = f"`{messages.shown(text + name)}` is neither a number nor a name"
            raise self.stop("GC106", message, i, i + 1, "digits are grouped as in 1_000; write a product with `*`")

    def rare_operand(self, i: int, frame: Frame, power: int) -> Expression | None:
        """Return the operand at token `i` if it is a string, True, False or None in its place; else None."""
        kind = self.kinds[i]
        if kind == STRING and frame.kind == CALL:
            if frame.keyword >= 0:
                allowed = i == frame.keyword + 2 and self.texts[frame.keyword] in STRING_KEYWORDS
            else:
                allowed = i == frame.item and len(frame.items) == STRING_PLACES.get(self.function(frame))
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
        """Return whether None at token `i` is a whole item of a subscript, or a keyword's whole value."""
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
            entrywise = texts[i + 1] in ("^", "*", "/", "**")
            hint = f"write {texts[i + 1]} alone: operators work entry by entry" if entrywise else "write x.sum() or x.T"
            raise self.stop("GC117", "a name is expected after the dot", i, help=hint)
        name = texts[i + 1]
        prefix = None
        module = value.id if type(value) is Name and start == i - 1 and self.is_module(value.id, i) else None
        if type(value) is Name and start == i - 1 and value.id in DISTRIBUTIONS and name in DENSITIES:
            i += 1
            prefix, name = value.id, f"{value.id}_{name}"  # norm.logpdf is norm_logpdf
            if kinds[i + 1] != "(":
                raise self.attribute(i, prefix)
        elif module is not None and (name != "T" or kinds[i + 2] == "("):
            prefix = module
            i += 1
            while texts[i] in SUBMODULES and kinds[i + 1] == "." and kinds[i + 2] == NAME:
                prefix = f"{prefix}.{texts[i]}"
                i += 2
            name = texts[i]
            if name in DISTRIBUTIONS and kinds[i + 1] == "." and texts[i + 2] in DENSITIES:
                i += 2
                name = f"{name}_{texts[i]}"
            if kinds[i + 1] != "(":
                self.position = i + 1
                if name in CONSTANTS:
                    values[-1] = Name(name, self.span(start, i))
                    return None
                if name == "newaxis" and power == 0 and self.none_fits(start, i + 1, frame):
                    values[-1] = Name("None", self.span(start, i))
                    return None
                if name in FLOATS and frame.keyword >= 0 and texts[frame.keyword] == "dtype":
                    values[-1] = Name(name, self.span(start, i))
                    return None
                raise self.attribute(i, prefix)
        else:
            i += 1
            if kinds[i + 1] != "(":
                if name == "real" or name == "imag":  # np.fft.fft(x).real
                    span = self.span(start, i)
                    values[-1] = Call(Name(name, self.span(i, i)), (value,), (), True, None, span)
                    self.position = i + 1
                    return None
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

    def is_module(self, name: str, dot: int) -> bool:
        """Whether a name before a dot is a module: one of MODULES, or a short one that stands nowhere else.

        F.sum() and F.mean(axis=0) without an operand are methods of a leaf F, and so is what F.relu is not.
        """
        if name in MODULES:
            return True
        if name not in SHORT_MODULES or (name == "F" and not FUNCTIONAL.search(self.texts[dot + 1])):
            return False
        if self.kinds[dot + 2] == "(" and (self.kinds[dot + 3] == ")" or self.kinds[dot + 4] == "="):
            return False
        if self.plain_names is None:
            kinds, texts = self.kinds, self.texts
            plain = (i for i, kind in enumerate(kinds) if kind == NAME and kinds[i + 1] != "." and kinds[i - 1] != ".")
            self.plain_names = frozenset(texts[i] for i in plain)
        return name not in self.plain_names

    def attribute(self, i: int, prefix: str | None) -> Stop:
        """Return the error for the attribute at token `i`."""
        name = self.texts[i]
        hint = messages.ATTRIBUTES.get(name)
        if prefix is not None:
            shown = messages.shown(f"{prefix}.{name}")
            example = f"{prefix}.{name}" if name in DENSITIES else f"{prefix.partition('.')[0]}.sin"
            hint = hint or f"write a function after it, such as {messages.shown(example)}(x)"
            return self.stop("GC117", f"`{shown}` is not a function call", i, help=hint)
        self.dunder(i)
        hint = hint or f"call a function, such as {messages.shown(name)}(x)"
        return self.stop("GC117", f"values have no attributes: `.{messages.shown(name)}`", i - 1, i, help=hint)

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

        Moves past the token and returns OPERAND or OPERATOR for what must follow (OPERATOR: a bracket was
        closed, its value lies on the stack), or returns DONE before a token that belongs to the statement.
        """
        frame = frames[-1]
        i = self.position
        if (kind == "for" or frame.clauses is not None) and (frame.kind == LIST or frame.kind == CALL):
            if not present:
                raise self.no_operand(i, frames)
            if kind == "for" or kind == "if":
                self.comprehend(frame, i, values.pop())
                starts.pop()
                return OPERAND
            if kind == frame.closer or kind == ",":
                values[-1] = self.comprehended(frame, i, values[-1])
                if frame.kind == LIST:
                    starts[-1] = frame.start
                    self.position = i + 1
                    frames.pop()
                    return OPERATOR
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
                if not self.is_without_meaning(self.texts[frame.keyword], item):
                    frame.keywords.append(Keyword(self.texts[frame.keyword], item, span))
                frame.keyword = -1
            elif isinstance(item, Expression):
                if frame.keywords:
                    message = "a value follows a named argument"
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

    def is_without_meaning(self, keyword: str, value: Item) -> bool:
        """Whether an argument such as dtype=np.float64 or requires_grad=True says what holds for every number here."""
        if keyword not in WITHOUT_MEANING:
            return False
        if keyword == "requires_grad":
            return type(value) is Number and value.text == "True"
        if type(value) is String:
            return keyword == "device" or value.text in FLOATS
        return type(value) is Name and (value.id in FLOATS if keyword == "dtype" else value.id == "device")

    def add_default(self, frame: Frame, span: Span) -> None:
        """Write out an argument whose default in the library of the prefix is another one than here."""
        library = (frame.prefix or "").partition(".")[0]
        keyword, value, count = DEFAULTS.get((library, self.function(frame)), ("", "", 0))
        named = [other.name for other in frame.keywords or ()]
        if len(frame.items) > count or not count or keyword in named or ("correction" in named and keyword == "ddof"):
            return
        item = Name(value, span) if value == "None" else Number(value, (int(value), 1), span)
        frame.keywords = [*(frame.keywords or ()), Keyword(keyword, item, span)]

    def slice_fits(self, frame: Frame) -> bool:
        """Return whether a colon may stand in this bracket now."""
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
        if frame.kind == BARS:
            if len(items) != 1 or frame.comma:
                raise self.stop("GC112", "bars hold one value", frame.start, i, help="write abs(x) or norm(x)")
            function = Name("abs" if frame.closer == "|" else "norm", self.span(frame.start, frame.start))
            return Call(function, (items[0],), (), False, None, span)
        if frame.kind == CALL and type(frame.base) is Name:
            if frame.prefix is not None:
                self.add_default(frame, span)
            keywords = () if frame.keywords is None else tuple(frame.keywords)
            return Call(frame.base, tuple(items), keywords, frame.method, frame.prefix, span)
        if frame.kind == INDEX and frame.base is not None:
            return Subscript(frame.base, tuple(frame.slots), span)
        return Tuple(tuple(items), span) if frame.kind == GROUP else List(tuple(items), span)
