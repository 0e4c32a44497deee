"""The state of a pass over a script, and what the modules of its constructs call for others: statements, calls, values.

Each construct is lowered by a function of this state and the syntax. `script_pass.py` says which function that is.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, error, visible
from gradcli.graph.primitive import signature_of
from gradcli.lowering.assigned_names import appended_names, assigned_names, derivative_targets
from gradcli.lowering.lowered import Block, Claim
from gradcli.lowering.names import USUAL, LoweringMode, Names
from gradcli.lowering.operands import ScriptList
from gradcli.lowering.statics import Settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.node import Node
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.program import HandRule
    from gradcli.language import syntax as s
    from gradcli.language.limits import Limits

    Output = tuple[Any, s.Expression | tuple[s.Name, ...], str | None]  # a value, what is echoed, what is expected

SEVERAL = "arrays"  # the parameter of a declared function that takes several operands in brackets


class Lowerer(Names):
    """The pass. `library` has the operations for scripts; `leaves_allowed` is off in a claim, which assigns no leaf.

    `targets` are the names to differentiate with respect to, `assigned` the places where each name is assigned,
    `appended` the names of lists, all of the function that is being inlined, else of the script. `ruled` are the
    operations with hand-written rules, `scanned` the scanned bodies of functions, `function_reads` the outer names and
    functions that a function uses, None for one whose calls are never looked up.
    """

    def __init__(
        self,
        script: s.Script,
        vocabulary: Mapping[str, Primitive],
        library: Mapping[str, Primitive],
        limits: Limits,
        at: Mapping[str, Any],
        mode: LoweringMode = USUAL,
    ) -> None:
        super().__init__(vocabulary, limits, at, mode)
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
        self.known_calls: dict[Any, tuple[Any, Span | None]] = {}  # values of calls, and where their last steps stand
        self.function_reads: dict[str, tuple[frozenset[str], frozenset[str]] | None] = {}
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
        self.blocks: list[Block] = []  # calls, loops and iterations that made nodes
        self.several = False
        self.repetitions = 0  # iterations of loops that were written out
        self.work = 0  # steps of loops that became nodes
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

    def is_value(self, name: str) -> bool:
        """Whether a name stands for a value."""
        return (self.local is not None and name in self.local) or name in self.scope

    def takes_several(self, name: str) -> bool:
        """Whether a function of the language takes several arrays in brackets, as concatenate and stack do."""
        primitive = None if name in self.functions else self.library.get(name)
        return primitive is not None and SEVERAL in signature_of(primitive).names

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

    def static(self, value: Any, span: Span | None) -> Any:
        return super().static(value.as_array(self) if type(value) is ScriptList else value, span)

    # --- constructs inside others: `script_pass.py` lowers them -------------------------------------------------------

    def block(self, statements: tuple[s.Statement, ...]) -> Any:
        """Run statements up to a `return`, and return its value."""
        raise NotImplementedError

    def condition(self, condition: Any, span: Span) -> Any:
        """Whether a condition holds; a trace of iterations ends if this changes from iteration to iteration."""
        raise NotImplementedError

    def iterations(self, syntax: s.Comprehension | s.Call) -> Generator[s.Expression, Any, Any]:
        """The value of a comprehension, or of a call that reduces one; yields each expression that it needs."""
        raise NotImplementedError

    def call(self, syntax: s.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call: of the script, of a derivative operator, of a file, or of the language."""
        raise NotImplementedError

    def call_function(self, name: str, args: list[Any], keywords: dict[str, Any], syntax: s.Expression) -> Any:
        """Call the function of the language for an operator."""
        raise NotImplementedError


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
