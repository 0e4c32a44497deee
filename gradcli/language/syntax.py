"""The syntax tree of a script: one plain class per statement and per construct of an expression, with exact literals.

Nodes have identity equality; `same` compares structure without recursion, so trees of any depth are safe.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic, Span
    from gradcli.language.source import Source


class Syntax:
    """Base of every node of the tree; `span` is its place in the source."""

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
    """An item of a subscript: an expression, a slice or `None`."""

    __slots__ = ()


class Expression(Item):
    """A node with a value."""

    __slots__ = ()


class Number(Expression):
    """A literal, exact: `ratio` is (numerator, denominator) in lowest terms, `value` the same as a Fraction.

    `imaginary` says that it is so many times the imaginary unit, as `2.5j`: its text ends with j.

    `True` and `False` are the numbers 1 and 0 and keep their text.
    """

    __slots__ = ("imaginary", "ratio", "text")
    fields = ("text", "ratio")

    def __init__(self, text: str, value: Fraction | tuple[int, int], span: Span) -> None:
        self.text = text
        self.ratio = value if isinstance(value, tuple) else (value.numerator, value.denominator)
        self.imaginary = text[-1:] == "j"
        self.span = span

    @property
    def value(self) -> Fraction:
        """The exact value. Importing `fractions` takes 3 ms, so it is imported when first used."""
        from fractions import Fraction

        return Fraction(*self.ratio)


class String(Expression):
    """The text between quotes, in the places where the parser allows it."""

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


class Statement(Syntax):
    """One statement of a script, a function body, a loop or a branch."""

    __slots__ = ()


class Assign(Statement):
    """targets = value. `operator` is '+' for `+=`; `shape` for `w[2] = ...`; `const` for `const x = ...`.

    `expect` can be set only where the assigned name is the output: on the last statement of a script.
    """

    __slots__ = ("const", "expect", "operator", "shape", "targets", "value")
    fields = ("targets", "value", "operator", "shape", "const", "expect")

    def __init__(
        self,
        targets: tuple[Name, ...],
        value: Expression,
        operator: str | None,
        shape: tuple[Expression, ...] | None,
        const: bool,
        span: Span,
        expect: str | None = None,
    ) -> None:
        self.targets = targets
        self.value = value
        self.operator = operator
        self.shape = shape
        self.const = const
        self.span = span
        self.expect = expect


class Domain(Syntax):
    """The domain of a declared leaf: an interval with open or closed ends, or a kind of number."""

    __slots__ = ("high", "high_open", "kind", "low", "low_open")
    fields = ("kind", "low", "high", "low_open", "high_open")

    def __init__(
        self,
        kind: str,
        low: Expression | None,
        high: Expression | None,
        low_open: bool,
        high_open: bool,
        span: Span,
    ) -> None:
        self.kind = kind
        self.low = low
        self.high = high
        self.low_open = low_open
        self.high_open = high_open
        self.span = span


class Declare(Statement):
    """name[shape] in domain = default"""

    __slots__ = ("default", "domain", "name", "shape")
    fields = ("name", "shape", "domain", "default")

    def __init__(
        self,
        name: Name,
        shape: tuple[Expression, ...] | None,
        domain: Domain,
        default: Expression | None,
        span: Span,
    ) -> None:
        self.name = name
        self.shape = shape
        self.domain = domain
        self.default = default
        self.span = span


class FunctionDef(Statement):
    """def name(params): body, or with `rule` 'vjp' a hand-written backward rule: def name.vjp(params, ct)."""

    __slots__ = ("body", "name", "params", "rule")
    fields = ("name", "rule", "params", "body")

    def __init__(
        self,
        name: Name,
        rule: str | None,
        params: tuple[Name, ...],
        body: tuple[Statement, ...],
        span: Span,
    ) -> None:
        self.name = name
        self.rule = rule
        self.params = params
        self.body = body
        self.span = span


class Return(Statement):
    """return value"""

    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: Expression, span: Span) -> None:
        self.value = value
        self.span = span


class For(Statement):
    """for target in range(*bounds): body"""

    __slots__ = ("body", "bounds", "target")
    fields = ("target", "bounds", "body")

    def __init__(self, target: Name, bounds: tuple[Expression, ...], body: tuple[Statement, ...], span: Span) -> None:
        self.target = target
        self.bounds = bounds
        self.body = body
        self.span = span


class If(Statement):
    """if test: body else: orelse. An `elif` is an If as the only statement of `orelse`."""

    __slots__ = ("body", "orelse", "test")
    fields = ("test", "body", "orelse")

    def __init__(
        self, test: Expression, body: tuple[Statement, ...], orelse: tuple[Statement, ...], span: Span
    ) -> None:
        self.test = test
        self.body = body
        self.orelse = orelse
        self.span = span


class Append(Statement):
    """name.append(value)"""

    __slots__ = ("name", "value")
    fields = ("name", "value")

    def __init__(self, name: Name, value: Expression, span: Span) -> None:
        self.name = name
        self.value = value
        self.span = span


class Assert(Statement):
    """assert test, with the `# rtol=` and `# expect:` of its line."""

    __slots__ = ("expect", "rtol", "test")
    fields = ("test", "rtol", "expect")

    def __init__(self, test: Expression, rtol: float | None, expect: str | None, span: Span) -> None:
        self.test = test
        self.rtol = rtol
        self.expect = expect
        self.span = span


class ExpressionStatement(Statement):
    """An expression on a line of its own; the last one is the output."""

    __slots__ = ("expect", "value")
    fields = ("value", "expect")

    def __init__(self, value: Expression, span: Span, expect: str | None = None) -> None:
        self.value = value
        self.span = span
        self.expect = expect


class Directive:
    """One pragma: its settings by key, and the codes that it suppresses, with the reason.

    `first` and `last` are the lines that it holds for; both are 0 if it holds for the whole file.
    """

    __slots__ = ("codes", "first", "last", "line", "reason", "settings", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.line = span.line
        self.first = self.last = 0
        self.settings: dict[str, Any] = {}
        self.codes: tuple[str, ...] = ()
        self.reason = ""

    @property
    def whole(self) -> bool:
        """Whether it holds for the whole file."""
        return not self.first

    def covers(self, line: int | None) -> bool:
        """Whether it holds for a check of this line; None is a check without a line in the script."""
        return self.whole or (line is not None and self.first <= line <= self.last)


class Expected:
    """One expected result: its quantity (`item`, `name`, `output`, `digest`), and the value as text and as numbers.

    `columns` are the first column of the value and the column after it. `directive` is the one after the value, if any.
    """

    __slots__ = ("columns", "digest", "directive", "item", "line", "name", "output", "span", "text", "value")

    def __init__(self, item: str, name: str, output: int | None, digest: str | None, text: str, span: Span) -> None:
        self.item = item
        self.name = name
        self.output = output
        self.digest = digest
        self.text = text
        self.span = span
        self.line = span.line
        self.value: Any = None
        self.columns = (0, 0)
        self.directive: Directive | None = None

    @property
    def title(self) -> str:
        """The quantity as it is written: `grad x (output 2)`."""
        inner = self.item + (f" {self.name}" if self.name else "")
        inner += f" (output {self.output})" if self.output is not None else ""
        return f"{self.digest}({inner})" if self.digest else inner


class Script(Syntax):
    """A script. `expect` is the expectation in its first line; `diagnostics` are notes, never errors.

    `directives` are the settings in its comments, `expected` the results that its comments expect.
    """

    __slots__ = ("diagnostics", "directives", "expect", "expected", "source", "statements")
    fields = ("statements", "expect")

    def __init__(
        self,
        statements: tuple[Statement, ...],
        source: Source,
        expect: str | None,
        diagnostics: tuple[Diagnostic, ...],
        span: Span,
        directives: tuple[Directive, ...] = (),
        expected: tuple[Expected, ...] = (),
    ) -> None:
        self.statements = statements
        self.source = source
        self.expect = expect
        self.diagnostics = diagnostics
        self.span = span
        self.directives = directives
        self.expected = expected


def children(node: Syntax) -> list[Syntax]:
    """Return the nodes directly below `node`, in source order."""
    kind = type(node)
    if kind is Binary:  # most of a long text is operators, names and numbers
        return [node.left, node.right]  # type: ignore[attr-defined]
    if kind is Name or kind is Number:
        return []
    parts: list[Syntax] = []
    for key in node.fields:
        value = getattr(node, key)
        if isinstance(value, Syntax):
            parts.append(value)
        elif type(value) is tuple:
            parts.extend([item for item in value if isinstance(item, Syntax)])
    return parts


def nodes_of(tree: Syntax) -> Iterator[Syntax]:
    """Every node of a tree, parents before children."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def names_in(tree: Syntax) -> set[str]:
    """The names in a tree, except those of functions that are called."""
    called = {id(node.function) for node in nodes_of(tree) if isinstance(node, Call)}
    return {node.id for node in nodes_of(tree) if isinstance(node, Name) and id(node) not in called}


def whole_number(node: Syntax | None) -> int | None:
    """The whole number that a tree writes, as `-1`; None for any other tree."""
    if isinstance(node, Unary) and node.op == "-":
        below = whole_number(node.operand)
        return None if below is None else -below
    return node.ratio[0] if isinstance(node, Number) and node.ratio[1] == 1 else None


def is_whole(item: Syntax) -> bool:
    """Whether an item of a subscript is `:`."""
    return isinstance(item, Slice) and item.lower is item.upper is item.step is None


def is_reversal(item: Syntax) -> bool:
    """Whether an item of a subscript is `::-1`."""
    return isinstance(item, Slice) and item.lower is item.upper is None and whole_number(item.step) == -1


def same(a: Syntax, b: Syntax) -> bool:
    """Return whether two trees have the same structure, apart from spans and spelling (implicit, method, prefix)."""
    pending: list[tuple[object, object]] = [(a, b)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, Syntax):
            pending.extend((getattr(left, key), getattr(right, key)) for key in left.fields)
        elif isinstance(left, tuple) and isinstance(right, tuple):
            if len(left) != len(right):
                return False
            pending.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True
