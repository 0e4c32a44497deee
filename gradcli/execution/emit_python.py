"""Scalar programs and loops over single numbers as functions of Python: an expression for each step.

The steps are printed by the operations' own `impl`, called with words instead of numbers; what it cannot do with words
(branch on a value) is called as it stands. A function gives bit for bit what `Tape` gives on Python floats. Text of
users never reaches the printer: names of leaves are checked identifiers, everything else is ours.
"""

from __future__ import annotations

import re
from itertools import repeat
from keyword import iskeyword

from gradcli.execution.generated import function
from gradcli.execution.namespaces import IEEE_DIFFERS, Unavailable, namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.loop import order_of_iterations
from gradcli.graph.node import CONSTANT, LEAF, is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.execution.loops.scan import Scan
    from gradcli.execution.node_table import NodeTable
    from gradcli.graph.loop import Body
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
    raise Wordless(f"{value!r} is not a plain number")


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
    word = None
    if is_reader(node):  # the text of a loop's iterations may double with each iteration
        from gradcli.graph.loop import single_numbers  # most programs have no loop

        if not single_numbers(node):
            raise Unavailable("arrays in the iterations of a loop inside")
    else:
        try:
            word = impl(printer, *map(Word, marks), **params)
        except (Wordless, TypeError, ValueError, AttributeError):
            word = None
    if not isinstance(word, Word) or len(word.text) > LONGEST:
        call = printer.bound(f"_i{place}", _bound(impl, params))
        word = Word(f"{call.text}({', '.join(marks)})")
    pieces = re.split(r"(_a\d+_)", word.text)
    for at, (mark, arg) in enumerate(zip(marks, node.args, strict=True)):
        if pieces.count(mark) > 1 and not NAME.fullmatch(words[arg].text):
            lines.append(f"_{place}_{at} = {words[arg].text}")
            words[arg] = Word(f"_{place}_{at}")
    texts = {mark: words[arg].text for mark, arg in zip(marks, node.args, strict=True)}
    return "".join(texts.get(piece, piece) for piece in pieces)


def write_steps(
    printer: Printer,
    steps: Sequence[Node],
    words: dict[Node, Word],
    read: Iterable[Node],
    lines: list[str],
    scans: Mapping[Node, Scan] | None = None,
) -> None:
    """Add the lines of steps, and their words to those of the leaves; `read` are those that are read once more.

    What is read once stands in the expression of its reader, anything else has a line of its own.
    """
    uses: dict[Node, int] = {}
    for node in steps:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    for node in read:
        uses[node] = uses.get(node, 0) + 1
    for place, node in enumerate(steps):
        if node.primitive is CONSTANT:
            number = nearest_float(node.params["value"])
            finite = number - number == 0
            words[node] = Word(text_of(number)) if finite else printer.bound(f"_c{place}", number)
        elif scans and node in scans:  # all readers of a loop
            called = printer.bound(f"_i{place}", scans[node].on_floats).text
            lines.append(f"_{place} = {called}({', '.join(words[arg].text for arg in node.args)})")
            words.update({reader: Word(f"_{place}[{at}]") for at, reader in enumerate(scans[node].readers)})
        elif node.primitive is not LEAF and node not in words:
            text = step(printer, node, place, lines, words)
            if uses.get(node, 0) == 1 and len(text) <= LONGEST:
                words[node] = Word(text)
            else:
                lines.append(f"_{place} = {text}")
                words[node] = Word(f"_{place}")


def _bound(impl: Callable[..., Any], params: Mapping[str, Any]) -> Callable[..., Any]:
    xp = namespace("math")
    return (lambda *xs: impl(xp, *xs, **params)) if params else (lambda *xs: impl(xp, *xs))


PIECE = 1_000  # lines of one function: compiling takes 10 us and 3 KB for each, and holds up all threads
MOST_NODES = 500_000
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def straight(
    tape: NodeTable, leaves: Mapping[str, float | None], result: Sequence[str | None], careful: Callable[..., Any]
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
    run = function(text, scope, "straight line")
    run.__kwdefaults__ = dict(leaves)
    return run


def printed(
    tape: NodeTable, leaves: Mapping[str, float | None], result: Sequence[str | None]
) -> tuple[str, dict[str, Any]]:
    """The text of the function, and what its names stand for."""
    printer = Printer()
    words: dict[Node, Word] = {node: Word(node.params["name"]) for node, _ in tape.inputs}
    lines: list[str] = []
    write_steps(printer, tape.nodes, words, tape.outputs, lines, tape.loops)
    names = list(leaves)
    head = f"def straight(*_values, {''.join(f'{name}, ' for name in names)}**_more):"
    again = f"return _careful(*_values, {''.join(f'{name}={name}, ' for name in names)}**_more)"
    other = " or ".join(["_values", "_more", *(f"_type({name}) is not _float" for name in names)])
    values = [words[node].text for node in tape.outputs]
    kept = [f"_r{at} = {value}" for at, value in enumerate(values)]
    # a sum is not finite where a term is not; where only the sum is too large, the careful way gives the same
    total = f"_r{len(values)}"
    kept.append(f"{total} = {' + '.join(f'_r{at}' for at in range(len(values))) or 0.0}")
    if len(lines) > PIECE:
        lines, kept = divided(lines, kept, [words[node].text for node, _ in tape.inputs], printer)
    pairs = ", ".join(f"{name!r}: _r{at}" for at, name in enumerate(result) if name is not None)
    returned = ["_r" + str(at) for at, name in enumerate(result) if name is None]
    expression = ", ".join(returned) if len(result) == len(returned) == 1 else f"({', '.join(returned)}, {{{pairs}}})"
    body = [
        f"    if {other}:", f"        {again}", "    try:",
        *(f"        {line}" for line in [*lines, *kept]),
        "    except _faults:", f"        {again}",
        f"    if {total} - {total} == 0.0:", f"        return {expression}", f"    {again}",
    ]  # fmt: skip
    return "\n".join([head, *body, ""]), {**printer.functions, "_faults": (*IEEE_DIFFERS, Unavailable)}


STEP = re.compile(r"\b_\d\w*")  # the name of a step


def divided(
    lines: Sequence[str], kept: Sequence[str], leaves: Sequence[str], printer: Printer
) -> tuple[list[str], list[str]]:
    """The lines as calls of functions; steps that several of these or `kept` read are entries of the list `_v`."""
    home = {line.partition(" ")[0]: at // PIECE for at, line in enumerate(lines)}
    shared: dict[str, str] = {}
    for at, line in enumerate([*lines, *kept]):
        for name in STEP.findall(line):
            if at >= len(lines) or home[name] != at // PIECE:
                shared.setdefault(name, f"_v[{len(shared)}]")
    moved, kept = ([STEP.sub(lambda step: shared.get(step[0], step[0]), x) for x in part] for part in (lines, kept))
    inputs, scope = ", ".join(["_v", *leaves]), {"__builtins__": {}, **printer.functions}
    calls = [f"_v = [None] * {len(shared)}"]
    for start in range(0, len(moved), PIECE):
        body = "".join([f"    {line}\n" for line in moved[start : start + PIECE]])
        piece = function(f"def piece({inputs}):\n{body}", scope, "piece of a straight line")
        calls.append(f"{printer.bound(f'_p{start}', piece).text}({inputs})")
    return calls, kept


MOST_STEPS = 2_000  # of an iteration: compiling takes 10 us for each


def printed_iterations(scan: Scan) -> Callable[[Sequence[float]], list[float]] | None:
    """A function of the arguments of a scan on floats, which gives what its readers read.

    None where a value is not a single number, or an operation needs arrays.
    """
    body = scan.body
    steps = [body.steps[at] for at in scan.order]
    first, stop = len(body.carried), len(body.carried) + len(body.rows)
    if len(steps) > MOST_STEPS or any(at >= 0 for at in scan.stacked) or any(first <= at < stop for at in scan.order):
        return None
    if any(node.shape or node.type.kind == "int" for node in steps):
        return None
    columns = [] if body.index is None else [body.positions[body.index]]
    fixed = [at for at in scan.order if stop <= at < len(body.inputs)]
    try:
        text, functions = core_text(body, scan.order, scan.carries, columns, fixed, (), scan.ends)
    except Unavailable:
        return None
    run = function(text, {"__builtins__": {}, **functions}, "loop")

    def on_floats(args: Sequence[float]) -> list[float]:
        iterations = map(float, order_of_iterations(scan.count, scan.reverse)) if columns else repeat(None, scan.count)
        return list(run(iterations, None, *[args[k] for k in (*scan.carries, *fixed)])[len(scan.carries) :])

    return on_floats


def printed_core(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> Callable[..., tuple[Any, Sequence[Any]]]:
    """The code of the steps `order`, which read the carries, columns over the iterations, and fixed values.

    A function of (columns, fixed values, carries, number of iterations, whether to store): it gives the states before
    each iteration, by carry, and those after the last one, and raises ValueError for infinities. Raises Unavailable
    where an operation needs arrays.
    """
    if len(order) > MOST_STEPS or any(body.steps[at].type.kind == "int" for at in order):
        raise Unavailable("not a loop over floats")
    text, functions = core_text(body, order, carries, columns, fixed, carries, ())
    run = function(text, {"__builtins__": {}, **functions}, "loop")
    library = namespace("numpy").library

    def states(
        columns: Sequence[Any], fixed: Sequence[Any], state: Sequence[Any], iterations: int, store: bool
    ) -> tuple[Any, Sequence[Any]]:
        if not all(library.isfinite(array).all() for array in (*columns, *fixed, *state)):
            raise ValueError("not finite")
        numbers = [array.item() for array in (*state, *fixed)]
        lists = [column.tolist() for column in columns]
        over: Any = lists[0] if len(lists) == 1 else zip(*lists, strict=True) if lists else repeat(None, iterations)
        stored: list[float] = []
        width = len(state)
        keep: Any = id if not store else stored.extend if width > 1 else stored.append  # `id` keeps nothing
        after = run(over, keep, *numbers)
        return (library.array(stored, dtype=library.float64).reshape(iterations, width).T if store else None), after

    return states


def core_text(
    body: Body,
    order: Sequence[int],
    carries: Sequence[int],
    columns: Sequence[int],
    fixed: Sequence[int],
    stored: Sequence[int],
    ends: Sequence[int],
) -> tuple[str, dict[str, Any]]:
    """The text of a function of (iterations, store, carries, fixed values), and what its names stand for.

    `iterations` gives the columns of each iteration, `store` takes the values of the positions `stored`; the function
    returns the carries after the last iteration, then the values of the positions `ends` in that iteration.
    """
    printer = Printer()
    lines: list[str] = []
    named = [*(body.positions[body.nexts[k]] for k in carries), *ends, *stored]
    words = iteration_lines(printer, body, order, (*carries, *columns, *fixed), named, lines)
    if stored:
        values = ", ".join(words[body.steps[at]].text for at in stored)
        lines.append(f"store(({values}))" if len(stored) > 1 else f"store({values})")
    kept = [f"_end{at}" for at in range(len(ends))]
    lines += [f"{name} = {words[body.steps[end]].text}" for name, end in zip(kept, ends, strict=True)]
    states = [f"x{k}" for k in carries]
    moved = ", ".join(words[body.nexts[k]].text for k in carries)
    arguments = ["iterations", "store", *states, *(f"x{at}" for at in fixed)]
    whole = [
        f"def run({', '.join(arguments)}):",
        f"    for {', '.join(f'x{at}' for at in columns) or '_'} in iterations:",
        *(f"        {line}" for line in lines),
        f"        {', '.join(states)} = {moved}" if states else "        pass",
        f"    return ({''.join(f'{name}, ' for name in [*states, *kept])})",
        "",
    ]
    return "\n".join(whole), printer.functions


def iteration_lines(
    printer: Printer, body: Body, order: Iterable[int], inputs: Iterable[int], named: Iterable[int], lines: list[str]
) -> dict[Node, Word]:
    """Add the lines of one iteration and give the words of its steps. `named` steps get a line of their own."""
    words = {body.steps[at]: Word(f"x{at}") for at in inputs}
    lined = [body.steps[at] for at in named]
    write_steps(printer, [body.steps[at] for at in order], words, [*lined, *lined], lines)
    return words
