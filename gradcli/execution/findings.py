"""What explains a gradient: findings with a reason, a line and a cure; knows no tensor and no script."""

from __future__ import annotations

from gradcli.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Finding(NamedTuple):
    """One reason: its name, what it is about, where it happened, what to do. `evidence` holds the numbers."""

    reason: str
    subject: str | None
    line: int | None
    message: str
    cure: str
    evidence: dict[str, Any]


class Explanation(NamedTuple):
    """The findings about one file, the most telling first; and the gradients that were looked at, in a few words."""

    file: str
    findings: tuple[Finding, ...]
    gradients: dict[str, str]
