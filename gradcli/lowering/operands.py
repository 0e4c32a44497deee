"""Values of the language as operands of operations: numbers, truth, and lists, which become arrays.

Lists are what comprehensions and `append` collect: they become one array where they are read.

A list keeps its items; they are joined once, when the whole list is read, so n appends cost n steps. Single entries
(`path[-1]`, `path[i]`) and `len(path)` are read from the items. The appends in all iterations of a loop node are one
stacked array. In an iteration that is traced, a list only collects appended values: reading it ends the trace.
"""

from __future__ import annotations

from itertools import repeat

from gradcli.base.diagnostics import error
from gradcli.graph.node import CONSTANT, DATA, Node
from gradcli.graph.primitive import Complex
from gradcli.lowering.statics import Untraceable
from gradcli.primitives.comparison import cast, not_equal
from gradcli.primitives.comparison import named as tag
from gradcli.primitives.movement import reshape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.language.syntax import Syntax
    from gradcli.lowering.names import Names

MOST_JOINED = 256


class ScriptList:
    """The items of a list so far, and the array of them when it was last read.

    `stacks` are arrays of entries, before the single ones in `items`, which are nodes of kind float; `place` is the
    span of the first one, or of the whole comprehension. `name` is the depth of calls and the name of the variable
    with this list as its value, None if there is none yet. `variable`: the script differentiates with respect to that
    name; then a read outside the loops that append returns a variable of its own, `tagged`, made when there were
    `tagged_size` entries. `alias` is the place where another name took the value; nothing may be appended after that.
    `traced`: the list represents another one in an iteration that is traced.
    """

    __slots__ = (
        *("alias", "array", "items", "name", "place", "read", "shape", "stacks", "tagged", "tagged_size"),
        *("traced", "variable"),
    )

    def __init__(self, items: list[Node], place: Span) -> None:
        self.items = items
        self.stacks: list[Node] = []
        self.shape = items[0].type.shape if items else None  # of each entry
        self.traced = False
        self.place = place
        self.name: tuple[int, str] | None = None
        self.variable = False
        self.alias: tuple[Span, str] | None = None
        self.array: Node | None = None
        self.read = -1  # the number of entries in `array`
        self.tagged: Node | None = None
        self.tagged_size = -1

    @property
    def size(self) -> int:
        """The number of entries."""
        if self.traced:
            raise Untraceable
        return sum(stack.shape[0] for stack in self.stacks) + len(self.items)

    def in_a_iteration(self) -> ScriptList:
        """A list for the values that an iteration appends to this one."""
        taker = ScriptList([], self.place)
        taker.name, taker.alias, taker.shape, taker.traced = self.name, self.alias, self.shape, True
        return taker

    @property
    def empty(self) -> bool:
        """Whether there are no entries yet."""
        return not self.stacks and not self.items

    @property
    def several(self) -> bool:
        """Whether there are more entries than one, or an array of them."""
        return bool(self.stacks) or len(self.items) > 1

    def appended(self, names: Names) -> Node:
        """The appended value of an iteration: its entry, or its entries as one array."""
        return self.whole(names) if self.several else self.items[0]

    def append(self, node: Node) -> None:
        """Append one entry."""
        self.shape = node.type.shape
        self.items.append(node)

    def extend(self, names: Names, stack: Node) -> None:
        """Append the entries of an array."""
        if self.items:
            self.stacks.append(joined(names, self.items))
            self.items = []
        self.shape = stack.shape[1:]
        self.stacks.append(stack)

    def is_growing(self, names: Names) -> bool:
        """Whether a loop around the current statement appends to it."""
        return self.name in names.growing

    def as_array(self, names: Names) -> Node:
        """All items as one array: scalars give [T], arrays [T, ...]."""
        size = self.size
        if self.array is None or self.read != size:
            refuse_ragged(self.items, repeat(self.place))
            self.array, self.read = self.whole(names), size
        if not self.variable or self.is_growing(names):
            return self.array
        if self.tagged is None or self.tagged_size != size:
            from gradcli.primitives.comparison import named as tag

            self.tagged, self.tagged_size = tag(self.array, id=names.builder.count), size
        return self.tagged

    def whole(self, names: Names) -> Node:
        """All entries along a new first axis."""
        if not self.stacks:
            return joined(names, self.items)
        from gradcli.graph.loop import joined as one_after_the_other  # most scripts have no long loop

        return one_after_the_other(names.builder, [*self.stacks, *([joined(names, self.items)] if self.items else [])])

    def entries(self, names: Names) -> tuple[Node, ...]:
        """The items one by one, as a script reads them."""
        return tuple([self.item(names, position) for position in range(self.size)])

    def item(self, names: Names, position: int) -> Node:
        """One entry; of the array itself where the script differentiates with respect to it."""
        if self.variable and not self.is_growing(names):
            from gradcli.primitives import shaping

            entry: Node = shaping.index(self.as_array(names), (position,))
            return entry
        place = range(self.size)[position]
        for stack in self.stacks:
            if place < stack.shape[0]:
                from gradcli.graph.loop import row

                return row(names.builder, stack, place)
            place -= stack.shape[0]
        return self.items[place]


def plain(names: Names, value: Any) -> Any:
    """A value with its lists converted to arrays."""
    if type(value) is ScriptList:
        return value.as_array(names)
    return tuple([plain(names, item) for item in value]) if type(value) is tuple else value


def refuse_ragged(values: Sequence[Node], places: Iterable[Span]) -> None:
    """Check that rows have one shape; raises GradcliError GC310 at the place of the first that has another one."""
    for value, place in zip(values, places, strict=False):
        if value.type.shape != values[0].type.shape:
            message = f"rows of different shapes: {values[0].type} and {value.type}"
            raise error("GC310", message, place, help="every row of an array needs the same length")


def joined(names: Names, values: Sequence[Node]) -> Node:
    """Values of one shape as the rows of an array."""
    if not values:
        return names.constant_array((0,), ())
    shape = values[0].type.shape
    flat = _constants(names, values)
    if flat is not None:
        return names.constant_array((len(values), *shape), flat)
    builder = names.builder
    rows = [reshape(value, shape=(1, *shape)) for value in values]
    while len(rows) > 1:  # many rows are joined in groups: what a rule does for one row may read all of its group
        groups = [rows[at : at + MOST_JOINED] for at in range(0, len(rows), MOST_JOINED)]
        concat, params = names.vocabulary["concat"], {"axis": -len(shape) - 1}
        rows = [builder.bind(concat, tuple(group), params) if len(group) > 1 else group[0] for group in groups]
    return rows[0]


def _constants(names: Names, values: Sequence[Node]) -> tuple[Any, ...] | None:
    """The exact entries of rows that are all constants, or None."""
    flat: list[Any] = []
    for value in values:
        if value.primitive is CONSTANT and not value.type.shape and not isinstance(value.constant, str):
            flat.append(value.constant)
        elif value.primitive is DATA and (entries := names.exact_entries(value)) is not None:
            flat.extend(entries)
        else:
            return None
    return tuple(flat)


# --- as an operand --------------------------------------------------------------------------------


def number(names: Names, value: Any, syntax: Syntax | None = None) -> Node:
    """A value as floats; truth values count as 0 and 1. Raises GradcliError GC309 for anything but numbers."""
    if type(value) is Node:
        if value.type.kind == "float":
            return value
        return cast(value, kind="float")
    if type(value) is ScriptList:
        return value.as_array(names)
    span = names.builder.span if syntax is None else syntax.span
    if isinstance(value, tuple):
        raise error("GC309", f"{len(value)} values stand where one is needed", span, help="write an array as [a, b]")
    if isinstance(value, Complex):
        take = "take abs(z), real(z), imag(z) or angle(z) of it"
        raise error("GC309", "complex numbers stand where real ones are needed", span, help=take)
    what = "text" if isinstance(value, str) else "None" if value is None else "a slice"
    raise error("GC309", f"{what} is used where a number is needed", span)


def truth(names: Names, value: Any) -> Node:
    """A value as truth: numbers other than 0 are true."""
    x = value if type(value) is Node else number(names, value)
    if x.type.kind == "bool":
        return x
    return not_equal(number(names, x), 0)


def tagged(names: Names, value: Node) -> Node:
    """A value as a variable of its own, so that `grad` can name it."""
    result: Node = tag(number(names, value), id=names.builder.count)
    return result
