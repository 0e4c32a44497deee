"""Nodes as formulas for people: infix operators, calls, names of leaves.

Formulas are built from arguments to results without recursion, and a part that grows too long is replaced by the name
of its step.
"""

from __future__ import annotations

import re
import sys

from gradcli.graph.arrays import ArrayData
from gradcli.graph.exact import decimal, is_fraction
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, is_reader, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction
    from typing import Any

    from gradcli.graph.loop import Body
    from gradcli.graph.primitive import Kink

_INFIX = {
    "add": (" + ", 1),
    "sub": (" - ", 1),
    "mul": ("*", 2),
    "div": ("/", 2),
    "matmul": (" @ ", 2),
    "less": (" < ", 0),
    "less_equal": (" <= ", 0),
    "greater": (" > ", 0),
    "greater_equal": (" >= ", 0),
    "equal": (" == ", 0),
    "not_equal": (" != ", 0),
    "and": (" and ", -1),
    "or": (" or ", -2),
}
_SIGN, _POWER, _ATOM = 3, 4, 5
_OPERANDS = ("x", "y", "z")
_CALL = re.compile(r"\w+\([^()]*\)")
_MOST_NUMBERS = 4  # of an array that is written out
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_SILENT = {"name", "broadcast", "cast"}  # seen in shapes, not in formulas


def formulas(
    order: Iterable[Node],
    step_name: Callable[[Node], str] | None = None,
    names: Mapping[Node, str] | None = None,
    longest: int = 60,
) -> dict[Node, str]:
    """The formula of each node of a topological order; operands with a name, and long ones, are shown as names."""
    texts: dict[Node, tuple[str, int]] = {}
    for node in order:
        args = []
        for arg in node.args:
            if names is not None and arg in names:  # such a node, and what it reads, may be missing in the order
                args.append((names[arg], _ATOM))
                continue
            text, rank = texts[arg]
            if step_name is not None and (len(text) > longest or is_reader(arg)):
                text, rank = step_name(arg), _ATOM
            args.append((text, rank))
        texts[node] = _formula(node, args)
    return {node: text for node, (text, _) in texts.items()}


def _formula(node: Node, args: list[tuple[str, int]]) -> tuple[str, int]:
    primitive = node.primitive
    name = primitive.name
    if primitive is LEAF:
        return node.params["name"], _ATOM
    if primitive is CONSTANT:
        return constant_text(node.params["value"])
    if primitive is DATA:
        return _data_text(node), _ATOM
    if name in _INFIX:
        sign, rank = _INFIX[name]
        left, right = args
        # the right operand of the same rank needs brackets, or another tree would be read: a - (b - c)
        return f"{_inside(left, rank)}{sign}{_inside(right, rank + (rank >= 0))}", rank
    if name == "neg":
        return f"-{_inside(args[0], _SIGN)}", _SIGN
    if name == "not":
        return f"not {_inside(args[0], 0)}", -1
    if name == "power":
        n = node.params["n"]
        return f"{_inside(args[0], _ATOM)}**{n if n >= 0 else f'({n})'}", _POWER
    if name == "pow":
        return f"{_inside(args[0], _ATOM)}**{_inside(args[1], _POWER)}", _POWER
    if name in _SILENT:
        return args[0]
    if name == "reshape":
        return args[0]
    if name == "permute" and node.params["axes"] == tuple(range(-1, -node.type.rank - 1, -1)):
        return f"{_inside(args[0], _ATOM)}.T", _ATOM
    if name == "slice":
        return f"{_inside(args[0], _ATOM)}[{_slice_text(node)}]", _ATOM
    template = primitive.written(node.params)
    if primitive.internal and primitive.pointwise and template and len(args) <= len(_OPERANDS):
        operands = dict(zip(_OPERANDS, [_inside(arg, _ATOM) for arg in args], strict=False))
        text = "".join(operands.get(word, word) for word in re.split(r"\b", template))
        return text, _ATOM if _CALL.fullmatch(template) else -3
    params = reader_params(node) if is_reader(node) else node.params
    static = [f"{key}={_static_text(value)}" for key, value in params.items() if not is_default(node, value)]
    return f"{name}({', '.join([text for text, _ in args] + static)})", _ATOM


def _data_text(node: Node) -> str:
    """The name of an array of data, or its numbers where these are few and exact; else its shape."""
    data = node.builder.data.get(node.params["digest"])
    if name := getattr(data, "name", ""):
        return str(name)
    if node.type.rank == 1 and isinstance(data, ArrayData) and len(data.flat) <= _MOST_NUMBERS:
        exact = [constant_text(x)[0] for x in data.flat if not isinstance(x, float)]
        if len(exact) == len(data.flat):
            return f"[{', '.join(exact)}]"
    return f"data[{','.join(map(str, node.type.shape))}]"


def subscript(i: int, shape: Sequence[int]) -> str:
    """The subscript of a flat position: "[1, 2]", or nothing for a scalar."""
    if not shape:
        return ""
    index = []
    for n in reversed(shape):
        index.append(str(i % n))
        i //= n
    return f"[{', '.join(reversed(index))}]"


def reader_params(node: Node) -> dict[str, int | bool]:
    """The parameters of a reader as people and JSON see them: the body is left out."""
    params = node.params
    several = "carry" in params and len(params["body"].carried) > 1
    return {
        "iterations": params["count"],
        **({"carry": params["carry"]} if several else {}),
        **({"at": params["at"]} if "at" in params else {}),
        **({"reverse": True} if params["reverse"] else {}),
    }


def body_text(node: Node, longest: int = 400) -> str:
    """What one iteration of the loop of a reader computes, as assignments: `x = x*cos(a*x); n = n + 1`."""
    body: Body = node.params["body"]
    outside = formulas(reachable(node.args), lambda _: "...")  # a shared part is repeated: texts may explode
    fixed = node.args[len(node.args) - len(body.fixed) :]
    texts = [f"({outside[arg]})" if arg.args else outside[arg] for arg in fixed]
    names = {leaf: text for leaf, text in zip(body.fixed, texts, strict=True) if len(text) <= 30 and "..." not in text}
    formula_of = formulas(body.steps, lambda _: "...", names, longest)
    texts = [f"{formula_of[leaf]} = {formula_of[after]}" for leaf, after in zip(body.carried, body.nexts, strict=True)]
    if "at" in node.params:
        texts.append(formula_of[body.steps[node.params["at"]]])
    text = "; ".join(texts).replace("~", "")
    return text if len(text) <= longest else text[: longest - 3] + "..."


def with_operands(template: str, operands: Mapping[str, str]) -> str:
    """A text about operands, such as `x = 0` or `y*x**(y - 1)`, with names or formulas substituted for the operands.

    A formula that is not a name, number or call is put in brackets next to an operator.

    >>> with_operands("x = 0, or -x/y", {"x": "a + b", "y": "c"})
    'a + b = 0, or -(a + b)/c'
    """

    def put(match: re.Match[str]) -> str:
        text = operands[match[0]]
        before, after = template[: match.start()].rstrip()[-1:], template[match.end() :].lstrip()[:1]
        factor = (before and before in "*/-") or (after and after in "*/")
        return f"({text})" if factor and not re.fullmatch(rf"[\w.]+|{_CALL.pattern}", text) else text

    return re.sub(rf"\b(?:{'|'.join(map(re.escape, operands))})\b", put, template) if operands else template


def kink_texts(kink: Kink, args: Sequence[str]) -> tuple[str, str]:
    """Where an operation on these operands has a kink, and which derivative it returns there."""
    operands = dict(zip(kink.arguments(), operand_texts(args), strict=False))
    return with_operands(kink.where, operands), with_operands(kink.value, operands)


def operand_texts(args: Sequence[str], longest: int = 40) -> list[str]:
    """The operands for a sentence: their formulas, or "argument 1" where a formula is long."""
    if len(args) == 1:
        return [args[0] if len(args[0]) <= longest else "the argument"]
    return [
        text if len(text) <= longest else f"the {place} argument" for text, place in zip(args, ORDINALS, strict=False)
    ]


def operand_text(node: Node, position: int, most: int = 40) -> str:
    """An operand of an operation and the operation, as `x - 2 in (x - 2)**y`; of a large graph which argument it is."""
    near = [node]
    for step in near:  # the list grows while it is read
        near += [arg for arg in step.args if arg not in near]
        if len(near) > most:
            return f"its {ORDINALS[position]} argument"
    texts = formulas(sorted(near, key=lambda step: step.serial), longest=sys.maxsize)
    text, whole = texts[node.args[position]], texts[node]
    return f"{text} in {whole}" if len(whole) <= most else f"its {ORDINALS[position]} argument"


def _inside(operand: tuple[str, int], rank: int) -> str:
    text, own = operand
    return text if own >= rank else f"({text})"


def _slice_text(node: Node) -> str:
    parts = []
    whole = node.args[0].type.shape
    for start, step, size, n in zip(node.params["start"], node.params["step"], node.params["size"], whole, strict=True):
        if (start, step, size) == (0, 1, n):
            parts.append(":")
        elif size == 1:
            parts.append(str(start))
        else:
            stop = start + step * size
            parts.append(f"{start}:{stop if stop >= 0 else ''}" + ("" if step == 1 else f":{step}"))
    return ", ".join(parts)


def is_default(node: Node, value: Any) -> bool:
    """Whether a parameter has its default and can be left out, such as all axes of a sum."""
    return node.primitive.name == "sum" and len(value) == node.args[0].type.rank


def _static_text(value: Any) -> str:
    if is_fraction(value):
        return constant_text(value)[0]
    if isinstance(value, tuple):
        inner = ", ".join(map(_static_text, value))
        return inner if len(value) == 1 else f"({inner})"
    return repr(value)


def constant_text(value: int | Fraction | str) -> tuple[str, int]:
    """A constant as a literal: a decimal where it is finite and short, else a quotient; with its rank."""
    if isinstance(value, str):
        return (value, _ATOM) if not value.startswith("-") else (value, _SIGN)
    if isinstance(value, int):
        return str(value), (_ATOM if value >= 0 else _SIGN)
    bottom = value.denominator
    for prime in (2, 5):
        while bottom % prime == 0:
            bottom //= prime
    if bottom == 1:
        as_float = float(value)
        if decimal(repr(as_float)) == value:
            return repr(as_float), (_ATOM if value >= 0 else _SIGN)
    return f"{value.numerator}/{value.denominator}", 2


def step_names(index: Mapping[Node, int]) -> Callable[[Node], str]:
    """Names for steps by their index: `v3`."""
    return lambda node: f"v{index[node]}"
