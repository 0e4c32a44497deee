"""Questions and answers of the oracle as lines of JSON: nodes as their rows in a flat program, arrays as flat lists."""

from __future__ import annotations

from json import dumps, loads
from typing import TYPE_CHECKING, Any

from gradcli.graph.node import Node

if TYPE_CHECKING:
    Message = dict[str, Any]


class NodeCodec:
    """Writes and reads messages about the nodes of one program; both processes have one, with their own nodes.

    An array is read as its entries and its shape, as `evaluate.balls.Point` has the values of a leaf. A node that the
    program does not have is written as null.
    """

    def __init__(self, rows: dict[Node, int]) -> None:
        self.rows = rows
        self.nodes = {row: node for node, row in reversed(rows.items())}  # of several with one row, the first

    def written(self, message: Message) -> str:
        """A message as a line."""
        return dumps(message, default=self._plain) + "\n"

    def read(self, line: str) -> Message:
        """The message of a line; raises ValueError where it is none."""
        message: Message = loads(line, object_hook=self._restored)
        return message

    def _plain(self, value: Any) -> Message | None:
        if isinstance(value, Node):
            return {"node": self.rows[value]} if value in self.rows else None
        parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
        return {"entries": [part.reshape(-1).tolist() for part in parts], "shape": value.shape}

    def _restored(self, value: Message) -> Any:
        if value.keys() == {"node"}:
            return self.nodes.get(value["node"])
        if value.keys() != {"entries", "shape"}:
            return value
        real, *imaginary = value["entries"]
        entries = [complex(x, y) for x, y in zip(real, *imaginary, strict=True)] if imaginary else real
        return entries, tuple(value["shape"])
