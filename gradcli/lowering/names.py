"""Resolves the names of a script: leaves, intermediates, constants, and static (exact) values.

A free name becomes a leaf. No leaf may be both read statically and differentiated.
"""

from __future__ import annotations

from math import isfinite

from gradcli.base.diagnostics import Diagnostic, error, visible
from gradcli.base.records import NamedTuple
from gradcli.graph.arrays import ArrayData, digest_of, nearest_float
from gradcli.graph.building import PlaneBuilder
from gradcli.graph.exact import is_fraction
from gradcli.graph.node import CONSTANT, DATA, LEAF, Builder, Node, is_reader, reachable
from gradcli.graph.program import Leaf
from gradcli.graph.types import Type
from gradcli.lowering.assigned_names import CONSTANTS
from gradcli.lowering.shapes.open_shapes import OpenShapes
from gradcli.lowering.statics import Settled, Untraceable, exact_value, read_leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from gradcli.base.diagnostics import GradcliError, Span
    from gradcli.graph.domain import Interval
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Subscript

    class OuterIteration(Protocol):
        """One iteration of a loop while it is traced (`iteration/iterations.py`), as expressions use it."""

        index: Node
        count: int
        rows: dict[Any, Any]
        exponents: list[list[Node]]
        times: int
        work: int

        def depends(self, node: Node) -> bool: ...
        def leaves(self, roots: Iterable[Node]) -> set[Node]: ...
        def condition(self, lowerer: Any, node: Node, span: Span) -> bool: ...
        def raised_to(self, lowerer: Any, exponent: Node) -> None: ...
        def differentiate(self, lowerer: Any, output: Node, target: Node) -> None: ...
        def entry(self, lowerer: Any, x: Node, items: list[Any], syntax: Subscript) -> Node: ...
        def part(self, lowerer: Any, x: Node, items: list[Any], span: Span | None) -> Node: ...

    Values = Mapping[str, Any]


class Poisoned(Exception):
    """Raised when a name is read whose statement had an error, which is reported: this statement is skipped."""


POISON = object()
IMAGINARY = frozenset("ij")  # names of the imaginary unit, at complex points and in claims about them


class LoweringMode(NamedTuple):
    """How a script is lowered.

    `claiming` is "kept", "read" for the errors of claims only (a claim may be too large where the rest is not), or
    "skipped". `loops` says which loops become nodes: "auto" those that would make very many nodes if their iterations
    were written out, "node" all from 32 iterations on, "unroll" none. `random_arrays` is the number of random arrays
    without a seed before those of the script. `plane` makes it a program on complex numbers.
    """

    claiming: str = "kept"
    loops: str = "auto"
    random_arrays: int = 0
    plane: bool = False


USUAL, NO_CLAIMS = LoweringMode(), LoweringMode("skipped")


class Names:
    """The state of names; `scope` has the values assigned so far, `local` the names of a function."""

    def __init__(self, vocabulary: Mapping[str, Primitive], limits: Limits, at: Values, mode: LoweringMode) -> None:
        self.open_shapes = OpenShapes()
        self.builder = (PlaneBuilder if mode.plane else Builder)(vocabulary, limits.nodes, limits.elements)
        self.mode = mode
        self.vocabulary = vocabulary
        self.limits = limits
        self.at = at
        self.scope: dict[str, Any] = {}
        self.local: dict[str, Any] | None = None
        self.leaves: dict[str, Leaf] = {}
        self.values: dict[str, Any] = {}
        self.uses: dict[str, Span] = {}
        self.symmetric: dict[Node, Node] = {}  # what a script reads of a symmetric leaf -> the leaf
        self.notes: list[Diagnostic] = []
        self.statics: dict[str, Any] = {}
        self.growing: frozenset[tuple[int, str]] = frozenset()  # the lists that the loops around here append to
        self.sizes: dict[str, int] = {}  # the names that stand as sizes in declarations
        self._static_spans: dict[str, Span | None] = {}
        self._gradient_spans: dict[str, Span | None] = {}
        self._exponents: set[str] = set()
        self._fixed = Settled()
        self._exact: dict[Node, Any] = {}
        self._floats: dict[Node, Any] = {}
        self.random_arrays = mode.random_arrays  # those without a seed so far
        self.fixed_leaves = 0
        self.has_loops = False  # whether a loop of the script has become a node
        self.traces: list[OuterIteration] = []  # iterations of loops that are being traced, the innermost last
        self.reads_positions = False  # whether a function was called that may take positions

    # --- meaning of a name --------------------------------------------------------------------------

    def is_known(self, name: str) -> bool:
        """Whether this name has a value so far."""
        return name in self.scope or (self.local is not None and name in self.local) or name in self.at

    def lookup(self, name: str, span: Span) -> Any:
        """The value of a name; a name that is free becomes a leaf."""
        if self.local is not None and name in self.local:
            value = self.local[name]
        elif name in self.scope:
            value = self.scope[name]
        elif name in CONSTANTS and name not in self.at:
            return self.builder.constant(name)
        elif name in ("True", "False"):
            return self.builder.constant(int(name == "True"))
        else:
            value = self.free_leaf(name, span)
        if type(value) is Node:
            if value.primitive is LEAF or value in self.symmetric:
                self.uses.setdefault(name, span)
        elif value is POISON:
            raise Poisoned
        elif type(value) is int:  # the variable of a loop becomes a node where it is read
            names = self.scope if self.local is None else self.local
            value = names[name] = self.builder.constant(value)
        return value

    def free_leaf(self, name: str, span: Span | None) -> Node:
        """A size, or a leaf for a name that the script does not define: its shape is given or assumed."""
        if name in self.open_shapes.counts and name not in self.at:
            return self.size_symbol(name, self.open_shapes.size(name, len(self.sizes)))
        shape = shape_of(self.at[name], name) if name in self.at else self.open_shapes.shape(name)
        return self.add_leaf(name, shape, None, span)

    def size_symbol(self, name: str, size: int) -> Node:
        """A name that is a size, with its value."""
        node: Node = self.open_shapes.node(self.builder, self.leaves, name, size)
        self.scope[name], self.sizes[name] = node, size
        return node

    def symbol_size(self, node: Node) -> int | None:
        """The size for a node that is a symbol for one, and not a constant."""
        size = self.open_shapes.size_of(node)
        return self.sizes.get(node.params["name"]) if size is None and node.primitive is LEAF else size

    def add_leaf(
        self,
        name: str,
        shape: Shape,
        default: Any,
        span: Span | None,
        *,
        domain: Interval | None = None,
        const: bool = False,
        declared: bool = False,
        **traits: bool,
    ) -> Node:
        """A new leaf; a value of the point overrides the default and determines the shape."""
        value = self.at.get(name, default)
        if value is not None:
            own = shape_of(value, name)
            if declared and own == () and shape:
                value = filled(value, shape)
            elif declared and own != shape:
                raise error(
                    "GC313",
                    f"`{visible(name)}` is declared as {Type('float', shape)}, but its value is {Type('float', own)}",
                    span,
                )
            else:
                shape = own
            self.values[name] = value
        node = self.builder.leaf(name, shape, **traits)
        self.leaves[name] = Leaf(name, node, default, domain, const, span, declared)
        self.scope[name] = node
        return node

    # --- iterations of loops that are traced ---------------------------------------------------------------

    def untraceable(self) -> None:
        """End the trace of an iteration, if there is one: the current step is not the same in every iteration."""
        if self.traces:
            raise Untraceable

    def traced(self, node: Node) -> bool:
        """Whether a node depends on an iteration that is being traced."""
        return any(trace.depends(node) for trace in self.traces)

    # --- static values ------------------------------------------------------------------------------

    def is_const(self, leaf: Node) -> bool:
        """Whether a leaf is never differentiated."""
        known = self.leaves.get(leaf.params["name"])
        return known is not None and known.const

    def moving_leaf(self, node: Node) -> Node | None:
        """A leaf that a value depends on and that is not const, if there is one."""
        return self._fixed.other(node, self.is_const)

    def static(self, value: Any, span: Span | None) -> Any:
        """The exact value of a node, of several, or of a text; every leaf that it reads becomes const."""
        if type(value) is not Node:
            return tuple(self.static(item, span) for item in value) if isinstance(value, tuple) else value
        if value.primitive is CONSTANT and type(exact := value.params["value"]) is int and not value.type.shape:
            return exact
        if self.traced(value):
            raise Untraceable
        value = self._written_out(value)
        return exact_value(value, lambda leaf: self._read(leaf, span), self.evaluate_now, span, self._exact)

    def _written_out(self, node: Node) -> Node:
        """A value with the loops that it reads written out, so that exact iterations stay exact."""
        if not self.has_loops or not any(is_reader(step) for step in reachable([node], self._exact)):
            return node
        from gradcli.transforms.unroll import unrolled

        return unrolled(self.builder, [node])[node]

    def _read(self, leaf: Node, span: Span | None) -> Any:
        name = leaf.params["name"]
        known = self.leaves.get(name)
        if known is None or name not in self.values:
            raise without_value(name, span)
        if name in self._gradient_spans:
            self._conflict(name, span, self._gradient_spans[name])
        if not known.const:
            self.fix(known)
            self.notes.append(
                Diagnostic(
                    "GC311",
                    f"`{visible(name)}` is read as a size, index, bound, condition or parameter, "
                    "so it is a constant here",
                    span,
                    severity="note",
                )
            )
        self._static_spans.setdefault(name, span)
        self.statics[name] = self.values[name]
        return self.values[name]

    def fix(self, leaf: Leaf) -> None:
        """Make a leaf a constant."""
        leaf.const = True
        self.fixed_leaves += 1

    def differentiated(self, target: Node, span: Span | None) -> None:
        """Record that the script differentiates with respect to this node; raises GradcliError for a constant."""
        if target.primitive is not LEAF:
            return
        name = target.params["name"]
        if name in self._static_spans:
            self._conflict(name, self._static_spans[name], span)
        known = self.leaves.get(name)
        if known is not None and known.const:
            labels = () if known.span is None else ((known.span, "declared here"),)
            message = f"`{visible(name)}` is const: it is never differentiated"
            raise error(
                "GC207",
                message,
                span,
                labels=labels,
                help="leave out const, or differentiate with respect to another name",
            )
        self._gradient_spans[name] = span

    def _conflict(self, name: str, static: Span | None, gradient: Span | None) -> None:
        labels = () if static is None else ((static, "read as a size, index, bound, condition or parameter"),)
        raise error(
            "GC311",
            f"`{visible(name)}` is differentiated here, but its value shapes the program",
            gradient,
            labels=labels,
            help="use two names: one that is const, one that is differentiated",
        )

    def note_exponent(self, y: Node) -> None:
        """Record leaves that are exponents; a note is made for those that are used for nothing else."""
        if y.primitive is LEAF:
            self._exponents.add(y.params["name"])

    def exponent_notes(self, outputs: list[Node]) -> None:
        """Notes on the leaves that are only exponents: the author may have meant constants."""
        if not self._exponents:
            return
        readers: dict[str, set[str]] = {}
        from_outputs = _readers(outputs)
        for name in self._exponents:
            readers[name] = from_outputs.get(name, set())
            value = self.values.get(name)
            if readers[name] <= {"pow-exponent"} and isinstance(value, float) and value.is_integer():
                self.notes.append(
                    Diagnostic(
                        "GC210",
                        f"`{visible(name)}` is only an exponent, and the gradient is taken with respect to it",
                        self.leaves[name].span or self.uses.get(name),
                        help=f"if it is a fixed whole number, write const {visible(name)} = {value:g}",
                        severity="note",
                    )
                )

    # --- constants and data ------------------------------------------------------------------------------

    def constant_array(self, shape: Shape, flat: tuple[Any, ...]) -> Node:
        """The node of an array of exact constants."""
        data = ArrayData(shape, flat)
        return self.builder.array(digest_of(data), data, Type("float", shape))

    def exact_entries(self, node: Node) -> tuple[Any, ...] | None:
        """The exact entries of a data node, or None where its values are floats from a file."""
        data = self.builder.data[node.params["digest"]]
        return data.flat if isinstance(data, ArrayData) else None

    def evaluate_now(self, node: Node) -> Any:
        """The float value of a node at the point, while the script is still being lowered."""
        from gradcli.execution.evaluate import evaluate

        if known_floats(node, self._floats, self._value_of):
            return self._floats[node]
        return evaluate([node], {leaf.params["name"]: self._value_of(leaf) for leaf in read_leaves(node)})[0]

    def _value_of(self, leaf: Node) -> Any:
        """The value of a leaf that a default or a bound reads; raises GradcliError GC202 where it has none."""
        name = leaf.params["name"]
        if name not in self.values:
            hint = f"give it a value, --at {visible(name)}=1, or write a number here"
            raise error(
                "GC202", f"`{visible(name)}` has no value, but a default or a bound needs it", leaf.span, help=hint
            )
        return self.values[name]

    def next_position(self) -> int:
        """A number for each random array without a seed, so that two of them differ."""
        self.untraceable()
        self.random_arrays += 1
        return self.random_arrays


def without_value(name: str, span: Span | None) -> GradcliError:
    """The error for a free name that has to be known while a script is lowered."""
    return error(
        "GC306",
        f"`{visible(name)}` has no value, but a size, index, bound, condition or parameter needs one",
        span,
        help=f"assign it ({visible(name)} = 3) or give it with --at",
    )


def _readers(outputs: list[Node]) -> dict[str, set[str]]:
    """The operations that read each leaf; in loops, those that read its counterpart in the body."""
    readers: dict[str, set[str]] = {}
    waiting: list[tuple[Sequence[Node], dict[str, str]]] = [(reachable(outputs), {})]
    while waiting:
        nodes, names = waiting.pop()
        for node in nodes:
            inner = {}
            for position, arg in enumerate(node.args):
                if arg.primitive is not LEAF:
                    continue
                name = names.get(arg.params["name"], arg.params["name"])
                if is_reader(node):
                    inner[node.params["body"].inputs[position].params["name"]] = name
                else:
                    role = "pow-exponent" if node.primitive.name == "pow" and position == 1 else node.primitive.name
                    readers.setdefault(name, set()).add(role)
            if inner:
                waiting.append((node.params["body"].steps, inner))
    return readers


def shape_of(value: Any, name: str) -> Shape:
    """The shape of a number, a nested list or an array; raises GradcliError GC310 for rows of different lengths."""
    if isinstance(value, (int, float, complex)) or is_fraction(value):
        return ()
    shape = getattr(value, "shape", None)
    if shape is not None:
        return tuple(shape)
    lengths: list[int] = []
    level = [value]
    while level and isinstance(level[0], (list, tuple)):
        sizes = {len(row) if isinstance(row, (list, tuple)) else -1 for row in level}
        if len(sizes) != 1:
            raise error("GC310", f"the value of `{visible(name)}` has rows of different lengths")
        lengths.append(sizes.pop())
        level = [item for row in level for item in row]
    if any(isinstance(item, (list, tuple)) for item in level):
        raise error("GC310", f"the value of `{visible(name)}` has rows of different lengths")
    for item in level:
        if not isinstance(item, (int, float, complex)):
            raise error("GC333", f"the value of `{visible(name)}` holds something that is not a number")
    return tuple(lengths)


def filled(value: Any, shape: Shape) -> Any:
    """A number repeated over a shape, as nested lists."""
    result = value
    for size in reversed(shape):
        result = [result] * size
    return result


def known_floats(node: Node, known: dict[Node, Any], leaf_value: Callable[[Node], Any]) -> bool:
    """Add the values of a node and of what it needs to those that are known, as `evaluate` gives them for scalars.

    False where the node needs more than finite Python floats. Called for each step of a growing chain, this
    computes each step once.
    """
    from gradcli.execution.evaluate import scans_of
    from gradcli.execution.inputs import impl_params, plain_number
    from gradcli.execution.namespaces import IEEE_DIFFERS, Unavailable, namespace

    xp = namespace("math")
    for step in reachable([node], known):
        primitive = step.primitive
        if step in known:
            continue
        if step.type.shape or primitive is DATA:
            return False
        if primitive is CONSTANT:
            known[step] = nearest_float(step.params["value"])
        elif primitive is LEAF:
            number = plain_number(leaf_value(step))
            if number is None or not isfinite(number):
                return False
            known[step] = number
        else:
            assert primitive.impl is not None
            scan = scans_of([step]).get(step)
            if scan is not None and not scan.scalar:
                return False
            try:
                xs = [known[arg] for arg in step.args]
                known[step] = (
                    primitive.impl(xp, *xs, **impl_params(step)) if scan is None else scan(xp, *xs, ranks=())[0]
                )
            except (*IEEE_DIFFERS, Unavailable):
                return False
    return True
