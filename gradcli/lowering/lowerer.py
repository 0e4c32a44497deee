"""Lowers statements in one pass over a script, and collects outputs, claims, rules, notes and every error.

`Lowerer` is the state of that pass. Each construct is lowered by a function of the state and the syntax, in the module
named after the construct: `expressions`, `calls`, `functions`, `statements`.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, GradcliError, Span, error, visible
from gradcli.graph.node import Node
from gradcli.graph.primitive import signature_of
from gradcli.language import syntax as s
from gradcli.language.unparse import unparse
from gradcli.lowering import calls, functions, statements
from gradcli.lowering.calls import call_derivative
from gradcli.lowering.expressions import evaluate
from gradcli.lowering.iteration.repeated import Repeated
from gradcli.lowering.lowered import Block, Claim
from gradcli.lowering.names import POISON, Names, Poisoned
from gradcli.lowering.operands import ScriptList, number, plain
from gradcli.lowering.scan import DERIVATIVES, appended_names, assigned_names, derivative_targets
from gradcli.lowering.statements import asserted
from gradcli.lowering.statics import Settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.graph.primitive import Primitive
    from gradcli.graph.program import HandRule
    from gradcli.language.limits import Limits

    Output = tuple[Any, s.Expression | tuple[s.Name, ...], str | None]  # a value, what is echoed, what is expected


# errors that a name without a value and without a declared shape may have caused
NEED_SHAPES = ("GC301", "GC302", "GC303", "GC305", "GC321")


class Lowerer(Names):
    """The pass. `library` has the operations for scripts; `leaves_allowed` is off in a claim, which assigns no leaf.

    `targets` are the names to differentiate with respect to, `assigned` the places where each name is assigned,
    `appended` the names of lists, all of the function that is being inlined, else of the script. `ruled` are the
    operations with hand-written rules, `scanned` the scanned bodies of functions, `repeated` the values of their calls.
    `claiming` and `loops` are as in `lower`.
    """

    def __init__(
        self,
        script: s.Script,
        vocabulary: Mapping[str, Primitive],
        library: Mapping[str, Primitive],
        limits: Limits,
        at: Mapping[str, Any],
        plane: bool = False,
    ) -> None:
        super().__init__(vocabulary, limits, at, plane)
        self.script = script
        self.source = script.source
        self.library = library
        self.postfix: dict[s.Expression, list[s.Syntax]] = {}
        self.numbers: dict[tuple[int, int], Node] = {}
        self.looping = 0
        self._counts = Settled()
        self.assigned = assigned_names(script.statements)
        self.appended = appended_names(script.statements)
        self.targets = derivative_targets(script, script.source.text)
        self.functions: dict[str, s.FunctionDef] = {}
        self.hand_written: dict[str, s.FunctionDef] = {}
        self.ruled: dict[str, Primitive] = {}
        self.inside: list[str] = []
        self.idle = 0
        self.leaves_allowed = True
        self.claiming = "kept"
        self.repeated = Repeated()
        self.apart: set[s.Comprehension] = set()  # whose iterations are written out one by one
        self.scanned: dict[s.FunctionDef, tuple[set[str], dict[str, list[Span]], dict[str, int]]] = {}
        self.reassigned: dict[str, Span] = {}
        self.assigning: str | None = None  # the name that takes the value of the statement
        self.last_names: Output | None = None
        self.last_expression: Output | None = None
        self.errors: list[Diagnostic] = []
        self.rules: list[HandRule] = []
        self.claims: list[Claim] = []
        self.derived: dict[Node, tuple[Any, ...]] = {}  # what a derivative operator made: its name and operands
        self.outputs: list[Node] = []
        self.blocks: list[Block] = []  # calls, loops and turns that made nodes
        self.several = False
        self.repetitions = 0  # turns of loops that were written out
        self.work = 0  # steps of loops that became nodes
        self.loops = "auto"
        self.read_behind: dict[s.For, tuple[frozenset[str], frozenset[str]]] = {}
        self.text = ""
        self.expect: str | None = None

    def names(self) -> dict[str, Any]:
        """The names that a statement assigns to: of the function that is being inlined, else of the script."""
        return self.scope if self.local is None else self.local

    def close_block(self, before: int, label: str, span: Span | None) -> None:
        """Record the block of the nodes made since the builder had this count, if there are any."""
        if self.builder.count > before:
            self.blocks.append(Block(before + 1, self.builder.count, label, span))

    # --- statements ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Lower every statement; raises GradcliError with all the errors of the script."""
        functions.define(self, self.script.statements)
        self.block(self.script.statements, top=True)
        if not self.errors:
            self._guarded(self._output)
        if self.errors:
            raise GradcliError(*self.errors).with_source(self.source)

    def block(self, statements: tuple[s.Statement, ...], top: bool = False) -> Any:
        """Run statements up to a `return`, and return its value. At the top, an error skips its statement only."""
        if top:
            for statement in statements:
                self._guarded(self.statement, statement, True)
            return None
        for statement in statements:
            result = self.statement(statement, False)
            if result is not None:
                return result
        return None

    def _guarded(self, step: Any, *args: Any) -> None:
        try:
            step(*args)
        except Poisoned:
            return
        except GradcliError as problem:
            for diagnostic in problem.diagnostics:
                if diagnostic.span is None and diagnostic.source is None:
                    diagnostic.span = self.builder.span
                self._propose_shape(diagnostic)
                self.errors.append(diagnostic)
            if any(d.code.startswith("GC5") for d in problem.diagnostics):
                raise GradcliError(*self.errors).with_source(self.source) from None

    def _propose_shape(self, diagnostic: Diagnostic) -> None:
        """For an error that may come from a free name, which counts as a scalar, say how to declare its shape."""
        span = diagnostic.span
        if span is None or diagnostic.code not in NEED_SHAPES:
            return
        for name, place in self.uses.items():
            leaf = self.leaves.get(name)
            free = leaf is not None and not leaf.declared and name not in self.values and not leaf.node.shape
            if free and (span.line, span.column) <= (place.line, place.column) <= (span.end_line, span.end_column):
                reason = f"`{visible(name)}` is free, so it counts as a number"
                diagnostic.help = f"{reason}: give it a value, or declare its shape: {visible(name)}[m, n] in real"
                return

    def statement(self, statement: s.Statement, top: bool) -> Any:
        """One statement; the value of a `return`, else None."""
        self.builder.span = statement.span
        self.assigning = None
        if isinstance(statement, s.Assign):
            self.assigning = statement.targets[0].id if len(statement.targets) == 1 else None
            self._protect(statement.targets, statements.assign, statement, top)
        elif isinstance(statement, s.Append):
            self._protect((statement.name,), statements.append, statement)
        elif isinstance(statement, s.ExpressionStatement):
            value = plain(self, evaluate(self, statement.value))
            if self.local is None:
                self.last_expression = (value, statement.value, statement.expect)
        elif isinstance(statement, s.Declare):
            self._protect((statement.name,), statements.declare, statement)
        elif isinstance(statement, s.For):
            outer, self.growing = self.growing, self.growing | self._grown(statement)
            try:
                from gradcli.lowering.iteration import loops  # most scripts have none: start-up time is a feature

                return loops.run(self, statement)
            finally:
                self.growing = outer
        elif isinstance(statement, s.If):
            return self._branch(statement)
        elif isinstance(statement, s.Assert):
            asserted(self, statement)
        elif isinstance(statement, s.Return):
            return (evaluate(self, statement.value),)
        return None

    def _protect(self, targets: tuple[s.Name, ...], step: Any, *args: Any) -> None:
        """Run an assignment; if it fails, mark its names, so that reading them causes no further errors."""
        try:
            step(self, *args)
        except (GradcliError, Poisoned):
            for target in targets:
                self.names()[target.id] = POISON
            raise

    # --- loops and branches ---------------------------------------------------------------------------

    def _grown(self, statement: s.For) -> frozenset[tuple[int, str]]:
        """The lists that a loop appends to, if the script differentiates with respect to a list."""
        if self.appended.keys().isdisjoint(self.targets):
            return frozenset()
        return frozenset([(len(self.inside), name) for name in appended_names(statement.body)])

    def _branch(self, statement: s.If) -> Any:
        taken = self.condition(plain(self, evaluate(self, statement.test)), statement.test.span)
        return self.block(statement.body if taken else statement.orelse)

    def condition(self, condition: Any, span: Span) -> Any:
        """Whether a condition holds; a trace of turns ends if this changes from turn to turn."""
        if isinstance(condition, Node):
            for trace in self.traces:
                if trace.depends(condition):
                    return trace.condition(self, condition, span)
            self.refuse_data(condition, span, "use where(condition, a, b), which has a gradient on both sides")
        return self.static(condition, span)

    def refuse_data(self, condition: Node, span: Span, instead: str) -> None:
        """Raise GradcliError GC308 if a condition reads data; it may read sizes and whole-numbered scalars."""
        leaf = self._counts.other(condition, self._is_count)
        if leaf is not None:
            raise error(
                "GC308",
                f"`if` reads `{visible(leaf.params['name'])}`, which is data: the program would depend on a value",
                span,
                help=instead,
            )

    def _is_count(self, leaf: Node) -> bool:
        """Whether a leaf is a single number that is const or whole."""
        value = self.values.get(leaf.params["name"])
        whole = isinstance(value, (int, float)) and value == int(value) if _finite(value) else False
        return not leaf.type.shape and leaf.params["name"] in self.leaves and (self.is_const(leaf) or whole)

    # --- outputs -------------------------------------------------------------------------------

    def _output(self) -> None:
        output = self.last_expression or self.last_names
        if output is None:
            raise error("GC101", "the script has no output", None, help="end it with an expression, or assign a name")
        value, echoed, self.expect = output
        self.text = ", ".join(name.id for name in echoed) if isinstance(echoed, tuple) else unparse(echoed)
        self.several = isinstance(value, tuple)
        self.outputs = [number(self, item) for item in (value if isinstance(value, tuple) else (value,))]
        if not self.outputs and isinstance(echoed, s.Syntax):
            raise error("GC101", "the output has no value", echoed.span, help="write an expression, such as x**2 + 1")
        self.exponent_notes(self.outputs)

    # --- calls from expressions ----------------------------------------------------------------------------

    def call(self, syntax: s.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call: of the script, of a derivative operator, of a file, or of the language."""
        name = syntax.function.id
        if self.is_value(name):
            raise calls.unknown_function(self, syntax)
        if name in self.functions and not syntax.method:
            return functions.inline(self, name, args, keywords, syntax)
        if name in DERIVATIVES:
            return call_derivative(self, syntax, args, keywords)
        if name == "load":
            return calls.load(self, args, keywords, syntax)
        primitive = self.library.get(name)
        if name == "len" and len(args) == 1 and type(args[0]) is ScriptList and not keywords:
            return self.builder.constant(args[0].size)
        if primitive is None:
            raise calls.unknown_function(self, syntax)
        return calls.call_library(self, primitive, args, keywords, name, syntax)

    def is_value(self, name: str) -> bool:
        """Whether a name stands for a value."""
        return (self.local is not None and name in self.local) or name in self.scope

    def takes_several(self, name: str) -> bool:
        """Whether a function of the language takes several arrays in brackets, as concatenate and stack do."""
        primitive = None if name in self.functions else self.library.get(name)
        return primitive is not None and calls.SEVERAL in signature_of(primitive).names

    def call_function(self, name: str, args: list[Any], keywords: dict[str, Any], syntax: s.Expression) -> Any:
        """Call the function of the language for an operator."""
        return calls.call_library(self, self.library[name], args, keywords, name, syntax)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
