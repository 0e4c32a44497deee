"""Functions of a script: inlined where they are called, with names of their own; hand-written rules beside them.

A function with a rule `def f.vjp` becomes an operation: its value is the inlined body, its cotangents are what the
rule says. Nothing else in the engine knows that the rule was written by hand.
"""

from __future__ import annotations

from gradcli.diagnostics import error, visible
from gradcli.graph.node import DATA, Node
from gradcli.graph.primitive import Primitive
from gradcli.graph.program import Leaf
from gradcli.graph.types import Type
from gradcli.language import syntax as s
from gradcli.lowering.expressions import number
from gradcli.lowering.lowered import HandRule
from gradcli.lowering.names import Names, Poisoned
from gradcli.lowering.scan import DERIVATIVES, assignments, derivative_targets
from gradcli.lowering.statics import read_leaves
from gradcli.primitives.broadcasting import stretch
from gradcli.transforms.reverse import pull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.diagnostics import Span
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

MOST_CALLS = 64  # functions inside functions; each takes a few Python frames
MOST_IDLE = 50_000  # calls that make no new node: doubling calls would go on for ever without reaching a limit


class Functions(Names):
    """Names, plus the functions of the script, and what reaches beyond it: files and index arrays."""

    source: Source
    library: Mapping[str, Primitive]
    targets: set[str]

    def __init__(self, vocabulary: Mapping[str, Primitive], limits: Limits, at: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, limits, at)
        self.functions: dict[str, s.FunctionDef] = {}
        self.hand_written: dict[str, s.FunctionDef] = {}
        self.rules: list[HandRule] = []
        self._primitives: dict[str, Primitive] = {}
        self._inside: list[str] = []
        self._idle = 0

    # --- definitions --------------------------------------------------------------------------------------

    def define(self, statements: Sequence[s.Statement]) -> None:
        """Take note of every function and rule; raises GradcliError where a rule has no function."""
        for statement in statements:
            if not isinstance(statement, s.FunctionDef):
                continue
            name = statement.name.id
            table = self.functions if statement.rule is None else self.hand_written
            if name in table:
                raise error(
                    "GC208",
                    f"`{visible(name)}` is defined twice",
                    statement.name.span,
                    labels=((table[name].name.span, "defined here"),),
                    help="choose another name for one of them",
                    source=self.source,
                )
            if name in DERIVATIVES:
                raise error(
                    "GC208",
                    f"`{name}` is a derivative operator and keeps its meaning",
                    statement.name.span,
                    source=self.source,
                )
            table[name] = statement
        for name, rule in self.hand_written.items():
            function = self.functions.get(name)
            if function is None:
                raise error(
                    "GC212",
                    f"there is a rule for `{visible(name)}`, but no function of this name",
                    rule.name.span,
                    help=f"define it: def {visible(name)}(...): return ...",
                    source=self.source,
                )
            if len(rule.params) != len(function.params) + 1:
                raise error(
                    "GC212",
                    f"{visible(name)}.vjp takes {len(function.params)} operands and the cotangent, "
                    f"so {len(function.params) + 1} parameters, not {len(rule.params)}",
                    rule.name.span,
                    labels=((function.name.span, "the function"),),
                    help=f"write def {visible(name)}.vjp({', '.join([p.id for p in function.params] + ['ct'])}): ...",
                    source=self.source,
                )

    # --- calls ------------------------------------------------------------------------------------------

    def inline(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], syntax: s.Call) -> Any:
        """The value of a call of a function of the script."""
        function = self.functions[name]
        bound = self._bound(function, args, keywords, syntax)
        if name not in self.hand_written:
            return self.body(function, bound, syntax.span)
        operands = [number(self, value) for value in bound]
        if not operands:
            raise error("GC212", f"{name} has a rule, so it needs an operand", syntax.span)
        value = self.body(function, operands, syntax.span)
        if not isinstance(value, Node):
            raise error("GC212", f"{name} has a rule, so it must return one value", syntax.span)
        if name not in self._primitives:
            self._primitives[name] = self._ruled(name, len(operands))
            self._record_rule(name, operands)
        return self.builder.apply(self._primitives[name], (number(self, value), *operands), {})

    def _bound(
        self, function: s.FunctionDef, args: Sequence[Any], keywords: Mapping[str, Any], syntax: s.Call
    ) -> list[Any]:
        names = [param.id for param in function.params]
        given = dict(zip(names, args, strict=False))
        for name, value in keywords.items():
            if name not in names or name in given:
                problem = "is given twice" if name in given else "is no parameter of it"
                raise error("GC205", f"{function.name.id}: `{visible(name)}` {problem}", syntax.span)
            given[name] = value
        if len(args) > len(names) or len(given) != len(names):
            count = len(args) + len(keywords)
            raise error(
                "GC205",
                f"{visible(function.name.id)} takes {len(names)} argument{'s' * (len(names) != 1)}, not {count}",
                syntax.span,
                labels=((function.name.span, "defined here"),),
                help=f"its form is {visible(function.name.id)}({', '.join(names)})",
            )
        return [given[name] for name in names]

    def body(self, function: s.FunctionDef, values: Sequence[Any], span: Span | None) -> Any:
        """The value that a function's body returns for these operands, in a scope of its own."""
        name = function.name.id
        if name in self._inside:
            raise error(
                "GC204", f"`{visible(name)}` calls itself", span, help="functions are inlined; write a loop instead"
            )
        if len(self._inside) >= MOST_CALLS:
            message = f"`{visible(name)}` is called inside {MOST_CALLS} other calls"
            raise error("GC509", message, span, help="functions are inlined; write a loop instead")
        if self._idle > MOST_IDLE:
            message = f"`{visible(name)}` is one of over {MOST_IDLE:,} calls that compute what was computed before"
            raise error("GC509", message, span, help="call it once and give the result a name")
        wanted = derivative_targets(function)
        local: dict[str, Any] = {}
        for param, value in zip(function.params, values, strict=True):
            local[param.id] = self.tagged(value) if param.id in wanted and isinstance(value, Node) else value
        outer, outer_targets, outer_assigned = self.local, self.targets, self.assigned
        self.local, self.targets, self.assigned = local, wanted, assignments(function.body)
        self._inside.append(name)
        before = self.builder.count
        try:
            result = self.block(function.body)
        finally:
            self._inside.pop()
            self.local, self.targets, self.assigned = outer, outer_targets, outer_assigned
        self._idle += self.builder.count == before
        if result is None:
            raise error(
                "GC213",
                f"`{visible(name)}` comes to its end without a return",
                span,
                labels=((function.name.span, "defined here"),),
                help="end it with return ..., or add an else",
            )
        return result[0]

    assigned: dict[str, list[Span]]

    def block(self, statements: tuple[s.Statement, ...], top: bool = False) -> Any:
        """Run statements; see `Lowerer`."""
        raise Poisoned

    def tagged(self, value: Node) -> Node:
        """A value as a variable of its own; see `Lowerer`."""
        raise Poisoned

    # --- hand-written rules --------------------------------------------------------------------------------

    def _ruled(self, name: str, count: int) -> Primitive:
        """The operation of a function with a rule: arguments are its value, then its operands."""

        def transpose_in(position: int) -> Any:
            return lambda ct, value, *xs: self.cotangents(name, xs, ct)[position]

        def pushforward_in(position: int) -> Any:
            def push(t: Node, value: Node, *xs: Node, out: Node) -> Node:
                ct = self.builder.fresh_leaf(value.type)
                back = self.cotangents(name, xs, ct)[position]
                moved = pull(self.builder, [(back, t)], [ct])[0]
                return self.builder.constant(0, value.type.shape) if moved is None else moved

            return push

        return Primitive(
            name,
            "structured",
            f"The function {name} of the script, with its hand-written rule.",
            impl=lambda xp, value, *xs, ranks: value,
            entries=lambda f, value, *xs: value,
            transpose={i + 1: transpose_in(i) for i in range(count)},
            pushforward=[None, *(pushforward_in(i) for i in range(count))],
            type_rule=lambda value, *xs: value,
            arity=count + 1,
            internal=True,
            node=f"{name}Backward",
        )

    def cotangents(self, name: str, xs: Sequence[Node], ct: Node) -> tuple[Node, ...]:
        """What the rule of a function returns for operands and a cotangent, one node per operand, in its shape."""
        rule = self.hand_written[name]
        result = self.body(rule, [*xs, ct], rule.name.span)
        values = result if isinstance(result, tuple) else (result,)
        if len(values) != len(xs):
            raise error(
                "GC212",
                f"{visible(name)}.vjp returns {len(values)} value{'s' * (len(values) != 1)} for {len(xs)} operands",
                rule.name.span,
                help="return one cotangent for each operand: return (..., ...)",
            )
        fitted = []
        for value, x, param in zip(values, xs, rule.params, strict=False):
            node = number(self, value)
            if node.type.shape not in ((), x.type.shape):
                raise error(
                    "GC212",
                    f"{visible(name)}.vjp returns {node.type} for `{param.id}`, which is {x.type}",
                    rule.name.span,
                )
            fitted.append(stretch(node, x.type.shape))
        return tuple(fitted)

    def _record_rule(self, name: str, operands: Sequence[Node]) -> None:
        """Keep the rule for judging, on inputs of its own."""
        function, rule = self.functions[name], self.hand_written[name]
        leaves = []
        for param, operand in zip(function.params, operands, strict=True):
            node = self.builder.leaf(f"{name}.{param.id}", operand.type.shape)
            leaves.append(Leaf(param.id, node, span=param.span))
        nodes = [leaf.node for leaf in leaves]
        output = number(self, self.body(function, nodes, rule.name.span))
        for outer in read_leaves(output):
            if outer not in nodes and not self.is_const(outer):
                raise error(
                    "GC212",
                    f"`{visible(name)}` has a rule, but reads `{outer.params['name']}`, which is no operand of it",
                    function.name.span,
                    labels=tuple((self.uses[n], "read here") for n in [outer.params["name"]] if n in self.uses),
                    help="a rule covers operands only: make it a parameter, or const",
                )
        ct = self.builder.leaf(f"{name}.{rule.params[-1].id}", output.type.shape)
        results = self.cotangents(name, nodes, ct)
        self.rules.append(HandRule(name, rule.span, tuple(leaves), output, ct, results, tuple(operands)))

    # --- files and index arrays ----------------------------------------------------------------------------

    def load(self, args: Sequence[Any], keywords: Mapping[str, Any], syntax: s.Call) -> Node:
        """The data of a file, as constants."""
        from gradcli.execution.data import load, placed
        from gradcli.graph.arrays import digest_of

        if len(args) != 1 or not isinstance(args[0], str):
            raise error("GC205", "load takes the path of a file", syntax.span, help='write load("points.csv")')
        options: dict[str, Any] = {}
        for key, value in keywords.items():
            if key not in ("column", "columns"):
                raise error("GC205", f"load has no parameter `{visible(key)}`", syntax.span)
            options[key] = value if isinstance(value, slice) else self.static(value, syntax.span)
        base = self.source.path or "."  # a one-liner stays under the folder where it runs
        array, notes = load(args[0], base=base, limits=self.limits, span=syntax.args[0].span, **options)
        self.notes.extend(placed(note, syntax.args[0].span) for note in notes)
        return self.builder.array(digest_of(array), array, Type("float", tuple(array.shape)))

    def index(self, x: Node, items: list[Any], span: Span | None) -> Node:
        """x[items], by NumPy's rules."""
        from gradcli.primitives.shaping import index

        self.builder.span = span
        result: Node = index(x, tuple(items))
        return result

    def index_array(self, item: Node, span: Span | None) -> Node:
        """An array of data as positions; it is read when the program runs, and never differentiated."""
        if item.type.kind != "float":
            return item
        if item.primitive is not DATA:
            for leaf in [item]:
                known = self.leaves.get(leaf.params.get("name", ""))
                if known is not None:
                    known.const = True
        return self.builder.call("cast", item, kind="int")
