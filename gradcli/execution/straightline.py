"""Scalar programs as Python functions: one expression per step.

Each step is printed by `expressions`. User text never reaches the printer: names of leaves are checked
identifiers, everything else is ours. The function gives bit for bit what `Tape` gives on Python floats, and calls
`careful` for the rest: other types, unknown names, values that are not finite.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from gradcli.execution.expressions import LONGEST, Printer, Word, step, text_of
from gradcli.execution.generated import function
from gradcli.execution.namespaces import IEEE_DIFFERS, Unavailable
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, LEAF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.execution.evaluate import Tape
    from gradcli.graph.node import Node

MOST_NODES = 10_000  # compiling takes 10 us and 3 KB for each
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


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
        if node in tape.loops:
            scan, _ = tape.loops[node]
            called = printer.bound(f"_i{place}", scan.on_floats).text
            lines.append(f"_{place} = {called}({', '.join(words[arg].text for arg in node.args)})")
            words.update({reader: Word(f"_{place}[{at}]") for at, reader in enumerate(scan.readers)})
        if node in words:
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
