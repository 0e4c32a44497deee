"""`out=`: each function that takes it writes what it returns otherwise, into memory that is there, as PyTorch does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager
import gradcli.eager.linalg
from gradcli.eager._ops.install import OPERATIONS
from gradcli.eager._ops.table import MADE

TAKES = {name for name, function in OPERATIONS.items() if function.row.out not in ("", MADE)}


def calls(torch: Any) -> list[tuple[Any, ...]]:
    """Arguments to try, until a function takes some."""
    x, v = torch.tensor([[1.5, 2.0], [0.5, 3.0]]), torch.tensor([0.25, 0.5])
    at, truth, one = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[True, True], [False, True]]), torch.tensor([0])
    positive = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    return [
        *((), (x,), (v,), (positive,), (positive, positive), (x, x), (x, 0), (x, 0, at), (x, 0, one), (x, v), (v, v), (x, v, v), (x, x, x), (v, x, v)),
        *((x[None], x[None]), (x[None], x[None], x[None]), ([v, v],), (truth,), (truth, truth), (x, 1, 0), (v, 0.5)),
        *((x, 1), (x, 2), (2,), (2, 3), (1, 2, 3), ((2,), 3.0), (x, truth), (x, at, 0), (x, v, 0.5), (x, 0, at, x)),
        *((torch.tensor([1.0, 0, 0]), torch.tensor([0.0, 1, 0])), (at, at), (at,), (truth, x, x), (v, 2, 0, 1)),
        *((x, 0, one, x[:1]), (x, 0, one, 2.0), (x, 0, at, x, "sum"), ([x, x],)),
    ]  # fmt: skip


def found(torch: Any, name: str) -> Any:
    return getattr(torch if hasattr(gradcli.eager, name) else torch.linalg, name)


def several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


def first_call(torch: Any, name: str) -> tuple[Any, tuple[Any, ...], Any]:
    """A function, arguments that it takes, and its result."""
    function = found(torch, name)
    for args in calls(torch):
        try:
            torch.manual_seed(0)
            result = function(*args)
            outs = tuple([torch.empty_like(one) for one in several(result)])
            function(*args, out=outs if isinstance(result, tuple) else outs[0])
        except Exception:
            continue
        return function, args, result
    raise AssertionError(f"no call of {name} was found")


@pytest.mark.parametrize("name", sorted(TAKES))
def test_out_receives_what_is_returned_otherwise(name: str) -> None:
    torch = gradcli.eager
    function, args, result = first_call(torch, name)
    outs = tuple([torch.zeros(one.shape, dtype=one.dtype) for one in several(result)])
    memory = [one.data_ptr() for one in outs]
    torch.manual_seed(0)
    given = function(*args, out=outs if isinstance(result, tuple) else outs[0])
    for one, out, wanted, address in zip(several(given), outs, several(result), memory, strict=True):
        assert one is out and out.data_ptr() == address and out._version >= 1
        np.testing.assert_array_equal(out.numpy(), wanted.detach().numpy())


def accepts(torch: Any, name: str) -> list[bool]:
    """Into which dtypes a function writes its result."""
    function, args, result = first_call(torch, name)
    accepted = []
    for kind in (torch.float64, torch.int64, torch.complex64, torch.bool, torch.float16, torch.int32):
        outs = tuple([torch.empty(tuple(one.shape), dtype=kind) for one in several(result)])
        try:
            function(*args, out=outs if isinstance(result, tuple) else outs[0])
        except (RuntimeError, TypeError):
            accepted.append(False)
        else:
            accepted.append(True)
    return accepted


# into whole, complex or truth values, where PyTorch's kernels are missing; `where` has two results there, one here; `pinverse` takes none
KEPT = {"pinverse", "bernoulli", "cumsum", "cumprod", "where"}


@pytest.mark.peers
@pytest.mark.parametrize("name", sorted(TAKES - KEPT))
def test_dtypes_are_accepted_where_pytorch_accepts_them(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        assert accepts(gradcli.eager, name) == accepts(torch, name)


def test_the_rules_for_dtypes() -> None:
    torch = gradcli.eager
    whole, real = torch.ones(2, dtype=torch.int32), torch.ones(2)
    assert torch.add(whole, 1, out=torch.empty(2)).dtype is torch.float32
    assert torch.add(whole, 1, out=torch.empty(2, dtype=torch.int64)).tolist() == [2, 2]
    assert torch.gt(real, 0, out=torch.empty(2)).tolist() == [1, 1]
    assert torch.sum(real, 0, out=torch.empty((), dtype=torch.int64)).item() == 2
    for call in (
        lambda: torch.add(real, 1, out=torch.empty(2, dtype=torch.int64)),
        lambda: torch.add(whole, 1, out=torch.empty(2, dtype=torch.bool)),
        lambda: torch.add(real * 1j, 1, out=torch.empty(2)),
        lambda: torch.abs(real, out=torch.empty(2, dtype=torch.float64)),
        lambda: torch.sum(real, 0, dtype=torch.float64, out=torch.empty(())),
        lambda: torch.zeros(2, dtype=torch.float64, out=torch.empty(2)),
    ):
        with pytest.raises(RuntimeError, match=r"dtype|cast"):
            call()


def test_another_shape_resizes_and_warns_where_entries_are_lost() -> None:
    torch = gradcli.eager
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        out = torch.empty(0)
        assert torch.exp(torch.zeros(2, 2), out=out) is out and out.shape == (2, 2)
        assert torch.zeros(3, out=out).shape == (3,)
        assert not heard
        torch.add(torch.ones(5), 1, out=out)
        torch.arange(2, out=out)
    assert [one.category for one in heard] == [UserWarning, UserWarning] and out.tolist() == [0, 1]


def test_gradients_are_never_lost_silently() -> None:
    torch = gradcli.eager
    x = torch.ones(2, requires_grad=True)
    for call in (
        lambda: torch.add(x, 1, out=torch.empty(2)),
        lambda: torch.add(torch.ones(2), 1, out=x),
        lambda: torch.cat([torch.ones(1), x], out=torch.empty(3)),
        lambda: torch.ones(2, out=x),
    ):
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            call()
    with torch.no_grad():
        assert torch.add(x, 1, out=torch.empty(2)).tolist() == [2, 2]
    z = x.exp()
    torch.add(torch.ones(2), 1, out=z.detach())
    with pytest.raises(RuntimeError, match="version"):
        z.sum().backward()


def test_parts_and_the_operand_itself_may_be_written() -> None:
    torch = gradcli.eager
    whole, x, turned = torch.zeros(4), torch.ones(3), torch.empty(2, 3).T
    torch.add(torch.ones(2), 1, out=whole[1:3])
    torch.add(x, 1, out=x)
    torch.add(torch.ones(3, 2), 1, out=turned)
    assert whole.tolist() == [0, 2, 2, 0] and x.tolist() == [2, 2, 2] and turned.stride() == (1, 3)
    assert torch.add(x, 1, out=None).tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: torch.reshape(x, (2,), out=x),
        lambda torch, x: torch.relu(x, out=x),
        lambda torch, x: x.sum(0, out=x),
        lambda torch, x: torch.add(x, 1, out=3),
        lambda torch, x: torch.sort(x, out=x),
        lambda torch, x: torch.zeros_like(x, out=x),
    ],
)
def test_out_is_a_type_error_where_there_is_none(call: Any) -> None:
    with pytest.raises(TypeError):
        call(gradcli.eager, gradcli.eager.ones(2))
