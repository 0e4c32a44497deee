"""The syntax of a user's file: the expression that ran at a line, its statement, the loop around it, what names carry.

A record says which line ran; which variable it assigned to, and what else could stand there, is in the text.
"""

from __future__ import annotations

import ast
import linecache
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from gradcli.base.results.findings import Edit, Patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradcli.recording.runs.source_lines import SourceLine

N = TypeVar("N", bound=ast.AST)
LOOPS = (ast.For, ast.While, ast.AsyncFor)
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Tuple)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module, ast.ClassDef)
MUTATING = ("append", "extend", "add", "insert", "update", "push", "put", "setdefault")


class SourceTree:
    """A file as a tree, empty where it cannot be read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines = linecache.getlines(file)
        self.text = "".join(self.lines)
        try:
            self.root = ast.parse(self.text)
        except (SyntaxError, ValueError):
            self.root = ast.parse("")

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """For each node the one around it."""
        return {inner: outer for outer in ast.walk(self.root) for inner in ast.iter_child_nodes(outer)}

    def around(self, node: ast.AST, *kinds: type[N]) -> Iterator[N]:
        """The nodes of some kinds around a node, the innermost first; not beyond the function that it is in."""
        outer = self.parents.get(node)
        while outer is not None:
            if isinstance(outer, kinds):
                yield outer
            if isinstance(outer, SCOPES):
                return
            outer = self.parents.get(outer)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module around a node."""
        outer = self.parents.get(node, self.root)
        while not isinstance(outer, SCOPES):
            outer = self.parents.get(outer, self.root)
        return outer

    def source(self, node: ast.stmt | ast.expr | ast.keyword) -> str:
        """The text of a node, without `ast.get_source_segment`, which divides the whole text anew each time."""
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines = [line.encode() for line in self.lines[first:last]]
        if lines:
            lines[-1] = lines[-1][: node.end_col_offset]
            lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode()

    # --- places ---------------------------------------------------------------------------------------------------

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        return [node for node in ast.walk(self.root) if isinstance(node, ast.stmt)]

    def statements(self, number: int) -> list[ast.stmt]:
        """The innermost statements that cover a line; several where `;` divides it."""
        covering = [node for node in self._statements if node.lineno <= number <= (node.end_lineno or node.lineno)]
        if not covering:
            return []
        least = min((node.end_lineno or node.lineno) - node.lineno for node in covering)
        inner = [node for node in covering if (node.end_lineno or node.lineno) - node.lineno == least]
        return [node for node in inner if not any(self.parents.get(other) is node for other in inner)]

    def statement(self, line: SourceLine) -> ast.stmt | None:
        """The statement in which something ran."""
        statements = self.statements(line.number)
        if line.span is not None:
            start = line.span[0]
            inner = [s for s in statements if s.lineno < line.number or s.col_offset <= start]
            statements = inner[-1:] or statements
        return statements[0] if statements else None

    def node(self, line: SourceLine) -> ast.expr | None:
        """The expression that ran."""
        if line.span is None:
            return None
        return self._expressions.get((line.number, *line.span))

    @cached_property
    def _expressions(self) -> dict[tuple[int | None, ...], ast.expr]:
        """The expressions by where they begin and end, the outermost of several."""
        nodes = [node for node in ast.walk(self.root) if isinstance(node, ast.expr)]
        return {(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset): n for n in reversed(nodes)}

    def loop(self, line: SourceLine) -> ast.stmt | None:
        """The innermost loop in whose body a line stands."""
        statement = self.statement(line)
        if statement is None:
            return None
        return next((loop for loop in self.around(statement, *LOOPS) if statement not in (loop,)), None)

    def calling_loop(self, line: SourceLine) -> ast.stmt | None:
        """The loop around a line, or around the only call of the function that it stands in."""
        loop, statement = self.loop(line), self.statement(line)
        function = None if statement is None else self.scope(statement)
        if loop is not None or not isinstance(function, ast.FunctionDef):
            return loop
        kind = ast.Attribute if isinstance(self.scope(function), ast.ClassDef) else ast.Name
        calls = [call for call in self.calls(function.name) if isinstance(call.func, kind)]
        innermost = [next(self.around(call, *LOOPS), None) for call in calls if not self.within(call.lineno, function)]
        return innermost[0] if len(set(innermost)) == 1 else None

    def within(self, number: int, node: ast.stmt | ast.expr) -> bool:
        """Whether a line belongs to a node."""
        return node.lineno <= number <= (node.end_lineno or node.lineno)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """The calls of functions or methods of some names, in the order of the file."""
        return (node for node in self._calls if called(node) in names)

    @cached_property
    def _calls(self) -> list[ast.Call]:
        return [node for node in ast.walk(self.root) if isinstance(node, ast.Call)]

    def bare(self, *names: str) -> Iterator[ast.Attribute]:
        """Statements that are no more than a method, which is not called: `optimizer.step`."""
        for node in self._statements:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr in names:
                yield node.value

    @cached_property
    def imports(self) -> dict[str, str]:
        """What a file imports, and under which names."""
        names: dict[str, str] = {}
        for node in ast.walk(self.root):
            if isinstance(node, ast.Import):
                names.update({each.name: each.asname or each.name for each in node.names})
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.update({f"{node.module}.{each.name}": each.asname or each.name for each in node.names})
        return names

    def reads(self, node: ast.AST, name: str) -> list[ast.Name | ast.Attribute]:
        """Where an expression or a statement reads a name."""
        loads = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
        return [node for node in loads if dotted(node) == name]

    def rule(self, line: SourceLine) -> ast.FunctionDef | None:
        """The forward or backward of a `torch.autograd.Function` in which a line stands."""
        statement = self.statement(line)
        function = None if statement is None else self.scope(statement)
        owner = None if function is None else self.parents.get(function)
        if not isinstance(function, ast.FunctionDef) or not isinstance(owner, ast.ClassDef):
            return None
        bases = [dotted(base).rpartition(".")[2] for base in owner.bases]
        return function if "Function" in bases and function.name in ("forward", "backward", "vjp") else None

    # --- edits ----------------------------------------------------------------------------------------------------

    def replaced(self, node: ast.stmt | ast.expr, text: str) -> Edit:
        """An edit that puts a text in the place of a node."""
        return Edit(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, text)

    def bracketed(self, node: ast.expr) -> str:
        """The text of an expression, in brackets where something is to be appended to it."""
        text = self.source(node)
        return text if isinstance(node, ATOMS) else f"({text})"

    def chained(self, node: ast.expr, *names: str) -> tuple[ast.expr, ast.expr]:
        """What methods of some names around an expression are applied to, and the whole: `p` and `p.data.clone()`."""
        inner, outer = node, node
        while called(inner) in names if isinstance(inner, ast.Call) else getattr(inner, "attr", "") in names:
            function = inner.func if isinstance(inner, ast.Call) else inner
            if not isinstance(function, ast.Attribute):
                break
            inner = function.value
        while True:
            above = self.parents.get(outer)
            if not (isinstance(above, ast.Attribute) and above.attr in names):
                return inner, outer
            call = self.parents.get(above)
            outer = call if isinstance(call, ast.Call) and call.func is above else above

    def inlined(self, place: ast.expr, node: ast.expr) -> str:
        """The text of an expression in the place of another one, in brackets where what is around it binds tighter."""
        outer = self.parents.get(place)
        loose = isinstance(outer, (ast.stmt, ast.keyword, ast.Tuple, ast.List, ast.Dict, ast.comprehension))
        loose = loose or (isinstance(outer, ast.Call) and place is not outer.func)
        return self.source(node) if loose else self.bracketed(node)

    def with_keyword(self, call: ast.Call, keyword: str, value: str) -> Edit:
        """An edit that gives a call a keyword argument, or another value for it."""
        known = next((each for each in call.keywords if each.arg == keyword), None)
        if known is not None:
            return self.replaced(known.value, value)
        arguments = [*call.args, *[each.value for each in call.keywords]]
        text = self.source(call)
        head = text[: text.rstrip().rindex(")")].rstrip().removesuffix(",")
        return self.replaced(call, f"{head}{', ' if arguments else ''}{keyword}={value})")

    def with_brackets(self, method: ast.Attribute) -> Patch:
        """A patch that calls a method which is only named."""
        return self.patch(self.replaced(method, f"{self.source(method)}()"))

    def unindented(self, block: ast.With) -> Patch:
        """A patch that leaves the head of a block out, and moves its body to the left."""
        edits = [self.replaced(block, "")._replace(start=0, last=block.body[0].lineno, stop=0)]
        if block.body[0].lineno == block.lineno:
            return self.patch(self.replaced(block, "; ".join(map(self.source, block.body))))
        width = block.body[0].col_offset - block.col_offset
        for number in range(block.body[0].lineno, (block.end_lineno or 0) + 1):
            if self.lines[number - 1][:width].isspace():
                edits.append(self.replaced(block, "")._replace(first=number, start=0, last=number, stop=width))
        return self.patch(*edits)

    def moved(self, statement: ast.stmt, after: ast.stmt) -> Patch | None:
        """A patch that moves a statement behind another one."""
        if statement.lineno <= after.lineno <= (statement.end_lineno or 0):
            return None
        return self.patch(self.removed(statement), self.inserted(after, self.source(statement), after=True))

    def put(self, start: ast.stmt | ast.expr, stop: ast.stmt | ast.expr, text: str) -> Edit:
        """An edit that puts a text between the ends of two nodes."""
        first, last = (
            (start.end_lineno or 0, start.end_col_offset or 0),
            (stop.end_lineno or 0, stop.end_col_offset or 0),
        )
        return Edit(*first, *last, text)

    def inserted(self, statement: ast.stmt, text: str, after: bool = False) -> Edit:
        """An edit that adds lines before or after a statement, as far to the right as it stands."""
        line = self.lines[statement.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        lines = "".join(f"{indent}{each}\n" for each in text.splitlines())
        number = (statement.end_lineno or 0) + 1 if after else statement.lineno
        if number > len(self.lines) and self.lines and not self.lines[-1].endswith("\n"):
            lines = "\n" + lines
            end = len(self.lines[-1].encode())
            return Edit(len(self.lines), end, len(self.lines), end, lines)
        return Edit(number, 0, number, 0, lines)

    def removed(self, statement: ast.stmt) -> Edit:
        """An edit that takes a statement out, with its lines if nothing else stands on them."""
        block = self.block(statement)
        at = block.index(statement)
        following = block[at + 1] if at + 1 < len(block) else None
        before = block[at - 1] if at else None
        if following is not None and following.lineno == statement.end_lineno:
            return Edit(statement.lineno, statement.col_offset, following.lineno, following.col_offset, "")
        if before is not None and before.end_lineno == statement.lineno:
            return self.put(before, statement, "")
        if len(block) == 1:
            return self.replaced(statement, "pass")
        return Edit(statement.lineno, 0, (statement.end_lineno or 0) + 1, 0, "")

    def in_place(self, statement: ast.Assign) -> str:
        """The assignment of a new value as a change in place."""
        target, value = self.source(statement.targets[0]), statement.value
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            if dotted(value.left) == dotted(statement.targets[0]):
                return f"{target} {'+' if isinstance(value.op, ast.Add) else '-'}= {self.source(value.right)}"
        return f"{target}.copy_({self.source(value)})"

    def undecorated(self, decorator: ast.expr) -> Edit:
        """An edit that takes a decorator away, with its line."""
        return self.replaced(decorator, "")._replace(start=0, last=decorator.lineno + 1, stop=0)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which a statement stands."""
        outer = self.parents[statement]
        blocks = (getattr(outer, field, None) for field in ("body", "orelse", "finalbody"))
        return next(block for block in blocks if isinstance(block, list) and statement in block)

    def patch(self, *edits: Edit) -> Patch:
        """A patch of this file."""
        return Patch(self.file, edits)

    # --- names ----------------------------------------------------------------------------------------------------

    def assignments(self, name: str, scope: ast.AST | None = None) -> list[ast.stmt]:
        """The statements that give a name its value, in the order of the file; of one scope if it is given."""
        assigning = [node for node in self._statements if name in targets(node)]
        return sorted((n for n in assigning if scope is None or self.scope(n) is scope), key=lambda node: node.lineno)

    def assigned(self, node: ast.expr) -> list[ast.Assign]:
        """The statements that gave a name its value, the last first."""
        return [each for each in reversed(self.assignments(dotted(node))) if isinstance(each, ast.Assign)]

    def carries(self, start: ast.stmt, lines: set[int]) -> bool:
        """Whether what a statement computes reaches one of some lines through names, containers and returns."""
        carried: set[str] = set()
        fresh = {start}
        done: set[ast.stmt] = set()
        while fresh:
            statement = fresh.pop()
            done.add(statement)
            if isinstance(statement, ast.Return):
                scope = self.scope(statement)
                carried.add(getattr(scope, "name", ""))
            carried |= targets(statement) | {name.removeprefix("self.") for name in targets(statement)}
            for other in self._statements:
                if other not in done and not isinstance(other, SCOPES) and reads(other) & carried:
                    if any(self.within(number, other) for number in lines):
                        return True
                    fresh.add(other)
        return False


def called(call: ast.Call) -> str:
    """The last name of what is called: `backward` of `loss.backward()`."""
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def dotted(node: ast.AST) -> str:
    """`self.w` of such an expression; nothing for others."""
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def returned(function: ast.AST | None) -> ast.expr | None:
    """What a function returns in its last line."""
    if isinstance(function, ast.Lambda):
        return function.body
    results = [each for each in ast.walk(function) if isinstance(each, ast.Return)] if function is not None else []
    return results[-1].value if results else None


def target_of(statement: ast.stmt) -> ast.expr | None:
    """What a statement assigns to."""
    return statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)


def own_expressions(statement: ast.stmt) -> Iterable[ast.AST]:
    """The expressions of a statement without those of the statements in it."""
    waiting: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


def targets(statement: ast.stmt) -> set[str]:
    """The names that a statement gives a value, or whose container it adds to."""
    names = set()
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in MUTATING:
            names.add(dotted(function.value))
    for node in own_expressions(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            names.add(dotted(node))
    return names - {""}


def reads(statement: ast.stmt) -> set[str]:
    """The names that a statement reads: of `self.w.grad` all that it begins with."""
    names = set()
    for node in own_expressions(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Store):
            names.add(dotted(node))
            if isinstance(node, ast.Attribute):
                names.add(node.attr)  # a method of the user's, by its name
    if isinstance(statement, ast.AugAssign):
        names.add(dotted(statement.target))
    return names - {""}
