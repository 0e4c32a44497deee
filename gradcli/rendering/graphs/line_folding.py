"""Folds a large graph to one node per source line.

The lines of a loop read each other in a cycle. As few arrows as possible should point back, so the best of three orders
is used: that of the source, that in which lines ran first, and that of Eades, Lin and Smyth (1993): sources first,
sinks last, between them the line with the largest difference of outgoing and incoming reads.
"""

from __future__ import annotations

from math import gcd

from gradcli.rendering.graphs.numbers import norm_of
from gradcli.rendering.graphs.picture_boxes import MOST_BOXES, Arrow, Box, Picture, box, shortened
from gradcli.rendering.value_text import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from gradcli.base.results.graph_vertices import Graph, Vertex
    from gradcli.rendering.document import Style

OFTEN = 8  # operations that the facts of a line count


def folded(graph: Graph, style: Style, torch: bool = False) -> Picture:
    """A box for each source line, and one for nodes without a line; a few leaves keep boxes of their own."""
    groups: dict[Hashable, list[Vertex]] = {}
    leaves = sum(vertex.role == "leaf" for vertex in graph.vertices) <= MOST_BOXES // 2
    place: dict[int, Hashable] = {}
    for vertex in graph.vertices:
        if vertex.role == "constant":
            continue
        key: Hashable = ("leaf", vertex.index) if leaves and vertex.role == "leaf" else vertex.line
        place[vertex.index] = key
        groups.setdefault(key, []).append(vertex)
    reads: dict[tuple[Hashable, Hashable], int] = {}
    for vertex in graph.vertices:
        for read in vertex.inputs:
            if read in place and vertex.index in place:
                pair = (place[read], place[vertex.index])
                reads[pair] = reads.get(pair, 0) + 1
    between = {pair: count for pair, count in reads.items() if pair[0] != pair[1]}
    written = sorted(groups, key=lambda key: (0, 0) if isinstance(key, tuple) else (1, groups[key][0].line or 0))
    keys = min(written, list(groups), unrolled(list(groups), between), key=lambda keys: back(keys, between))
    position = {key: number for number, key in enumerate(keys)}
    ends = {place[at] for at in (*graph.outputs, *graph.gradient.values()) if at in place}
    circles = turning(graph, place)
    boxes = tuple(line_box(graph, groups[key], style, torch, key in ends) for key in keys)
    arrows = tuple(
        Arrow(position[start], position[end], "", True, position[start] >= position[end])
        for start, end in reads
        if start != end or start in circles
    )
    return Picture(graph.expression, boxes, arrows, True)


def turning(graph: Graph, place: Mapping[int, Hashable]) -> set[Hashable]:
    """The lines that read their own result of an earlier iteration of a loop: other lines ran in between."""
    run, last = 0, None
    runs: dict[int, int] = {}
    names: dict[Hashable, list[str]] = {}
    for vertex in graph.vertices:
        if vertex.role != "operation":
            continue
        run, last = (run, last) if vertex.line == last else (run + 1, vertex.line)
        runs[vertex.index] = run
        names.setdefault(vertex.line, []).append(vertex.name)
    return {
        vertex.line
        for vertex in graph.vertices
        for read in vertex.inputs
        if runs.get(read)
        and place[read] == place[vertex.index]
        and runs[read] != runs[vertex.index]
        and len(set(names[vertex.line])) < len(names[vertex.line])
    }


def line_box(graph: Graph, members: Sequence[Vertex], style: Style, torch: bool, end: bool) -> Box:
    """The box of one line: the number of its nodes, and the norms of their cotangents."""
    only = members[0]
    if len(members) == 1 and only.role == "leaf":
        return box(only, style, torch, None)
    line = graph.lines[only.line - 1].strip() if only.line and only.line <= len(graph.lines) else ""
    title = f"line {only.line}: {line}" if only.line else "without a line"
    counts: dict[str, int] = {}
    for member in members:
        name = member.torch if torch else member.name
        counts[name] = counts.get(name, 0) + 1
    often = sorted(counts, key=lambda name: (-counts[name], name))
    phrase = ", ".join(f"{counts[name]} {name}" for name in often[:OFTEN]) + (", ..." if len(often) > OFTEN else "")
    iterations = gcd(*counts.values())
    each = len(members) // iterations
    size = f"{each} node{'s' * (each > 1)}" + (f", {iterations} times" if iterations > 1 else "")
    norms = [norm for norm in (norm_of(member.cotangent) for member in members) if norm is not None]
    returned = ""
    if norms:
        low, high = number(min(norms), 3), number(max(norms), 3)
        returned = f"norm {low}" if low == high else f"norms {low} to {high}"
    facts = [("source", title), ("nodes", str(len(members))), ("operations", phrase)]
    if returned:
        facts.append(("cotangents", returned))
    return Box(shortened(title), size, returned, "output" if end else "operation", tuple(facts))


def back(keys: Sequence[Hashable], reads: Mapping[tuple[Hashable, Hashable], int]) -> int:
    """The number of reads that point back in an order."""
    position = {key: number for number, key in enumerate(keys)}
    return sum(count for (start, end), count in reads.items() if position[start] > position[end])


def unrolled(keys: Sequence[Hashable], reads: Mapping[tuple[Hashable, Hashable], int]) -> list[Hashable]:
    """The boxes in an order in which few arrows point back, weighted by their numbers of reads.

    >>> unrolled("abc", {("a", "b"): 9, ("b", "c"): 9, ("c", "a"): 8})
    ['a', 'b', 'c']
    """
    gives: dict[Hashable, dict[Hashable, int]] = {key: {} for key in keys}
    takes: dict[Hashable, dict[Hashable, int]] = {key: {} for key in keys}
    for (start, end), count in reads.items():
        gives[start][end] = count
        takes[end][start] = count
    left = dict.fromkeys(keys)
    first: list[Hashable] = []
    last: list[Hashable] = []
    while left:
        chosen = next((key for key in left if not takes[key]), None)
        if chosen is None:
            sink = next((key for key in reversed(left) if not gives[key]), None)
            if sink is not None:
                last.append(sink)
                chosen = sink
            else:
                chosen = max(left, key=lambda key: sum(gives[key].values()) - sum(takes[key].values()))
                first.append(chosen)
        else:
            first.append(chosen)
        del left[chosen]
        for other in gives.pop(chosen):
            del takes[other][chosen]
        for other in takes.pop(chosen):
            del gives[other][chosen]
    return first + last[::-1]
