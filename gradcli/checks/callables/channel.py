"""Messages between the process that judges a function and the one that runs it: lines of JSON, and raw numbers.

Nothing is pickled, and nothing that comes from the other side is run.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from json import dumps, loads
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Message = dict[str, Any]

KINDS = "fciub"  # numbers and truth values
MOST_LINES = 1_000
ARRAYS = "arrays"  # what stands in a line for the arrays whose bytes follow it


def send(stream: IO[bytes], message: Message) -> None:
    """Write one message; arrays among its values follow as they are. Raises OSError where nobody reads any more."""
    arrays = {name: value for name, value in message.items() if isinstance(value, np.ndarray)}
    line: Message = {name: value for name, value in message.items() if name not in arrays}
    if arrays:
        line[ARRAYS] = {name: [checked(value).dtype.str, list(value.shape)] for name, value in arrays.items()}
    stream.write(dumps(line).encode() + b"\n")
    for value in arrays.values():
        stream.write(np.ascontiguousarray(value).tobytes())
    stream.flush()


def receive(stream: IO[bytes], rest: list[bytes] | None = None) -> Message | None:
    """The next message; None where there are no more. Lines that are none, such as a crash's, are left in `rest`."""
    while line := stream.readline():
        message = read(line)
        if message is None:
            if rest is not None and len(rest) < MOST_LINES:
                rest.append(line)
            continue
        try:
            for name, (kind, shape) in message.pop(ARRAYS, {}).items():
                dtype = checked(np.empty(0, str(kind))).dtype
                size = prod(map(int, shape)) * dtype.itemsize
                content = stream.read(size)
                if len(content) != size:
                    return None
                message[name] = np.frombuffer(content, dtype).reshape(shape).copy()
        except (TypeError, ValueError, AttributeError):
            return None  # nothing that follows can be told apart
        return message
    return None


def read(line: bytes) -> Message | None:
    """The message of a line; None for anything else."""
    if not line.endswith(b"\n"):
        return None
    try:
        message = loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def packed(array: NDArray[Any]) -> Message:
    """An array of numbers as JSON.

    >>> unpacked(packed(np.array([1.5, np.nan])))
    array([1.5, nan])
    """
    array = checked(np.asarray(array))
    data = b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def unpacked(value: Message) -> NDArray[Any]:
    """The array of its JSON. Raises TypeError or ValueError where it is none."""
    dtype = checked(np.empty(0, str(value["dtype"]))).dtype
    return np.frombuffer(b64decode(value["data"]), dtype).reshape([int(n) for n in value["shape"]]).copy()


def checked(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself; TypeError where it does not hold numbers."""
    if array.dtype.kind not in KINDS:
        raise TypeError(f"an array of {array.dtype} holds no numbers")
    return array
