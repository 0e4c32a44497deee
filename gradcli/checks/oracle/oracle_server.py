"""The process for exact arithmetic: it answers requests, one JSON line each.

It holds one program and the derivatives that were requested. Everything that needs python-flint's global precision or
SymPy happens here. It uses no clock: every budget is a count of operations, so that an answer depends on nothing but
the request. `oracle_client` owns the process and may end it at any time.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any

from gradcli.base.child_process import conversation, cpu_limit, extend_cpu_limit, limit_memory
from gradcli.checks.derivatives.claim_comparison import ClaimComparison, compared_sides, nearest, speaks
from gradcli.checks.derivatives.derivative_query import DerivativeQuery, PointEvaluation, field_of
from gradcli.checks.derivatives.higher_orders import written_out
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.balls import Literals
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.evaluate.interpretation import Failure, Undecided, Unsupported
from gradcli.checks.oracle.node_codec import NodeCodec
from gradcli.graph.flat import restore_nodes
from gradcli.graph.node import is_reader, reachable
from gradcli.primitives import catalogue
from gradcli.primitives.plugins import import_again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.evaluate.balls import Point
    from gradcli.graph.node import Node

    Derivative = dict[str, Any]  # the arguments of a DerivativeQuery, and the point whose region it is in
    Request = dict[str, Any]
    Answer = dict[str, Any]

MEMORY = 6 * 2**30
MOST_WORK = 400_000  # operations on single entries at all points near the given one


def room(name: str) -> Any:
    """A module of the oracle that not every question needs."""
    return import_module(f"gradcli.checks.{name}")


class Session:
    """The program of the script that is checked, or one beside it, and what has been derived from it.

    `on_QUESTION` answers a question; its arguments are those of the question, with nodes and points as they are here.
    """

    def __init__(self) -> None:
        self.hold([])

    def hold(self, nodes: list[Node]) -> None:
        """Take a program in place of the one before."""
        self.nodes = nodes
        self.codec = NodeCodec({node: row for row, node in enumerate(nodes)})
        self.queries: dict[Any, DerivativeQuery] = {}
        self.failed: dict[str, dict[Any, Any]] = {}  # values that proofs could not read, by the point

    def answer(self, request: Request) -> Answer:
        """The answer to one request; what an oracle cannot do is an answer too."""
        operation: Callable[..., Answer] = getattr(self, f"on_{request.pop('op')}")
        try:
            return operation(**request)
        except (Unsupported, Failure) as reason:
            return {"problem": reason.kind, "reason": str(reason)}
        except RecursionError:
            return {"problem": "unsupported", "reason": "too large for this oracle (RecursionError)"}
        except MemoryError as reason:  # what is left hangs on what was done before: a fresh process may have enough
            return {"problem": "memory", "reason": str(reason)}
        except Exception as reason:  # a rule or a library that could not go on: said, and the process lives
            return {"problem": "unsupported", "reason": f"it fails on this formula ({type(reason).__name__})"}

    def on_load(self, flat: Any) -> Answer:
        """The program that the next questions are about."""
        self.hold(restore_nodes(flat, catalogue())[1])
        return {"nodes": len(self.nodes)}

    def on_values(self, nodes: Sequence[Node], point: Point, derived: Sequence[Sequence[Any]] = ()) -> Answer:
        """The enclosures of some nodes: nearest float, digits, sign, or the failure of each entry."""
        rows = balls.enclose(nodes, point, lambda field: written_out(field, nodes, point, derived))
        return {"entries": [[_entry(x) for x in row.flat] for row in rows]}

    def on_judge(
        self,
        derivative: Derivative,
        right: Node,
        point: Point,
        beside: Sequence[Point],
        wanted: int,
        rtol: float | None,
    ) -> Answer:
        """All that one check of a derivative asks of balls: the value, the comparison here and beside, and ties.

        `beside` are points as changes of the given one; of those in its region as many as are `wanted` are compared,
        or as many as MOST_WORK allows.
        """
        judging = ClaimComparison(self._query(derivative), right, rtol)
        work = work_of(reachable([judging.query.output, right]))
        wanted = min(wanted, max(MOST_WORK // max(work, 1), 0 if judging.loops else 1))
        evaluation, answer = judging.at_given_point(point)
        answer["value"] = _entry(answer.pop("ball"))
        tie = answer["tie"]
        near: list[Answer] = []
        signs = evaluation.signs if tie is None and "tied" not in (answer["given"] or {}) else None
        if answer["given"] is not None and (tie is None or tie["kind"] == "smooth"):
            for position, change in enumerate(beside):
                if len(near) == wanted:
                    break
                comparison = judging.beside(signs, {**point, **change})
                if comparison["region"] and speaks(comparison["relations"], signs is None):
                    near.append({"position": position, **comparison})
        return {**answer, "beside": near}

    def on_compare(
        self,
        right: Node,
        points: Sequence[Point],
        derivative: Derivative | None = None,
        sides: Mapping[str, Any] | None = None,
        rtol: float | None = None,
        anywhere: bool = False,
        closely: bool = False,
        **literals: Any,
    ) -> Answer:
        """At each point: the exact entries (a derivative, or the node `left` of `sides`) against those of `right`.

        A derivative is compared in the region of its own point, or `anywhere`.
        """
        read = Literals(**literals)
        if derivative is not None:
            judging = ClaimComparison(self._query(derivative), right, rtol, read, closely)
            signs = None if anywhere else judging.region(derivative["point"])
            return {"points": [judging.beside(signs, point) for point in points]}
        assert sides is not None
        about = (read, sides["plane"], rtol, sides["derived"], closely)
        return {"points": [compared_sides(sides["left"], right, point, *about) for point in points]}

    def on_cover(
        self, derivative: Derivative, right: Node, point: Point, parts: Sequence[Mapping[str, Any]], **limits: Any
    ) -> Answer:
        """What is known of a judged derivative on the parts of a box."""
        sides = [{name: tuple(ends) for name, ends in part.items()} for part in parts]
        boxes = room("derivatives.subdivision")
        cover = boxes.Cover(self._query(derivative), right, field_of(boxes.BITS), point, sides)
        answer: Answer = cover.run(**limits)
        return answer

    def on_join(self, derivative: Derivative, right: Node, point: Point, leaf: str, position: int, **at: Any) -> Answer:
        """What is known of a place in a box where a node is 0; see `subdivision.Join.answer`."""
        judging = ClaimComparison(self._query(derivative), right)
        answer: Answer = room("derivatives.subdivision").Join(judging, point, leaf, position).answer(**at)
        return {**answer, "ball": _entry(answer["ball"])}

    def on_prove(self, right: Node, point: Point, **about: Any) -> Answer:
        """Whether the judged node is equal to `left`, or to the derivative of `output` by `target`, by algebra."""
        if "left" in about:
            answer: Answer = room("algebra.proof").prove_equal(right=right, point=point, **about)
        else:
            failed = self.failed.setdefault(repr(point), {})
            answer = room("algebra.induction").prove_derivative(right=right, point=point, failed=failed, **about)
        return answer

    def on_enclosure(self, derivative: Derivative) -> Answer:
        """The derivative with respect to one entry, with as many bits as it takes for 56 good ones."""
        query = self._query(derivative)
        (entry,) = query.entries
        evaluation = PointEvaluation(query, derivative["point"])
        ball = ball_numbers.with_bits(lambda bits: evaluation.exact(bits)[entry], work=query.paths.cost)
        if isinstance(ball, Failure):
            return {"problem": ball.kind, "reason": ball.reason}
        radius, digits = float(ball.rad()), ball_numbers.digits(ball)
        known = isfinite(radius) and (radius > 0 or ball.is_exact())  # else no double holds it
        return {"value": digits, "bound": radius} if known else {"value": digits}

    def on_sympy(self, **question: Any) -> Answer:
        """SymPy's derivative of a scalar node by one entry of another."""
        answer: Answer = room("oracle.sympy_witness").derivative(**question)
        return answer

    def on_factor(self, node: Node) -> Answer:
        """Factored forms of a scalar formula, as unconfirmed texts."""
        return {"texts": room("oracle.sympy_witness").factored(node)}

    # --- inner ----------------------------------------------------------------------------------------------

    def _query(self, derivative: Derivative) -> DerivativeQuery:
        """The derivative of a question; requested again, it is the same one."""
        about = {name: value for name, value in derivative.items() if name != "point"}
        key = frozen(list(about.values()))
        if key not in self.queries:
            self.queries[key] = DerivativeQuery(**about)
        return self.queries[key]


def frozen(value: Any) -> Any:
    """Nested lists as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def _entry(x: Any) -> Answer:
    """An enclosed entry as plain data."""
    if isinstance(x, Failure):
        return {"failure": x.kind, "reason": x.reason, "node": x.node, "inside": inside(x.node, x.inner)}
    if isinstance(x, bool):
        return {"value": float(x), "sign": int(x)}
    try:
        side: int | None = ball_numbers.sign(x)
    except Undecided:
        side = None
    return {"value": nearest(x), "digits": ball_numbers.digits(x), "sign": side}


def inside(node: Node | None, inner: Node | None) -> list[int]:
    """The positions of the steps that lead from a reader of a loop to a node of its body, or of a loop inside."""
    if node is None or inner is None or not is_reader(node):
        return []
    body = node.params["body"]
    if inner in body.positions:
        return [body.positions[inner]]
    for at, step in enumerate(body.steps):
        if further := inside(step, inner):
            return [at, *further]
    return []


# --- the process ------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests until standard input ends; then the process ends at once, whatever it is doing."""
    requests, answers = conversation()
    limit_memory(MEMORY)
    cpu = cpu_limit()  # that of the worker that asks, if it has one: each request may use as much
    sys.setrecursionlimit(20_000)
    sys.set_int_max_str_digits(0)  # exact numbers grow long; the process is limited by time
    session = Session()
    room("algebra.proof")  # loaded while the caller is still busy
    import_again()
    gc.freeze()
    while True:
        request = session.codec.read(requests.get())
        extend_cpu_limit(cpu)
        number = request.pop("number")
        answer = session.answer(request)
        answers.write(session.codec.written({"number": number, **answer}))
        answers.flush()
