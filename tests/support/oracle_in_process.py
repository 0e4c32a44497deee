"""The oracle for exact arithmetic in the process of the tests, where a test can change what it does."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.oracle.node_codec import NodeCodec
from gradcli.checks.oracle.oracle_client import Oracle
from gradcli.checks.oracle.oracle_server import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextlib.contextmanager
def answering_in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every question of a check is answered here."""
    session = Session()

    def exchange(self: Any, op: str, timeout: float, question: dict[str, Any]) -> dict[str, Any]:
        codec = NodeCodec({}) if self._held is None else self._held.codec
        request = session.codec.read(codec.written({"op": op, **question}))
        with ball_numbers.precision(ball_numbers.START_BITS):
            answer = session.answer(request)
        return codec.read(session.codec.written(answer))  # type: ignore[no-any-return]

    monkeypatch.setattr(Oracle, "_exchange", exchange)
    monkeypatch.setattr(Oracle, "warm", lambda self: setattr(self, "_held", None))
    monkeypatch.setattr(Oracle, "_answered", True, raising=False)
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(digits)
