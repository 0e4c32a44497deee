"""A function that runs in another process, as a `Box`, and the messages to it: lines of JSON.

Nothing is pickled, and nothing that comes from the other side is run. Messages of the other process count as the
function's values and as nothing else: the point is this side's own, and the verdict is found here.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from json import dumps, loads
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables.box import Box
from gradcli.checks.callables.call_arguments import Argument
from gradcli.checks.callables.failures import Failed, OutOfTime
from gradcli.checks.callables.gradient_libraries import TITLES, Library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Message = dict[str, Any]
    Floats = NDArray[np.floating[Any]]

KINDS = "fciub"  # numbers and truth values
MOST_LINES = 1_000


def send(stream: IO[bytes], message: Message) -> None:
    """Write one message, which may hold arrays of numbers. Raises OSError where nobody reads any more."""
    stream.write(dumps(message, default=packed).encode() + b"\n")
    stream.flush()


def receive(stream: IO[bytes], rest: list[bytes] | None = None) -> Message | None:
    """The next message; None where there are no more. Lines that are none, such as a crash's, are left in `rest`."""
    while line := stream.readline():
        try:
            message = loads(line, object_hook=with_array) if line.endswith(b"\n") else None
        except (ValueError, TypeError, RecursionError):
            message = None
        if isinstance(message, dict):
            return message
        if rest is not None and len(rest) < MOST_LINES:
            rest.append(line)
    return None


def packed(array: Any) -> Message:
    """An array of numbers as JSON. Raises TypeError for anything else.

    >>> with_array(packed(np.array([1.5, np.nan])))
    array([1.5, nan])
    """
    array = np.asarray(array)
    if array.dtype.kind not in KINDS:
        raise TypeError(f"an array of {array.dtype} holds no numbers")
    data = b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def with_array(value: Message) -> Any:
    """The array of its JSON, any other object as it is. Raises TypeError or ValueError for an array without numbers."""
    if value.keys() != {"dtype", "shape", "data"}:
        return value
    dtype = np.dtype(str(value["dtype"]))
    if dtype.kind not in KINDS:
        raise TypeError(f"an array of {dtype} holds no numbers")
    return np.ndarray(tuple(map(int, value["shape"])), dtype, b64decode(value["data"])).copy()


class RemoteBox(Box):
    """A box whose calls are messages; `exchange` sends one and gives the answer, or raises where there is none."""

    def __init__(
        self, opened: Message, arrays: Mapping[str, Floats], exchange: Callable[[Message], Message], seconds: float
    ) -> None:
        self.exchange = exchange
        self.seconds = seconds
        self.ends = monotonic() + seconds
        self.kind = str(opened["kind"])
        self.library = Library()
        self.library.name = str(opened["library"])
        if self.library.name not in TITLES:
            raise ValueError("an unknown library")
        self.given_arguments = [argument(arrays, *one) for one in opened["given"]]  # before f was called
        self.arguments = [argument(arrays, *one) for one in opened["arguments"]]
        shape = opened["shape"]
        self.shape = None if shape is None else tuple(map(int, shape))
        self.size = int(opened["size"])
        self.dtype = str(opened["dtype"])
        self.skipped = [str(name) for name in opened["skipped"]]
        self.float32 = bool(opened["float32"])
        self.outside = 0
        self._claimed = opened["claimed"]
        self._lay_out([str(name) for name in opened["names"]])
        if not self.x.size:
            raise ValueError("nothing moves")

    @property
    def claimed(self) -> str | None:
        """The kind of the numbers that the derivative returns."""
        return None if self._claimed is None else str(self._claimed)

    def value(self, x: Floats) -> Floats:
        """The outputs at a point beside the given one; NaN where f raises. Raises OutOfTime."""
        if monotonic() > self.ends:
            raise OutOfTime
        return self._numbers(self.size, {"ask": "value", "x": x})

    def again(self) -> Floats:
        """The outputs at the given point once more."""
        return self._numbers(self.size, {"ask": "again"})

    def pullback(self, x: Floats, weights: Floats, at_the_point: bool = False) -> Floats:
        """The derivative of a combination of the outputs, flat. Raises Failed."""
        question = {"ask": "pullback", "x": x, "weights": weights, "at_the_point": at_the_point}
        return self._numbers(self.x.size, question)

    def recording(self, seed: int) -> Message:
        """The program of a function of gradcli's own tensors as plain data."""
        return self.exchange({"ask": "recording", "seed": seed})

    def remarks(self) -> list[str]:
        """Notes on the calls so far."""
        answer = self.exchange({"ask": "remarks"})
        self.outside = int(answer["outside"])
        return [str(text) for text in answer["remarks"]]

    def _numbers(self, size: int, question: Message) -> Floats:
        answer = self.exchange(question)
        if "late" in answer:
            raise OutOfTime
        if "failed" in answer:
            role, reason, place, help = answer["failed"]
            raise Failed(str(role), str(reason), place=place, help=help)
        found = answer["found"]
        if found.shape != (size,):
            raise ValueError(f"an answer of {found.size} numbers, not {size}")
        return np.asarray(found, dtype=np.float64)


def argument(arrays: Mapping[str, Floats], name: str, moves: bool, keyword: bool) -> Argument:
    """An argument with the numbers that this side knows of it."""
    array = np.asarray(arrays[name], dtype=np.float64) if moves else None
    return Argument(str(name), None, array, bool(keyword))


# --- the other side ---------------------------------------------------------------------------------------------


def description(box: Box, given: list[Argument]) -> Message:
    """What the other side has to know of a box that has been opened; `given` are its arguments before that."""
    return {
        "kind": box.kind,
        "library": box.library.name,
        "given": [[one.name, one.array is not None, one.keyword] for one in given],
        "arguments": [[one.name, one.array is not None, one.keyword] for one in box.arguments],
        "names": box.names,
        "shape": None if box.shape is None else list(box.shape),
        "size": box.size,
        "dtype": box.dtype,
        "skipped": box.skipped,
        "float32": box.float32,
        "claimed": box.claimed,
    }


def answer(box: Box, question: Message, record: Callable[[Box, int], Message]) -> Message:
    """The answer to one question."""
    ask = question["ask"]
    if ask == "recording":
        return record(box, int(question["seed"]))
    if ask == "remarks":
        return {"remarks": box.remarks(), "outside": box.outside}
    try:
        if ask == "value":
            return {"found": box.value(question["x"])}
        if ask == "again":
            return {"found": box.again()}
        return {"found": box.pullback(question["x"], question["weights"], bool(question["at_the_point"]))}
    except OutOfTime:
        return {"late": True}
    except Failed as problem:
        return {"failed": [problem.role, problem.reason, problem.place, problem.help]}
