"""The line that a node remembers: the caller's, whoever called an operator before."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import gradcli.eager as torch
from gradcli.eager._core.modes import line_of


def place_of(x: Any) -> tuple[str, int]:
    return line_of(x.grad_fn.place)


def doubled(x: Any) -> Any:
    return x * 2.0


def lowered(x: Any) -> Any:
    return x - 1.0


def test_callers_that_take_turns_are_told_apart() -> None:
    x = torch.ones(3, requires_grad=True)
    doubled(lowered(x))
    for function in (doubled, lowered, lowered, doubled, lowered):
        code = function.__code__
        assert place_of(function(x)) == (code.co_filename, code.co_firstlineno + 1)


def test_lines_of_one_caller_are_told_apart() -> None:
    x = torch.ones(3, requires_grad=True)
    first = x.sin()
    second = x.sin()
    third = x * x
    lines = [place_of(one)[1] for one in (first, second, third)]
    assert lines == [lines[0], lines[0] + 1, lines[0] + 2]


def test_code_of_this_package_is_no_caller() -> None:
    """Modules call operators from inside: their place is the line that called the module, also after a plain call."""
    x = torch.ones(4, 3, requires_grad=True)
    inside = FunctionType(doubled.__code__.replace(), {"__name__": "gradcli.eager.somewhere"})
    doubled(x)
    found = inside(x)
    code = test_code_of_this_package_is_no_caller.__code__
    name, line = place_of(found)
    assert name == code.co_filename and line == code.co_firstlineno + 5
    loss = torch.nn.MSELoss()(torch.nn.Linear(3, 2)(x), torch.zeros(4, 2))
    assert place_of(loss) == (code.co_filename, code.co_firstlineno + 9)
