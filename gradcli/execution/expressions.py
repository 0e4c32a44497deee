"""Python expressions for operations on single numbers, printed by the operations' own `impl`.

An `impl` is called with expressions instead of numbers; an `impl` that cannot take them (it branches on a value) is
called as it is. The printed code gives bit for bit what the `impl` gives on Python floats.
"""

from __future__ import annotations

import re

from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.node import is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gradcli.graph.node import Node

LONGEST = 160  # characters of an expression that is not stored first
NAME = re.compile(r"\w+")  # of a leaf, a step or a whole number: reading it again costs nothing

# Functions that are an operator of Python, as the namespace `math` computes them.
OPERATORS = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})",
    "true_divide": "({} / {})", "negative": "(-{})", "positive": "{}", "reciprocal": "(1.0 / {})",
    "less": "({} < {})", "less_equal": "({} <= {})", "greater": "({} > {})", "greater_equal": "({} >= {})",
    "equal": "({} == {})", "not_equal": "({} != {})", "logical_not": "(not {})", "where": "({1} if {0} else {2})",
}  # fmt: skip


class Wordless(Exception):
    """What an `impl` does with a number, and no word can."""


class Word:
    """An expression as text, with the operators of a number; what it is read for twice has to have a name."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        raise Wordless("a word is neither true nor false")

    __hash__ = None  # type: ignore[assignment]  # a word is not equal to anything

    def __neg__(self) -> Word:
        return Word(f"(-{self.text})")

    def __pos__(self) -> Word:
        return self

    def __abs__(self) -> Word:
        raise Wordless("abs of a float is another function")


def _operator(sign: str, turned: bool = False) -> Any:
    def apply(self: Word, other: object) -> Word:
        left, right = (text_of(other), self.text) if turned else (self.text, text_of(other))
        return Word(f"({left} {sign} {right})")

    return apply


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/")):
    setattr(Word, f"__{_name}__", _operator(_sign))
    setattr(Word, f"__r{_name}__", _operator(_sign, turned=True))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(Word, f"__{_name}__", _operator(_sign))


def text_of(value: object) -> str:
    """A word or a plain number as text; anything else is for the `impl` itself to compute with."""
    if isinstance(value, Word):
        return value.text
    if type(value) is int:
        return repr(value) if value >= 0 else f"({value!r})"
    if type(value) is float and value - value == 0:
        return repr(value) if value >= 0 else f"({value!r})"
    raise Wordless(f"{value!r} is no plain number")


class Printer:
    """The namespace `math`, in words: what is an operator becomes one, any other function becomes a call."""

    name = "math"
    dtype = "float64"

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self._math = namespace("math")

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._math, name)  # raises Unavailable as math does
        if not callable(known):
            return self.bound(f"_c_{name}", known)
        form = OPERATORS.get(name)
        if form is not None:
            return lambda *xs: Word(form.format(*map(text_of, xs)))
        return lambda *xs: Word(f"{self.bound(f'_f_{name}', known).text}({', '.join(map(text_of, xs))})")

    def cast(self, x: object, kind: str) -> Word:
        """A truth value as a number, or the other way round."""
        if kind == "int":
            raise Unavailable("positions need an array")
        return Word(f"({text_of(x)} * 1.0)" if kind == "float" else f"({text_of(x)} != 0.0)")

    def bound(self, name: str, value: object) -> Word:
        """A name that stands for a function or a number of ours."""
        self.functions[name] = value
        return Word(name)


def step(printer: Printer, node: Node, place: int, lines: list[str], words: dict[Node, Word]) -> str:
    """The expression of one step: printed by its `impl`, or a call of it; what it reads twice is stored first."""
    impl = node.primitive.impl
    assert impl is not None
    params = node.params if node.primitive.pointwise else {**node.params, "ranks": (0,) * len(node.args)}
    marks = [f"_a{at}_" for at in range(len(node.args))]
    found = None
    if not is_reader(node):  # the text of a loop's turns may double with each turn
        try:
            found = impl(printer, *map(Word, marks), **params)
        except (Wordless, TypeError, ValueError, AttributeError):
            found = None
    if not isinstance(found, Word) or len(found.text) > LONGEST:
        call = printer.bound(f"_i{place}", _bound(impl, params))
        found = Word(f"{call.text}({', '.join(marks)})")
    pieces = re.split(r"(_a\d+_)", found.text)
    for at, (mark, arg) in enumerate(zip(marks, node.args, strict=True)):
        if pieces.count(mark) > 1 and not NAME.fullmatch(words[arg].text):
            lines.append(f"_{place}_{at} = {words[arg].text}")
            words[arg] = Word(f"_{place}_{at}")
    texts = {mark: words[arg].text for mark, arg in zip(marks, node.args, strict=True)}
    return "".join(texts.get(piece, piece) for piece in pieces)


def _bound(impl: Callable[..., Any], params: Mapping[str, Any]) -> Callable[..., Any]:
    xp = namespace("math")
    return (lambda *xs: impl(xp, *xs, **params)) if params else (lambda *xs: impl(xp, *xs))
