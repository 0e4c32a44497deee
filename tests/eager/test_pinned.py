"""Small programs whose outcome is pinned here; PyTorch, where it is installed, must come to the same.

An outcome is what a program leaves in `found`, or the class of the error that it raises. Each of these was once
something else, silently, or stands next to one that was.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import gradcli
import gradcli.eager
from tests.support.rows import all_rows

PROGRAMS: dict[str, tuple[str, Any]] = {
    "Variable: a leaf that shares memory": (
        "x = torch.ones(2)\n"
        "v = torch.autograd.Variable(x, requires_grad=True)\n"
        "x[0] = 7\n"
        "found = v.requires_grad, x.requires_grad, v.is_leaf, v.tolist(), v._version\n",
        (True, False, True, [7.0, 1.0], 1),
    ),
    "Variable: of a tensor with history": (
        "x = torch.ones(2, requires_grad=True)\n"
        "v = torch.autograd.Variable(x * 2)\n"
        "found = v.requires_grad, v.is_leaf\n",
        (False, True),
    ),
    "Variable: of a leaf that requires grad": (
        "v = torch.autograd.Variable(torch.ones(2, requires_grad=True))\nfound = v.requires_grad\n",
        False,
    ),
    "Variable: its gradient": (
        "v = torch.autograd.Variable(torch.ones(2), requires_grad=True)\n"
        "(v * v).sum().backward()\n"
        "found = v.grad.tolist()\n",
        [2.0, 2.0],
    ),
    "Variable: nothing": (
        "found = torch.autograd.Variable().tolist()\n",
        [],
    ),
    "Variable: whole numbers": (
        "torch.autograd.Variable(torch.arange(3), requires_grad=True)\n",
        "RuntimeError",
    ),
    "Variable: a list": (
        "torch.autograd.Variable([1.0])\n",
        "TypeError",
    ),
    "Variable: instances": (
        "V = torch.autograd.Variable\n"
        "found = isinstance(torch.ones(1), V), isinstance(torch.nn.Parameter(torch.ones(1)), V), isinstance(3, V)\n",
        (True, True, False),
    ),
    ".data: whole numbers for a leaf": (
        "x = torch.ones(2, requires_grad=True)\nx.data = torch.arange(2)\n",
        "RuntimeError",
    ),
    ".data: whole numbers for a result": (
        "x = torch.ones(2, requires_grad=True) * 2\nx.data = torch.arange(2)\n",
        "RuntimeError",
    ),
    ".data: truth values for a parameter": (
        "x = torch.nn.Parameter(torch.ones(2))\nx.data = torch.ones(2) > 0\n",
        "RuntimeError",
    ),
    ".data: whole numbers without grad": (
        "x = torch.ones(2)\nx.data = torch.arange(2)\nfound = str(x.dtype)\n",
        "torch.int64",
    ),
    ".data: another float format": (
        "x = torch.ones(2, requires_grad=True)\n"
        "x.data = torch.ones(3, dtype=torch.float64)\n"
        "found = str(x.dtype), x.tolist()\n",
        ("torch.float64", [1.0, 1.0, 1.0]),
    ),
    ".data: complex numbers": (
        "x = torch.ones(2, requires_grad=True)\nx.data = torch.ones(2, dtype=torch.complex64)\nfound = str(x.dtype)\n",
        "torch.complex64",
    ),
    "stack_module_state: modes": (
        "a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1).eval()\ntorch.func.stack_module_state([a, b])\n",
        "RuntimeError",
    ),
    "stack_module_state: classes": (
        "torch.func.stack_module_state([torch.nn.Linear(2, 1), torch.nn.LayerNorm(1)])\n",
        "RuntimeError",
    ),
    "stack_module_state: requires_grad": (
        "a, b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1).requires_grad_(False)\n"
        "torch.func.stack_module_state([a, b])\n",
        "RuntimeError",
    ),
    "stack_module_state: frozen": (
        "both = [torch.nn.Linear(2, 1).requires_grad_(False) for _ in range(2)]\n"
        "found = torch.func.stack_module_state(both)[0]['weight'].requires_grad\n",
        False,
    ),
    "stack_module_state: evaluated": (
        "both = [torch.nn.Linear(2, 1).eval() for _ in range(2)]\n"
        "found = torch.func.stack_module_state(both)[0]['weight'].requires_grad\n",
        True,
    ),
    "stack_module_state: sizes": (
        "torch.func.stack_module_state([torch.nn.Linear(2, 1), torch.nn.Linear(3, 1)])\n",
        "RuntimeError",
    ),
    "stack_module_state: none": (
        "torch.func.stack_module_state([])\n",
        "RuntimeError",
    ),
    "saved_tensors_hooks: another shape comes back": (
        "x = torch.ones(2, requires_grad=True)\n"
        "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: torch.ones(3)):\n"
        "    y = x * x\n"
        "y.sum().backward()\n",
        "RuntimeError",
    ),
    "clamp: clamp at a tie": (
        "x, b = torch.tensor([1., 2., 3.], requires_grad=True), torch.tensor([1., 3., 2.], requires_grad=True)\n"
        "y = x.clamp(b)\n"
        "y.sum().backward()\n"
        "found = y.tolist(), x.grad.tolist(), b.grad.tolist(), type(y.grad_fn).__name__\n",
        ([1.0, 3.0, 3.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0], "ClampBackward0"),
    ),
    "clamp: a missing bound": (
        "x = torch.tensor([1., 2., 3.], requires_grad=True)\n"
        "y = x.clamp(max=2.)\n"
        "y.sum().backward()\n"
        "found = y.tolist(), x.grad.tolist()\n",
        ([1.0, 2.0, 2.0], [1.0, 1.0, 0.0]),
    ),
    "clamp: not a number": (
        "x = torch.tensor([1., float('nan')], requires_grad=True)\n"
        "x.clamp(min=0.5).sum().backward()\n"
        "found = x.grad.tolist()\n",
        [1.0, 0.0],
    ),
}

# a formula: how often its saved tensors are packed, its derivative and the derivative of that, where packing doubles
PACKED: dict[str, Any] = {
    "x * 3": (0, [3.0, 3.0], None),
    "3 - x / 4": (0, [-0.25, -0.25], None),
    "x**3": (3, [12.0, 48.0], [48.0, 96.0]),
    "x**4": (3, [32.0, 256.0], [384.0, 1536.0]),
    "x**2.5": (3, [7.071, 20.0], [15.0, 21.213]),
    "x**-1": (3, [-0.25, -0.062], [0.062, 0.008]),
    "x * x": (4, [4.0, 8.0], [4.0, 4.0]),
    "x * x * x": (10, [10.0, 40.0], [32.0, 64.0]),
    "x.sqrt()": (3, [0.25, 0.177], [-0.016, -0.006]),
    "x.exp()": (2, [5.437, 14.778], [10.873, 29.556]),
    "x.sin()": (3, [-0.416, -0.654], [1.514, -1.979]),
    "x.tanh()": (3, [-1.32, -2.717], [16.086, 41.914]),
    "x.log()": (3, [0.5, 0.25], [-0.125, -0.031]),
    "x / (x + 1)": (9, [0.125, 0.056], [-0.016, 0.0]),
    "x[:, None] @ x[None]": (4, [12.0, 12.0], [8.0, 8.0]),
    "torch.addcmul(x, x, x, value=3)": (4, [13.0, 25.0], [12.0, 12.0]),
    "torch.lerp(x, x * x, 0.3)": (4, [1.9, 3.1], [1.2, 1.2]),
    "x.clamp(min=0.5)": (1, [1.0, 1.0], None),
    "x.clamp(0.5, 1.5)": (1, [0.0, 0.0], None),
    "x.relu()": (2, [1.0, 1.0], [0.0, 0.0]),
}
PACKING = """
calls = []
def pack(t):
    calls.append(1)
    return 2 * t
x = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    y = ({formula}).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    h = torch.autograd.grad(g.sum(), x)[0].tolist() if g.requires_grad else None
found = len(calls), [round(v, 3) for v in g.tolist()], h if h is None else [round(v, 3) for v in h]
"""

# m = [1, 0, 1] in these formats, x = [5., 6., 7.]
FORMATS = ("bool", "int8", "int32", "int64")
INDICES: dict[str, tuple[Any, ...]] = {
    "x[m]": ([5.0, 7.0], "IndexError", [6.0, 5.0, 6.0], [6.0, 5.0, 6.0]),
    "torch.arange(9.0).reshape(3, 3)[m, 1]": ([1.0, 7.0], "IndexError", [4.0, 1.0, 4.0], [4.0, 1.0, 4.0]),
    "x[m[0]]": ([[5.0, 6.0, 7.0]], 6.0, 6.0, 6.0),
    "x[m[1]]": ([], 5.0, 5.0, 5.0),
    "torch.arange(9.0).reshape(3, 3)[0, m[0]]": ([[0.0, 1.0, 2.0]], 1.0, 1.0, 1.0),
    "put(x, m, 9.0)": ([9.0, 6.0, 9.0], "IndexError", [9.0, 9.0, 7.0], [9.0, 9.0, 7.0]),
    "put(x, m, torch.tensor([9.0, 8.0]))": ([9.0, 6.0, 8.0], "IndexError", "RuntimeError", "RuntimeError"),
    "put(x, m[0], 9.0)": ([9.0, 9.0, 9.0], [5.0, 9.0, 7.0], [5.0, 9.0, 7.0], [5.0, 9.0, 7.0]),
    "put(x.reshape(1, 3), (slice(None), m), 9.0)": (
        [[9.0, 6.0, 9.0]],
        "IndexError",
        [[9.0, 9.0, 7.0]],
        [[9.0, 9.0, 7.0]],
    ),
    "torch.where(m, x, 0 * x)": ([5.0, 0.0, 7.0], "RuntimeError", "RuntimeError", "RuntimeError"),
    "x.masked_fill(m, 2.0)": ([2.0, 6.0, 2.0], "RuntimeError", "RuntimeError", "RuntimeError"),
    "x.masked_fill_(m, 2.0)": ([2.0, 6.0, 2.0], "RuntimeError", "RuntimeError", "RuntimeError"),
    "x.masked_select(m)": ([5.0, 7.0], "RuntimeError", "RuntimeError", "RuntimeError"),
    "x.index_select(0, m)": ("RuntimeError", "RuntimeError", [6.0, 5.0, 6.0], [6.0, 5.0, 6.0]),
    "x.gather(0, m)": ("RuntimeError", "RuntimeError", [6.0, 5.0, 6.0], [6.0, 5.0, 6.0]),
    "x.scatter(0, m, 2.0)": ("RuntimeError", "RuntimeError", [2.0, 2.0, 7.0], [2.0, 2.0, 7.0]),
    "x.scatter_add(0, m, 0 * x)": ("RuntimeError", "RuntimeError", [5.0, 6.0, 7.0], [5.0, 6.0, 7.0]),
    "x.index_add(0, m, 0 * x)": ("RuntimeError", "RuntimeError", [5.0, 6.0, 7.0], [5.0, 6.0, 7.0]),
    "x.repeat_interleave(m)": ("NotImplementedError", "NotImplementedError", [5.0, 7.0], [5.0, 7.0]),
    "torch.bincount(m)": ("NotImplementedError", [1, 2], [1, 2], [1, 2]),
    "m.all()": (False, False, False, False),
    "m.any()": (True, True, True, True),
    "m.all(0)": (False, False, False, False),
}
INDEXING = """
def put(x, index, value):
    x[index] = value
    return x
m = torch.tensor([1, 0, 1]).to(torch.{format})
x = torch.arange(5.0, 8.0)
found = {text}
found = found.tolist() if hasattr(found, "tolist") else tuple(found)
"""

# where a hook is registered for y = -x, and what the gradient of x is for each answer of the hook to g
PLACES = (
    "y.grad_fn.register_hook(lambda sent, arrived: answer(sent[0]))",
    "y.grad_fn.register_prehook(lambda arrived: answer(arrived[0]))",
    "leaf.register_hook(lambda sent, arrived: answer(arrived[0]))",
    "leaf.register_prehook(lambda arrived: answer(arrived[0]))",
    "y.register_hook(answer)",
    "x.register_hook(answer)",
    "x.register_post_accumulate_grad_hook(lambda x: answer(x.grad))",
)
ANSWERS: dict[str, tuple[Any, ...]] = {
    "3": ("TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"),
    "g * 3": ("TypeError", "TypeError", "TypeError", "TypeError", [-3.0, -3.0], [-3.0, -3.0], "RuntimeError"),
    "[g * 3]": ("TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"),
    "(g * 3,)": ([-3.0, -3.0], [-3.0, -3.0], "RuntimeError", [-3.0, -3.0], "TypeError", "TypeError", "TypeError"),
    "(g * 3, g)": (
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "TypeError",
        "TypeError",
        "TypeError",
    ),
    "(None,)": (None, None, "RuntimeError", None, "TypeError", "TypeError", "TypeError"),
    "(torch.ones(3),)": (
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "TypeError",
        "TypeError",
        "TypeError",
    ),
    "(g.double(),)": (
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "RuntimeError",
        "TypeError",
        "TypeError",
        "TypeError",
    ),
    "(3,)": ("TypeError", "TypeError", "RuntimeError", "TypeError", "TypeError", "TypeError", "TypeError"),
    "()": ("RuntimeError", "RuntimeError", [-1.0, -1.0], "RuntimeError", "TypeError", "TypeError", "TypeError"),
}
ANSWERING = """
def answer(g):
    return {answer}
x = torch.ones(2, requires_grad=True)
y = -x
leaf = y.grad_fn.next_functions[0][0]
{place}
y.sum().backward(create_graph={create_graph})
found = None if x.grad is None else x.grad.tolist()
"""


def rows() -> Iterator[tuple[str, str, Any]]:
    for name, (text, expected) in PROGRAMS.items():
        yield name, text, expected
    for formula, expected in PACKED.items():
        yield f"packed: {formula}", PACKING.format(formula=formula), expected
    for text, outcomes in INDICES.items():
        for format, expected in zip(FORMATS, outcomes, strict=True):
            yield f"{format}: {text}", INDEXING.format(text=text, format=format), expected
    for answer, outcomes in ANSWERS.items():
        for place, expected in zip(PLACES, outcomes, strict=True):
            for create_graph in (False, True):
                text = ANSWERING.format(answer=answer, place=place, create_graph=create_graph)
                yield f"{answer}: {place} {create_graph}", text, expected


ROWS = [pytest.param(text, expected, id=name) for name, text, expected in rows()]


def outcome(text: str, torch: Any) -> Any:
    names: dict[str, Any] = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(text, names)
        except Exception as error:
            return next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")
    return names.get("found")


@all_rows(("text", "expected"), ROWS)
def test_outcome(text: str, expected: Any) -> None:
    assert repr(outcome(text, gradcli.eager)) == repr(expected)


@pytest.mark.peers
def test_pytorch_comes_to_the_same() -> None:
    torch = pytest.importorskip("torch")
    others = {name: found for name, text, expected in rows() if repr(found := outcome(text, torch)) != repr(expected)}
    assert others == {}
