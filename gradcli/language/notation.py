"""The one table of precedence, and `Notation`, which writes syntax trees in the script language, a subclass in others.

A notation writes each construct as pieces of text and the parts between them. An explicit stack replaces recursion, and
brackets stand only where a part binds less tightly than its place requires.
"""

from __future__ import annotations

from gradcli.language.syntax import (
    Binary,
    Call,
    Clause,
    Compare,
    Comprehension,
    Domain,
    Keyword,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    String,
    Subscript,
    Syntax,
    Transpose,
    Tuple,
    Unary,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# from loose to tight; some notations have a second kind of product, which binds tighter
TUPLE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, FACTORS, SIGN, POWER, NUMBER, ATOM = range(12)
LOOSEST = OR
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
BINDS = {
    "or": OR, "and": AND, **dict.fromkeys(COMPARISONS, COMPARISON), "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "@": PRODUCT, "**": POWER,
}  # fmt: skip
PREFIXES = {"-": SIGN, "+": SIGN, "not": NOT}
SPACED = frozenset(("or", "and", "+", "-", "@"))

Task = str | tuple[Syntax, int]  # text to write, or a node and how tightly its place requires it to bind
Pieces = tuple[list[Task], int]  # what to write for a node, in order, and how tightly the whole binds


class Notation:
    """The script language: products without sign are written with `*`, methods and prefixes as plain calls."""

    bracketed_dots = False  # whether (a @ b)*c is written with brackets, not with spaces
    foreign: tuple[type, ...] = ()  # the constructs that a language lacks

    def text(self, root: Syntax, place: int = LOOSEST) -> str:
        """The text of a tree for a place that requires it to bind so tightly."""
        written: list[str] = []
        tasks: list[Task] = [(root, place)]
        while tasks:
            task = tasks.pop()
            if isinstance(task, str):
                written.append(task)
                continue
            node, required = task
            parts, own = self.pieces(node)
            if own < required:
                parts = ["(", *parts, ")"]
            parts.reverse()
            tasks.extend(parts)
        return "".join(written)

    def pieces(self, node: Syntax) -> Pieces:
        """What to write for a node."""
        kind = type(node)
        pieces: Pieces = getattr(self, "write_foreign" if kind in self.foreign else WRITERS[kind])(node)
        return pieces

    def write_name(self, node: Name) -> Pieces:
        return [node.id], ATOM

    def write_number(self, node: Number) -> Pieces:
        return [node.text], NUMBER

    def write_binary(self, node: Binary) -> Pieces:
        """An operator between operands; products behind a matrix product are written with spaces."""
        own = BINDS[node.op]
        if own == POWER:
            return [(node.left, NUMBER), node.op, (node.right, SIGN)], own
        chain = [node]
        while type(left := chain[-1].left) is Binary and BINDS[left.op] == own:
            if self.bracketed_dots and left.op == "@" and chain[-1].op != "@":
                own += 1
                break
            chain.append(left)
        parts: list[Task] = [(left, own)]
        matrix = False
        for step in reversed(chain):
            parts += [f" {step.op} " if matrix or step.op in SPACED else step.op, (step.right, BINDS[step.op] + 1)]
            matrix = matrix or step.op == "@"
        return parts, BINDS[node.op]

    def write_unary(self, node: Unary) -> Pieces:
        own = PREFIXES[node.op]
        return ["not " if own == NOT else node.op, (node.operand, own)], own

    def write_compare(self, node: Compare) -> Pieces:
        compared: list[Task] = [(node.operands[0], COMPARISON + 1)]
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            compared += [f" {op} ", (operand, COMPARISON + 1)]
        return compared, COMPARISON

    def write_call(self, node: Call) -> Pieces:
        return [node.function.id, "(", *joined((*node.args, *node.keywords)), ")"], ATOM

    def write_keyword(self, node: Keyword) -> Pieces:
        return [f"{node.name}=", (node.value, LOOSEST)], LOOSEST

    def write_subscript(self, node: Subscript) -> Pieces:
        return [(node.value, ATOM), "[", *joined(node.items), "]"], ATOM

    def write_slice(self, node: Slice) -> Pieces:
        parts: list[Task] = [] if node.lower is None else [(node.lower, LOOSEST)]
        parts.append(":")
        if node.upper is not None:
            parts.append((node.upper, LOOSEST))
        if node.step is not None:
            parts += [":", (node.step, LOOSEST)]
        return parts, LOOSEST

    def write_new_axis(self, node: NewAxis) -> Pieces:
        return ["None"], ATOM

    def write_transpose(self, node: Transpose) -> Pieces:
        return [(node.value, ATOM), ".T"], ATOM

    def write_list(self, node: List) -> Pieces:
        return ["[", *joined(node.items), "]"], ATOM

    def write_comprehension(self, node: Comprehension) -> Pieces:
        clauses: list[Task] = [(node.item, LOOSEST)]
        for clause in node.clauses:
            clauses += [" ", (clause, LOOSEST)]
        return (clauses if node.generator else ["[", *clauses, "]"]), ATOM

    def write_clause(self, node: Clause) -> Pieces:
        rows: list[Task] = ["range(", *joined(node.bounds), ")"] if node.rows is None else [(node.rows, LOOSEST)]
        tests = [task for test in node.conditions for task in (" if ", (test, LOOSEST))]
        return ["for ", node.target.id, " in ", *rows, *tests], ATOM

    def write_tuple(self, node: Tuple) -> Pieces:
        if not node.items:
            return ["()"], ATOM
        return [*joined(node.items), *([","] if len(node.items) == 1 else [])], TUPLE

    def write_string(self, node: String) -> Pieces:
        quote = "'" if '"' in node.text else '"'
        return [f"{quote}{node.text}{quote}"], ATOM

    def write_domain(self, node: Domain) -> Pieces:
        if node.low is None or node.high is None:
            return [node.kind], ATOM
        opened, closed = "(" if node.low_open else "[", ")" if node.high_open else "]"
        return [opened, (node.low, LOOSEST), ", ", (node.high, LOOSEST), closed], ATOM


def joined(nodes: Sequence[Syntax]) -> list[Task]:
    """Nodes with commas between them."""
    parts: list[Task] = []
    for node in nodes:
        parts += [", ", (node, LOOSEST)] if parts else [(node, LOOSEST)]
    return parts


# the method of a notation that writes a class of nodes
WRITERS: dict[type, str] = {
    Name: "write_name",
    Number: "write_number",
    Binary: "write_binary",
    Unary: "write_unary",
    Compare: "write_compare",
    Call: "write_call",
    Keyword: "write_keyword",
    Subscript: "write_subscript",
    Slice: "write_slice",
    NewAxis: "write_new_axis",
    Transpose: "write_transpose",
    List: "write_list",
    Comprehension: "write_comprehension",
    Clause: "write_clause",
    Tuple: "write_tuple",
    String: "write_string",
    Domain: "write_domain",
}
SCRIPT = Notation()
