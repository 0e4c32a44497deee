"""Arrays of symbols or balls as flat Python lists with a shape, and the walk that computes a program on them.

NumPy never holds such entries (it would unpack or order them silently); it only says which entry goes where. A
`Field` supplies the arithmetic: `checks.balls` and `checks.symbolic` each have one. No derivative rule is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.execution.namespaces import namespace
from gradcli.graph.arrays import ArrayData
from gradcli.graph.builder import Builder
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, reachable
from gradcli.graph.types import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape

MOST_ENTRIES = 1_000_000  # entries over all nodes; beyond that an exact reading takes too long


class Undecided(Exception):
    """A sign that the present precision cannot tell."""


class UndefinedAt(Exception):
    """An operation has no real value for these operands."""


class Unsupported(Exception):
    """An operation that this oracle cannot read, or a program too large for it."""


class Failure:
    """In place of an entry that has no value: why, and at which node. It passes through arithmetic unchanged.

    `kind` is "undefined", "undecided" (more digits may help) or "range" (too large for any precision).
    """

    __slots__ = ("kind", "node", "reason")

    def __init__(self, kind: str, node: Node | None, reason: str) -> None:
        self.kind = kind
        self.node = node
        self.reason = reason

    def _itself(self, *_: Any) -> Failure:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _itself
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _itself
    sqrt = log = exp = rsqrt = _itself

    def __repr__(self) -> str:
        return f"<{self.kind}: {self.reason}>"


class Entries:
    """Entries in C order, and their shape."""

    __slots__ = ("flat", "shape")

    def __init__(self, flat: Iterable[Any], shape: Sequence[int]) -> None:
        self.flat = list(flat)
        self.shape = tuple(shape)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.flat[:6]))
        return f"<entries {self.shape}: {shown}{', ...' if len(self.flat) > 6 else ''}>"


class Field:
    """What `entries` rules compute with; the entries themselves bring the operators."""

    zero: Any
    one: Any

    def __init__(self) -> None:
        self._positions: dict[Any, list[int]] = {}
        self._definitions: dict[Any, tuple[list[Node], list[Node], Node]] = {}

    # --- what a field decides -------------------------------------------------------------------------

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        """The rule of a primitive on single entries, or None."""
        raise Unsupported(primitive.name)

    def array_rule(self, primitive: Primitive) -> Callable[..., Any]:
        """The rule of a primitive on whole arrays."""
        assert primitive.entries is not None
        return primitive.entries

    def matrix_rule(self, node: Node) -> Callable[..., Any] | None:
        """A rule of this field's own in place of a definition, or None."""
        return None

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        """One entry of a node, or a Failure."""
        raise Unsupported(node.primitive.name)

    def constant(self, value: Any) -> Any:
        """An entry from a constant of a program: an int, a Fraction, or a name such as "pi"."""
        raise Unsupported(str(value))

    def datum(self, value: Any) -> Any:
        """An entry from an array of constants: as `constant`, and floats are the doubles that they are."""
        raise Unsupported(str(value))

    def detached(self, node: Node, x: Entries) -> Entries:
        """A script's detach(x): its value."""
        return x

    def straight_through(self, node: Node, value: Entries, surrogate: Entries) -> Entries:
        """ste(value, surrogate): the value of the first."""
        return value

    def index(self, x: Any) -> int:
        """An entry as a position."""
        return int(x)

    def checked(self, node: Node, entry: Any, xs: Sequence[Entries]) -> Any:
        """An entry that a rule for whole arrays gave, or a Failure where the field does not accept it."""
        return entry

    def told(self, node: Node, reason: Exception) -> Failure:
        """The entry that stands for an operation that could not go on; raises what is no answer but a fault."""
        if isinstance(reason, Undecided):
            return Failure("undecided", node, str(reason) or f"a sign in {node.primitive.name}")
        if isinstance(reason, UndefinedAt):
            return Failure("undefined", node, str(reason))
        raise reason

    # --- for `entries` rules ----------------------------------------------------------------------------

    def array(self, flat: Iterable[Any], shape: Sequence[int]) -> Entries:
        return Entries(flat, shape)

    def total(self, xs: Iterable[Any]) -> Any:
        """The sum of some entries."""
        total: Any = None
        for x in xs:
            total = x if total is None else total + x
        return self.zero if total is None else total

    def positions(self, primitive: Primitive, shape: Shape, /, **params: Any) -> list[int]:
        """For each entry of the result of an operation that only moves entries, where it comes from."""
        return self.sources(primitive, (tuple(shape),), params)

    def sources(self, primitive: Primitive, shapes: tuple[Shape, ...], params: Mapping[str, Any]) -> list[int]:
        """The same for several operands, whose entries are counted one after the other."""
        key = (primitive, shapes, tuple(params.items()))
        known = self._positions.get(key)
        if known is None:
            xp = namespace("numpy")
            arrays, start = [], 0
            for shape in shapes:
                size = size_of(shape)
                arrays.append(xp.arange(start, start + size).reshape(shape))
                start += size
            assert primitive.impl is not None
            moved = primitive.impl(xp, *arrays, ranks=tuple(map(len, shapes)), **params)
            known = self._positions[key] = [int(i) for i in xp.asarray(moved).reshape(-1)]
        return known

    def scatter(self, x: Entries, positions: Sequence[int], shape: Sequence[int]) -> Entries:
        """Entries of x added up at positions of an array of zeros."""
        found: list[list[Any]] = [[] for _ in range(size_of(tuple(shape)))]
        for entry, position in zip(x.flat, positions, strict=True):
            found[position].append(entry)
        return Entries([self.total(parts) for parts in found], shape)

    def take_along(self, x: Entries, index: Entries, axis: int) -> Entries:
        """NumPy's take_along_axis."""
        places = self._along(x.shape, index, axis)
        return Entries([x.flat[place] for place in places], index.shape)

    def put_along(self, x: Entries, index: Entries, axis: int, size: int) -> Entries:
        """The transpose of `take_along`: entries added up at positions along an axis."""
        position = len(x.shape) + axis
        shape = (*x.shape[:position], size, *x.shape[position + 1 :])
        return self.scatter(x, self._along(shape, index, axis), shape)

    def _along(self, shape: Shape, index: Entries, axis: int) -> list[int]:
        """The flat place of each entry that an index array names in an array of this shape."""
        xp = namespace("numpy")
        at = len(shape) + axis
        chosen = [self.index(i) for i in index.flat]
        if any(not -shape[at] <= i < shape[at] for i in chosen):
            raise UndefinedAt(f"a position outside an axis of {shape[at]} entries")
        rows = xp.asarray([i % shape[at] for i in chosen], dtype="int64").reshape(index.shape)
        grid = list(xp.indices(index.shape))
        grid[at] = rows
        return [int(i) for i in xp.ravel_multi_index(tuple(grid), shape).reshape(-1)]

    # --- composites without a rule of their own ----------------------------------------------------------

    def definition(self, node: Node) -> tuple[list[Node], list[Node], Node]:
        """A composite written out on inputs of its own: these, the steps in order, and the result."""
        primitive = node.primitive
        key = (primitive, tuple(arg.type for arg in node.args), tuple(node.params.items()))
        known = self._definitions.get(key)
        if known is None:
            builder = Builder(node.builder.vocabulary)
            inputs = [builder.fresh_leaf(arg.type) for arg in node.args]
            assert primitive.definition is not None
            result: Node = primitive.definition(*inputs, **node.params)
            builder.close()
            known = self._definitions[key] = (inputs, reachable([result]), result)
        return known


class Reading:
    """The entries of a program's nodes in one field at one point, computed on demand and kept.

    `point` gives each leaf its entries; `fixed` gives entries to further nodes, whose own arguments are then not read.
    """

    def __init__(self, field: Field, point: Mapping[str, Entries], fixed: Mapping[Node, Entries] | None = None) -> None:
        self.field = field
        self.point = point
        self.known: dict[Node, Entries] = dict(fixed or {})
        self.entries = 0

    def inside(self, fixed: Mapping[Node, Entries]) -> Reading:
        """A reading of a definition, on the entries of its inputs."""
        return Reading(self.field, {}, fixed)

    def __getitem__(self, output: Node) -> Entries:
        return self.read([output])[0]

    def read(self, outputs: Sequence[Node]) -> list[Entries]:
        """The entries of some nodes; raises Unsupported where an operation cannot be read."""
        for node in self._missing(outputs):
            self.known[node] = self._step(node)
        return [self.known[output] for output in outputs]

    def follow(self, order: Sequence[Node]) -> None:
        """Read nodes that are given in order, arguments first."""
        known, step = self.known, self._step
        for node in order:
            if node not in known:
                known[node] = step(node)

    def _missing(self, outputs: Iterable[Node]) -> list[Node]:
        seen: set[Node] = set()
        stack = list(outputs)
        while stack:
            node = stack.pop()
            if node not in seen and node not in self.known:
                seen.add(node)
                stack.extend(node.args)
        return sorted(seen, key=lambda node: node.serial)

    def _step(self, node: Node) -> Entries:
        field, primitive, shape = self.field, node.primitive, node.type.shape
        self.entries += size_of(shape)
        if self.entries > MOST_ENTRIES:
            raise Unsupported(f"more than {MOST_ENTRIES:,} entries")
        if primitive is LEAF:
            return self.point[node.params["name"]]
        if primitive is CONSTANT:
            value = node.params["value"]
            entry = bool(value) if node.type.kind == "bool" else field.constant(value)
            return Entries([entry] * size_of(shape), shape)
        if primitive is DATA:
            data = node.builder.data[node.params["digest"]]
            flat = data.flat if isinstance(data, ArrayData) else data.reshape(-1).tolist()
            if node.type.kind == "bool":
                return Entries([bool(entry) for entry in flat], shape)
            return Entries([field.datum(entry) for entry in flat], shape)
        xs = [self.known[arg] for arg in node.args]
        if node.builder.vocabulary.get(primitive.name) is not primitive:
            return xs[0]  # a function with a hand-written rule: its value
        if primitive.name == "detach":
            return field.detached(node, xs[0])
        if primitive.name == "ste":
            return field.straight_through(node, xs[0], xs[1])
        rule = field.rule(primitive)
        if primitive.pointwise and rule is not None:
            return Entries(self._each(node, rule, xs), shape)
        if primitive.moves:
            places = field.sources(primitive, tuple(x.shape for x in xs), node.params)
            flat = xs[0].flat if len(xs) == 1 else [entry for x in xs for entry in x.flat]
            return Entries([flat[place] for place in places], shape)
        if primitive.entries is not None:
            return self._by_rule(node, xs, field.array_rule(primitive))
        own = field.matrix_rule(node)
        if own is not None:
            return self._by_rule(node, xs, own)
        if primitive.definition is not None:
            inputs, steps, result = field.definition(node)
            inner = self.inside(dict(zip(inputs, xs, strict=True)))
            inner.entries = self.entries
            for step in steps:
                if step not in inner.known:
                    inner.known[step] = inner._step(step)
            self.entries = inner.entries
            return _outside(node, inner.known[result], xs)
        raise Unsupported(f"{primitive.name} cannot be read entry by entry")

    def _each(self, node: Node, rule: Callable[..., Any], xs: list[Entries]) -> list[Any]:
        """A rule for single entries, on each of them."""
        apply = self.field.apply
        return [apply(node, rule, row) for row in zip(*(x.flat for x in xs), strict=True)]

    def _by_rule(self, node: Node, xs: list[Entries], rule: Callable[..., Any]) -> Entries:
        """A rule for whole arrays. It mixes entries, so a failure in one of them is a failure of all."""
        shape = node.type.shape
        try:
            made: Any = rule(self.field, *xs, **node.params)
        except Exception as reason:
            return Entries([self.field.told(node, reason)] * size_of(shape), shape)
        found = made if isinstance(made, Entries) else Entries([made], shape)
        return Entries([self.field.checked(node, entry, xs) for entry in found.flat], shape)


def _outside(node: Node, found: Entries, xs: Sequence[Entries]) -> Entries:
    """The entries of a definition's result; what failed inside it failed at the node that it defines."""
    failed = [x for x in found.flat if isinstance(x, Failure)]
    if not failed:
        return found
    passed = {id(x) for one in xs for x in one.flat if isinstance(x, Failure)}
    own = {id(x): Failure(x.kind, node, x.reason) for x in failed if id(x) not in passed}
    return Entries([own.get(id(x), x) for x in found.flat], found.shape)
