"""A lower bound of the nodes that a loop will make, so that one beyond the limit is refused before it is built.

A value that a turn makes of the one before it is a new node in every turn: its argument is new. Only bodies of which
every turn takes the same steps, from some turn on, are looked at: assignments of arithmetic, single entries of arrays,
calls of functions of such, loops of a fixed length over them, and branches on the number of the turn.
"""

from __future__ import annotations

from bisect import bisect_left

from gradcli.graph.node import Node
from gradcli.language import syntax as s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from typing import Any

    from gradcli.graph.primitive import Primitive

LOOKED_AT = 3  # turns before the one that is looked at: what stood there has been replaced, and constants have settled
WORTH = 100  # turns that have to remain
OPERATORS = ("+", "-", "*", "/")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def steady_turn(
    loop: s.For,
    numbers: range,
    library: Mapping[str, Primitive],
    own: Container[str],
    functions: Mapping[str, s.FunctionDef],
) -> int | None:
    """The first turn from which all take the same steps, as far as that can be told; the rest is as for `alike`.

    `numbers` are what the turns count.
    """
    name = loop.target.id
    waiting, plain, first = list(loop.body), [], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, s.If):
            turn = settled_turn(one.test, name, numbers)
            if turn is None:
                return None
            first = max(first, turn)
            waiting += (*one.body, *one.orelse)
        else:
            plain.append(one)
    if first and name in targets(plain):
        return None
    return first if alike(s.For(loop.target, loop.bounds, tuple(plain), loop.span), library, own, functions) else None


def settled_turn(test: s.Expression, name: str, numbers: range) -> int | None:
    """The first turn from which a comparison of its number with a constant keeps its answer."""
    if not isinstance(test, s.Compare) or len(test.ops) != 1 or not numbers:
        return None
    left, right, sign = *test.operands, test.ops[0]
    if isinstance(left, s.Number):
        left, right, sign = right, left, MIRRORED.get(sign, "")
    if not (isinstance(left, s.Name) and left.id == name and isinstance(right, s.Number)) or sign not in MIRRORED:
        return None
    bound = right.value
    if sign in ("==", "!="):
        return numbers.index(int(bound)) + 1 if bound.denominator == 1 and int(bound) in numbers else 0

    def answer(number: int) -> bool:
        return {"<": number < bound, "<=": number <= bound, ">": number > bound, ">=": number >= bound}[sign]

    last = answer(numbers[-1])
    return bisect_left(numbers, True, key=lambda number: answer(number) == last)


def alike(
    loop: s.For, library: Mapping[str, Primitive], own: Container[str], functions: Mapping[str, s.FunctionDef]
) -> bool:
    """Whether every turn of a loop takes the same steps, whatever the number of the turn is.

    `own` are the names of the script, which may stand before functions of the language; `functions` are those of its
    functions that have no rule of their own.
    """
    changing = targets([loop])
    waiting: list[s.Syntax] = list(loop.body)
    entered: set[str] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, s.For):
            if not all(isinstance(bound, s.Number) for bound in one.bounds):
                return False
            waiting += one.body
        elif isinstance(one, s.Assign):
            if one.shape is not None or one.const or len(one.targets) != 1 or one.operator not in (None, *OPERATORS):
                return False
            waiting.append(one.value)
        elif isinstance(one, s.Append):
            waiting.append(one.value)
        elif isinstance(one, s.Binary):
            if one.op not in OPERATORS and not (one.op == "**" and settled(one.right, changing)):
                return False
            waiting += (one.left, one.right)
        elif isinstance(one, s.Unary):
            if one.op == "not":
                return False
            waiting.append(one.operand)
        elif isinstance(one, s.Return):
            waiting.append(one.value)
        elif isinstance(one, s.Subscript):
            waiting += (one.value, *one.items)
        elif isinstance(one, s.Call) and one.function.id in functions and not one.keywords and not one.method:
            definition = functions[one.function.id]
            if definition.name.id not in entered:
                entered.add(definition.name.id)
                changing |= {param.id for param in definition.params} | targets(definition.body)
                waiting += definition.body
            waiting += one.args
        elif isinstance(one, s.Call):
            primitive = None if one.function.id in own else library.get(one.function.id)
            if primitive is None or primitive.kind != "elementwise" or len(one.args) != 1 or one.keywords:
                return False
            waiting += one.args
        elif not isinstance(one, (s.Name, s.Number)):
            return False
    return True


def settled(exponent: s.Syntax, changing: Container[str]) -> bool:
    """Whether an exponent is the same in every turn: where it is 0 or 1, a power may be no operation."""
    return isinstance(exponent, s.Number) or (isinstance(exponent, s.Name) and exponent.id not in changing)


def targets(body: Iterable[s.Syntax]) -> set[str]:
    """The names that some statements assign to."""
    found: set[str] = set()
    waiting: list[s.Syntax] = list(body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, s.For):
            found.add(one.target.id)
            waiting += one.body
        elif isinstance(one, s.If):
            waiting += (*one.body, *one.orelse)
        elif isinstance(one, s.Assign):
            found.update(name.id for name in one.targets)
    return found


def new_in_every_turn(before: Mapping[str, Any], after: Mapping[str, Any], first: int, second: int) -> int:
    """At least so many nodes are new in every turn like the one that made `after` of `before`.

    `first` and `second` are the numbers of nodes when the turn before it began, and when it began itself.
    """
    made = _made([value for value in after.values() if isinstance(value, Node)], second)
    chain = {name for name, value in before.items() if isinstance(value, Node) and value.serial > first}
    while True:
        carried = {before[name] for name in chain}
        new: set[Node] = set()
        for node in made:
            if any(arg in carried or arg in new for arg in node.args):
                new.add(node)
        kept = {name for name in chain if after.get(name) in new}
        if kept == chain:
            return len(new)
        chain = kept


def _made(values: Iterable[Node], since: int) -> list[Node]:
    """The nodes made since a number of them, that some values need, in the order in which they were made."""
    seen: set[Node] = set()
    waiting = [value for value in values if value.serial > since]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [arg for arg in node.args if arg.serial > since]
    return sorted(seen, key=lambda node: node.serial)
