"""A question and values go in; the outputs come out of a plan on the GPU, or None where the evaluator has to do it."""

from __future__ import annotations

from gradcli.diagnostics import pointing_into
from gradcli.execution.namespaces import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gradcli.calculator.prepared import Question


def on_device(
    question: Question,
    plans: dict[Any, Any],
    values: Mapping[str, Any],
    dtype: str,
    moving: Iterable[str] | None = None,
    count: int | None = None,
    fetch: bool = False,
) -> list[Any] | None:
    """The outputs by CuPy; `plans` keeps what was made. None for programs that the device's plans do not take.

    `moving` names the values whose first axis counts `count` points. Results of values that lie on the device stay
    there, unless `fetch` asks for arrays of NumPy. Raises GradcliError as the evaluator does.
    """
    from gradcli.execution.devices import device_plan

    moves = None if moving is None else frozenset(moving)
    key = ("cupy", dtype, moves)
    try:
        with pointing_into(question.lowered.source):
            if key not in plans:
                plans[key] = device_plan(question.tape, dtype, moves)
            plan = plans[key]
            found: list[Any] | None = plan.answer(values, count, fetch) if plan is not None else None
    except REFUSED:
        return None  # the evaluator says what is wrong, and where
    return found
