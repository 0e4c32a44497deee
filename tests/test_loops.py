"""Laws of loops: a loop is what it is written out, in its values and in its derivatives of every order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loop_bodies import SHARP, SMOOTH, agree, both

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.loop_bodies import Made

COUNTS = (1, 2, 31, 32, 33)


@pytest.mark.parametrize("body", [*SMOOTH, *SHARP], ids=lambda body: body.__name__)
@pytest.mark.parametrize("reading", ["v", "r", "f", "rr", "fr", "rf"])
def test_a_loop_is_what_it_is_written_out(body: Callable[[int], Made], reading: str) -> None:
    loop, flat = both(body(4), reading)
    assert agree(loop, flat, 0.0 if reading == "v" else 1e-12), (loop, flat)
