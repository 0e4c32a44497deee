"""Nodes, the steps of a computation, and the builder that makes them: equal computations are one node.

A node is a primitive, its arguments and its static parameters; it is frozen, and compared by identity. Walks over nodes
are loops over `serial`, which grows from arguments to results, so sorting by it is a topological order.
"""

from __future__ import annotations

from operator import attrgetter

from gradcli.base.diagnostics import error
from gradcli.graph.exact import count_text, decimal, is_fraction, whole_or_fraction
from gradcli.graph.primitive import Closed, Operand, Primitive
from gradcli.graph.types import FLOAT, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction
    from typing import Any

    from gradcli.base.diagnostics import GradcliError, Span
    from gradcli.graph.types import Shape

    Exact = int | Fraction | str

DEFAULT_NODE_LIMIT = 1_000_000
MOST_AXES = 32  # NumPy has 64, and a batch needs some in front
DEFAULT_ENTRY_LIMIT = 2**27  # entries of one array: 1 GiB of float64
CLOSED = "this builder is closed; reopen it with a program's nodes"
MOST_SPANS = 16  # further places that are kept of one computation, which a loop may repeat a million times
_NO_PARAMS: dict[str, Any] = {}

LEAF = Primitive("leaf", "input", "An input of the program.", internal=True)
DATA = Primitive("data", "input", "An array of constants, never differentiated.", internal=True)
CONSTANT = Primitive("constant", "input", "A number, exact if it is rational.", internal=True)


def _operator(name: str) -> Callable[[Node, Any], Node]:
    """The method of an operator between two operands."""

    def method(self: Node, other: Any) -> Node:
        builder = self.builder
        if type(other) is Node:
            return builder.apply(builder.vocabulary[name], (self, other), {})
        return builder.bind(builder.vocabulary[name], (self, other), {})

    return method


class Node(Operand):
    """An operation applied to nodes. `params` is static metadata: axes, shapes, names."""

    __slots__ = ("args", "builder", "params", "primitive", "serial", "span", "type")

    def __init__(
        self,
        primitive: Primitive,
        args: tuple[Node, ...],
        params: dict[str, Any],
        type: Type,
        serial: int,
        span: Span | None,
        builder: Builder,
    ) -> None:
        self.primitive = primitive
        self.args = args
        self.params = params
        self.type = type
        self.serial = serial
        self.span = span
        self.builder = builder

    def bind(self, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Node:
        return self.builder.bind(primitive, xs, params)

    def named(self, name: str) -> Primitive:
        return self.builder.vocabulary[name]

    # the operators that rules are made of, without a detour

    __add__ = _operator("add")
    __sub__ = _operator("sub")
    __mul__ = _operator("mul")
    __truediv__ = _operator("div")

    def __neg__(self) -> Node:
        builder = self.builder
        return builder.apply(builder.vocabulary["neg"], (self,), {})

    def _call(self, name: str, *xs: Any, **params: Any) -> Node:
        builder = self.builder
        return builder.bind(builder.vocabulary[name], xs, params)

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def constant(self) -> Exact | None:
        """The exact value of a constant (an int, a Fraction, or a name such as "pi"); None for anything else."""
        return self.params["value"] if self.primitive is CONSTANT else None

    @property
    def name(self) -> str | None:
        """The name of a leaf; None for anything else."""
        return self.params["name"] if self.primitive is LEAF else None

    def __repr__(self) -> str:
        inner = ", ".join(f"#{arg.serial}" for arg in self.args)
        static = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"<#{self.serial} {self.primitive.name}({inner}{static}) {self.type}>"


def is_reader(node: Node) -> bool:
    """Whether a node reads a loop."""
    return "body" in node.params


_serial = attrgetter("serial")


def reachable(outputs: Iterable[Node], stops: Iterable[Node] = ()) -> list[Node]:
    """Every node that the outputs depend on, themselves included, in topological order; nothing below `stops`."""
    stops = frozenset(stops)
    nodes = list(dict.fromkeys(outputs))
    seen = set(nodes)
    add, append = seen.add, nodes.append
    for node in nodes:  # the list grows while it is read
        if stops and node in stops:
            continue
        for arg in node.args:
            if arg not in seen:
                add(arg)
                append(arg)
    nodes.reverse()  # nearly in order, which is what sorting is fast at
    nodes.sort(key=_serial)
    return nodes


def dependents(order: Iterable[Node], targets: Iterable[Node]) -> set[Node]:
    """The nodes of a topological order that depend on a target through differentiable operations, targets included."""
    reached = set(targets)
    for node in order:
        for arg in node.args:
            if arg in reached:
                if node.primitive.kind != "nondifferentiable":
                    reached.add(node)
                break
    return reached


# --- the builder ---------------------------------------------------------------------------------------------------


class Builder:
    """Makes nodes: lifts numbers, folds exact constants, simplifies derivatives, and shares equal computations.

    What it may rewrite is read from the declarations of the operations. `simplifying` is on while a derivative is
    built, never while a script is lowered.

    `limit` is the largest number of nodes (else GradcliError GC505), `entries` that of the entries of an array (GC508).

    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x = builder.leaf("x")
    >>> x*x + 1
    <#4 add(#2, #3) f64>
    >>> x*x is x*x
    True
    """

    __slots__ = ("count", "data", "entries", "limit", "other_spans", "simplifying", "span", "table", "vocabulary")

    def __init__(
        self,
        vocabulary: Mapping[str, Primitive],
        limit: int = DEFAULT_NODE_LIMIT,
        entries: int = DEFAULT_ENTRY_LIMIT,
    ) -> None:
        self.vocabulary = vocabulary
        self.limit = limit
        self.entries = entries
        self.count = 0
        self.simplifying = False
        self.span: Span | None = None
        self.table: dict[Primitive, dict[Any, Node]] | None = {}
        self.data: dict[str, Any] = {}
        self.other_spans: dict[Node, list[Span]] = {}

    # --- inputs ---------------------------------------------------------------------------------

    def leaf(self, name: str, shape: Shape = (), **traits: bool) -> Node:
        """The input with this name; the same node each time. A matrix may be `symmetric`."""
        return self._cons(name, LEAF, {"name": name, **traits}, Type("float", shape) if shape else FLOAT)

    def fresh_leaf(self, type: Type, name: str | None = None) -> Node:
        """An input that no script can name, such as the tangent of a pushforward; its name is only shown to people."""
        return self._make(LEAF, (), {"name": name or f"~{self.count}"}, type)

    def constant(self, value: Exact | float, shape: Shape = (), kind: str = "float") -> Node:
        """The node of a number; a float stands for the shortest decimal that reads back as it."""
        exact = value if type(value) is int else _exact(value)
        result = Type(kind, shape) if shape or kind != "float" else FLOAT
        key = (exact, result)
        known = None if self.table is None else self.table.get(CONSTANT)
        node = None if known is None else known.get(key)
        return self._cons(key, CONSTANT, {"value": exact}, result) if node is None else node

    def array(self, digest: str, value: Any, type: Type) -> Node:
        """An array of constants, identified by a digest of its content; the program's table holds its value."""
        self.data.setdefault(digest, value)
        return self._cons((digest, type), DATA, {"digest": digest}, type)

    # --- operations -----------------------------------------------------------------------------

    def bind(self, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Node:
        """The node of `primitive(*xs, **params)`; numbers among xs take the shape of the other operands."""
        for x in xs:
            if type(x) is not Node:
                xs = self._lift(primitive, xs)
                break
        return self.apply(primitive, xs, params)

    def apply(self, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any]) -> Node:
        """The node of an operation on nodes; raises GradcliError (GC3xx) where their types do not fit."""
        if primitive.impl is None and primitive.definition is not None:
            expanded: Node = primitive.definition(*args, **params)
            return expanded
        if self.simplifying:
            rewrite = primitive.rewrite
            if rewrite is not None:
                rewritten: Node | None = rewrite(*args, **params) if params else rewrite(*args)
                if rewritten is not None:
                    return rewritten
            if primitive.commutative:
                left, right = args
                if left.primitive is CONSTANT:
                    value = left.params["value"]
                    if type(value) is int:  # as what changes nothing, and what leaves nothing, are
                        if value == primitive.annihilator:
                            return left
                        if value == primitive.identity:
                            return right
                if right.primitive is CONSTANT:
                    value = right.params["value"]
                    if type(value) is int:
                        if value == primitive.annihilator:
                            return right
                        if value == primitive.identity:
                            return left
                if left.serial > right.serial:
                    args = (right, left)
        first = args[0]
        if first.primitive is CONSTANT:
            folded = self._fold(primitive, args, params)
            if folded is not None:
                return folded
        if self.table is None:
            raise RuntimeError(CLOSED)
        table = self.table.get(primitive)
        if table is None:
            table = self.table[primitive] = {}
        key = (args, tuple(params.items())) if params else args
        known = table.get(key)
        if known is not None:
            return self._seen_again(known) if self.span is not known.span else known
        if primitive.type_rule is None and primitive.pointwise:
            type_ = first.type
            for arg in args:
                if arg.type is not type_ and arg.type.shape != type_.shape:
                    raise error("GC301", f"cannot {primitive.name} {type_} and {arg.type}", self.span)
            self.count = count = self.count + 1
            if count > self.limit:
                raise self._too_many()
            node = table[key] = Node(primitive, args, params or _NO_PARAMS, type_, count, self.span, self)
            return node
        node = table[key] = self._make(primitive, args, params or _NO_PARAMS, self._type(primitive, args, params))
        return node

    def copied(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The operation of a node of any builder on other arguments of the same types; constants are kept.

        Nothing is rewritten, as in `expanded`.
        """
        primitive = node.primitive
        if primitive is CONSTANT:
            return self.constant(node.params["value"], node.type.shape, node.type.kind)
        simplifying, self.simplifying = self.simplifying, False
        try:
            return self.apply(primitive, args, node.params)
        finally:
            self.simplifying = simplifying

    def expanded(self, node: Node) -> Node:
        """The definition of a composite node, applied to its arguments without rewriting.

        A rewrite such as -x - y to -(x + y) would read x instead of the argument -x, and a sweep that stops at the
        arguments would lose that path.
        """
        assert node.primitive.definition is not None
        simplifying, self.simplifying = self.simplifying, False
        try:
            result: Node = node.primitive.definition(*node.args, **node.params)
        finally:
            self.simplifying = simplifying
        return result

    def substituted(self, outputs: Sequence[Node], instead: Mapping[Node, Node]) -> list[Node]:
        """The same computation with other nodes instead of some."""
        copies = dict(instead)
        for node in reachable(outputs, instead):
            if node not in copies:
                args = tuple([copies[arg] for arg in node.args])
                copies[node] = node if args == node.args else self.apply(node.primitive, args, node.params)
        return [copies[node] for node in outputs]

    def call(self, name: str, *xs: Any, **params: Any) -> Node:
        """The node of the operation with this name."""
        return self.bind(self.vocabulary[name], xs, params)

    def lifted(self, x: Any, shape: Shape = ()) -> Node:
        """A number, or a call on numbers only, as a node; numbers in it take this shape."""
        if type(x) is int:
            return self.constant(x, shape)
        if isinstance(x, Closed):
            primitive = self.vocabulary[x.primitive] if isinstance(x.primitive, str) else x.primitive
            return self.apply(primitive, tuple(self.lifted(y, shape) for y in x.xs), x.params)
        if isinstance(x, (int, float)) or is_fraction(x):
            return self.constant(x, shape)
        raise TypeError(f"cannot lift {type(x).__name__} into a graph")

    def definition_of(self, primitive: Primitive) -> Callable[..., Any] | None:
        """What a call of the operation expands to, if it has a definition."""
        return primitive.definition

    def require_holomorphic(self, outputs: Sequence[Node], targets: Sequence[Node], what: str) -> None:
        """Raise GradcliError GC411 where a matrix of derivatives would need the complex derivative of |z|."""

    # --- programs -------------------------------------------------------------------------------

    def reopen(self, nodes: Iterable[Node]) -> None:
        """Fill the table with these nodes, as every transform does."""
        if self.table is not None:
            return
        table: dict[Primitive, dict[Any, Node]] = {}
        self.table = table
        for node in nodes:
            primitive = node.primitive
            known = table.get(primitive)
            if known is None:
                known = table[primitive] = {}
            if node.args:
                known[(node.args, tuple(node.params.items())) if node.params else node.args] = node
            else:
                known[_input_key(node)] = node

    def close(self) -> None:
        """Empty the table; only programs then keep their nodes alive."""
        self.table = None

    # --- inner ----------------------------------------------------------------------------------

    def _lift(self, primitive: Primitive, xs: tuple[Any, ...]) -> tuple[Node, ...]:
        shape: Shape = ()
        if primitive.pointwise:
            for x in xs:
                if type(x) is Node:
                    shape = x.type.shape
                    break
        return tuple([x if type(x) is Node else self.lifted(x, shape) for x in xs])

    def _type(self, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any]) -> Type:
        first = args[0].type
        if primitive.pointwise:
            shape = first.shape
            for arg in args:
                if arg.type.shape != shape:
                    raise error("GC301", f"cannot {primitive.name} {first} and {arg.type}", self.span)
            if primitive.type_rule is None:
                return first
        return primitive.result_type(tuple([arg.type for arg in args]), params)

    def _fold(self, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any]) -> Node | None:
        if primitive.moves and args[0].primitive is CONSTANT:
            value = args[0].params["value"]
            if all(arg.constant == value for arg in args):
                result = self._type(primitive, args, params)
                return self.constant(value, result.shape, result.kind)
        elif primitive.fold is not None:
            values = []
            for arg in args:
                if arg.primitive is not CONSTANT or not _representable(arg.params["value"]):
                    return None
                values.append(arg.params["value"])
            exact = primitive.fold(*values, **params)
            if exact is not None and _representable(exact):
                return self.constant(exact, args[0].type.shape)
        return None

    def _cons(self, key: Any, primitive: Primitive, params: dict[str, Any], type: Type) -> Node:
        """The input with this key."""
        if self.table is None:
            raise RuntimeError(CLOSED)
        table = self.table.get(primitive)
        if table is None:
            table = self.table[primitive] = {}
        known = table.get(key)
        if known is not None:
            return known
        node = table[key] = self._make(primitive, (), params, type)
        return node

    def _make(self, primitive: Primitive, args: tuple[Node, ...], params: dict[str, Any], type: Type) -> Node:
        self.count = count = self.count + 1
        if count > self.limit:
            raise self._too_many()
        if type.shape and not (args and type is args[0].type):
            self.allow(type)
        return Node(primitive, args, params, type, count, self.span, self)

    def _too_many(self) -> GradcliError:
        return error(
            "GC505",
            f"the graph has more than {self.limit:,} nodes",
            self.span,
            help="make the loop shorter, use arrays instead of scalars, or raise --limit nodes=...",
        )

    def allow(self, type: Type) -> None:
        """Raise GradcliError GC508 if an array of this type has too many entries."""
        if type.rank > MOST_AXES:
            message = f"an array would have {type.rank:,} axes; {MOST_AXES} are allowed"
            raise error("GC508", message, self.span, help="reshape it to fewer axes")
        if type.size > self.entries or (not type.size and max(type.shape) > self.entries):
            raise error(
                "GC508",
                f"an array {type} would have {count_text(type.size)} entries; {self.entries:,} are allowed",
                self.span,
                help="sum over an axis before repeating it, use smaller sizes, or raise --limit elements=...",
            )

    def _seen_again(self, node: Node) -> Node:
        """The node; in a script, the place of the repetition is recorded with the first one."""
        if self.span is not None and not self.simplifying and node.args:
            spans = self.other_spans.get(node)
            if spans is None:
                self.other_spans[node] = [self.span]
            elif spans[-1] is not self.span and len(spans) < MOST_SPANS and self.span not in spans:
                spans.append(self.span)
        return node


def _input_key(node: Node) -> Any:
    if node.primitive is LEAF:
        return node.params["name"]
    return (node.params["value" if node.primitive is CONSTANT else "digest"], node.type)


def _exact(value: Any) -> Exact:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if value != value:
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return decimal(repr(float(value)))  # float(): a NumPy double has another repr
    return int(value) if isinstance(value, int) else whole_or_fraction(value)  # a bool becomes 0 or 1


def _representable(value: Exact | bool) -> bool:
    """Whether a number is a double exactly, so that folding it never changes a float result."""
    if type(value) is int:
        return -(2**53) <= value <= 2**53
    if not isinstance(value, str) and is_fraction(value):
        bottom = value.denominator
        return bottom & (bottom - 1) == 0 and bottom < 2**512 and abs(value.numerator) <= 2**53
    return False
