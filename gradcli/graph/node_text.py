"""Nodes as formulas for people: infix operators, calls, names of leaves.

Formulas are built from arguments to results without recursion, and a part that grows too long is replaced by the name
of its step.
"""

from __future__ import annotations

import re
import sys

from gradcli.graph.arrays import ArrayData
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, is_reader, reachable
from gradcli.graph.primitive import OPERATORS
from gradcli.language import trees
from gradcli.language.substitution import expression_of, replaced
from gradcli.language.syntax import Expression, Name
from gradcli.language.trees import Growing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.graph.loop import Body
    from gradcli.graph.primitive import Kink
    from gradcli.language.syntax import Item

SIGNS = {**{name: sign for sign, name in OPERATORS.items()}, "neg": "-", "not": "not"}  # of operations
_OPERANDS = ("x", "y", "z")
_CALL = re.compile(r"\w+\([^()]*\)")
_MOST_NUMBERS = 4  # of an array that is written out
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_SILENT = {"named", "broadcast", "cast", "reshape"}  # seen in shapes, not in formulas


def formulas(
    order: Iterable[Node],
    step_name: Callable[[Node], str] | None = None,
    names: Mapping[Node, str] | None = None,
    longest: int = 60,
) -> dict[Node, str]:
    """The formula of each node of a topological order; operands with a name, and long ones, are shown as names."""
    notation = Growing()
    formula_of: dict[Node, Expression] = {}
    for node in order:
        args: list[Expression] = []
        for arg in node.args:
            if names is not None and arg in names:  # such a node, and what it reads, may be missing in the order
                args.append(trees.name(names[arg]))
            elif step_name is not None and (is_reader(arg) or len(notation.text(formula_of[arg])) > longest):
                args.append(trees.name(step_name(arg)))
            else:
                args.append(formula_of[arg])
        formula_of[node] = _formula(node, args)
    return {node: notation.text(tree) for node, tree in formula_of.items()}


def _formula(node: Node, args: list[Expression]) -> Expression:
    primitive = node.primitive
    name = primitive.name
    if primitive is LEAF:
        return trees.name(node.params["name"])
    if primitive is CONSTANT:
        return trees.constant(node.params["value"])
    if primitive is DATA:
        return _data(node)
    if name in SIGNS:
        return trees.operation(SIGNS[name], *args)
    if name == "power":
        return trees.power(args[0], node.params["n"])
    if name in _SILENT:
        return args[0]
    if name == "permute" and node.params["axes"] == tuple(range(-1, -node.type.rank - 1, -1)):
        return trees.transposed(args[0])
    if name == "slice":
        return trees.subscript(args[0], list(_items(node)))
    template = primitive.written(node.params)
    if primitive.internal and primitive.pointwise and template and len(args) <= len(_OPERANDS):
        operands = dict(zip(_OPERANDS, args, strict=False))
        tree = replaced(expression_of(template), lambda part: operands.get(part.id) if isinstance(part, Name) else None)
        assert isinstance(tree, Expression)
        return tree
    params = reader_params(node) if is_reader(node) else node.params
    static = [trees.keyword(key, trees.static(x)) for key, x in params.items() if not is_default(node, x)]
    return trees.call(name, args, static)


def _data(node: Node) -> Expression:
    """The name of an array of data, or its numbers where these are few and exact; else its shape."""
    data = node.builder.data.get(node.params["digest"])
    if name := getattr(data, "name", ""):
        return trees.name(str(name))
    if node.type.rank == 1 and isinstance(data, ArrayData) and len(data.flat) <= _MOST_NUMBERS:
        if not any(isinstance(entry, float) for entry in data.flat):
            return trees.listed([trees.constant(entry) for entry in data.flat])
    return trees.subscript(trees.name("data"), list(map(trees.number, node.type.shape)))


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


def _items(node: Node) -> Iterator[Item]:
    """What a slice reads of each axis."""
    whole = node.args[0].type.shape
    for start, step, size, n in zip(node.params["start"], node.params["step"], node.params["size"], whole, strict=True):
        stop = start + step * size
        if (start, step, size) == (0, 1, n):
            yield trees.part()
        elif size == 1:
            yield trees.number(start)
        else:
            last = trees.number(stop) if stop >= 0 else None
            yield trees.part(trees.number(start), last, None if step == 1 else trees.number(step))


def is_default(node: Node, value: Any) -> bool:
    """Whether a parameter has its default and can be left out, such as all axes of a sum."""
    return node.primitive.name == "sum" and len(value) == node.args[0].type.rank


def step_names(index: Mapping[Node, int]) -> Callable[[Node], str]:
    """Names for steps by their index: `v3`."""
    return lambda node: f"v{index[node]}"
