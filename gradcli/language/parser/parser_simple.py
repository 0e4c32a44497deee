"""Parses statements without a block: assignments, declarations, asserts, returns and expressions.

simple  = [ "const" ] targets [ shape ] "=" values | name augmented values | name "(" name { "," name } ")" "=" values
        | name [ shape ] "in" domain [ "=" value ] | name "." "append" "(" value ")"
        | "assert" value | "return" values | values
targets = name { "," name }     shape = "[" value { "," value } "]"     values = value { "," value }
domain  = ( "(" | "[" ) value "," value ( ")" | "]" ) | "real" | "positive" | "nonnegative" | "unit"
"""

from __future__ import annotations

from gradcli.base.diagnostics import Span, did_you_mean
from gradcli.language.lexer import BROKEN, END, NAME, NEWLINE
from gradcli.language.parser import messages
from gradcli.language.parser.parser_errors import Stop
from gradcli.language.parser.parser_expressions import ExpressionParser
from gradcli.language.syntax import (
    Append,
    Assert,
    Assign,
    Call,
    Compare,
    Declare,
    Domain,
    Expression,
    ExpressionStatement,
    FunctionDef,
    List,
    Name,
    Number,
    Return,
    Statement,
    Subscript,
    Tuple,
    Unary,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.lexer import Tokens
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

AUGMENTED = {f"{op}=": op for op in ("+", "-", "*", "/", "@", "**")} | {"^=": "**"}
DOMAINS = ("real", "positive", "nonnegative", "unit", "symmetric")
DOMAIN_HELP = "write (0, 1), [0, inf), real, positive, nonnegative, unit or symmetric"
ITEM_HELP = "build a new array: where(mask, new, x) or concatenate([x[:i], new, x[i+1:]])"
LOOP_ITEM_HELP = "collect the values with path = [] and path.append(new); else write where(mask, new, x)"
APPEND_HELP = "write path = [] before the loop, path.append(x) in it, and read path after it"
ENDS = frozenset((NEWLINE, END, ";"))


class SimpleParser(ExpressionParser):
    """The expression parser with the statements that have no block."""

    in_function = False
    returned = False  # a return was read in the present function

    def __init__(self, source: Source, tokens: Tokens, limits: Limits) -> None:
        super().__init__(source, tokens, limits)
        self.defined: set[str] = set()  # names that have a value already
        self.last_formula: FunctionDef | None = None

    def simple(self, i: int) -> Statement:
        """Return the statement that starts at token `i`; self.position is then the token after it."""
        kinds = self.kinds
        kind, following = kinds[i], kinds[i + 1] if kinds[i] != END else END
        if kind == NAME:
            if following == "=":
                name = Name(self.texts[i], self.span(i, i))
                return self.assign(i, i + 1, (name,), None)
            if following == "in":
                return self.declare(i, Name(self.texts[i], self.span(i, i)), None, i + 1)
            if following == NAME and self.texts[i] == "symmetric":  # symmetric S[n, n]
                domain = self.domain(i)
                name, shape = self.declared(self.expression(i + 1, True), i + 1, self.position)
                return self.declare(i, name, shape, i, domain)
        elif following == "=" and kind[0].isalpha() and kind in messages.WORDS:
            raise self.stop("GC132", f"`{kind}` is a reserved word", i, help="choose another name")
        elif kind == "assert":
            return self.claim(i)
        elif kind == "return":
            return self.give(i)
        elif kind == "const":
            return self.constant(i)
        elif kind == "@":
            raise self.stop("GC118", "decorators are not supported", i, help="remove the line")
        elif kind in messages.PYTHON:
            _, message, hint = messages.word(kind)
            raise self.stop("GC118", message, i, help=hint)
        value = self.expression(i, True)
        end = self.position
        kind = kinds[end]
        if kind == "=" and type(value) is Call and (parameters := self.parameters(value)) is not None:
            return self.formula(i, end, value.function, parameters)
        if kind == "=" or kind in AUGMENTED:
            targets, shape = self.targets(value, i, end)
            return self.assign(i, end, targets, shape)
        if kind == "in":
            name, shape = self.declared(value, i, end)
            return self.declare(i, name, shape, end)
        if kind == ":" and type(value) is Name:
            hint = "a name has no type: write x = 2, or x in real"
            raise self.stop("GC131", "unexpected `:` after the end of the expression", end, help=hint)
        if type(value) is Call and value.method and value.function.id == "append":
            return self.append(value, i, end - 1)
        return ExpressionStatement(value, self.span(i, end - 1))

    def append(self, call: Call, i: int, last: int) -> Append:
        """Return the statement `path.append(x)` at tokens `i` to `last`."""
        name, *values = call.args
        if type(name) is not Name or not self.plain(name):
            raise self.stop("GC137", "append collects into a name", i, last, help=APPEND_HELP)
        if len(values) != 1 or call.keywords:
            what = "without a name" if call.keywords else f"not {len(values)}"
            hint = "append the values one by one, or a row: path.append([a, b])"
            raise self.stop("GC137", f"append takes one value, {what}", i, last, help=hint)
        return Append(name, values[0], self.span(i, last))

    def parameters(self, call: Call) -> tuple[Name, ...] | None:
        """Return the parameters of `f(x, y)` on the left of an equals sign, or None where it has no such form."""
        if call.keywords or call.method or call.prefix is not None or self.depth or not call.args:
            return None
        names = tuple(arg for arg in call.args if type(arg) is Name and self.plain(arg))
        return names if len({name.id for name in names}) == len(call.args) else None

    def formula(self, i: int, equals: int, name: Name, parameters: tuple[Name, ...]) -> FunctionDef:
        """Return the function that `f(x) = value` at token `i` defines."""
        value = self.expression(equals + 1, True)
        last = self.position - 1
        letters = {parameter.id for parameter in parameters}
        for at in range(equals + 1, last + 1):
            text = self.texts[at]
            if self.kinds[at] == NAME and len(text) > 1 and set(text) <= letters and text not in self.defined:
                hint = f"write `{'*'.join(text)}`; or make `{text}` a parameter, or assign it before"
                raise self.stop("GC139", f"`{text}` may be a name or a product of the parameters", at, help=hint)
        body = Return(value, self.span(equals + 1, last))
        self.last_formula = FunctionDef(name, None, parameters, (body,), self.span(i, last))
        return self.last_formula

    def called(self, formula: FunctionDef) -> ExpressionStatement:
        """Return the output of a script that ends with a formula: the function at its own parameters."""
        return ExpressionStatement(Call(formula.name, formula.params, (), False, None, formula.span), formula.span)

    # assignment -------------------------------------------------------------------------------------------

    def assign(self, i: int, equals: int, targets: tuple[Name, ...], shape: tuple[Expression, ...] | None) -> Assign:
        """Return the assignment that starts at token `i` and whose operator is token `equals`."""
        value = self.expression(equals + 1, True)
        end = self.position
        kind = self.kinds[end]
        if kind == "=" or kind in AUGMENTED:
            hint = "write `==` to compare; every assignment is a statement of its own"
            raise self.stop("GC115", f"`{kind}` inside an expression", end, help=hint)
        operator = AUGMENTED.get(self.kinds[equals])
        for name in targets:
            self.defined.add(name.id)
        return Assign(targets, value, operator, shape, False, self.span(i, end - 1))

    def targets(self, value: Expression, i: int, equals: int) -> tuple[tuple[Name, ...], tuple[Expression, ...] | None]:
        """Return the names, and the shape if there is one, that tokens `i` to `equals` assign to."""
        augmented = self.kinds[equals] != "="
        if type(value) is Name and self.plain(value):
            return (value,), None
        if type(value) is Subscript:
            return self.shaped(value, i, equals)
        if type(value) is Tuple or type(value) is List:
            names = tuple(item for item in value.items if type(item) is Name and self.plain(item))
            if augmented:
                message = f"`{self.kinds[equals]}` assigns to one name"
                raise self.stop("GC122", message, i, equals - 1)
            if len(names) > 1 and len(names) == len(value.items):
                seen: dict[str, Span] = {}
                for name in names:
                    if name.id in seen:
                        labels = ((seen[name.id], "first here"),)
                        message = f"`{messages.shown(name.id)}` is assigned twice"
                        raise self.stop("GC122", message, i, equals - 1, labels=labels)
                    seen[name.id] = name.span
                return names, None
        hint = "put a name on the left"
        if type(value) is Call:
            arguments = ", ".join("abcdefgh"[: len(value.args)])
            hint = f"define a function: def {messages.shown(value.function.id)}({arguments}): return ..."
        elif type(value) is Tuple and len(value.items) == 1:
            hint = "one name needs no comma"
        elif type(value) is Compare:
            hint = "an assignment has one `=` and a name on its left"
        elif not augmented:
            hint = "put a name on the left, or write `==` to compare"
        raise self.stop("GC122", "this cannot be assigned to", i, equals - 1, help=hint)

    def shaped(self, value: Subscript, i: int, equals: int) -> tuple[tuple[Name, ...], tuple[Expression, ...] | None]:
        """Return the name and shape of `w[2] = ...`; refuse what can only be meant as item assignment."""
        sizes = self.sizes(value)
        name = value.value
        if (
            type(name) is not Name
            or not self.plain(name)
            or sizes is None
            or self.kinds[equals] != "="
            or self.depth
            or name.id in self.defined
        ):
            message = "entries cannot be assigned: values never change"
            hint = LOOP_ITEM_HELP if self.depth else ITEM_HELP
            raise self.stop("GC119", message, i, equals - 1, help=hint)
        return (name,), sizes

    def plain(self, name: Name) -> bool:
        """Return whether a name was written alone, unlike np.pi."""
        return name.span.end_column - name.span.column == len(name.id)

    def sizes(self, value: Subscript) -> tuple[Expression, ...] | None:
        """Return a subscript's items if each can be the size of an axis, else None."""
        sizes: list[Expression] = []
        for item in value.items:
            if not isinstance(item, Expression) or isinstance(item, (Unary, List, Tuple)):
                return None
            if isinstance(item, Number) and item.ratio[0] == 0:
                return None
            sizes.append(item)
        return tuple(sizes)

    def constant(self, i: int) -> Assign:
        """Return `const x = ...`."""
        if self.depth:
            raise self.stop("GC123", "`const` is allowed only at the top level of a script", i, help="move it up")
        if self.kinds[i + 1] in ENDS:
            raise self.stop("GC123", "`const` needs a name and a value", i, help="write const x = 2")
        value = self.expression(i + 1, True)
        equals = self.position
        if self.kinds[equals] != "=":
            if self.kinds[equals] == BROKEN:
                raise Stop(None)
            message = "`const` is followed by a name, `=` and a value"
            raise self.stop("GC123", message, i, equals - 1, help="write const x = 2")
        targets, shape = self.targets(value, i + 1, equals)
        statement = self.assign(i, equals, targets, shape)
        statement.const = True
        return statement

    # declaration ------------------------------------------------------------------------------------------

    def declared(self, value: Expression, i: int, end: int) -> tuple[Name, tuple[Expression, ...] | None]:
        """Return the name and shape in front of `in`."""
        if type(value) is Subscript and type(value.value) is Name:
            sizes = self.sizes(value)
            if sizes is not None and self.plain(value.value):
                return value.value, sizes
        if type(value) is Tuple:
            raise self.stop(
                "GC123",
                "a declaration is of one name",
                i,
                end - 1,
                help="declare each name in a statement of its own",
            )
        if type(value) is Name and self.plain(value):
            return value, None
        message = "`in` declares a name, with a shape or without"
        raise self.stop("GC123", message, i, end - 1, help="write x in (0, 1) or W[3, 4] in real")

    def declare(
        self, i: int, name: Name, shape: tuple[Expression, ...] | None, word: int, domain: Domain | None = None
    ) -> Declare:
        """Return the declaration from token `i` on; its domain is behind token `word`, or was read before the name."""
        if self.depth:
            message = "a declaration is allowed only at the top level of a script"
            raise self.stop("GC123", message, i, word, help="move it up")
        domain = domain or self.domain(word + 1)
        default = None
        if self.kinds[self.position] == "=":
            default = self.expression(self.position + 1)
        self.defined.add(name.id)
        return Declare(name, shape, domain, default, self.span(i, self.position - 1))

    def domain(self, i: int) -> Domain:
        """Return the domain that starts at token `i`."""
        kind, text = self.kinds[i], self.texts[i]
        if kind == BROKEN:
            raise Stop(None)
        if kind == NAME and text in DOMAINS:
            self.position = i + 1
            return Domain(text, None, None, False, False, self.span(i, i))
        if kind == NAME:
            guess = did_you_mean(text, DOMAINS)
            hint = f"did you mean `{guess}`?" if guess else DOMAIN_HELP
            if text == "range":
                hint = "a loop starts with `for`: for i in range(3):"
            raise self.stop("GC123", f"`{messages.shown(text)}` is not a domain", i, help=hint)
        if kind != "(" and kind != "[":
            what = messages.described(kind, text)
            raise self.stop("GC123", f"a domain is expected after `in`, not {what}", i, help=DOMAIN_HELP)
        if self.kinds[i + 1] in (")", "]"):
            raise self.stop("GC123", "an interval has two ends", i, i + 1, help=DOMAIN_HELP)
        low = self.expression(i + 1)
        self.inside(i, ",")
        high = self.expression(self.position + 1)
        self.inside(i, ")]")
        end = self.position
        self.position = end + 1
        opened, closed = kind == "(", self.kinds[end] == ")"
        return Domain("interval", low, high, opened, closed, self.span(i, end))

    def inside(self, opened: int, wanted: str) -> None:
        """Check that the token after one end of an interval is one of those in `wanted`."""
        kind = self.kinds[self.position]
        if kind in ENDS:
            shown = self.kinds[opened]
            raise self.stop("GC113", f"`{shown}` is never closed", opened, help="close it with `)` or `]`")
        if kind in (",", ")", "]"):
            if kind not in wanted:
                raise self.stop("GC123", "an interval has two ends", opened, self.position, help=DOMAIN_HELP)
        else:
            raise self.unexpected(self.position)

    # claims and results -----------------------------------------------------------------------------------

    def claim(self, i: int) -> Assert:
        """Return the assert at token `i`; the pragmas of its line are added when the line ends."""
        test = self.expression(i + 1)
        end = self.position
        if self.kinds[end] == ",":
            raise self.stop("GC131", "an assert has no message", end, help="write it as a comment: # ...")
        return Assert(test, None, None, self.span(i, end - 1))

    def give(self, i: int) -> Return:
        """Return the return statement at token `i`."""
        if not self.in_function:
            hint = "the output is the last expression: write it by itself"
            raise self.stop("GC125", "`return` outside a function", i, help=hint)
        self.returned = True
        if self.kinds[i + 1] in ENDS:
            raise self.stop("GC125", "`return` has no value", i, help="write return and an expression")
        value = self.expression(i + 1, True)
        return Return(value, self.span(i, self.position - 1))
