"""The data of a plot: a function and its derivatives along one leaf or two, a claim, finite differences by step."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.base.results.calculations import DisplayedResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.results.calculations import Value


class Curves(DisplayedResult):
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


class StepSequence(NamedTuple):
    """The slope at each step; what is not known is None.

    `of` says which derivative it is, `claimed` is the value to check, `exact` the derivative, `estimate` the limit of
    the slopes, to within `bound`; `rate` is the power of the step with which their error falls. At a kink `below`
    and `above` are the slopes on its sides.
    """

    steps: Sequence[float]
    slopes: Sequence[float]
    of: str = ""
    claimed: float | None = None
    exact: float | None = None
    estimate: float | None = None
    bound: float | None = None
    rate: float | None = None
    below: float | None = None
    above: float | None = None

    def evidence(self) -> dict[str, Any]:
        """The known fields, by name."""
        fields: dict[str, Any] = self._asdict()
        return {name: value for name, value in fields.items() if value is not None and value != ""}


def step_sequence(evidence: Mapping[str, Any]) -> StepSequence:
    """The record from JSON data, in which numbers that are not finite are words.

    >>> step_sequence({"steps": [0.5], "slopes": ["inf"], "claimed": 2.0}).slopes
    (inf,)
    """
    known: dict[str, Any] = {name: evidence[name] for name in StepSequence._fields if evidence.get(name) is not None}
    single = {name: float(value) for name, value in known.items() if name not in ("of", "steps", "slopes")}
    steps, slopes = (tuple(map(float, known.get(name, ()))) for name in ("steps", "slopes"))
    return StepSequence(steps, slopes, str(known.get("of", "")), **single)
