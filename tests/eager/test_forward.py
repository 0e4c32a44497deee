"""In-place operations and views in forward mode: entries and tangents follow the memory that is changed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import gradcli.eager
from tests.support.rows import all_rows

Pair = list[list[float] | None]

POINT, SPEED = [0.5, 1.5, 1.0, 2.0, 3.0, 0.7], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
VIEWS: dict[str, Any] = {
    "a slice": lambda b: b[1:3],
    "a row of another shape": lambda b: b.view(3, 2)[1],
    "a column": lambda b: b.view(2, 3)[:, 1],
    "a view of a view": lambda b: b[1:].view(5)[1:3],
    "a transpose": lambda b: b[2:4].unsqueeze(0).t().squeeze(1),
}
CHANGES: dict[str, Any] = {
    "add": lambda t: (t.tensor([0.5, 0.25]),),
    "sub": lambda t: (2.0,),
    "mul": lambda t: (t.tensor([3.0, 2.0]),),
    "div": lambda t: (4.0,),
    "pow": lambda t: (3,),
    "exp": lambda t: (),
    "sigmoid": lambda t: (),
    "relu": lambda t: (),
    "neg": lambda t: (),
    "clamp": lambda t: (0.6, 1.2),
    "masked_fill": lambda t: (t.tensor([True, False]), 3.0),
    "zero": lambda t: (),
    "fill": lambda t: (2.0,),
    "copy": lambda t: (t.tensor([3.0, 4.0]),),
    "normal": lambda t: (),
    "addcmul": lambda t: (t.tensor([1.0, 2.0]), t.tensor([3.0, 2.0])),
    "lerp": lambda t: (t.tensor([1.0, 2.0]), 0.25),
    "cumsum": lambda t: (0,),
    "index_add": lambda t: (0, t.tensor([1]), t.tensor([7.0])),
    "scatter": lambda t: (0, t.tensor([1]), 7.0),
}
DUALS = ("add", "sub", "mul", "div", "copy")  # with an operand that has a tangent, on a base that has none


def shown(torch: Any, x: Any) -> Pair:
    parts = torch.autograd.forward_ad.unpack_dual(x)
    return [None if one is None else [round(v, 4) for v in one.flatten().tolist()] for one in parts]


def changed(torch: Any, view: str, name: str, dual: bool) -> tuple[list[Pair], list[int]]:
    """A base, its view after a change in place, and another view from before; and where the view lies."""
    forward = torch.autograd.forward_ad
    torch.manual_seed(0)
    with forward.dual_level():
        base = torch.tensor(POINT)
        if dual:
            base = forward.make_dual(base, torch.tensor(SPEED))
        args = CHANGES[name](torch)
        if not dual and args:
            args = (forward.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([10.0, 20.0])),)
        other, one = base[:4], VIEWS[view](base)
        getattr(one, f"{name}_")(*args)
        return [shown(torch, x) for x in (base, one, other)], VIEWS[view](torch.arange(6)).tolist()


CASES = [(view, name, dual) for view in VIEWS for name in CHANGES for dual in (True, False) if dual or name in DUALS]


@all_rows(("view", "name", "dual"), CASES)
def test_base_and_views_share_the_tangent(view: str, name: str, dual: bool) -> None:
    torch: Any = gradcli.eager
    (base, one, other), at = changed(torch, view, name, dual)
    before = (POINT, SPEED if dual else [0.0] * 6)
    for part, part_of_view, part_of_other, old in zip(base, one, other, before, strict=True):
        assert part is not None and part_of_view is not None
        assert [part[i] for i in at] == part_of_view
        assert part[:4] == part_of_other
        assert all(part[i] == pytest.approx(old[i], abs=1e-4) for i in range(6) if i not in at)
    forward = torch.autograd.forward_ad
    if dual and name != "normal":  # as the same out of place, on numbers of their own
        with forward.dual_level():
            apart = forward.make_dual(torch.tensor([POINT[i] for i in at]), torch.tensor([SPEED[i] for i in at]))
            changed_apart = (apart * 1.0).clone()
            getattr(changed_apart, f"{name}_")(*CHANGES[name](torch))
            assert shown(torch, changed_apart) == one


PROGRAMS: dict[str, tuple[str, Any]] = {
    "a sum keeps its own tangent": (
        "d = dual([1.0, 2.0], [1.0, 2.0])\ne = d + 1\ne.mul_(2)\nfound = show(d, e)",
        [[[1.0, 2.0], [1.0, 2.0]], [[4.0, 6.0], [2.0, 4.0]]],
    ),
    "a copy keeps its own tangent": (
        "d = dual([1.0, 2.0], [1.0, 2.0])\ne = torch.zeros(2)\ne.copy_(d)\ne.mul_(3)\nfound = show(d, e)",
        [[[1.0, 2.0], [1.0, 2.0]], [[3.0, 6.0], [3.0, 6.0]]],
    ),
    "a clone keeps its own tangent": (
        "d = dual([1.0, 2.0], [1.0, 2.0])\ne = d.clone()\ne.mul_(3)\nfound = show(d, e)",
        [[[1.0, 2.0], [1.0, 2.0]], [[3.0, 6.0], [3.0, 6.0]]],
    ),
    "the tangent that was given": (
        "t = torch.ones(2)\nd = fw.make_dual(torch.ones(2), t)\nd.mul_(2)\nd[:1].mul_(2)\nfound = t.tolist()",
        [4.0, 2.0],
    ),
    "not the tensor that was given": (
        "p = torch.ones(2)\nd = fw.make_dual(p, torch.ones(2))\nd[:1].mul_(2)\nfound = show(p, p[:1])",
        [[[2.0, 1.0], None], [[2.0], None]],
    ),
    "not what was unpacked": (
        "d = dual([1.0, 2.0], [1.0, 2.0])\nu = fw.unpack_dual(d).primal\nu.mul_(5)\nfound = show(u, u[:1], d)",
        [[[5.0, 10.0], None], [[5.0], None], [[5.0, 10.0], [1.0, 2.0]]],
    ),
    "a copy of a part into a part": (
        "d = dual([1.0] * 4, [2.0] * 4)\nbase = torch.zeros(4)\nbase[:2].copy_(d[:2])\nfound = show(base)",
        [[[1.0, 1.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0]]],
    ),
    "a view of a view": (
        "d = dual([1.0, 1.0], [1.0, 1.0])\nd.view(2, 1)[0].mul_(2)\nfound = show(d)",
        [[[2.0, 1.0], [2.0, 1.0]]],
    ),
    "assignments": (
        "d = dual([1.0] * 4, [1.0, 2.0, 3.0, 4.0])\nd[0] = 5.0\nd[1:] *= d[0]\nd[torch.tensor([3])] = 9.0\nd[d > 8] = 1.0"
        "\nfound = show(d)",
        [[[5.0, 5.0, 5.0, 1.0], [0.0, 10.0, 15.0, 0.0]]],
    ),
    "a view from before": (
        "b = torch.zeros(4)\nv, w = b[1:3], b[2:]\nv.add_(dual([1.0, 1.0], [1.0, 2.0]))\nb.mul_(2)\nfound = show(b, v, w)",
        [[[0.0, 2.0, 2.0, 0.0], [0.0, 2.0, 4.0, 0.0]], [[2.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [4.0, 0.0]]],
    ),
    "columns in memory": (
        "d = fw.make_dual(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), torch.tensor([[1.0, 2.0], [3.0, 5.0]]))\n"
        "v = d.t().view(4)\nv[1:3].mul_(3)\nfound = show(d, v)",
        [[[1.0, 9.0, 6.0, 4.0], [1.0, 6.0, 9.0, 5.0]], [[1.0, 6.0, 9.0, 4.0], [1.0, 9.0, 6.0, 5.0]]],
    ),
    "a tangent in columns": (
        "d = fw.make_dual(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 5.0]]).t())\n"
        "v = d.view(4)\nv[1:3].mul_(3)\nfound = show(d, v)",
        [[[1.0, 6.0, 9.0, 4.0], [1.0, 9.0, 6.0, 5.0]], [[1.0, 6.0, 9.0, 4.0], [1.0, 9.0, 6.0, 5.0]]],
    ),
    "detach_": ("d = dual([1.0], [1.0]) * 1\nd.detach_()\nfound = show(d)", [[[1.0], None]]),
    "reshape of what is no view": (
        "d = dual([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 5.0]])\nr = d.t().reshape(4)\nr.mul_(2)\nfound = show(d, r)",
        [[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]], [[2.0, 6.0, 4.0, 8.0], [2.0, 6.0, 4.0, 10.0]]],
    ),
    "a tangent with a history": (
        "s = torch.tensor([1.0, 2.0], requires_grad=True)\nd = fw.make_dual(torch.ones(2), s * 3)\nd[:1].mul_(5.0)\n"
        "found = [g.tolist() for g in torch.autograd.grad(fw.unpack_dual(d).tangent.sum(), s)]",
        [[15.0, 3.0]],
    ),
    "a tangent that is a leaf": (
        "d = fw.make_dual(torch.ones(2), torch.ones(2, requires_grad=True))\nd.mul_(2)",
        "RuntimeError",
    ),
    "with the grad of the entries": (
        "x = torch.tensor([2.0, 3.0], requires_grad=True)\nd = fw.make_dual(x * 1, torch.ones(2))\nd[:1].mul_(d[1:].clone())\n"
        "u = fw.unpack_dual(d)\nfound = [torch.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() for y in u]",
        [[3.0, 3.0], [1.0, 1.0]],
    ),
}


def outcome(torch: Any, text: str) -> Any:
    forward = torch.autograd.forward_ad
    names: dict[str, Any] = {
        "torch": torch,
        "fw": forward,
        "dual": lambda x, t: forward.make_dual(torch.tensor(x), torch.tensor(t)),
        "show": lambda *xs: [shown(torch, x) for x in xs],
    }
    with forward.dual_level():
        try:
            exec(text, names)
        except RuntimeError:
            return "RuntimeError"
    return names["found"]


@pytest.mark.parametrize(("text", "expected"), list(PROGRAMS.values()), ids=list(PROGRAMS))
def test_program(text: str, expected: Any) -> None:
    assert outcome(gradcli.eager, text) == expected


def test_tangents_end_with_their_level() -> None:
    torch: Any = gradcli.eager
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        base = torch.zeros(3)
        view = base[1:]
        view.add_(forward.make_dual(torch.ones(2), torch.ones(2)))
    for x in (base, view, base[:1]):
        assert x._tangent is None and forward.unpack_dual(x).tangent is None
    view.mul_(2)
    assert base.tolist() == [0.0, 2.0, 2.0]


@pytest.mark.peers
def test_pytorch_comes_to_the_same() -> None:
    torch = pytest.importorskip("torch")
    ours: Any = gradcli.eager
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = {name: outcome(torch, text) for name, (text, _) in PROGRAMS.items()}
        theirs = [changed(torch, *case)[0] for case in CASES]
    assert programs == {name: outcome(ours, text) for name, (text, _) in PROGRAMS.items()}
    for case, expected in zip(CASES, theirs, strict=True):
        for pair, right in zip(changed(ours, *case)[0], expected, strict=True):
            for one, other in zip(pair, right, strict=True):
                assert one is not None and other is not None, case
                assert one == pytest.approx(other, abs=2e-4), case
