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

SHARE = 0.93  # of all drawn calls, where PyTorch's own classes differ between functions for the same mistake
SKIPPED = frozenset(
    [
        "set_default_dtype",
        "set_printoptions",
        "manual_seed",
        "set_warn_always",
        "set_grad_enabled",
        "no_grad",
        "enable_grad",
        "inference_mode",
        "empty",
        "empty_like",
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "bernoulli",
        "tensor",
        "Generator",
        "record",
        "dropout",
        "backward",
        "dropout2d",
        "gumbel_softmax",
        "bernoulli_",
        "random_",
        "normal_",
        "uniform_",
        "exponential_",
        "register_hook",
        "numpy",
        "data_ptr",
        "new_empty",
        "register_post_accumulate_grad_hook",
        "map_",
        "apply_",
        "LinAlgError",
    ]
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
        for name in sorted({*names, *(gradcli.eager.linalg.CHECKED if room == "linalg" else ())}):
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
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


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
                if theirs == "TypeError" and not isinstance(ours, str):
                    accepted.append((room, name, args))
                assert ours not in ("SystemError", "RecursionError", "KeyError", "UnboundLocalError"), (
                    room,
                    name,
                    args,
                )
    total = seen.total()
    assert total > 8_000
    assert seen["equal"] >= SHARE * total, seen
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


def test_a_tensor_without_axes_has_one_entry_along_dim_0() -> None:
    torch = gradcli.eager
    x = torch.tensor(2.5, requires_grad=True)
    assert x.max(0).indices.item() == 0
    assert x.sort()[0].shape == x.cumsum(-1).shape == ()
    (x.cumsum(0) * x.max(0).values).backward()
    assert x.grad.item() == 5.0
    with pytest.raises(IndexError):
        x.cumsum(1)
