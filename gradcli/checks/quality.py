"""A right rule and its float values go in; how many units in the last place they are off comes out, or IMPRECISE.

The rule is right; only the number is judged here, entry by entry, and the node that loses the digits is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.case import Outcome
from gradcli.checks.floats import LIMIT_ULPS, evaluated, ulps
from gradcli.checks.rewrites import proposals
from gradcli.checks.shown import node_text, position
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.case import Case, Evidence, Values
    from gradcli.graph.node import Node

MOST_NODES = 2000
MOST_ENTRIES = 20_000


def float_quality(case: Case, found: Sequence[tuple[Values, Any]]) -> Outcome | None:
    """IMPRECISE where a float value is far from the exact one; else the figure goes into the evidence."""
    rtol = case.subject.rtol or 0.0
    worst, exact_at, float_at, entry_at, normwise = 0.0, 0.0, 0.0, 0, 0.0
    for values, answer in found:
        made = evaluated([case.subject.judged], values, case.dtype)[0].reshape(-1)
        largest = max((abs(x) for x in answer["exact"] if x is not None), default=0.0)
        for entry, exact in zip(answer["entries"], answer["exact"], strict=True):
            if exact is None or abs(made[entry] - exact) <= rtol * abs(exact):
                continue
            value = float(made[entry])
            off = ulps(value, exact, case.dtype)
            if off > worst:
                worst, exact_at, float_at, entry_at = off, exact, value, entry
            normwise = max(normwise, ulps(value, exact, case.dtype, largest))
    case.evidence |= {"ulps": worst, "ulps_of_the_largest_entry": normwise, "ulps_limit": LIMIT_ULPS}
    if worst <= LIMIT_ULPS:
        return None
    where = position(entry_at, case.subject.judged.type.shape)
    what = f"is off by {worst:.3g} ulp"
    if not np.isfinite(float_at):
        what = "is not finite"
    elif worst > 2**52:
        what = "has no correct digit"
    evidence: Evidence = {"entry": where, "float": float_at, "exact_value": exact_at}
    message = f"the rule is right, but the float value {float_at!r}{where} {what}; exact: {exact_at!r}"
    node = blamed(case)
    diagnostics: tuple[Diagnostic, ...] = ()
    if node is not None:
        evidence["node"] = node_text(node)
        message += f"; digits are lost in {node_text(node)}"
        diagnostics = (Diagnostic("GC409", f"digits are lost in {node_text(node)}", node.span, severity="note"),)
    better = proposals(case.output)
    if better:
        evidence["rewrite"] = better
        message += f"; better: {better[0]}"
    return Outcome("IMPRECISE", message, evidence, diagnostics)


def blamed(case: Case) -> Node | None:
    """The first node of what is judged whose float is far off though its arguments are good."""
    rows = case.exact.rows
    order = [n for n in reachable([case.subject.judged]) if n in rows and n.type.kind == "float"]
    if len(order) > MOST_NODES or sum(n.type.size for n in order) > MOST_ENTRIES:
        return None
    answer = case.exact.values(order, case.values)
    if "problem" in answer:
        return None
    bad: set[Node] = set()
    for node, value, row in zip(order, evaluated(order, case.values), answer["entries"], strict=True):
        for made, entry in zip(value.reshape(-1), row, strict=True):
            exact = entry.get("value")
            if exact is not None and not abs(made - exact) <= 1e-12 * abs(exact):
                bad.add(node)
    return next((node for node in order if node in bad and bad.isdisjoint(node.args)), None)
