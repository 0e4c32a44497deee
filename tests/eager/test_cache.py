"""What is remembered between calls stays small: operations on many tensors, many shapes, many masks."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.checks.evaluate import balls
from gradcli.eager._engine import fastpath, plan
from gradcli.eager._engine.plan import Cache
from gradcli.execution.compiler import emit_numba
from gradcli.recording.runs import source_lines
from tests.support.rows import all_rows

TIMES = 5  # from the third call on an operation is done by what is remembered


def joined(how: str, count: int, moving: Callable[[int], bool] = lambda k: True) -> tuple[Any, list[Any]]:
    xs = [torch.full((3,), float(k)) for k in range(count)]
    for k, x in enumerate(xs):
        x.requires_grad_(moving(k))
    y = getattr(torch, how)(xs)
    (y * torch.arange(float(y.numel())).reshape(y.shape)).sum().backward()
    return y, xs


@all_rows("count", [1, 2, 7, 8, 9, 20, 64, 300, 1025])
@all_rows("how", ["stack", "cat", "hstack", "vstack"])
def test_many_tensors_are_joined_again_and_again(how: str, count: int) -> None:
    joining: Any = getattr(np, {"cat": "concatenate"}.get(how, how))
    expected = joining([np.full(3, float(k)) for k in range(count)])
    places = np.arange(float(expected.size)).reshape(expected.shape)
    for _ in range(TIMES):
        y, xs = joined(how, count)
        assert np.array_equal(y.detach().numpy(), expected)
        sent = joining([x.grad.numpy() for x in xs])
        assert np.array_equal(sent, places)


def peak(work: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_joining_grows_with_the_number_of_tensors() -> None:
    def used(count: int) -> int:
        joined("stack", 2)
        return peak(lambda: [joined("stack", count) for _ in range(TIMES)])

    assert used(800) < 8 * used(200) + 2**22


def test_einsum_of_many_tensors() -> None:
    for _ in range(TIMES):  # two axes each: their layouts are told apart too
        assert torch.einsum("ab,bc,cd,de,ef->af", *[torch.eye(3)] * 5).trace().item() == 3


def test_batches_and_clipped_gradients() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(640, 4), torch.arange(640))
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    assert [tuple(x.shape) for _ in range(2) for x, _ in loader] == [(64, 4)] * 20
    parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(64)]
    for _ in range(TIMES):
        for p in parameters:
            p.grad = torch.ones(2)
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        assert norm.item() == pytest.approx(128**0.5)


def test_masks_of_operands_do_not_add_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2 * plan.MOST_VJPS):
        wanted = rng.random(12) < 0.5
        wanted[0] = True
        _, xs = joined("cat", 12, lambda k, wanted=wanted: bool(wanted[k]))  # type: ignore[misc]
        assert [x.grad is not None for x in xs] == list(wanted)
    for one in plan._plans.values():
        assert max(map(len, (one.vjps, one.backwards, one.tangents))) <= plan.MOST_VJPS
    for recipe in fastpath.recipes.values():
        assert isinstance(recipe.ways, dict)
        assert len(recipe.ways) <= plan.MOST_VJPS


TABLES: list[Any] = [plan._plans, fastpath.recipes]


def test_a_thousand_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in TABLES:
        table.clear()
        monkeypatch.setattr(table, "limit", 512)
    for n in range(1000):
        torch.ones(n).sum()
    for table in TABLES:
        assert sum(one.size for one in table.values()) <= table.total <= table.limit
    assert 0 < len(plan._plans) < 1000


def test_memory_of_many_shapes_levels_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in TABLES:
        table.clear()
        monkeypatch.setattr(table, "limit", 32)

    def steps(first: int, last: int) -> None:
        for n in range(first, last):
            weight, bias, x = torch.ones(2, n, requires_grad=True), torch.ones(2), torch.ones(n, requires_grad=True)
            for _ in range(TIMES):
                rows = torch.nn.functional.linear(torch.stack([x, x]), weight, bias)
                (torch.softmax(rows, 1).sum() + rows.mean()).backward()

    steps(1, 10)
    gc.collect()
    tracemalloc.start()
    try:
        steps(10, 16)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        steps(16, 40)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < before + 2**18
    finally:
        tracemalloc.stop()
        for table in TABLES:
            table.clear()


def test_a_full_cache_starts_again() -> None:
    cache = Cache(limit=8)
    for k in (1, 2, 3, 4, 5):
        cache.keep(k, SimpleNamespace(size=2))
    assert (list(cache), cache.total) == ([5], 2)
    cache.keep(6, SimpleNamespace(size=9))
    assert (list(cache), cache.total) == ([6], 9)


def test_numbers_lines_and_constants_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcli.eager._engine.fastpath import _MANY, NumberCache

    numbers = NumberCache(np.dtype(np.float32))
    for k in range(3 * _MANY):
        assert numbers[k + 0.5]._raw == np.float32(k + 0.5)
    assert len(numbers) <= _MANY
    monkeypatch.setattr(source_lines, "MOST_CODES", 5)
    for k in range(20):
        code = compile("\n" * k + "1 + 1", "<test>", "eval")
        assert source_lines.line_in(code, 2).number == k + 1
    assert len(source_lines._known) <= 5
    monkeypatch.setattr(balls, "MOST_CONSTANTS", 5)
    field = balls.BallField()
    for k in range(20):
        assert field.constant(k) == k
    assert field._constants.cache_info().currsize <= 5


def test_loops_of_machine_code_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_numba, "_loops", {})
    monkeypatch.setattr(emit_numba, "MOST_LOOPS", 3)
    monkeypatch.setattr(emit_numba, "jit_compiler", lambda: (None, {}))
    monkeypatch.setattr(emit_numba, "_machine_code", lambda text, scope, source: SimpleNamespace(text=text))
    for k in range(9):
        emit_numba.compiled_text(f"def loop(x):\n    return x + {k}\n")
    assert len(emit_numba._loops) == 3
