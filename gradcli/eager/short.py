"""The sweep of backward where nobody watches: raw seeds go in, the leaves' `.grad` is what comes out.

Without hooks, targets or a graph of the gradients it does not show when a leaf is reached, so nothing is counted: a
node runs in descending order of the sequence numbers, and the leaves get theirs at the end. Where a node fails, the
leaves that were complete get theirs before the error goes on.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from gradcli.eager.accumulate import add_raw
from gradcli.eager.rules import fit

if TYPE_CHECKING:
    from collections.abc import Sequence


def sweep(sources: Sequence[Any], seeds: Sequence[Any], retain: bool) -> None:
    """Send the seeds from their sources (nodes, outputs of nodes, or leaves) down to the leaves."""
    heap: list[int] = []  # the numbers of the nodes that wait, apart from `top`, the last of them
    nodes: dict[int, Any] = {}
    cts: dict[int, Any] = {}
    leaves: dict[int, list[Any]] = {}
    node: Any = None
    top: Any = None
    last = 0  # the number of `top`
    first: Any = None  # what has arrived at it
    if len(sources) == 1 and sources[0]._seq > 0:
        top, last, first = sources[0], sources[0]._seq, seeds[0]
    else:
        for source, seed in zip(sources, seeds, strict=True):
            _arrive(source, seed, heap, nodes, cts, leaves)
    try:
        while True:
            if heap and -heap[0] > last:
                if top is not None:
                    nodes[last], cts[last] = top, first
                    heappush(heap, -last)
                s = -heappop(heap)
                node, ct = nodes.pop(s), cts.pop(s)
            elif top is not None:
                node, ct = top, first
            else:
                break
            top = first = None
            last = 0
            if node.extra is not None:
                _retain(node, ct)
            saved = node.saved
            if node.simple:
                if saved is None:
                    node.check_not_freed()
                results = node.way.back(node, ct)
                if node.fits is not None:
                    results = fit(results, node.fits)
            else:
                results = node.run(ct if node.outputs > 1 else [ct], False)
            if saved and not retain and not node.keeps:
                node.saved = None
            saved = ct = None
            for source, value in zip(node.ins, results):  # noqa: B905 - the keyword costs as much as the loop
                if source is None or value is None:
                    continue
                s = source._seq
                if s > last:
                    if s in nodes:
                        cts[s] = cts[s] + value
                    else:
                        if top is not None:
                            nodes[last], cts[last] = top, first
                            heappush(heap, -last)
                        top, last, first = source, s, value
                elif s > 0:
                    if source is top:
                        first = first + value
                    elif s in nodes:
                        cts[s] = cts[s] + value
                    else:
                        nodes[s], cts[s] = source, value
                        heappush(heap, -s)
                elif s == 0:
                    entry = leaves.get(id(source))
                    if entry is None:
                        leaves[id(source)] = [source, value, False]
                    elif entry[2]:  # a sum that nobody else holds
                        entry[1] += value
                    else:
                        entry[1], entry[2] = entry[1] + value, True
                else:
                    _arrive(source, value, heap, nodes, cts, leaves)
            value = results = None
    except BaseException:
        _complete(leaves, [*nodes.values(), *[one for one in (node, top) if one is not None]])
        raise
    _accumulate(leaves)


def _arrive(
    source: Any,
    value: Any,
    heap: list[int],
    nodes: dict[int, Any],
    cts: dict[int, Any],
    leaves: dict[int, list[Any]],
) -> None:
    """The general way to deliver one contribution; the loop above has the common cases written out."""
    s = source._seq
    if s == 0:
        entry = leaves.get(id(source))
        if entry is None:
            leaves[id(source)] = [source, value, False]
        else:
            entry[1], entry[2] = entry[1] + value, True
        return
    node, at = (source, 0) if s > 0 else (source.node, source.nr)
    s = node._seq
    if s not in nodes:
        nodes[s] = node
        heappush(heap, -s)
        cts[s] = [None] * node.outputs if node.outputs > 1 else None
    if node.outputs > 1:
        known = cts[s][at]
        cts[s][at] = value if known is None else known + value
    else:
        cts[s] = value if cts[s] is None else cts[s] + value


def _retain(node: Any, ct: Any) -> None:
    for at, held in node.extra.retained.items():
        kept = held()
        value = ct[at] if node.outputs > 1 else ct
        if kept is not None and value is not None:
            add_raw(kept, value, -1)


def _accumulate(leaves: dict[int, list[Any]]) -> None:
    for entry in leaves.values():
        del entry[2]
        add_raw(entry[0], entry.pop(), 0)


def _complete(leaves: dict[int, list[Any]], waiting: list[Any]) -> None:
    """Add to the leaves that no waiting node leads to."""
    seen: set[int] = set()
    stack = waiting
    while stack:
        vertex = stack.pop()
        if id(vertex) in seen:
            continue
        seen.add(id(vertex))
        if vertex._seq:
            stack.extend(x.node if x._seq < 0 else x for x in vertex.ins if x is not None)
    _accumulate({key: entry for key, entry in leaves.items() if key not in seen})
