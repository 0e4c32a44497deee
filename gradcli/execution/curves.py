"""What a plot shows: a function and its derivatives over ranges of one leaf or two, a claim, differences by step."""

from __future__ import annotations

from gradcli.execution.results import Shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.execution.results import Value
    from gradcli.execution.step_sequence import StepSequence


class Curves(Shown):
    """`points[leaf]` are the coordinates along each leaf; of two, the second runs faster in `value` and `gradient`.

    `claim` is what was claimed for the gradient at the same points. `steps` stands alone: differences at `at`.
    """

    expression: str
    at: dict[str, Value]
    points: dict[str, list[float]]
    value: list[float]
    gradient: dict[str, list[float]]
    claim: list[float] | None = None
    claimed: str = ""
    steps: StepSequence | None = None
