"""Small products of matrices stay on one thread of the BLAS library; large ones, and other code, have its own number."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli.eager as torch
from gradcli.execution.compiler import thread_pool


class Blas:
    """A library that notes how many threads it had at each product."""

    def __init__(self) -> None:
        self.threads = 4
        self.seen: list[int] = []

    def get(self) -> int:
        return self.threads

    def put(self, count: int) -> None:
        self.threads = count
        self.seen.append(count)


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Blas:
    found = Blas()
    monkeypatch.setattr(thread_pool, "setters", lambda: (found.get, found.put))
    return found


def step(rows: int, inner: int, columns: int) -> None:
    """A product, forward and back, often enough to be written out as a function."""
    x, w = torch.ones(rows, inner, requires_grad=True), torch.ones(inner, columns, requires_grad=True)
    for _ in range(6):
        (x @ w).sum().backward()


@pytest.mark.parametrize(
    ("sizes", "alone"), [((8, 8, 8), False), ((120, 110, 100), True), ((60, 1, 60), False), ((300, 301, 302), False)]
)
def test_which_products_stay_on_one_thread(sizes: Any, alone: bool, blas: Blas) -> None:
    step(*sizes)
    assert (1 in blas.seen) is alone
    assert blas.threads == 4


def test_the_number_of_threads_is_kept_where_a_product_fails(blas: Blas) -> None:
    with pytest.raises(ZeroDivisionError):
        thread_pool.on_one_thread(lambda: 1 // 0)
    assert blas.threads == 4 and blas.seen == [1, 4]
