"""Lowers statements in one pass over a script, and collects outputs, claims, rules, notes and every error.

`ScriptPass` says which function lowers which construct: those of `expressions`, `calls`, `functions`, `statements` and
`iteration/`.
"""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.graph.node import Node
from gradcli.language import syntax as s
from gradcli.language.unparse import unparse
from gradcli.lowering.assigned_names import DERIVATIVES, appended_names
from gradcli.lowering.constructs import calls, functions, statements
from gradcli.lowering.constructs.expressions import evaluate
from gradcli.lowering.lowerer import Lowerer
from gradcli.lowering.names import POISON, Poisoned
from gradcli.lowering.operands import ScriptList, number, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic, Span

# errors that a name without a value and without a declared shape may have caused
NEED_SHAPES = ("GC301", "GC302", "GC303", "GC305", "GC321")


class ScriptPass(Lowerer):
    """One pass over a script; `run` lowers it."""

    # --- statements ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Lower every statement; raises GradcliError with all the errors of the script."""
        functions.define(self, self.script.statements)
        for statement in self.script.statements:  # an error skips its statement only
            self._guarded(self.statement, statement, True)
        if not self.errors:
            self._guarded(self._output)
        if self.errors:
            raise GradcliError(*self.errors).with_source(self.source)

    def block(self, statements: tuple[s.Statement, ...]) -> Any:
        for statement in statements:
            result = self.statement(statement)
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
                    diagnostic = diagnostic._replace(span=self.builder.span)
                self.errors.append(self._proposing_shape(diagnostic))
            if any(d.code.startswith("GC5") for d in problem.diagnostics):
                raise GradcliError(*self.errors).with_source(self.source) from None

    def _proposing_shape(self, diagnostic: Diagnostic) -> Diagnostic:
        """An error; if it may come from a free name, which counts as a scalar, with how to declare its shape."""
        span = diagnostic.span
        if span is None or diagnostic.code not in NEED_SHAPES:
            return diagnostic
        for name, place in self.uses.items():
            leaf = self.leaves.get(name)
            free = leaf is not None and not leaf.declared and name not in self.values and not leaf.node.shape
            if free and (span.line, span.column) <= (place.line, place.column) <= (span.end_line, span.end_column):
                reason = f"`{visible(name)}` is free, so it counts as a number"
                hint = f"{reason}: give it a value, or declare its shape: {visible(name)}[m, n] in real"
                return diagnostic._replace(help=hint)
        return diagnostic

    def statement(self, statement: s.Statement, top: bool = False) -> Any:
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
            statements.asserted(self, statement)
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
        if isinstance(condition, Node):
            for trace in self.traces:
                if trace.depends(condition):
                    return trace.condition(self, condition, span)
            self.refuse_data(condition, span, "use where(condition, a, b), which has a gradient on both sides")
        return self.static(condition, span)

    def iterations(self, syntax: s.Comprehension | s.Call) -> Generator[s.Expression, Any, Any]:
        from gradcli.lowering.iteration.comprehensions import computed  # most scripts have no comprehension

        return computed(self, syntax)

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
        name = syntax.function.id
        if self.is_value(name):
            raise calls.unknown_function(self, syntax)
        if name in self.functions and not syntax.method:
            return functions.inline(self, name, args, keywords, syntax)
        if name in DERIVATIVES:
            return calls.call_derivative(self, syntax, args, keywords)
        if name == "load":
            return calls.load(self, args, keywords, syntax)
        primitive = self.library.get(name)
        if name == "len" and len(args) == 1 and type(args[0]) is ScriptList and not keywords:
            return self.builder.constant(args[0].size)
        if primitive is None:
            raise calls.unknown_function(self, syntax)
        return calls.call_library(self, primitive, args, keywords, name, syntax)

    def call_function(self, name: str, args: list[Any], keywords: dict[str, Any], syntax: s.Expression) -> Any:
        return calls.call_library(self, self.library[name], args, keywords, name, syntax)
