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
    heap: list[int] = []
    nodes: dict[int, Any] = {}
    cts: dict[int, Any] = {}
    leaves: dict[int, list[Any]] = {}

    def arrive(source: Any, value: Any) -> None:
        """The general way to deliver one contribution; the loop below has the common cases written out."""
        s = source._seq
        if s == 0:
            entry = leaves.get(id(source))
            if entry is None:
                leaves[id(source)] = [source, value]
            else:
                entry[1] = entry[1] + value
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

    for source, seed in zip(sources, seeds, strict=True):
        arrive(source, seed)
    try:
        while heap:
            s = -heappop(heap)
            node = nodes[s]
            ct = cts.pop(s)
            if node.extra is not None:
                _retain(node, ct)
            if node.simple:
                if node.saved is None:
                    node.check_not_freed()
                results = node.way.back(node, ct)
                if node.fits is not None:
                    results = fit(results, node.fits)
            else:
                results = node.run(ct if node.outputs > 1 else [ct], False)
            if not retain and node.saved and not node.keeps:
                node.saved = None
            del nodes[s], ct
            for source, value in zip(node.ins, results, strict=False):
                if source is None or value is None:
                    continue
                s = source._seq
                if s > 0:
                    if s in nodes:
                        cts[s] = cts[s] + value
                    else:
                        nodes[s] = source
                        cts[s] = value
                        heappush(heap, -s)
                elif s == 0:
                    entry = leaves.get(id(source))
                    if entry is None:
                        leaves[id(source)] = [source, value]
                    else:
                        entry[1] = entry[1] + value
                else:
                    arrive(source, value)
            value = results = None
    except BaseException:
        _complete(leaves, nodes)
        raise
    _accumulate(leaves)


def _retain(node: Any, ct: Any) -> None:
    for at, held in node.extra.retained.items():
        kept = held()
        value = ct[at] if node.outputs > 1 else ct
        if kept is not None and value is not None:
            add_raw(kept, value, -1)


def _accumulate(leaves: dict[int, list[Any]]) -> None:
    for entry in leaves.values():
        add_raw(entry[0], entry.pop(), 0)


def _complete(leaves: dict[int, list[Any]], nodes: dict[int, Any]) -> None:
    """Add to the leaves that no waiting node leads to."""
    seen: set[int] = set()
    stack = list(nodes.values())
    while stack:
        vertex = stack.pop()
        if id(vertex) in seen:
            continue
        seen.add(id(vertex))
        if vertex._seq:
            stack.extend(x.node if x._seq < 0 else x for x in vertex.ins if x is not None)
    _accumulate({key: entry for key, entry in leaves.items() if key not in seen})
