"""Results of several fields print as PyTorch's do, and a sorted function can be recorded."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli.eager as torch

X = [[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]]
RESULTS = """import torch
x = torch.tensor([[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]], requires_grad=True)
for found in (torch.max(x, 1), torch.min(x, 0), torch.sort(x), torch.topk(x, 2), torch.median(x, 0),
              torch.linalg.qr(x.detach()),
              torch.linalg.eigh(torch.eye(2)), torch.linalg.slogdet(torch.eye(2))):
    print(found)
    print(type(found), isinstance(found, tuple), len(found))
print(reversed(x))
"""


def printed(text: str, module: Any, capsys: pytest.CaptureFixture[str]) -> str:
    names: dict[str, Any] = {"torch": module}
    exec(compile(text.replace("import torch\n", ""), "results", "exec"), names)
    return capsys.readouterr().out


@pytest.mark.peers
def test_results_print_as_in_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    theirs = printed(RESULTS, pytest.importorskip("torch"), capsys)
    ours = printed(RESULTS, torch, capsys)
    assert ours == theirs


def test_a_result_prints_a_field_per_line() -> None:
    found = torch.max(torch.tensor(X), 1)
    assert repr(found) == "torch.return_types.max(\nvalues=tensor([4., 9.]),\nindices=tensor([2, 2]))"
    values, indices = found
    assert values is found.values and indices is found[1]
    assert type(torch.sort(torch.tensor(X))) is not type(found)
    assert type(torch.max(torch.tensor(X), 0)) is type(found)


def test_a_sorted_function_is_recorded() -> None:
    """Both orders, the positions, and under vmap, where rows are sorted differently."""
    from gradcli.execution.evaluate import evaluate

    weights = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    at = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
    for down in (False, True):
        program = torch.record(lambda x, down=down: (x.sort(descending=down).values * weights).sum(), at)
        point = [5.0, -1.0, 2.0]
        ordered = sorted(point, reverse=down)
        assert evaluate(program, {"x": point}) == [ordered[0] + 10 * ordered[1] + 100 * ordered[2]]
    rows = torch.tensor([[3.0, 1.0], [1.0, 2.0]])
    assert torch.vmap(lambda row: row.sort().values)(rows).tolist() == [[1.0, 3.0], [1.0, 2.0]]
    assert torch.vmap(lambda row: row.sort().indices)(rows).tolist() == [[1, 0], [0, 1]]


def test_the_old_constructor_takes_entries_or_sizes() -> None:
    """`torch.Tensor([1, 2])` has the default format, `torch.Tensor(2, 3)` these sizes."""
    assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert [tuple(torch.Tensor(*sizes).shape) for sizes in ((), (2,), (2, 3), (2, 3, 4))] == [
        (0,),
        (2,),
        (2, 3),
        (2, 3, 4),
    ]
    x = torch.Tensor([1.0, 2.0]).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="sequence"):
        torch.Tensor(3.5)
