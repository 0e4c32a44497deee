"""Judges one gradient at one point, inside a copy of the process that called it or in a process of its own.

The checks are those of `check_callable`. Every call gets the same random numbers, so that noise is not taken for an
error. What does not agree is handed to `sorting.py` before it is called wrong.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.audit import sorting
from gradcli.checks.callables.api import check_callable
from gradcli.checks.callables.runner import packed
from gradcli.diagnostics import GradcliError
from gradcli.frameworks.box import boxed, opened
from gradcli.frameworks.call_arguments import numbers, parameters
from gradcli.frameworks.failures import Failed, OutOfTime, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # a function, how its derivative is given to `check_callable`, and the point, by name or by position
    Subject = tuple[Callable[..., Any], dict[str, Any], dict[str, Any] | tuple[Any, ...]]

SAMPLES = 2  # points beside the kept one
SETTLED = ("PROVED", "CERTIFIED", "AGREES", "KINK", "BOUNDARY", "UNDEFINED")  # verdicts with nothing to be sorted


class Draws:
    """The random numbers of a process: those at the moment of a call, or others by a seed."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self.states = random.getstate(), np.random.get_state()
        self.torch = sys.modules.get("torch")
        self.tensors = self.torch.get_rng_state() if self.torch is not None else None

    def reset(self) -> None:
        """Begin the random numbers anew."""
        if self.seed is not None:
            random.seed(self.seed)
            np.random.seed(self.seed)
            if self.torch is not None:
                self.torch.manual_seed(self.seed)
            return
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])
        if self.torch is not None:
            self.torch.set_rng_state(self.tensors)

    def behind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gets the same random numbers at every call."""

        def call(*args: Any, **named: Any) -> Any:
            self.reset()
            return function(*args, **named)

        return wraps(function)(call)


def answer(subject: Callable[[], Subject], request: dict[str, Any]) -> dict[str, Any]:
    """The verdict on what `subject` gives, as plain data: a row per argument, or why there is none."""
    try:
        return judged(subject(), float(request["timeout"]))
    except GradcliError as problem:
        return {"error": problem.diagnostics[0].message}
    except Failed as problem:
        return {"error": problem.reason}
    except OutOfTime:
        return {"error": "time ran out"}
    except Exception as problem:
        return {"error": describe(problem)}


def judged(subject: Subject, seconds: float) -> dict[str, Any]:
    """The verdict for each argument of one call."""
    f, derivative, at = subject
    draws = Draws()
    f = draws.behind(f)
    options: dict[str, Any] = {name: draws.behind(one) if callable(one) else one for name, one in derivative.items()}
    report = check_callable(f, **options, at=at, samples=SAMPLES, timeout=seconds)
    names = options.get("names") or parameters(f) or [f"x{i}" for i in range(len(at))]
    arguments = at if isinstance(at, dict) else dict(zip(names, at, strict=False))
    arrays = {name: numbers(value) for name, value in arguments.items()}
    checks = []
    for one in report.checks:
        row = {"leaf": one.leaf, "verdict": one.verdict, "message": one.message, "evidence": one.evidence}
        checks.append(row)
        if one.verdict in SETTLED or (one.verdict == "ERROR" and one.leaf is None):
            continue
        how = {name: value for name, value in options.items() if name != "wrt"}
        with boxed(f, **how, wrt=[one.leaf] if one.leaf else None, at=at, timeout=seconds) as box:
            box, _ = opened(box)
            found = sorting.sorted_out(box, one, draws, [*filter(callable, derivative.values()), f])
        if found is not None:
            row["sorted"] = found._asdict()
    notes = [one.message for one in report.diagnostics]
    point = {name: packed(value) for name, value in arrays.items() if value is not None}
    return {"checks": checks, "notes": notes, "point": point}


# --- in a process of its own ---------------------------------------------------------------------------------------


def judge_exported(path: str, seconds: float, size: int, kept: dict[str, list[int]]) -> None:
    """Print the verdict on a function of JAX that a watched process has exported, as a line of JSON.

    It stands in the files `path`.value, .pullback and .npz. `size` is that of the function's value; `kept` says which
    arguments each of the two modules reads.
    """
    import jax

    jax.config.update("jax_enable_x64", True)

    def subject() -> tuple[Any, dict[str, Any], tuple[Any, ...]]:
        with np.load(f"{path}.npz") as file:
            point = tuple(file[name] for name in file.files)
        weights = np.zeros(size)
        value = loaded(f"{path}.value", kept["value"], point, lambda *moved: weights)
        pullback = loaded(f"{path}.pullback", kept["pullback"], (weights, *point), lambda ct, *moved: moved)

        def f(*moved: Any) -> Any:
            return np.asarray(value(*moved))

        def vjp(*given: Any) -> Any:
            return tuple(np.asarray(one) for one in pullback(np.reshape(given[-1], size), *given[:-1]))

        return f, {"vjp": vjp, "names": [f"x{i}" for i in range(len(point))]}, point

    sys.stdout.write(json.dumps(answer(subject, {"timeout": seconds})) + "\n")


def loaded(path: str, kept: Sequence[int], like: Sequence[Any], shape_of: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a module that was exported here or there, whose arguments are `like` these.

    Reading a whole `Exported` needs a package that JAX does not bring along. So one of the same shapes is made, of a
    function `shape_of` that returns anything, and its module is replaced.
    """
    import jax
    from jax import export

    shapes = [jax.ShapeDtypeStruct(np.shape(one), np.float64) for one in like]
    made = export.export(jax.jit(shape_of), platforms=["cpu"])(*shapes)
    module = Path(path).read_bytes()
    call: Callable[..., Any] = jax.jit(
        replace(made, mlir_module_serialized=module, module_kept_var_idx=tuple(kept)).call
    )
    return call
