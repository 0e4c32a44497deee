"""Substitutes expressions for names in a formula, and finds names for the parts that are long or repeat.

`inv(S) @ x + y @ inv(S)` becomes `M @ x + y @ M` where `M = inv(S)`. Names that a script has already come first.
"""

from __future__ import annotations

from copy import copy

from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import (
    Binary,
    Call,
    ExpressionStatement,
    Name,
    Subscript,
    Syntax,
    Transpose,
    Unary,
    names_in,
    nodes_of,
)
from gradcli.language.unparse import unparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

SHORTEST = 6  # characters of a part that gets a name
MOST = 6  # new names


def expression_of(text: str) -> Syntax:
    """The tree of a text that is one expression."""
    (statement,) = parse(Source(text)).statements
    assert isinstance(statement, ExpressionStatement)
    return statement.value


def substituted(text: str, texts: Mapping[str, str]) -> str:
    """A formula with formulas substituted for some of its names, in brackets where necessary.

    >>> substituted("2*u @ v", {"u": "a + b", "v": "x"})
    '2*(a + b) @ x'
    """
    if not texts:
        return text
    trees = {name: expression_of(formula) for name, formula in texts.items()}
    return unparse(replaced(expression_of(text), lambda node: trees.get(node.id) if isinstance(node, Name) else None))


def replaced(node: Syntax, change: Callable[[Syntax], Syntax | None]) -> Syntax:
    """A copy of a tree in which `change` has replaced nodes; replacements are not searched again."""
    other = change(node)
    if other is not None:
        return other

    def inside(value: Any) -> Any:
        if isinstance(value, Syntax):
            return replaced(value, change)
        return tuple([inside(item) for item in value]) if type(value) is tuple else value

    result = copy(node)
    for field in node.fields:
        if not (field == "function" and hasattr(node, "args")):  # the name of a function is not a name of a value
            setattr(result, field, inside(getattr(node, field)))
    return result


def with_names(
    texts: Mapping[str, str],
    named: Mapping[str, str],
    new_name: Callable[[str], str | None],
    longest: int,
) -> tuple[dict[str, str], dict[str, str]]:
    """Shorter formulas, and the definitions of the names in them, in order.

    `named` has names that may be used where their formulas occur. `new_name` returns a name for a part; parts get names
    if a formula is longer than `longest`.

    >>> with_names({"x": "2*A.T @ (A @ x - b)"}, {"r": "A @ x - b"}, lambda part: None, 100)
    ({'x': '2*A.T @ r'}, {'r': 'A @ x - b'})
    """
    trees = {key: expression_of(text) for key, text in texts.items()}
    definitions: dict[str, Syntax] = {}
    for name, text in reversed(list(named.items())):  # later names stand for more
        tree = expression_of(text)
        if worth_a_name(tree, len(name) + 2):
            put_in(trees, definitions, name, tree)
    while len(definitions) < len(named) + MOST:
        long = [tree for tree in trees.values() if len(unparse(tree)) > longest]
        part = best_part([*long, *definitions.values()]) if long else None
        letter = None if part is None else new_name(unparse(part))
        if part is None or letter is None:
            break
        put_in(trees, definitions, letter, part)
    ordered: dict[str, str] = {}
    while len(ordered) < len(definitions):  # each behind those that it reads
        for name, tree in definitions.items():
            if name not in ordered and not (names_in(tree) & definitions.keys() - ordered.keys()):
                ordered[name] = unparse(tree)
    return {key: unparse(tree) for key, tree in trees.items()}, ordered


def put_in(trees: dict[str, Syntax], definitions: dict[str, Syntax], name: str, part: Syntax) -> None:
    """Replace a part by a name everywhere, and keep the definition if the part occurs."""
    wanted = unparse(part)
    span = part.span

    def change(node: Syntax) -> Syntax | None:
        return Name(name, span) if type(node) is type(part) and unparse(node) == wanted else None

    before = [unparse(tree) for tree in (*trees.values(), *definitions.values())]
    for table in (trees, definitions):
        table.update({key: replaced(tree, change) for key, tree in table.items()})
    if [unparse(tree) for tree in (*trees.values(), *definitions.values())] != before:
        definitions[name] = part


def best_part(trees: Sequence[Syntax]) -> Syntax | None:
    """The part whose name saves most characters; None if no part occurs more than once."""
    counts: dict[str, tuple[int, Syntax]] = {}
    for tree in trees:
        for node in nodes_of(tree):
            if node is not tree and worth_a_name(node):
                text = unparse(node)
                counts[text] = (counts.get(text, (0, node))[0] + 1, node)
    saved = {text: (count - 1) * len(text) for text, (count, _) in counts.items() if count > 1}
    return counts[max(saved, key=lambda text: (saved[text], len(text)))][1] if saved else None


def worth_a_name(node: Syntax, shortest: int = SHORTEST) -> bool:
    """Whether a name for a part makes a formula easier to read."""
    if not isinstance(node, (Binary, Call, Subscript, Transpose, Unary)) or not names_in(node):
        return False
    return len(unparse(node)) >= shortest and not (isinstance(node, Call) and node.function.id in ("len", "shape"))
