"""Every public function called with arguments of all kinds, right and wrong: results and exception classes are PyTorch's.

The calls are drawn from a seed: tensors of all formats, ranks and sizes 0, numbers, text, lists, formats. What must agree
is the class of the error, or format, shape, flag and node of the result.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import gradcli.eager
import gradcli.eager.nn.functional
from tests.support.rows import all_rows

SHARE = 0.972  # of all drawn calls; PyTorch's own classes differ between functions for the same mistake
CLASSES = (
    0.025  # the share of calls that may end in another class of error, or in an error where the other gives a result
)
SKIPPED = frozenset(
    (
        "set_default_dtype set_printoptions manual_seed set_warn_always set_grad_enabled no_grad enable_grad "
        "inference_mode empty empty_like rand randn randint randperm rand_like randn_like bernoulli tensor "
        "Generator record dropout backward dropout2d random_ normal_ uniform_ register_hook numpy data_ptr "
        "new_empty register_post_accumulate_grad_hook map_ apply_ LinAlgError"
    ).split()
)
MATRIX = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.25]], np.float32)


def values(torch: Any) -> dict[str, Any]:
    """What is passed, by name; the first fifteen are tensors."""
    return {
        "matrix": torch.tensor(MATRIX), "moving": torch.tensor(MATRIX, requires_grad=True), "number": torch.tensor(0.5),
        "empty": torch.tensor([]), "no rows": torch.zeros(0, 3), "whole": torch.tensor([0, 2, 1]),
        "truth": torch.tensor(MATRIX > 0), "complex": torch.tensor([1 + 2j, 0.5 - 1j]), "vector": torch.tensor([1.0, 2, 3]),
        "square": torch.tensor([[2.0, 0.5, 0], [0.5, 3, 1], [0, 1, 4]]), "double": torch.tensor(MATRIX.astype(np.float64)),
        "bytes": torch.tensor([1, 2, 3], dtype=torch.uint8), "half": torch.tensor([1.0, 2.0], dtype=torch.float16),
        "cube": torch.ones(2, 2, 3), "one": torch.tensor(1),
        "0": 0, "1": 1, "-1": -1, "-2": -2, "5": 5, "2.5": 2.5, "True": True, "None": None, "text": "x", "[0, 1]": [0, 1],
        "(0,)": (0,), "[]": [], "nan": float("nan"), "float32": torch.float32, "int64": torch.int64,
        "two": [torch.tensor(MATRIX), torch.tensor(MATRIX)], "array": np.ones(3),
    }  # fmt: skip


NAMES = list(values(gradcli.eager))
TENSORS, OTHERS = NAMES[:15], NAMES[15:]


def functions(torch: Any) -> list[tuple[str, str]]:
    """Rooms and names that both implementations have."""
    found = []
    for room in ("", "nn.functional", "linalg", "Tensor"):
        ours, theirs = at(gradcli.eager, room), at(torch, room)
        names = gradcli.eager._FUNCTIONS if not room else getattr(ours, "__all__", dir(ours))
        for name in sorted({*names, *(gradcli.eager.linalg.__all__ if room == "linalg" else ())}):
            if not name.startswith("_") and name not in SKIPPED and callable(getattr(theirs, name, None)):
                if callable(getattr(ours, name, None)):
                    found.append((room, name))
    return found


def at(torch: Any, room: str) -> Any:
    for part in room.split(".") if room else ():
        torch = getattr(torch, part)
    return torch


def facts(result: Any) -> Any:
    if hasattr(result, "requires_grad"):
        node = None if result.grad_fn is None else type(result.grad_fn).__name__
        return str(result.dtype), tuple(result.shape), result.requires_grad, node
    if isinstance(result, (tuple, list)):
        return tuple([facts(one) for one in result])
    return type(result).__name__ if isinstance(result, (int, float, bool, str)) else "object"


def outcome(torch: Any, room: str, name: str, args: tuple[str, ...]) -> Any:
    given = values(torch)
    try:
        return facts(getattr(at(torch, room), name)(*[given[one] for one in args]))
    except Exception as error:
        name = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
        return "TypeError" if name == "AttributeError" else name  # PyTorch often asks before it looks at types


def drawn(draw: random.Random, room: str) -> list[tuple[str, ...]]:
    calls = [(one,) for one in TENSORS] + [(one,) for one in OTHERS if room != "Tensor"]
    calls += [
        (one, other) for one in ("matrix", "moving", "number", "whole") for other in (*OTHERS, "matrix", "double")
    ]
    calls = draw.sample(calls, 8)
    return [*calls, *[(draw.choice(TENSORS), *draw.choices(NAMES, k=draw.choice((1, 2)))) for _ in range(4)]]


@pytest.mark.peers
def test_wrong_and_right_arguments_end_as_they_do_in_pytorch() -> None:
    draw = random.Random(7)
    seen: Counter[str] = Counter()
    accepted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        for room, name in functions(torch):
            for args in drawn(draw, room):
                ours, theirs = outcome(gradcli.eager, room, name, args), outcome(torch, room, name, args)
                seen["equal" if ours == theirs else "different"] += 1
                seen["class"] += ours != theirs and (isinstance(ours, str) or isinstance(theirs, str))
                if theirs == "TypeError" and not isinstance(ours, str):
                    accepted.append((room, name, args))
                assert ours not in ("SystemError", "RecursionError", "KeyError", "UnboundLocalError"), (
                    room,
                    name,
                    args,
                )
    total = seen["equal"] + seen["different"]
    assert total > 8_000
    assert seen["equal"] >= SHARE * total, seen
    assert seen["class"] <= CLASSES * total, seen
    assert len(accepted) <= 0.012 * total, accepted


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: torch.set_default_dtype(x),
        lambda torch, x: torch.set_default_dtype("float64"),
        lambda torch, x: torch.sum(3),
        lambda torch, x: torch.sin(3),
        lambda torch, x: x.sum(dim="x"),
        lambda torch, x: x.sum(keepdim=1),
        lambda torch, x: torch.maximum(x, 1),
        lambda torch, x: torch.cat(x),
        lambda torch, x: x.exp_(1),
        lambda torch, x: x.reshape("a"),
        lambda torch, x: torch.zeros(2.5),
        lambda torch, x: torch.nn.Linear("a", 2),
        lambda torch, x: torch.nn.functional.softmax(x, dim=1.0),
        lambda torch, x: torch.finfo(3),
    ],
)
def test_wrong_types_are_type_errors(call: Any) -> None:
    import gradcli.eager.nn

    with pytest.raises(TypeError):
        call(gradcli.eager, gradcli.eager.ones(2, 3))
    assert gradcli.eager.ones(1).dtype is gradcli.eager.float32


def test_the_words_of_numpy_are_understood() -> None:
    torch = gradcli.eager
    x = torch.arange(6.0).reshape(2, 3)
    assert x.sum(axis=0).tolist() == [3, 5, 7]
    assert torch.mean(x, axis=1, keepdims=True).tolist() == [[1], [4]]
    assert torch.cat([x, x], axis=1).shape == (2, 6)
    assert x.max(axis=1).indices.tolist() == [2, 2]
    assert x.std(axis=0).shape == (3,)
    assert torch.unsqueeze(x, axis=0).shape == (1, 2, 3)
    with pytest.raises(TypeError):
        x.sum(dim=0, axis=0)


# calls of x, a matrix of 2 rows and 3 columns, as people write them: by position, by name, and wrong
SPELLED = (
    """
t.permute(x, dims=(1, 0))|x.permute(dims=(1, 0))|t.reshape(x, shape=(3, 2))|x.reshape(shape=(3, 2))
t.flip(x, dims=(0,))|x.flip(dims=[0])|x.flip(0, 1)|t.tile(x, dims=(2,))|x.tile(2)
x.expand(size=(2, 2, 3))|x.repeat(repeats=(2, 1))|x.repeat(2)|x.repeat(2, 1)|t.zeros(size=(2,))|t.ones(2, 3)|t.randn(size=(2, 2))
x.reshape()|x.reshape(True)|x.permute(t.tensor(1), t.tensor(0))|x.reshape(t.tensor(3), 2)|x.reshape(3., 2)
x.view('a')|x.reshape(None)|x.transpose('a', 0)|x.flatten(5)|x.expand()|x.repeat()|x.tile()|x.flip()|x.reshape((True, 6))
t.tensor(1.).reshape()|t.tensor(1.).view()|t.tensor(1.).permute()|t.tensor(1.).reshape(())|x.reshape(t.Size([3, 2]))
x.reshape(-1, -1)|x.reshape(-2)|x.reshape(7)|x.permute(0)|x.permute(0, 0)|x.permute(0, 5)|x.squeeze(5)|x.unsqueeze(9)
x.expand(4, 3)|x.expand(-1)|x.repeat(-1, 1)|x.tile(-1)|t.cat([x, 1])|t.cat([])|t.stack([])|t.cat(x)|t.cat([x], dim=5)
t.stack([x, x], 5)|t.cat([x, x[:, :2]])|x.split(-1)|x.chunk(0)|x.unbind(7)|x[5]|x[0, 0, 0]|x['a']|x[None, 5]|x[1.0]
x.sum(9)|x.max(9)|x.argmax(9)|x.sort(9)|x.std(9)|x.any(9)|x.cumsum(9)|x.softmax(9)|x.mean(9)|x.topk(9)|x.topk(-1)
x.std('a')|x.var(2.5)|x.gather(0, 1)|x.index_select(0, 1)|x.masked_fill(1, 2)|x.matmul(x)|x.mm(3)|x.item()|x.tolist(1)
x.backward()|x.to('a')|x.float(1)|x.fill_('a')|x.copy_([1])|x.mul_('a')|x.add_([])|x.type(5)|x.type_as(5)
x.view_as(1)|x.reshape_as(1)|t.where(x > 0, 1.)|t.arange()|t.arange(end=5)|t.arange(x)|t.eye('a')
t.fmod(t.tensor(5), 0)|t.fmod(t.tensor([5, -7]), 3)|t.linspace(0, 1, 2.5)|t.full((2,), 'a')|t.zeros_like(3)|t.ones_like([1])|t.randint(5, (2,), dtype=t.float32)
t.randint(high=5, size=(2,))|t.randint(5)|t.randint(5, 3)|t.randperm(3, dtype=t.int32)|t.randn_like(x, dtype=t.float64)
t.broadcast_tensors(x, 1)|t.tensor([x[0, :1], x[1, :1]])|t.tensor([[t.ones(1), 2.]])|t.tensor([x, x])|t.tensor([t.tensor(1), t.tensor(2)])
t.einsum(5)|t.einsum(5, x)
t.nn.functional.cross_entropy(x, 1)|t.nn.functional.mse_loss(x, 1)|x.to(0)|t.bincount(x[0])|x & 1
t.nn.init.uniform_(x, 'a', 1)|t.nn.init.normal_(x, 0., [1])|t.nn.init.uniform_(x, generator=3)
t.optim.lr_scheduler.StepLR(x, 2)|t.optim.SGD([x.requires_grad_()], lr=t.ones(2))|x.requires_grad_(None)|t.isclose(x, x.double())
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@pytest.mark.peers
@all_rows("call", SPELLED)
def test_calls_as_they_are_spelled(call: str) -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gradcli.eager.optim

        for torch in (gradcli.eager, pytest.importorskip("torch")):
            try:
                found.append(facts(eval(call, {"t": torch, "x": torch.arange(6.0).reshape(2, 3)})))
            except Exception as error:
                found.append(next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "x + t.ones(4, 3)",
            "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0",
        ),
        ("x * t.ones(2)", "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"),
        ("t.where(x > 0, x, t.ones(2, 2))", "the shapes are [2, 3] and [2, 3] and [2, 2]"),
        ("x @ x", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        ("t.tensor('a')", "entries of type str"),
    ],
)
def test_errors_of_shapes_are_in_pytorch_s_words(call: str, told: str) -> None:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        eval(call, {"t": gradcli.eager, "x": gradcli.eager.ones(2, 3)})
    assert told in str(caught.value)
