"""Substitutes expressions for names and for other expressions in the text of a formula."""

from __future__ import annotations

from copy import copy

from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import ExpressionStatement, Name, Syntax
from gradcli.language.unparse import unparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def expression_of(text: str) -> Syntax:
    """The tree of a text that is one expression."""
    (statement,) = parse(Source(text)).statements
    assert isinstance(statement, ExpressionStatement)
    return statement.value


def substituted(text: str, texts: Mapping[str, str]) -> str:
    """A formula with other formulas in place of some of its names, in brackets where they need them.

    >>> substituted("2*u @ v", {"u": "a + b", "v": "x"})
    '2*(a + b) @ x'
    """
    if not texts:
        return text
    trees = {name: expression_of(one) for name, one in texts.items()}
    return unparse(replaced(expression_of(text), lambda node: trees.get(node.id) if isinstance(node, Name) else None))


def replaced(node: Syntax, change: Callable[[Syntax], Syntax | None]) -> Syntax:
    """A copy of a tree in which `change` has replaced nodes; what it returns is not looked into again."""
    other = change(node)
    if other is not None:
        return other

    def inside(value: Any) -> Any:
        if isinstance(value, Syntax):
            return replaced(value, change)
        return tuple([inside(item) for item in value]) if type(value) is tuple else value

    made = copy(node)
    for field in node.fields:
        if not (field == "function" and hasattr(node, "args")):  # the name of a function is not a name of a value
            setattr(made, field, inside(getattr(node, field)))
    return made


__all__ = ["expression_of", "replaced", "substituted"]
