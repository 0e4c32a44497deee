"""The syntax tree of an expression: one plain class per construct, with exact literals.

Statements are in `syntax`, which exports these classes too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    from gradcli.diagnostics import Span


class Syntax:
    """Base of every node of the tree; `span` is where it stands in the source."""

    __slots__ = ("span",)
    fields: tuple[str, ...] = ()  # what `same` compares and `children` walks; spelling flags are left out
    span: Span

    def __repr__(self) -> str:
        shown = [f"{key}={short(getattr(self, key))}" for key in self.fields]
        return f"{type(self).__name__}({', '.join(shown)})"


def short(value: object) -> str:
    """Return a field in one short piece of text; nested nodes show their class only, so nothing recurses."""
    if isinstance(value, Syntax):
        return f"<{type(value).__name__}>"
    if isinstance(value, tuple):
        return f"<{len(value)} items>"
    return repr(value)


class Item(Syntax):
    """What may stand between the brackets of a subscript: an expression, a slice or `None`."""

    __slots__ = ()


class Expression(Item):
    """Something with a value."""

    __slots__ = ()


class Number(Expression):
    """A literal, exact: `ratio` is (numerator, denominator) in lowest terms, `value` the same as a Fraction.

    `True` and `False` are the numbers 1 and 0 and keep their text.
    """

    __slots__ = ("ratio", "text")
    fields = ("text", "ratio")

    def __init__(self, text: str, value: Fraction | tuple[int, int], span: Span) -> None:
        self.text = text
        self.ratio = value if isinstance(value, tuple) else (value.numerator, value.denominator)
        self.span = span

    @property
    def value(self) -> Fraction:
        """The exact value. `fractions` is imported on first use: it costs 3 ms that a plain run can save."""
        from fractions import Fraction

        return Fraction(*self.ratio)


class String(Expression):
    """The text between quotes; stands only where the parser allows it."""

    __slots__ = ("text",)
    fields = ("text",)

    def __init__(self, text: str, span: Span) -> None:
        self.text = text
        self.span = span


class Name(Expression):
    """A name, also of a function in a call; `None` as a keyword's value is Name("None")."""

    __slots__ = ("id",)
    fields = ("id",)

    def __init__(self, id: str, span: Span) -> None:
        self.id = id
        self.span = span


class Unary(Expression):
    """A prefix operator: '-', '+' or 'not'."""

    __slots__ = ("op", "operand")
    fields = ("op", "operand")

    def __init__(self, op: str, operand: Expression, span: Span) -> None:
        self.op = op
        self.operand = operand
        self.span = span


class Binary(Expression):
    """An operator between two operands: + - * / @ ** and or; `implicit`: a product written without `*`."""

    __slots__ = ("implicit", "left", "op", "right")
    fields = ("op", "left", "right")

    def __init__(self, op: str, left: Expression, right: Expression, implicit: bool, span: Span) -> None:
        self.op = op
        self.left = left
        self.right = right
        self.implicit = implicit
        self.span = span


class Compare(Expression):
    """A chain of comparisons: a < b <= c has operands (a, b, c) and ops ('<', '<=')."""

    __slots__ = ("operands", "ops")
    fields = ("operands", "ops")

    def __init__(self, operands: tuple[Expression, ...], ops: tuple[str, ...], span: Span) -> None:
        self.operands = operands
        self.ops = ops
        self.span = span


class Keyword(Syntax):
    """One `name=value` of a call; the value is a Slice only in `load(..., columns=0:2)`."""

    __slots__ = ("name", "value")
    fields = ("name", "value")

    def __init__(self, name: str, value: Item, span: Span) -> None:
        self.name = name
        self.value = value
        self.span = span


class Call(Expression):
    """A call. x.sum(axis=0) is Call(sum, (x,), ...) with `method`, np.sin(x) Call(sin, ...) with `prefix`."""

    __slots__ = ("args", "function", "keywords", "method", "prefix")
    fields = ("function", "args", "keywords")

    def __init__(
        self,
        function: Name,
        args: tuple[Expression, ...],
        keywords: tuple[Keyword, ...],
        method: bool,
        prefix: str | None,
        span: Span,
    ) -> None:
        self.function = function
        self.args = args
        self.keywords = keywords
        self.method = method
        self.prefix = prefix
        self.span = span


class Slice(Item):
    """lower:upper:step, each of them optional."""

    __slots__ = ("lower", "step", "upper")
    fields = ("lower", "upper", "step")

    def __init__(self, lower: Expression | None, upper: Expression | None, step: Expression | None, span: Span) -> None:
        self.lower = lower
        self.upper = upper
        self.step = step
        self.span = span


class NewAxis(Item):
    """`None` (or np.newaxis) in a subscript."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class Subscript(Expression):
    """value[items]; an index list is a List item."""

    __slots__ = ("items", "value")
    fields = ("value", "items")

    def __init__(self, value: Expression, items: tuple[Item, ...], span: Span) -> None:
        self.value = value
        self.items = items
        self.span = span


class Transpose(Expression):
    """value.T"""

    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expression, span: Span) -> None:
        self.value = value
        self.span = span


class List(Expression):
    """[a, b, ...]: an array, or an index list."""

    __slots__ = ("items",)
    fields = ("items",)

    def __init__(self, items: tuple[Expression, ...], span: Span) -> None:
        self.items = items
        self.span = span


class Clause(Syntax):
    """One `for target in ... if ...` of a comprehension: over range(*bounds), or over the rows of an array.

    `rows` is None where it runs over a range.
    """

    __slots__ = ("bounds", "conditions", "rows", "target")
    fields = ("target", "bounds", "rows", "conditions")

    def __init__(
        self,
        target: Name,
        bounds: tuple[Expression, ...],
        rows: Expression | None,
        conditions: tuple[Expression, ...],
        span: Span,
    ) -> None:
        self.target = target
        self.bounds = bounds
        self.rows = rows
        self.conditions = conditions
        self.span = span


class Comprehension(Expression):
    """[item for ...]; with `generator` the only argument of a call, sum(item for ...)."""

    __slots__ = ("clauses", "generator", "item")
    fields = ("item", "clauses", "generator")

    def __init__(self, item: Expression, clauses: tuple[Clause, ...], generator: bool, span: Span) -> None:
        self.item = item
        self.clauses = clauses
        self.generator = generator
        self.span = span


class Tuple(Expression):
    """a, b, ... with or without brackets: several values, or a shape."""

    __slots__ = ("items",)
    fields = ("items",)

    def __init__(self, items: tuple[Expression, ...], span: Span) -> None:
        self.items = items
        self.span = span
