"""The derivation of a derivative, line by line: a rule for each operation that a script wrote.

By a number x the lines are derivatives, `d(x**2)/dx = 2*x`; by an array they are differentials, `d(A @ x) = A @ dx`,
from which the gradient is read off (Magnus and Neudecker, Matrix Differential Calculus, chapter 8).

A line is shown only if it reads back with the normal form of the derivative: the rule with that of the operation's own
forward rule, the result with that of reverse mode, which takes the whole expression at once.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.calculations import DerivationStep
from gradcli.calculator.traces.folding import Folding
from gradcli.calculator.traces.local_partials import reads_back
from gradcli.formulas import formula_texts
from gradcli.graph.building import building
from gradcli.graph.node import LEAF, dependents, reachable
from gradcli.graph.node_text import formulas
from gradcli.language import trees
from gradcli.language.substitution import expression_of, replaced, substituted
from gradcli.language.syntax import Binary, Call, FunctionDef, Name, Number, Syntax, Transpose, Unary, children
from gradcli.language.unparse import unparse
from gradcli.transforms import derivatives
from gradcli.transforms.forward import push

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.graph.node import Builder, Node
    from gradcli.lowering import Lowered

LONGEST = 160  # characters of a line
LONGEST_OPERAND = 24  # characters of an operation that lines show as it is; of a longer one they show its letter
MOST_STEPS = 40  # of one derivation
COTANGENT = "cotangent_"
OPERATORS = {
    "+": "sum rule",
    "-": "sum rule",
    "*": "product rule",
    "/": "quotient rule",
    "@": "product rule",
    "**": "power rule",
}


class ScriptOperation(NamedTuple):
    """An operation as the script wrote it: the node of its result, and the nodes that it reads."""

    top: Node
    operands: tuple[Node, ...]


class StepNames:
    """The names of nodes and sizes in the lines, and the conversion of a text to one that parses."""

    def __init__(self, lowered: Lowered, order: Sequence[Node], sizes: Mapping[int, str]) -> None:
        self.lowered = lowered
        self.sizes = sizes
        self.shapes = {name: leaf.node.shape for name, leaf in lowered.program.leaves.items()}
        self.lines = lowered.source.text.splitlines()
        self.inlined = any(isinstance(statement, FunctionDef) for statement in lowered.script.statements)
        self.printed = formulas(order, None, lowered.names, longest=LONGEST)
        self.letters: dict[Node, str] = {}  # of operations that are too long to be written again

    def written(self, node: Node) -> str:
        """The text of a node in the script."""
        span = node.span
        if node.args and not self.inlined and span is not None and span.line == span.end_line:
            try:
                return unparse(expression_of(self.lines[span.line - 1][span.column - 1 : span.end_column - 1]))
            except (GradcliError, ValueError, AssertionError):
                return self.printed[node]
        return self.printed[node]

    def letter(self) -> str:
        """A letter that is not a name of the script."""
        taken = {*self.shapes, *self.lowered.names.values(), *self.letters.values()}
        return next(name for place in count(1) if (name := f"u{place}") not in taken)

    def text(self, node: Node) -> str:
        """The name or formula of a node in the lines."""
        return self.lowered.names.get(node) or self.letters.get(node) or self.written(node)


def operations(order: Sequence[Node], inputs: set[Node]) -> Iterator[ScriptOperation]:
    """The operations of a topological order as the script wrote them; `mean(x)` is one, though it has several nodes."""
    users: dict[Node, list[Node]] = {}
    for node in order:
        for arg in node.args:
            users.setdefault(arg, []).append(node)

    def inner(arg: Node, node: Node) -> bool:
        alone = all(user.span == arg.span or user.primitive.name == "named" for user in users[arg])
        return (
            bool(arg.args) and arg not in inputs and (node.primitive.name == "named" or arg.span == node.span) and alone
        )

    folding = Folding(order)
    absorbed = {arg for node in order for arg in node.args if inner(arg, node)}
    absorbed |= folding.inserted - folding.cores.keys()  # also where several operations read one
    for top in order:
        if not top.args or top in absorbed:
            continue
        within, operands = [top], []
        for node in within:  # the list grows while it is read
            for arg in node.args:
                if arg in absorbed:
                    within += [arg] if arg not in within else []
                elif arg not in operands:
                    operands.append(arg)
        yield ScriptOperation(top, tuple(operands))


def steps_by(
    lowered: Lowered, leaf: str, sizes: Mapping[int, str], for_programs: Callable[[str], str]
) -> list[DerivationStep]:
    """The lines of the derivation by one leaf; none for a script that is too long.

    `sizes` are names for sizes that are primes, and `for_programs` replaces them by expressions of the language.
    """
    (output,) = lowered.program.outputs
    target = lowered.program.leaves[leaf].node
    order = reachable([output])
    active = dependents(order, [target])
    written = [operation for operation in operations(order, {target}) if operation.top in active]
    if len(written) > MOST_STEPS:
        return []
    names = StepNames(lowered, order, sizes)
    with building(output.builder, order) as builder:
        lines = []
        for operation in written:
            if operation.top not in lowered.names and len(names.written(operation.top)) > LONGEST_OPERAND:
                names.letters[operation.top] = names.letter()
            lines += Lines(builder, operation, target, active, names, for_programs).step()
    return lines


class Lines:
    """The lines of one operation: its rule on its operands, and the result in the leaf."""

    def __init__(
        self,
        builder: Builder,
        operation: ScriptOperation,
        target: Node,
        active: set[Node],
        names: StepNames,
        for_programs: Callable[[str], str],
    ) -> None:
        self.builder = builder
        self.top, self.operands = operation
        self.target = target
        self.leaf = target.params["name"]
        self.number = not target.shape
        self.moving = [node for node in self.operands if node in active]
        self.names = names
        self.for_programs = for_programs

    def step(self) -> list[DerivationStep]:
        """The line of the operation, if it has one."""
        line = self.line()
        result, proof = self.result()
        if line is None and result is None:
            return []
        tree = expression_of(self.names.written(self.top))
        direct = all(node is self.target for node in self.moving) and line is not None
        own = "" if direct or result is None else result
        text, letter = unparse(self.with_names(tree)), self.names.text(self.top)
        return [
            DerivationStep(
                text, self.rule_name(tree), self.marked(self.top), line or "", own, proof,
                "" if letter == self.names.written(self.top) else letter,
            )
        ]  # fmt: skip

    def with_names(self, tree: Syntax) -> Syntax:
        """An operation with letters for its operands."""
        letters = {self.names.written(operand): self.names.text(operand) for operand in self.operands if operand.args}

        def change(node: Syntax) -> Syntax | None:
            text = unparse(node) if not isinstance(node, (Name, Number)) and node is not tree else None
            return None if text not in letters or letters[text] == text else expression_of(letters[text])

        return replaced(tree, change)

    def marked(self, node: Node) -> str:
        """The derivative of a node, as a symbol."""
        text = self.names.text(node)
        text = f"d{text}" if text.isidentifier() else f"d({text})"
        return f"{text}/d{self.leaf}" if self.number else text

    def line(self) -> str | None:
        """The rule on the operands and their derivatives; None where it has no formula."""
        called = {node: f"operand_{i}" for i, node in enumerate(self.operands) if node.args or node.primitive is LEAF}
        moves = {
            x: self.builder.constant(1) if x is self.target and self.number else self.builder.fresh_leaf(x.type)
            for x in self.moving
        }
        calls = {node: f"tangent_{i}" for i, node in enumerate(moves.values()) if node.primitive is LEAF}
        (local,) = push(self.builder, [self.top], moves, stops=self.operands)
        if local is None:
            return None
        marks = {calls[move]: trees.name(self.marked(node)) for node, move in moves.items() if move in calls}
        for text in self.texts(local, {**called, **calls}, "tangent_"):
            if self.reads_back(text, local, {**called, **calls}):
                text = substituted(text, {name: self.names.text(node) for node, name in called.items()})
                return unparse(replaced(expression_of(text), lambda part: marks.get(getattr(part, "id", ""))))
        return None

    def result(self) -> tuple[str | None, str]:
        """The derivative in the leaf, and which derivation of the whole operation has the same normal form."""
        builder = self.builder
        step = builder.fresh_leaf(self.target.type)
        (whole,) = push(builder, [self.top], {self.target: builder.constant(1) if self.number else step})
        assert whole is not None
        own = {} if self.number else {step: f"d{self.leaf}"}
        weight = builder.fresh_leaf(self.top.type)
        (pulled,) = derivatives.vjp([self.top], [weight], [self.target])
        moved = builder.call("mul", pulled, step) if own else pulled
        backward = builder.call("sum", moved, axis=tuple(range(-len(moved.shape), 0))) if moved.shape else moved
        for text in self.texts(whole, own, f"d{self.leaf}"):
            product = f"sum(({text})*{COTANGENT})" if self.top.shape else f"({text})*{COTANGENT}"
            if self.reads_back(product, backward, {**own, weight: COTANGENT}):
                return text, "reverse mode"
            if self.reads_back(text, whole, own):
                return text, "forward mode"
        return None, "forward mode"

    def texts(self, node: Node, called: Mapping[Node, str], moving: str) -> Iterator[str]:
        """Formulas of a node, with what moves behind the other factors."""
        for text in formula_texts(node, called, self.names.sizes):
            if len(text) <= LONGEST:
                yield unparse(moving_last(expression_of(text), moving))

    def reads_back(self, text: str, node: Node, called: Mapping[Node, str]) -> bool:
        """Whether a text has the normal form of a node."""
        return reads_back(self.for_programs(text), node, called, self.names.shapes)

    def rule_name(self, tree: Syntax) -> str:
        """The textbook name of the rule of an operation, with the function if it is one."""
        inner = any(node is not self.target for node in self.moving)
        if isinstance(tree, Binary):
            if tree.op in "*/@" and len(self.moving) == 1 and (tree.op != "/" or self.moving[0] is self.operands[0]):
                return "constant factor"
            if tree.op == "**" and self.moving == list(self.operands[1:]):
                return "exponential rule"
            return OPERATORS.get(tree.op, "rule") + (", chain rule" if tree.op == "**" and inner else "")
        if isinstance(tree, Unary):
            return "constant factor"
        if isinstance(tree, Transpose):
            return "transpose"
        name = tree.function.id if isinstance(tree, Call) else self.top.primitive.name
        linear = name in ("sum", "mean", "trace", "diag", "cumsum")
        return f"{name} is linear" if linear else f"chain rule, {name}" if inner else f"derivative of {name}"


def moving_last(node: Syntax, moving: str) -> Syntax:
    """A tree whose products have the factors with differentials last."""

    def reads(node: Syntax) -> bool:
        return (isinstance(node, Name) and node.id.startswith(moving)) or any(map(reads, children(node)))

    def factors(node: Syntax) -> list[Syntax]:
        product = isinstance(node, Binary) and node.op == "*"
        return [*factors(node.left), *factors(node.right)] if product else [node]  # type: ignore[attr-defined]

    def change(node: Syntax) -> Syntax | None:
        parts = factors(node)
        if len(parts) == 1:
            return None
        first, *rest = sorted([replaced(part, change) for part in parts], key=lambda part: rank(part, reads(part)))
        while is_dot(first) and not all(map(is_dot, rest)):
            first, *rest = *rest, first  # x*(a @ b) is easier to read than a @ b * x
        for part in rest:
            first = Binary("*", first, part, False, node.span)  # type: ignore[arg-type]
        return first

    return replaced(node, change)


def is_dot(factor: Syntax) -> bool:
    """Whether a factor is a product of vectors or matrices."""
    return isinstance(factor, Binary) and factor.op == "@"


def rank(factor: Syntax, moves: bool) -> int:
    """The order of a factor in a product: numbers first, then constants, then differentials."""
    return 2 if moves else 0 if isinstance(factor, Number) else 1
