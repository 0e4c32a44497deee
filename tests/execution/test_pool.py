"""Memory of results: used again when nobody refers to it, never before, bounded."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.compiler import allocate
from tests.support.forced import idle

DOUBLE = np.dtype("float64")
LONG = allocate.LEAST // 8


@pytest.fixture(autouse=True)
def nothing_idle() -> None:
    gc.collect()
    allocate._KEPT.clear()


def place(array: Any) -> int:
    return int(array.ctypes.data)


def test_memory_that_was_left_is_used_again() -> None:
    one, other = allocate.new_arrays([LONG, LONG], [DOUBLE, DOUBLE])
    assert one.flags.writeable and one.dtype == DOUBLE and place(one) % 8 == 0 == place(other) % 8
    places = {place(one), place(other)}
    assert len(places) == 2
    del one, other
    assert idle() == 2 * 8 * LONG
    again = allocate.new_arrays([LONG, LONG], [DOUBLE, DOUBLE])
    assert {place(array) for array in again} == places and idle() == 0


@pytest.mark.parametrize(
    "keep", [lambda a: a[5:9], lambda a: a.reshape(4, -1).T[1:], memoryview, lambda a: a.view("i8")]
)
def test_memory_with_a_view_is_not(keep: Any) -> None:
    (one,) = allocate.new_arrays([LONG], [DOUBLE])
    one[:] = 7.0
    view, before = keep(one), place(one)
    del one
    (other,) = allocate.new_arrays([LONG], [DOUBLE])
    other[:] = 8.0
    assert place(other) != before and idle() == 0
    assert np.asarray(view).reshape(-1)[:1].tobytes() == np.array(7.0).tobytes()
    del view
    assert idle() == 8 * LONG


def test_what_does_not_fit_is_given_back_and_short_ones_are_not_kept() -> None:
    del allocate.new_arrays([LONG], [DOUBLE])[0]
    gc.collect()
    assert idle() > 0
    found = allocate.new_arrays([LONG + 1, 10, LONG * 2], [DOUBLE, DOUBLE, np.dtype("float32")])
    assert idle() == 0 and [one.shape for one in found] == [(LONG + 1,), (10,), (2 * LONG,)]
    assert found[1].flags.owndata and found[2].dtype == np.float32


def test_what_is_kept_is_bounded() -> None:
    many = allocate.new_arrays([LONG] * 40, [DOUBLE] * 40)
    del many
    gc.collect()
    assert allocate.MOST - 8 * LONG - 64 < idle() <= allocate.MOST


def test_threads_never_get_the_same_memory() -> None:
    """Each thread fills its result with its own number and finds nothing else in it."""
    stop, wrong = threading.Event(), []

    def work(number: int) -> None:
        for _ in range(60):
            one, other = allocate.new_arrays([LONG, LONG], [DOUBLE, DOUBLE])
            one[::997], other[::997] = number, -number
            if not (np.all(one[::997] == number) and np.all(other[::997] == -number)):
                wrong.append(number)
        stop.set()

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(work, range(1, 5)))
    assert not wrong and stop.is_set()


def test_results_that_are_kept_stay_as_they_are() -> None:
    f = gradcli.compile("x*y + 1")
    x, y = np.linspace(0, 1, LONG), np.linspace(1, 2, LONG)
    first, slopes = f.at_points(x=x, y=y)
    part = slopes["x"][100:110]
    before = first.copy(), part.copy()
    del slopes
    for shift in range(3):
        f.at_points(x=x + shift, y=y - shift)
    assert np.array_equal(first, before[0]) and np.array_equal(part, before[1])
