"""Computes the exact values of nodes beside their floats: which floats are wrong, and what lost their digits.

Values are enclosed by the oracle, in its own process, without any derivative rule beyond the program itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.floats import LIMIT_ULPS, ulps
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.formatting import node_text
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Entry = Mapping[str, Any]

SECONDS = 20.0  # a safety net: budgets of operations end long before it
DIGITS = tuple("0123456789")
MOST_NODES = 2000
MOST_ENTRIES = 20_000
MOST_WORK = 200_000  # operations on single entries: of a longer loop nothing is known


class Lost(NamedTuple):
    """Exact values of those outputs whose floats are wrong, by their position, and where the digits were lost.

    An exact value is the nearest double, or its digits where no double is near; arrays are nested lists, with None for
    an entry that is not known.
    """

    exact: dict[int, Any]
    node: Node | None
    text: str


@oracle_client.exclusive
def lost_digits(outputs: Sequence[Node], floats: Mapping[Node, Any], point: Mapping[str, Any]) -> Lost | None:
    """The exact values that the floats miss; None where the floats are good or the exact values are unknown.

    `floats` holds the value of every node that the outputs need.
    """
    order = [node for node in reachable(outputs) if node.type.kind == "float"]
    if len(order) > MOST_NODES or sum(node.type.size for node in order) > MOST_ENTRIES:
        order = list(outputs)
    if work_of(reachable(outputs)) > MOST_WORK:
        return None
    exact = Exact(oracle_client.shared(), outputs, SECONDS)
    exact.begin()
    try:
        answer = exact.values(order, {name: np.asarray(value, dtype=np.float64) for name, value in point.items()})
    except oracle_client.NoAnswer:
        return None
    if "problem" in answer:
        return None
    entries = dict(zip(order, answer["entries"], strict=True))
    bad = {node for node, row in entries.items() if any(map(is_bad, flat(floats[node], node), row))}
    found = {i: nested(entries[node], node) for i, node in enumerate(outputs) if node in bad}
    if not found:
        return None
    needed = set(reachable([outputs[next(iter(found))]]))
    first = next((node for node in order if node in bad & needed and bad.isdisjoint(node.args)), None)
    return Lost(found, first, "" if first is None else node_text(first))


def is_bad(made: float, entry: Entry) -> bool:
    """Whether a float is far from the exact value; False where that is unknown."""
    if "digits" not in entry:
        return False
    exact = entry.get("value")
    if exact is None:
        return bool(entry["digits"].strip("-").startswith(DIGITS))  # a number too large for every double
    return ulps(made, exact) > LIMIT_ULPS


def flat(value: Any, node: Node) -> list[float]:
    found: list[float] = np.broadcast_to(np.asarray(value, dtype=np.float64), node.type.shape).reshape(-1).tolist()
    return found


def nested(row: Sequence[Entry], node: Node) -> Any:
    """The exact entries of a node in its shape."""
    known = [entry["value"] if entry.get("value") is not None else entry.get("digits") for entry in row]
    return np.array(known, dtype=object).reshape(node.type.shape).tolist()
