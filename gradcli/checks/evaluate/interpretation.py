"""Entries that are symbols, balls or series, as flat Python lists with a shape, and what a `Field` of them decides.

NumPy never holds such entries (it would unpack or order them silently); it only says which entry goes where. A
field supplies the arithmetic, `checks.evaluate.evaluation` walks through the program. No derivative rule is read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.execution.namespaces import namespace
from gradcli.graph.building import definition_key, written_out
from gradcli.graph.exact import decimal_of, last_unit
from gradcli.graph.node import CONSTANT, reachable
from gradcli.graph.types import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.graph.building import Definition
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape


MOST_ITERATIONS = 64  # of a loop that is read in symbols
MOST_BITS = 8192  # of a ball
SIGN_OPEN = f"{MOST_BITS:,} bits do not tell"  # why a sign is left undecided, and by balls of fewer bits
LOST = "all digits are lost"  # in the iterations of a loop
SIGN_UNDECIDED = "a sign that cannot be decided at this precision"


class Unsupported(Exception):
    """An operation that this oracle cannot evaluate, or a program too large for it."""

    kind = "unsupported"


class Failure(Exception):
    """No value, and why. A rule raises it; then it stands in place of the entry, and passes through arithmetic.

    Each kind is a class. `node` is where it happened. Where an iteration of a loop failed, `node` reads the loop,
    `inner` is the node of the body, and `iteration` says in words which iteration it was.
    """

    kind = ""

    def __init__(self, reason: str = "", node: Node | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.node = node
        self.inner: Node | None = None
        self.iteration = ""

    def __str__(self) -> str:
        return self.reason

    def at(self, node: Node) -> Failure:
        """The failure of a node whose rule raised it; one that an operand was before stays as it is."""
        if self.node is None:
            return type(self)(self.reason or node.primitive.name, node)
        return self.with_traceback(None)

    def happened_in(self, number: int, reader: Node) -> None:
        """Say in which iteration of the loop of a reader it was."""
        iteration = f"iteration {number}"
        if self.iteration:
            self.reason = self.reason.removesuffix(f", in {self.iteration}")
            iteration = f"{self.iteration} of the loop inside {iteration}"
        self.reason = f"{self.reason}, in {iteration}"
        self.inner, self.node, self.iteration = self.inner or self.node, reader, iteration

    def _itself(self, *_: Any) -> Failure:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _itself
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _itself
    sqrt = _itself

    def _raised(self) -> int:
        raise self

    sign = is_integer = _raised  # a decision needs a value


class Undefined(Failure):
    """An operation has no real value for these operands."""

    kind = "undefined"


class Undecided(Failure):
    """A sign that the present precision does not decide; more bits may help."""

    kind = "undecided"


class Tie(Failure):
    """A quantity that decides a branch, or lies on the edge of a domain, is exactly 0: only both sides decide."""

    kind = "tie"


class Unclear(Failure):
    """A value that no series or expansion gives, such as a limit of something unbounded; more bits do not help."""

    kind = "unclear"


class Entries:
    """Entries in C order, and their shape."""

    __slots__ = ("flat", "shape")

    def __init__(self, flat: Iterable[Any], shape: Sequence[int]) -> None:
        self.flat = flat if type(flat) is list else list(flat)
        self.shape = tuple(shape)


class Field(ABC):
    """What rules compute with: `entries` rules, and with its `namespace` rules for single entries.

    The entries themselves bring the operators.
    """

    zero: Any
    array = Entries
    hold = False  # whether what is detached becomes a symbol of its own
    rounded = False  # whether a literal stands for all numbers that round to it
    most_iterations: int | None = None  # of a loop: expressions grow with every iteration, numbers do not

    def __init__(self) -> None:
        self.namespace: Any = self  # the first argument of rules for single entries
        self._positions: dict[Any, list[int]] = {}
        self._definitions: dict[Any, Definition] = {}

    # --- what a field decides -------------------------------------------------------------------------

    @abstractmethod
    def constant(self, value: Any) -> Any:
        """An entry from a constant of a program: an int, a Fraction, or a name such as "pi"."""

    @abstractmethod
    def number(self, value: int | Fraction) -> Any:
        """An exact rational number."""

    def datum(self, value: Any) -> Any:
        """An entry from an array of constants: as `constant`, and floats are the doubles that they are."""
        if not isinstance(value, float):
            return self.constant(value)
        return self.number(Fraction(value)) if math.isfinite(value) else Undefined(f"a value of {value}")

    @abstractmethod
    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        """The rule of a primitive on single entries, or None."""

    def array_rule(self, node: Node, closed: bool = True) -> Callable[..., Any] | None:
        """The rule of an operation on whole arrays; None where its definition is read, if that is in `closed` form."""
        return node.primitive.entries

    def definition(self, node: Node, substitute: Callable[[Node], Node] | None = None) -> Definition:
        """A composite written out on inputs of its own; `given` maps these to the operands to use."""
        key = definition_key(node)
        if key not in self._definitions:
            self._definitions[key] = written_out(node, substitute)
        return self._definitions[key]

    def apply(self, node: Node, rule: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
        """One entry of a node, or a Failure."""
        for x in xs:
            if isinstance(x, Failure):
                return x
        try:
            result = rule(self.namespace, *xs, **node.params)
        except Exception as reason:
            return self.failure_of(node, reason)
        return self.accepted(node, result, xs)

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        """The result of a rule on some entries, or a Failure where it is no value."""
        return result

    def failure_of(self, node: Node, reason: Exception) -> Failure:
        """The failure that an exception stands for; raises the exception where it is a fault."""
        if isinstance(reason, Failure):
            return reason.at(node)
        raise reason

    def either(self, condition: Failure, x: Any, y: Any) -> Any:
        """The entry of a choice whose condition is not known."""
        return condition

    def detached(self, node: Node, x: Entries) -> Entries:
        """The entries of a node as they are at the point, where a script detaches it: detach(x) or ste(x, y)."""
        return x

    def index(self, x: Any) -> int:
        """An entry as a position."""
        return int(x)

    def is_lost(self, state: Sequence[Entries], done: int, count: int) -> bool:
        """Whether the carries of a loop have lost all their digits after so many of its iterations."""
        return False

    # --- for `entries` rules ----------------------------------------------------------------------------

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
        sums: list[list[Any]] = [[] for _ in range(size_of(tuple(shape)))]
        for entry, position in zip(x.flat, positions, strict=True):
            sums[position].append(entry)
        return Entries([self.total(parts) for parts in sums], shape)

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
        chosen = [self.index(i) for i in index.flat]
        length = shape[len(shape) + axis]
        if any(not -length <= i < length for i in chosen):
            raise Undefined(f"an index out of range for an axis of {length} entries")
        places = xp.arange(size_of(shape)).reshape(shape)
        rows = xp.asarray([i % length for i in chosen], dtype="int64").reshape(index.shape)
        return [int(i) for i in xp.take_along_axis(places, rows, axis=axis).reshape(-1)]


class SymbolicField(Field):
    """Arithmetic on expressions: `symbolic` rules, in a `namespace` that they call `sp`.

    With `hold` what a script detaches becomes a symbol of its own, which has its value and no derivative.
    """

    most_iterations = MOST_ITERATIONS
    held_any = False  # whether `hold` has made a difference

    @abstractmethod
    def held(self, name: str, x: Any) -> Any:
        """A symbol that has the value of an entry."""

    def detached(self, node: Node, x: Entries) -> Entries:
        if not self.hold:
            return x
        self.held_any = True
        held = [
            entry if isinstance(entry, Failure) else self.held(f"detach{node.serial}[{i}]", entry)
            for i, entry in enumerate(x.flat)
        ]
        return Entries(held, x.shape)

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        return primitive.symbolic

    def accepted(self, node: Node, result: Any, operands: Sequence[Any]) -> Any:
        return Undefined(f"{node.primitive.name} has no value here", node) if result is None else result

    def failure_of(self, node: Node, reason: Exception) -> Failure:
        if isinstance(reason, ZeroDivisionError):
            return Undefined(str(reason), node)
        return super().failure_of(node, reason)


def rounded_constants(nodes: Sequence[Node]) -> list[str]:
    """The literals of many digits that some nodes read, as they are written, in order and once each."""
    texts = []
    for node in reachable(nodes):
        value = node.params.get("value") if node.primitive is CONSTANT else None
        exact = decimal_of(Fraction(value)) if isinstance(value, (int, Fraction)) and last_unit(value) else None
        if exact is not None:
            texts.append(f"{exact:f}" if abs(exact.adjusted()) < 30 else str(exact))
    return list(dict.fromkeys(texts))
