"""A scalar program goes in, a Python function of its leaves comes out: one expression per step, nothing in between.

Each step is printed by the operation's own `impl`, called with words instead of numbers; what an `impl` cannot do
with words (branch on a value) is called as it stands. Text of users never reaches the printer: names of leaves are
checked identifiers, everything else is ours. The function gives bit for bit what `Tape` gives on Python floats, and
leaves to it, by calling `careful`, whatever is not plain: other types, unknown names, values that are not finite.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from gradcli.execution.evaluate import IEEE_DIFFERS
from gradcli.execution.generated import function
from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, LEAF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.execution.evaluate import Tape
    from gradcli.graph.node import Node

MOST_NODES = 10_000  # compiling takes 10 us and 3 KB for each
LONGEST = 160  # characters of an expression that is not stored first
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
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

    def bound(self, name: str, value: object) -> Word:
        """A name that stands for a function or a number of ours."""
        self.functions[name] = value
        return Word(name)


def straight(
    tape: Tape, leaves: Mapping[str, float | None], result: Sequence[str | None], careful: Callable[..., Any]
) -> Callable[..., Any] | None:
    """The function of a scalar tape: leaves as keywords; a value and, by the other names, a dict. None if it has none.

    `leaves` gives each leaf its default, None for one that has to be given; `result` names the outputs, None for the
    value. `careful(**leaves)` is called for whatever is not plain.
    """
    named = [node.params["name"] for node, _ in tape.inputs]
    if not tape.scalar or len(tape.nodes) > MOST_NODES or set(named) - set(leaves):
        return None
    if any(node.type.kind != "float" for node in tape.outputs):
        return None
    if not all(name.isascii() and PLAIN.fullmatch(name) and not iskeyword(name) for name in leaves):
        return None
    try:
        text, functions = printed(tape, leaves, result)
    except Unavailable:
        return None
    scope = {"__builtins__": {}, "_type": type, "_float": float, "_careful": careful, **functions}
    made = function(text, scope, "straight line")
    made.__kwdefaults__ = dict(leaves)
    return made


def printed(tape: Tape, leaves: Mapping[str, float | None], result: Sequence[str | None]) -> tuple[str, dict[str, Any]]:
    """The text of the function, and what its names stand for."""
    printer = Printer()
    uses: dict[Node, int] = {}
    for node in tape.nodes:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    for node in tape.outputs:
        uses[node] = uses.get(node, 0) + 1
    words: dict[Node, Word] = {}
    lines: list[str] = []
    for place, node in enumerate(tape.nodes):
        primitive = node.primitive
        if primitive is LEAF:
            words[node] = Word(node.params["name"])
            continue
        if primitive is CONSTANT:
            number = nearest_float(node.params["value"])
            plain = number - number == 0
            words[node] = Word(text_of(number)) if plain else printer.bound(f"_c{place}", number)
            continue
        text = step(printer, node, place, lines, words)
        if uses.get(node, 0) == 1 and len(text) <= LONGEST:
            words[node] = Word(text)
        else:
            lines.append(f"_{place} = {text}")
            words[node] = Word(f"_{place}")
    names = list(leaves)
    head = f"def straight(*, {', '.join(names)}, **_more):" if names else "def straight(**_more):"
    again = f"return _careful({''.join(f'{name}={name}, ' for name in names)}**_more)"
    other = " or ".join(["_more", *(f"_type({name}) is not _float" for name in names)])
    values = [words[node].text for node in tape.outputs]
    kept = [f"_r{at} = {value}" for at, value in enumerate(values)]
    # a sum is not finite where a term is not; where only the sum is too large, the careful way gives the same
    total = f"_r{len(values)}"
    kept.append(f"{total} = {' + '.join(f'_r{at}' for at in range(len(values))) or 0.0}")
    pairs = ", ".join(f"{name!r}: _r{at}" for at, name in enumerate(result) if name is not None)
    returned = ["_r" + str(at) for at, name in enumerate(result) if name is None]
    told = ", ".join(returned) if len(result) == len(returned) == 1 else f"({', '.join(returned)}, {{{pairs}}})"
    body = [
        f"    if {other}:", f"        {again}", "    try:",
        *(f"        {line}" for line in [*lines, *kept]),
        "    except _faults:", f"        {again}",
        f"    if {total} - {total} == 0.0:", f"        return {told}", f"    {again}",
    ]  # fmt: skip
    return "\n".join([head, *body, ""]), {**printer.functions, "_faults": (*IEEE_DIFFERS, Unavailable)}


def step(printer: Printer, node: Node, place: int, lines: list[str], words: dict[Node, Word]) -> str:
    """The expression of one step: printed by its `impl`, or a call of it; what it reads twice is stored first."""
    impl = node.primitive.impl
    assert impl is not None
    params = node.params if node.primitive.pointwise else {**node.params, "ranks": (0,) * len(node.args)}
    marks = [f"_a{at}_" for at in range(len(node.args))]
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
