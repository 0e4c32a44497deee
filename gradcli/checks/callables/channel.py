"""Messages between the process that judges a function and the one that runs it: JSON lines, arrays in base64.

Nothing is pickled, and nothing that comes from the other side is run.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from json import dumps, loads
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = "fciub"  # numbers and truth values


def send(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Write one message. Raises OSError where nobody reads any more."""
    stream.write(dumps(message).encode() + b"\n")
    stream.flush()


def received(line: bytes) -> dict[str, Any] | None:
    """The message of a line; None for anything else, such as the text of a crash."""
    if not line.endswith(b"\n"):
        return None
    try:
        message = loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array of numbers as JSON.

    >>> unpacked(packed(np.array([1.5, np.nan])))
    array([1.5, nan])
    """
    array = np.asarray(array)
    if array.dtype.kind not in KINDS:
        raise TypeError(f"an array of {array.dtype} holds no numbers")
    data = b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def unpacked(value: dict[str, Any]) -> NDArray[Any]:
    """The array of its JSON. Raises ValueError where it is none."""
    dtype = np.dtype(str(value["dtype"]))
    if dtype.kind not in KINDS:
        raise ValueError(f"an array of {dtype} holds no numbers")
    return np.frombuffer(b64decode(value["data"]), dtype).reshape([int(n) for n in value["shape"]]).copy()
