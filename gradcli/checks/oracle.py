"""The oracle's own process: requests as JSON lines in, exact answers as JSON lines out; it may be killed at any time.

It holds one program and the derivatives that were asked for. Everything that needs python-flint's global precision or
SymPy happens here; a request that hangs is ended from outside by `checks.worker`, which owns the process.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from json import dumps, loads
from queue import SimpleQueue
from random import seed
from threading import Thread
from typing import TYPE_CHECKING, Any

from gradcli.checks import balls, relations
from gradcli.checks.entries import Failure, Undecided, UndefinedAt, Unsupported
from gradcli.graph.flat import restore_nodes
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.graph.node import Node

    Request = dict[str, Any]
    Answer = dict[str, Any]

MEMORY = 6 * 2**30


def room(name: str) -> Any:
    """A module of the oracle that loads SymPy; balls alone do not need it."""
    return import_module(f"gradcli.checks.{name}")


class Session:
    """One program, and what has been derived from it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.derivatives: dict[str, Any] = {}
        self.rows: dict[Node, int] = {}

    def answer(self, request: Request) -> Answer:
        """The answer to one request; what an oracle cannot do is an answer too."""
        seed(0)  # SymPy asks its assumptions in a shuffled order
        operation: Callable[..., Answer] = getattr(self, f"on_{request.pop('op')}")
        try:
            return operation(**request)
        except Unsupported as reason:
            return _problem("unsupported", reason)
        except Undecided as reason:
            return _problem("undecided", reason)
        except UndefinedAt as reason:
            return _problem("undefined", reason)
        except (RecursionError, MemoryError) as reason:
            return _problem("unsupported", f"too large for this oracle ({type(reason).__name__})")
        except Exception as reason:  # a rule or a library that could not go on: said, and the process lives
            return _problem("unsupported", f"{type(reason).__name__}: {reason}")

    def on_load(self, flat: Any) -> Answer:
        """Take a program; what was derived from the last one is forgotten."""
        _, self.nodes = restore_nodes(flat, catalogue())
        self.rows = {node: row for row, node in enumerate(self.nodes)}
        self.derivatives = {}
        return {"nodes": len(self.nodes)}

    def on_values(self, rows: Sequence[int], point: Any, decimal: bool = False, seconds: float = 1.0) -> Answer:
        """The enclosures of some nodes: nearest float, digits, sign, or the failure of each entry."""
        found = balls.enclose([self.nodes[row] for row in rows], _point(point), seconds=seconds, decimal=decimal)
        return {"entries": [[self._entry(x) for x in one.flat] for one in found]}

    def on_derive(
        self,
        name: str,
        output: int,
        target: int,
        moving: Sequence[str],
        point: Any,
        decimal: bool = False,
        entries: Sequence[int] | None = None,
    ) -> Answer:
        """Let SymPy differentiate; the derivative is kept under a name for `compare` and `prove`."""
        derived, symbolic = room("derived"), room("symbolic")
        place = symbolic.Place(_point(point), decimal=decimal)
        try:
            made = derived.derive(self.nodes[output], self.nodes[target], moving, place, entries)
        except derived.Tie as reason:
            return _problem("tie", reason)
        self.derivatives[name] = (made, decimal)
        return {"entries": list(made.entries), "frozen": list(made.frozen)}

    def on_compare(
        self,
        right: int,
        points: Sequence[Any],
        name: str | None = None,
        left: int | None = None,
        decimal: bool = False,
        wide: bool = False,
        printed: bool = False,
        rtol: float | None = None,
        seconds: float = 1.0,
    ) -> Answer:
        """At each point: the exact entries (a derivative, or the node `left`) against those of the node `right`."""
        made = None if name is None else self.derivatives[name][0]
        judged = self.nodes[right]
        answers = []
        for given in points:
            point = _point(given)
            if made is None:
                exact = self._of_node(self.nodes[left or 0], point, decimal, wide, printed)
                entries: Sequence[int] = range(judged.type.size)
            else:
                place = room("symbolic").Place(point, decimal=decimal, wide=wide)
                if not made.holds_at(place):
                    answers.append({"region": False})
                    continue
                exact = self._of_derivative(made, place)
                entries = list(made.entries)
            claimed = self._of_node(judged, point, decimal, wide, printed)
            answers.append(relations.compared(exact, claimed, entries, rtol, seconds))
        return {"points": answers}

    def on_prove(self, right: int, point: Any, name: str | None = None, **sides: Any) -> Answer:
        """Whether every entry of the judged node is equal to the exact one by algebra."""
        if name is None:
            return self._prove_equal(right=right, point=point, **sides)
        made, decimal = self.derivatives[name]
        judged = room("derived").Judged(made, room("symbolic").Place(_point(point), decimal=decimal))
        node = self.nodes[right]
        pairs = ((judged.expected(i), judged.entry(node, i)) for i in made.entries)
        return _proved(judged.field, pairs, made.frozen)

    def _prove_equal(self, left: int, right: int, moving: Sequence[str], point: Any, decimal: bool = False) -> Answer:
        first, second = self.nodes[left], self.nodes[right]
        both = room("derived").Both([first, second], moving, room("symbolic").Place(_point(point), decimal=decimal))
        pairs = ((both.entry(first, i), both.entry(second, i)) for i in range(first.type.size))
        return _proved(both.field, pairs, both.frozen)

    # --- inner ----------------------------------------------------------------------------------------------

    def _of_node(
        self, node: Node, point: Any, decimal: bool, wide: bool, printed: bool = False
    ) -> Callable[[int], Mapping[int, Any]]:
        def at(bits: int) -> Mapping[int, Any]:
            field = balls.BallField(decimal=decimal, wide=wide, printed=printed)
            return dict(enumerate(balls.read(field, [node], point)[0].flat))

        return at

    def _of_derivative(self, made: Any, place: Any) -> Callable[[int], Mapping[int, Any]]:
        def entry(expression: Any, bits: int) -> Any:
            try:
                return made.symbols.value(expression, place, bits)
            except Undecided as reason:
                return Failure("undecided", None, str(reason))
            except UndefinedAt as reason:
                return Failure("undefined", None, str(reason))

        return lambda bits: {i: entry(expression, bits) for i, expression in made.entries.items()}

    def _entry(self, x: Any) -> Answer:
        if isinstance(x, Failure):
            row = None if x.node is None else self.rows.get(x.node)
            return {"failure": x.kind, "reason": x.reason, "row": row}
        if isinstance(x, bool):
            return {"value": float(x), "sign": int(x)}
        try:
            side: int | None = balls.sign(x)
        except Undecided:
            side = None
        return {"value": relations.nearest(x), "digits": balls.digits(x), "sign": side}


def _proved(field: Any, pairs: Any, frozen: Sequence[str]) -> Answer:
    """Whether all the differences vanish; the hardest step that one of them needed."""
    normal_form, symbolic = room("normal_form"), room("symbolic")
    hardest = "structure"
    for exact, claimed in pairs:
        difference = exact - claimed
        if difference == 0:
            continue
        hardest = "normal form"
        try:
            if not normal_form.vanishes(difference, field.sign):
                return {"proved": False, "reason": f"the difference {symbolic.text(difference)} is not zero by algebra"}
        except normal_form.NotFound as reason:
            return {"proved": False, "reason": str(reason)}
    if any(side == 0 and symbolic.symbols_of(x, field.free) for x, side in field.signs.items()):
        return {"proved": False, "reason": "a branch hangs on an exact zero at this point"}
    return {"proved": True, "how": hardest, "region": symbolic.region(field), "frozen": list(frozen)}


def _point(given: Any) -> dict[str, tuple[list[float], tuple[int, ...]]]:
    return {name: (flat, tuple(shape)) for name, (flat, shape) in given.items()}


def _problem(kind: str, reason: object) -> Answer:
    return {"problem": kind, "reason": str(reason)}


# --- the process ------------------------------------------------------------------------------------------------


def limit_memory() -> None:
    """Let a request that grows without bound fail here, before the machine suffers; where the system can do that."""
    try:
        resource = import_module("resource")
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main() -> None:
    """Answer requests until standard input ends; then the process ends at once, whatever it is doing."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else may write among the answers
    limit_memory()
    sys.setrecursionlimit(20_000)
    sys.set_int_max_str_digits(0)  # exact numbers grow long; the process is limited by time
    requests: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    Thread(target=listen, daemon=True).start()
    session = Session()
    for name in ("derived", "normal_form"):  # SymPy is loaded while the caller is still busy
        room(name)
    while True:
        request = loads(requests.get())
        number = request.pop("number")
        answers.write(dumps({"number": number, **session.answer(request)}) + "\n")
        answers.flush()
