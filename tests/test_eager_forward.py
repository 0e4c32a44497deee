"""Views in forward mode: their tangents are those of the entries that they show; changes in place are refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import gradcli.eager

POINT, SPEED = [0.5, 1.5, 1.0, 2.0, 3.0, 0.7], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
VIEWS: dict[str, Any] = {
    "a slice": lambda b: b[1:3],
    "a row of another shape": lambda b: b.view(3, 2)[1],
    "a column": lambda b: b.view(2, 3)[:, 1],
    "a view of a view": lambda b: b[1:].view(5)[1:3],
    "a diagonal": lambda b: b[:4].view(2, 2).diagonal(),
    "a transpose": lambda b: b[2:4].unsqueeze(0).t().squeeze(1),
    "a reshape of what is no view": lambda b: b.view(2, 3).t().reshape(6),
    "repeated": lambda b: b[:2].expand(3, 2),
}
CHANGES: dict[str, Any] = {
    "of itself": lambda d, t: d.mul_(2),
    "of a view": lambda d, t: d[:1].mul_(2),
    "by a dual tensor": lambda d, t: t.zeros(6).copy_(d),
    "of a part by a dual tensor": lambda d, t: t.zeros(6)[:3].add_(d[:3]),
    "by an assignment": lambda d, t: d.__setitem__(0, 5.0),
    "of its shape": lambda d, t: (d * 1).unsqueeze_(0),
}


def shown(torch: Any, x: Any) -> list[list[float] | None]:
    parts = torch.autograd.forward_ad.unpack_dual(x)
    return [None if one is None else [round(v, 4) for v in one.flatten().tolist()] for one in parts]


def dual(torch: Any) -> Any:
    return torch.autograd.forward_ad.make_dual(torch.tensor(POINT), torch.tensor(SPEED))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_tangents_of_its_entries(name: str) -> None:
    torch: Any = gradcli.eager
    at = VIEWS[name](torch.arange(6)).flatten().tolist()
    with torch.autograd.forward_ad.dual_level():
        found = shown(torch, VIEWS[name](dual(torch)))
    assert found == [[POINT[i] for i in at], [SPEED[i] for i in at]]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_place_is_refused(name: str) -> None:
    torch: Any = gradcli.eager
    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="forward mode cannot follow"):
        CHANGES[name](dual(torch), torch)


def test_what_has_no_tangent_is_changed_as_ever() -> None:
    torch: Any = gradcli.eager
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        d = dual(torch)
        plain = torch.zeros(6)
        plain[1:3].add_(forward.unpack_dual(d).primal[1:3])
        assert plain.tolist() == [0.0, 1.5, 1.0, 0.0, 0.0, 0.0]
        assert shown(torch, (d * plain)[1:3]) == [[2.25, 1.0], [3.0, 3.0]]


def test_tangents_end_with_their_level() -> None:
    torch: Any = gradcli.eager
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        base = dual(torch)
        view = base[1:]
    for x in (base, view, base[:1]):
        assert x._tangent is None and forward.unpack_dual(x).tangent is None
    view.mul_(2)
    assert base[:3].tolist() == [0.5, 3.0, 2.0]


def test_a_tangent_of_a_view_keeps_its_history() -> None:
    torch: Any = gradcli.eager
    forward = torch.autograd.forward_ad
    s = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward.dual_level():
        d = forward.make_dual(torch.ones(2), s * 3)
        tangent = forward.unpack_dual(d[:1] * 5.0).tangent
        assert [g.tolist() for g in torch.autograd.grad(tangent.sum(), s)] == [[15.0, 0.0]]


@pytest.mark.peers
def test_pytorch_comes_to_the_same() -> None:
    real = pytest.importorskip("torch")
    found = []
    for torch in (gradcli.eager, real):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.forward_ad.dual_level():
                found.append({name: shown(torch, view(dual(torch))) for name, view in VIEWS.items()})
    assert found[0] == found[1]
