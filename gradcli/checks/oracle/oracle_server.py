"""The process for exact arithmetic: it answers requests, one JSON line each.

It holds one program and the derivatives that were requested. Everything that needs python-flint's global precision or
SymPy happens here. It uses no clock: every budget is a count of operations, so that an answer depends on nothing but
the request. `oracle_client` owns the process and may end it at any time.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from json import dumps, loads
from math import isfinite
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from flint import arb

from gradcli.checks.derivatives.claim_comparison import ClaimComparison, compared, nearest, speaks
from gradcli.checks.derivatives.derivative_query import DerivativeQuery, PointEvaluation, entries_of, field_of
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.balls import Literals
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.evaluate.interpretation import Failure, Undecided, UndefinedAt, Unsupported
from gradcli.checks.oracle.call_budget import CallBudget, UsedBefore
from gradcli.child_process import cpu_limit, end_with_parent, extend_cpu_limit, limit_memory
from gradcli.graph.flat import restore_nodes
from gradcli.graph.node import is_reader, reachable
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Node

    Request = dict[str, Any]
    Answer = dict[str, Any]

MEMORY = 6 * 2**30
MANY_BITS = 512  # where a proof is not found at once: claims that hold to rounding only are told apart
MOST_SHORTENING = 200_000  # calls for one proposal of a shorter formula
DERIVATIVE = ("output", "target", "moving", "entries", "point")


def room(name: str) -> Any:
    """A module of the oracle that not every question needs."""
    return import_module(f"gradcli.checks.{name}")


class Session:
    """The program of the script that is checked, or one beside it, and what has been derived from it."""

    def __init__(self) -> None:
        self.hold([])
        self.sympy = CallBudget()
        self.shortening = CallBudget(MOST_SHORTENING)

    def hold(self, nodes: list[Node]) -> None:
        """Take a program in place of the one before."""
        self.nodes = nodes
        self.rows = {node: row for row, node in enumerate(nodes)}
        self.queries: dict[Any, DerivativeQuery] = {}
        self.signs: dict[Any, Sequence[int]] = {}
        self.failed: dict[str, dict[Any, Any]] = {}  # values that proofs could not read, by the point

    def answer(self, request: Request) -> Answer:
        """The answer to one request; what an oracle cannot do is an answer too."""
        operation: Callable[..., Answer] = getattr(self, f"on_{request.pop('op')}")
        try:
            return operation(**request)
        except Unsupported as reason:
            return _problem("unsupported", reason)
        except (Undecided, UndefinedAt) as reason:
            return _problem(reason.kind, reason)
        except RecursionError:
            return _problem("unsupported", "too large for this oracle (RecursionError)")
        except MemoryError as reason:  # what is left hangs on what was done before: a fresh process may have enough
            return _problem("memory", reason)
        except UsedBefore as reason:
            return _problem("used", reason)
        except Exception as reason:  # a rule or a library that could not go on: said, and the process lives
            return _problem("unsupported", f"{type(reason).__name__}: {reason}")

    def on_load(self, flat: Any) -> Answer:
        """The program that the next questions are about."""
        self.hold(restore_nodes(flat, catalogue())[1])
        return {"nodes": len(self.nodes)}

    def on_values(self, rows: Sequence[int], point: Any) -> Answer:
        """The enclosures of some nodes: nearest float, digits, sign, or the failure of each entry."""
        found = balls.enclose([self.nodes[row] for row in rows], _point(point))
        return {"entries": [[self._entry(x) for x in one.flat] for one in found]}

    def on_judge(
        self,
        derivative: Any,
        right: int,
        point: Any,
        beside: Sequence[Any] = (),
        wanted: int = 0,
        directions: Sequence[Any] = (),
        rtol: float | None = None,
    ) -> Answer:
        """All that one check of a derivative asks of balls: the value, the comparison here and beside, and ties.

        `beside` are points as changes of the given one; of those in its region as many as are `wanted` are compared.
        """
        judging = ClaimComparison(self._query(derivative), self.nodes[right], rtol)
        here = _point(point)
        ways = [{int(i): speed for i, speed in way} for way in directions]
        given, answer = judging.given(here, ways)
        answer["value"] = self._entry(answer.pop("ball"))
        tie = answer["tie"]
        if tie is not None:
            tie["row"] = self._row(tie.pop("node"))
        found: list[Answer] = []
        if answer["given"] is not None:
            self._plain(answer["given"])
            usable = tie is None or tie["kind"] == "smooth"
            for position, change in enumerate(beside if usable else ()):
                one = judging.beside(given.signs if tie is None else None, {**here, **_point(change)})
                if one["region"] and speaks(one["relations"]):
                    found.append({"position": position, **self._plain(one)})
                if len(found) == wanted:
                    break
        return {**answer, "beside": found}

    def on_compare(
        self,
        right: int,
        points: Sequence[Any],
        derivative: Any = None,
        left: int | None = None,
        decimal: bool = False,
        wide: bool = False,
        printed: bool = False,
        rounding: float = 0.0,
        plane: bool = False,
        rtol: float | None = None,
    ) -> Answer:
        """At each point: the exact entries (a derivative, or the node `left`) against those of the node `right`."""
        judged = self.nodes[right]
        literals = Literals(wide, decimal, printed, rounding)
        if derivative is not None:
            query = self._query(derivative)
            judging = ClaimComparison(query, judged, rtol, literals)
            signs = self._signs(query, derivative, Literals(decimal=decimal))
            return {"points": [self._plain(judging.beside(signs, _point(given))) for given in points]}
        answers = []
        sides = [self.nodes[left or 0], judged]
        work, entries = work_of(reachable(sides)), range((2 if plane else 1) * judged.type.size)
        for given in points:
            place = _point(given)
            exact, claimed = [partial(entries_of, node, place, literals, plane) for node in sides]
            answers.append(self._plain(compared(exact, claimed, entries, rtol, work)))
        return {"points": answers}

    def on_cover(self, derivative: Any, right: int, point: Any, parts: Sequence[Any], **limits: Any) -> Answer:
        """What is known of a judged derivative on the parts of a box."""
        sides = [{name: (low, high) for name, (low, high) in part.items()} for part in parts]
        boxes = room("derivatives.subdivision")
        field, query = field_of(boxes.BITS), self._query(derivative)
        answer: Answer = boxes.Cover(query, self.nodes[right], field, _point(point), sides).run(**limits)
        return answer

    def on_prove(self, right: int, point: Any, **rows: Any) -> Answer:
        """Whether the judged node is equal to `left`, or to the derivative of `output` by `target`, by algebra."""
        proving = room("algebra.proof")
        nodes = {side: self.nodes[rows.pop(side)] for side in ("left", "output", "target") if side in rows}
        ask = proving.prove_equal if "left" in nodes else room("algebra.induction").prove_derivative
        judged, here = self.nodes[right], _point(point)
        if "left" in nodes:
            rows["differ"] = lambda: self._differ(nodes["left"], judged, here)
        else:
            rows["failed"] = self.failed.setdefault(dumps(point), {})
        answer: Answer = ask(**nodes, right=judged, point=here, **rows)
        return answer

    def on_enclosure(self, derivative: Any) -> Answer:
        """The derivative with respect to one entry, with as many bits as it takes for 56 good ones."""
        query = self._query(derivative)
        (entry,) = query.entries
        here = PointEvaluation(query, _point(derivative["point"]))
        found = ball_numbers.with_bits(lambda bits: here.exact(bits)[entry], work=query.paths.cost)
        if isinstance(found, Failure):
            return _problem(found.kind, found.reason)
        radius = float(found.rad())
        known = isfinite(radius) and (radius > 0 or found.is_exact())  # else no double holds it
        return {"digits": ball_numbers.digits(found), "value": nearest(found), "radius": radius if known else None}

    def on_sympy(self, output: int, target: int, entry: int, point: Any) -> Answer:
        """SymPy's derivative of a scalar node by one entry of another."""
        witness = room("oracle.sympy_witness")
        with self.sympy.counted():
            answer: Answer = witness.derivative(self.nodes[output], self.nodes[target], entry, _point(point))
        return answer

    def on_simplify(self, row: int, style: str) -> Answer:
        """Shorter forms of a scalar formula, as unconfirmed texts."""
        return {"texts": room("oracle.sympy_witness").proposals(self.nodes[row], style, self.shortening)}

    # --- inner ----------------------------------------------------------------------------------------------

    def _query(self, derivative: Any) -> DerivativeQuery:
        """The derivative of a question; requested again, it is the same one."""
        output, target, moving, entries, _ = (derivative[key] for key in DERIVATIVE)
        seed, inner, plane = derivative.get("seed", 0), derivative.get("inner"), derivative.get("plane", False)
        key = (output, target, tuple(moving), None if entries is None else tuple(entries), seed, plane)
        known = self.queries
        if key not in known:
            both = None if inner is None else (self.nodes[inner[0]], self.nodes[inner[1]])
            known[key] = DerivativeQuery(self.nodes[output], self.nodes[target], moving, entries, seed, both, plane)
        return known[key]

    def _signs(self, query: DerivativeQuery, derivative: Any, literals: Literals) -> Sequence[int]:
        """What decides branches at the point of a derivative: its region."""
        key = id(query), dumps(derivative["point"]), literals
        known = self.signs
        if key not in known:
            judging = ClaimComparison(query, query.target, literals=literals)
            known[key] = judging.region(_point(derivative["point"]))
        return known[key]

    def _row(self, node: Node | None) -> int | None:
        return None if node is None else self.rows.get(node)

    def _plain(self, answer: Answer) -> Answer:
        """A comparison with the row of its failure in place of the node."""
        if "node" in answer:
            answer["row"] = self._row(answer.pop("node"))
        return answer

    def _differ(self, one: Node, other: Node, point: Any) -> bool:
        """Whether an entry of one node is certainly not that of the other, with many bits."""
        with ball_numbers.precision(MANY_BITS), suppress(Unsupported, Undecided, UndefinedAt):
            left, right = balls.read(field_of(MANY_BITS), [one, other], point)
            pairs = zip(left.flat, right.flat, strict=True)
            return any(isinstance(x, arb) and isinstance(y, arb) and not x.overlaps(y) for x, y in pairs)
        return False

    def _entry(self, x: Any) -> Answer:
        if isinstance(x, Failure):
            return {"failure": x.kind, "reason": x.reason, "row": self._row(x.node), "inside": inside(x.node, x.inner)}
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


def _point(given: Any) -> dict[str, tuple[list[Any], tuple[int, ...]]]:
    """A point from plain lists: entries and a shape, and of complex leaves the imaginary parts too."""
    found: dict[str, tuple[list[Any], tuple[int, ...]]] = {}
    for name, (flat, shape, *imaginary) in given.items():
        entries = [complex(x, y) for x, y in zip(flat, imaginary[0], strict=True)] if imaginary else flat
        found[name] = (entries, tuple(shape))
    return found


def _problem(kind: str, reason: object) -> Answer:
    return {"problem": kind, "reason": str(reason)}


# --- the process ------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests until standard input ends; then the process ends at once, whatever it is doing."""
    end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else may write among the answers
    limit_memory(MEMORY)
    cpu = cpu_limit()  # that of the worker that asks, if it has one: each request may use as much
    sys.setrecursionlimit(20_000)
    sys.set_int_max_str_digits(0)  # exact numbers grow long; the process is limited by time
    requests: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    Thread(target=listen, daemon=True).start()
    session = Session()
    room("algebra.proof")  # loaded while the caller is still busy
    gc.freeze()
    while True:
        request = loads(requests.get())
        extend_cpu_limit(cpu)
        number = request.pop("number")
        answers.write(dumps({"number": number, **session.answer(request)}) + "\n")
        answers.flush()
