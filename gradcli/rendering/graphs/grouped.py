"""A large graph as a tree of groups for a page that opens and closes them: calls, layers, loops, source lines.

The page lays out the open groups. This module gives every group few members, and writes each text once.
"""

from __future__ import annotations

import json
import re
from itertools import groupby

from gradcli.rendering.graphs.numbers import norm_of
from gradcli.rendering.graphs.picture_boxes import box, shortened
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.base.results.graph_vertices import Graph, Group, Vertex
    from gradcli.rendering.document import Style

MOST_MEMBERS = 30  # of a group; more are put into groups of their own
MOST_LEAVES = 4  # that stand in a group one by one
SEVERAL = re.compile(r"(\d+) x (.+)")
LONGEST = 100  # characters of an expression
KINDS = ("leaf", "constant", "operation", "output", "gradient")
ROOT: tuple[Group, ...] = ()


class Tree:
    """A group with its members: vertices by their position, and other groups."""

    __slots__ = ("label", "members", "place")

    def __init__(self, label: str, place: str = "") -> None:
        self.label, self.place = label, place
        self.members: list[Tree | int] = []

    def first(self) -> int:
        """The position of its first node."""
        return min(member if isinstance(member, int) else member.first() for member in self.members)


def grouped(graph: Graph) -> Tree:
    """All vertices except constants in groups: a leaf in the group of its readers, many leaves in one of their own."""
    trees: dict[tuple[Group, ...], Tree] = {ROOT: Tree("all")}
    places = homes(graph.vertices)
    for at in varying(graph):
        tree(trees, places[at]).members.append(at)
    for group in list(trees.values()):
        leaves = [at for at in group.members if isinstance(at, int) and graph.vertices[at].role == "leaf"]
        group.members = [member for member in group.members if member not in leaves]
        group.members.sort(key=lambda member: member if isinstance(member, int) else member.first())
        divide(group, graph)
        if len(leaves) > MOST_LEAVES:
            kept = Tree(f"{len(leaves)} leaves")
            kept.members = [*leaves]
            divide(kept, graph)
            group.members.insert(0, kept)
        else:
            group.members[:0] = leaves
    return trees[ROOT]


def varying(graph: Graph) -> list[int]:
    """The positions of all vertices except constants and values computed from constants alone, such as 1/10."""
    fixed: set[int] = set()
    for node in graph.vertices:
        alone = node.role == "operation" and bool(node.inputs) and fixed.issuperset(node.inputs)
        if node.role == "constant" or (alone and node.index not in graph.outputs):
            fixed.add(node.index)
    return [node.index for node in graph.vertices if node.index not in fixed]


def tree(trees: dict[tuple[Group, ...], Tree], groups: tuple[Group, ...]) -> Tree:
    """The tree of a group, which is added to the enclosing one."""
    missing = []
    while groups not in trees:
        missing.append(groups)
        groups = groups[:-1]
    for inner in reversed(missing):
        trees[inner] = Tree(inner[-1].label, inner[-1].place)
        trees[inner[:-1]].members.append(trees[inner])
    return trees[missing[0] if missing else groups]


def homes(vertices: Sequence[Vertex]) -> list[tuple[Group, ...]]:
    """The groups of each node; for a leaf or constant, the groups that all its readers share."""
    home: list[tuple[Group, ...] | None] = [node.groups if node.role == "operation" else None for node in vertices]
    for node in reversed(vertices):
        for read in node.inputs:
            if vertices[read].role != "operation":
                known, reader = home[read], home[node.index] or ROOT
                home[read] = reader if known is None else shared(known, reader)
    return [groups or ROOT for groups in home]


def shared(left: tuple[Group, ...], right: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups that two vertices share."""
    depth = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a.key != b.key), None)
    return left[: min(len(left), len(right)) if depth is None else depth]


def divide(group: Tree, graph: Graph) -> None:
    """Divide a group of many members into groups: of neighbours from one source line, then of any neighbours."""
    if len(group.members) <= MOST_MEMBERS:
        return

    def line(member: Tree | int) -> object:
        return id(member) if isinstance(member, Tree) else (graph.vertices[member].line or "no line")

    runs = [list(run) for _, run in groupby(group.members, line)]
    if len(runs) > 1:
        group.members = [run[0] if len(run) == 1 else of_line(run, graph) for run in runs]
    while len(group.members) > MOST_MEMBERS:
        size = max(2, min(MOST_MEMBERS, round(len(group.members) ** 0.5)))
        pieces = [group.members[at : at + size] for at in range(0, len(group.members), size)]
        group.members = [piece[0] if len(piece) == 1 else together(piece, graph) for piece in pieces]


def of_line(members: list[Tree | int], graph: Graph) -> Tree:
    """The group of neighbours from one line."""
    number = graph.vertices[members[0]].line if isinstance(members[0], int) else None
    text = graph.lines[number - 1].strip() if number and number <= len(graph.lines) else ""
    group = Tree(shortened(text, 40) or "steps", f"line {number}" if number else "")
    group.members = members
    divide(group, graph)
    return group


def together(members: list[Tree | int], graph: Graph) -> Tree:
    """A group of neighbours: `9 x block()` if all are alike, else named after the first and the last of them."""
    labels = [
        member.label if isinstance(member, Tree) else f"{graph.vertices[member].name} {member}" for member in members
    ]
    counted = [SEVERAL.fullmatch(label) for label in labels]
    alike = {match[2] if match else label for match, label in zip(counted, labels, strict=True)}
    count = sum(int(match[1]) if match else 1 for match in counted)
    first, last = labels[0].partition(" … ")[0], labels[-1].rpartition(" … ")[2]
    group = Tree(f"{count} x {alike.pop()}" if len(alike) == 1 else f"{first} … {last}")
    group.members = members
    return group


def embedded(graph: Graph, style: Style, torch: bool, backward: bool) -> str:
    """The graph as JSON that is safe inside a page."""
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(visible(text), len(words))

    root = grouped(graph)
    ends = {**dict.fromkeys(graph.outputs, "output"), **{at: f"d/d{name}" for name, at in graph.gradient.items()}}
    groups: list[list[int]] = []
    drawn = varying(graph)
    index = {at: place for place, at in enumerate(drawn)}
    nodes: list[list[object]] = [[] for _ in drawn]
    for at, parent, group in walk(root):
        groups.append([parent, word(group.label), word(group.place)])
        for member in group.members:
            if isinstance(member, int):
                nodes[index[member]] = [at, member, *row(graph.vertices[member], style, torch, ends.get(member), word)]
    lines = {node.line for node in graph.vertices if node.line and node.line <= len(graph.lines)}
    text = json.dumps(
        {
            "words": list(words),
            "kinds": KINDS,
            "groups": groups,
            "nodes": nodes,
            "arrows": [
                index[at]
                for node in graph.vertices
                for read in node.inputs
                if read in index
                for at in (read, node.index)
            ],
            "lines": {str(number): visible(graph.lines[number - 1].strip()) for number in sorted(lines)},
            "backward": backward,
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return text.replace("<", "\\u003c")


def walk(root: Tree) -> Iterator[tuple[int, int, Tree]]:
    """Each group with its number and that of its enclosing group, outer groups first."""
    pending, count = [(-1, root)], 0
    while pending:
        parent, group = pending.pop()
        yield count, parent, group
        pending += [(count, member) for member in group.members[::-1] if isinstance(member, Tree)]
        count += 1


def row(node: Vertex, style: Style, torch: bool, end: str | None, word: Callable[[str], int]) -> list[object]:
    """The fields of a node, in the order in which the script of the page reads them."""
    drawn = box(node, style, torch, end)
    norm = norm_of(node.cotangent)
    more = "; ".join(
        f"{name}: {text}" for name, text in drawn.facts if name in ("name", "gives", "each iteration", "own rule")
    )
    return [
        word(drawn.title),
        KINDS.index(drawn.kind),
        word(shortened(node.text, LONGEST)),
        word(node.type),
        node.line or 0,
        word(drawn.value),
        word(drawn.cotangent),
        None if norm is None else float(f"{norm:.3g}"),
        word(more),
    ]
