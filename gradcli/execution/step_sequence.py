"""Finite differences of a function at a sequence of steps, with what they are to be compared with: a record, shared by
the checks that take them and the plot that shows them."""

from __future__ import annotations

from gradcli.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class StepSequence(NamedTuple):
    """The slope at each step; what is not known is None.

    `of` says which derivative it is, `claimed` is what is judged, `exact` the derivative, `estimate` what the slopes
    settle at, to `bound`; `rate` is the power of the step with which their error falls.
    """

    steps: Sequence[float]
    slopes: Sequence[float]
    of: str = ""
    claimed: float | None = None
    exact: float | None = None
    estimate: float | None = None
    bound: float | None = None
    rate: float | None = None

    def evidence(self) -> dict[str, Any]:
        """What is known, by name."""
        fields: dict[str, Any] = self._asdict()
        return {name: value for name, value in fields.items() if value is not None and value != ""}


def step_sequence(evidence: Mapping[str, Any]) -> StepSequence:
    """The record of evidence that has become JSON data, in which numbers that are not finite are words.

    >>> step_sequence({"steps": [0.5], "slopes": ["inf"], "claimed": 2.0}).slopes
    (inf,)
    """
    known: dict[str, Any] = {name: evidence[name] for name in StepSequence._fields if evidence.get(name) is not None}
    single = {name: float(value) for name, value in known.items() if name not in ("of", "steps", "slopes")}
    steps, slopes = (tuple(map(float, known.get(name, ()))) for name in ("steps", "slopes"))
    return StepSequence(steps, slopes, str(known.get("of", "")), **single)
