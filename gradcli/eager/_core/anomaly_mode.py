"""Anomaly mode: a backward that produces NaN raises an error with the line of the forward operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core.grad_fn import Node
from gradcli.eager._core.modes import spoken, sweeps, warn
from gradcli.eager._core.tensor import Tensor


class set_detect_anomaly:
    """Switch the search for NaN in backward on or off: at once, and back at the end of a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (sweeps.anomaly, sweeps.check_nan)
        sweeps.anomaly, sweeps.check_nan = bool(mode), bool(check_nan)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        sweeps.anomaly, sweeps.check_nan = self.before


class detect_anomaly(set_detect_anomaly):
    """Within this context a backward that produces NaN is a RuntimeError with the line of the forward operation.

    A gradient that is infinite gets a UserWarning with its line, and backward goes on.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warn(
            "anomaly detection is on: it checks every node, which makes backward slower, so use it to find errors only",
            UserWarning,
        )

    def __enter__(self) -> None:
        super().__init__(True, self.check_nan)


def is_anomaly_enabled() -> bool:
    """Whether backward looks for NaN."""
    return bool(sweeps.anomaly)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether backward raises where it finds NaN."""
    return bool(sweeps.anomaly and sweeps.check_nan)


def inspect(node: Node, cts: list[Any], results: list[Any]) -> None:
    """Check the gradients that a node returned: RuntimeError for NaN, UserWarning for the first infinity."""
    if not sweeps.check_nan:
        return
    before, after = ([x._raw if isinstance(x, Tensor) else x for x in values] for values in (cts, results))
    for at, raw in enumerate(after):
        if raw is None or raw.dtype.kind not in "fc":
            continue
        where = f"values in its {at}th output; the operation that it belongs to is at {_origin(node)}"
        if np.isnan(raw).any():
            warn(f"the gradient of {node.name()} is NaN; its operation is at {_origin(node)}", UserWarning)
            raise RuntimeError(f"{node.name()} returned nan {where}")
        if np.isinf(raw).any() and not any(ct is not None and np.isinf(ct).any() for ct in before):
            warn(f"{node.name()} returned infinite {where}", UserWarning)


def _origin(node: Node) -> str:
    """The line of a node's operation, and what was wrong with the forward values that the node saved."""
    for value in node.saved or ():
        raw = getattr(value, "_raw", None)
        if raw is not None and raw.dtype.kind in "fc" and not np.isfinite(raw).all():
            what = "NaN" if np.isnan(raw).any() else "infinite"
            return f"{spoken(node.place)}, and a value that it saved in forward is {what} already"
    return spoken(node.place)
