"""Programs as flat tables of JSON values, for another process or a file, and back.

A row is one node: the name of its primitive, the rows of its arguments, its static parameters, kind, shape and
span. Nothing is pickled; the reader looks names up in its own vocabulary. The table describes values only: of a
function with a hand-written rule the rule is lost, so take derivatives before you flatten.
"""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module

from gradcli.base.diagnostics import Span
from gradcli.graph.arrays import ArrayData
from gradcli.graph.domain import Interval
from gradcli.graph.loop import Body
from gradcli.graph.node import CONSTANT, DATA, LEAF, Builder, Node
from gradcli.graph.program import Leaf, Program
from gradcli.graph.types import Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.primitive import Primitive

    Flat = dict[str, Any]

VERSION = 1
_INPUTS = {"leaf": LEAF, "data": DATA, "constant": CONSTANT}


class Table:
    """The flat form of some nodes, and the row of each of them.

    >>> from gradcli.primitives import catalogue
    >>> x = Builder(catalogue()).leaf("x")
    >>> table = Table([x*x], catalogue())
    >>> [(name, args) for name, args, *_ in table.flat["nodes"]], table.rows[x]
    ([('leaf', []), ('mul', [0, 0])], 0)
    """

    __slots__ = ("flat", "rows")

    def __init__(
        self,
        outputs: Sequence[Node],
        vocabulary: Mapping[str, Primitive],
        leaves: Mapping[str, Leaf] | None = None,
    ) -> None:
        order = _order((*outputs, *(leaf.node for leaf in (leaves or {}).values())), vocabulary)
        self.rows: dict[Node, int] = {}
        rows: list[list[Any]] = []
        data: dict[str, Any] = {}
        for node in order:
            if _is_written_by_hand(node, vocabulary):
                self.rows[node] = self.rows[node.args[0]]
                continue
            self.rows[node] = len(rows)
            if node.primitive is DATA:
                digest = node.params["digest"]
                data[digest] = _array_to_json(node.builder.data[digest])
            rows.append(
                [
                    node.primitive.name,
                    [self.rows[arg] for arg in node.args],
                    {key: _to_json(value) for key, value in node.params.items()},
                    node.type.kind,
                    list(node.type.shape),
                    None if node.span is None else list(node.span),
                ]
            )
        self.flat: Flat = {
            "version": VERSION,
            "nodes": rows,
            "outputs": [self.rows[output] for output in outputs],
            "leaves": [_leaf_to_json(leaf, self.rows[leaf.node]) for leaf in (leaves or {}).values()],
            "data": data,
        }


def flatten(program: Program) -> Flat:
    """The flat form of a program: plain JSON values (dicts, lists, strings, numbers, None).

    Raises TypeError for a parameter that is not a static value.
    """
    return Table(program.outputs, program.builder.vocabulary, program.leaves).flat


def restore(flat: Mapping[str, Any], vocabulary: Mapping[str, Primitive]) -> Program:
    """The program of a flat form; its nodes are new, in the same order.

    Raises KeyError for an operation that the vocabulary does not have, ValueError for another version.
    """
    return restore_nodes(flat, vocabulary)[0]


def restore_nodes(flat: Mapping[str, Any], vocabulary: Mapping[str, Primitive]) -> tuple[Program, list[Node]]:
    """The program of a flat form, and the node of each of its rows."""
    if flat["version"] != VERSION:
        raise ValueError(f"a flat program of version {flat['version']}, not {VERSION}")
    builder = Builder(vocabulary)
    nodes: list[Node] = []
    for name, args, params, kind, shape, span in flat["nodes"]:
        primitive = _INPUTS.get(name) or vocabulary[name]
        nodes.append(
            Node(
                primitive,
                tuple([nodes[arg] for arg in args]),
                {key: _from_json(value, vocabulary) for key, value in params.items()},
                Type(kind, tuple(shape)),
                len(nodes) + 1,
                None if span is None else Span(*span),
                builder,
            )
        )
    builder.count = len(nodes)
    builder.data.update({digest: _array_from_json(value) for digest, value in flat["data"].items()})
    builder.close()
    leaves = {leaf["name"]: _leaf_from_json(leaf, nodes) for leaf in flat["leaves"]}
    return Program(builder, leaves, [nodes[row] for row in flat["outputs"]]), nodes


# --- inner ---------------------------------------------------------------------------------------------


def _is_written_by_hand(node: Node, vocabulary: Mapping[str, Primitive]) -> bool:
    """Whether a node is a function of the script with a hand-written rule; its first argument is then its value."""
    primitive = node.primitive
    return primitive.kind != "input" and vocabulary.get(primitive.name) is not primitive


def _order(outputs: Iterable[Node], vocabulary: Mapping[str, Primitive]) -> list[Node]:
    """The nodes that the values need, in topological order."""
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.args[:1] if _is_written_by_hand(node, vocabulary) else node.args)
    return sorted(seen, key=lambda node: node.serial)


def _to_json(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return {"ratio": [value.numerator, value.denominator]}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return [_to_json(item) for item in value]
    if isinstance(value, Body):
        return {"body": _body_to_json(value)}
    raise TypeError(f"a parameter of type {type(value).__name__} is not a static value")


def _from_json(value: Any, vocabulary: Mapping[str, Primitive] | None = None) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    if isinstance(value, dict):
        if "body" in value:
            assert vocabulary is not None
            return _body_from_json(value["body"], vocabulary)
        return Fraction(*value["ratio"]) if "ratio" in value else float(value["float"])
    return value


def _body_to_json(body: Body) -> dict[str, Any]:
    """The body of a loop as a table, with the rows of its leaves and of the carries after the iteration."""
    table = Table(body.steps, body.builder.vocabulary)
    rows = table.rows
    return {
        "table": table.flat,
        "carried": [rows[leaf] for leaf in body.carried],
        "rows": [rows[leaf] for leaf in body.rows],
        "fixed": [rows[leaf] for leaf in body.fixed],
        "index": None if body.index is None else rows[body.index],
        "nexts": [rows[node] for node in body.nexts],
        "first": body.first,
    }


def _body_from_json(flat: Mapping[str, Any], vocabulary: Mapping[str, Primitive]) -> Body:
    program, nodes = restore_nodes(flat["table"], vocabulary)
    carried, rows, fixed, nexts = [
        tuple([nodes[row] for row in flat[part]]) for part in ("carried", "rows", "fixed", "nexts")
    ]
    index = None if flat["index"] is None else nodes[flat["index"]]
    return Body(carried, rows, fixed, index, nexts, program.outputs, flat["first"])


def _array_to_json(value: Any) -> Any:
    if hasattr(value, "make"):  # a recipe of random numbers: the reader of the table has the entries
        value = value.make(import_module("numpy"))
    if isinstance(value, ArrayData):
        flat = [_to_json(entry) for entry in value.flat]
        return {"shape": list(value.shape), "flat": flat, **({"name": value.name} if value.name else {})}
    flat = value.reshape(-1).tolist()
    numbers = [int(entry) if isinstance(entry, bool) else entry for entry in flat]
    return {"shape": list(value.shape), "flat": [_to_json(entry) for entry in numbers]}


def _array_from_json(value: Any) -> ArrayData:
    name = str(value.get("name", ""))
    flat = [_from_json(entry) for entry in value["flat"]]
    return ArrayData(tuple(value["shape"]), flat, name if name.isidentifier() else "")


def _leaf_to_json(leaf: Leaf, row: int) -> dict[str, Any]:
    domain = leaf.domain
    default = leaf.default
    if isinstance(default, ArrayData):
        default = default.nested()
    elif hasattr(default, "tolist"):
        default = default.tolist()
    return {
        "name": leaf.name,
        "node": row,
        "default": _to_json(default),
        "domain": None
        if domain is None
        else [_to_json(domain.low), _to_json(domain.high), domain.low_open, domain.high_open],
        "const": leaf.const,
        "declared": leaf.declared,
        "span": None if leaf.span is None else list(leaf.span),
    }


def _leaf_from_json(leaf: Mapping[str, Any], nodes: Sequence[Node]) -> Leaf:
    domain = leaf["domain"]
    interval = None if domain is None else Interval(*(_from_json(end) for end in domain))
    span = None if leaf["span"] is None else Span(*leaf["span"])
    default = _from_json(leaf["default"])
    return Leaf(leaf["name"], nodes[leaf["node"]], default, interval, leaf["const"], span, leaf["declared"])
