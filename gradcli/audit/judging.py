"""Judges one gradient at one point, inside a copy of the process that called it or in a process of its own.

The checks are those of `check_callable`. Every call gets the same random numbers, so that noise is not taken for an
error. A gradient that does not agree may be no derivative on purpose, or one that differences cannot judge: SURROGATE,
SYMMETRIC (and its like), APPROXIMATE, STOCHASTIC, STATE CHANGED. Each of these rests on what the function does at the
point, never on its name; what fits none of them keeps its verdict.
"""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from functools import wraps
from inspect import getattr_static, signature
from pathlib import Path
from time import monotonic
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.audit import conventions
from gradcli.audit.conventions import FEW, PairedCall
from gradcli.audit.source_scan import DIFFERENCES
from gradcli.base.child_process import packed
from gradcli.base.diagnostics import GradcliError
from gradcli.checks.callables.api import check_callable
from gradcli.checks.decide.numerical import NOISE, scatter_of
from gradcli.recording.calls.box import ClaimedDerivative, boxed, opened
from gradcli.recording.calls.call_arguments import numbers, parameters
from gradcli.recording.calls.failures import Failed, OutOfTime, describe
from gradcli.recording.calls.random_draws import shared_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.report import Check
    from gradcli.recording.calls.box import BlackBox

    Floats = NDArray[np.floating[Any]]
    # a function, how its derivative is given to `check_callable`, and the point, by name or by position
    Subject = tuple[Callable[..., Any], dict[str, Any], dict[str, Any] | tuple[Any, ...]]

SAMPLES = 2  # points beside the kept one
LOOK = "LOOK"
NO_GRADIENT = "; the derivative is the gradient of no function, since its own Jacobian is not symmetric"
BY_VALUES = 1e-12  # a tolerance with which nothing is recorded
RIGHT = ("PROVED", "CERTIFIED", "AGREES")
SETTLED = (*RIGHT, "KINK", "BOUNDARY", "UNDEFINED")  # verdicts with nothing to be sorted


class Draws:
    """The random numbers of a process: those at the moment of a call, or others by a seed.

    To begin them anew takes longer than many a function, so it is done only once something `is_drawn`.
    """

    def __init__(self) -> None:
        self.seed: int | None = None
        self.is_drawn = False
        self.torch = sys.modules.get("torch")
        tensors = self.torch.get_rng_state() if self.torch is not None else None
        self.states = random.getstate(), np.random.get_state(), tensors
        self.begun = [*shared_states()]

    def have_moved(self) -> bool:
        """Whether anything was drawn."""
        return [*shared_states()] != self.begun

    def reset(self) -> None:
        """Begin the random numbers anew."""
        if self.seed is not None:
            random.seed(self.seed)
            np.random.seed(self.seed)
            if self.torch is not None:
                self.torch.manual_seed(self.seed)
        elif self.is_drawn:
            random.setstate(self.states[0])
            np.random.set_state(self.states[1])
            if self.torch is not None:
                self.torch.set_rng_state(self.states[2])

    def behind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gets the same random numbers at every call."""

        def call(*args: Any, **named: Any) -> Any:
            self.reset()
            return function(*args, **named)

        return wraps(function)(call)


def answer(subject: Callable[[], Subject | PairedCall], request: dict[str, Any]) -> dict[str, Any]:
    """The verdict on what `subject` gives, as plain data: a row per argument, or why there is none."""
    try:
        made_of, seconds = subject(), float(request["timeout"])
        return judged_pair(made_of, seconds) if isinstance(made_of, PairedCall) else judged(made_of, seconds)
    except GradcliError as problem:
        return {"error": problem.diagnostics[0].message}
    except Failed as problem:
        return {"error": problem.reason}
    except OutOfTime:
        return {"error": "time ran out"}
    except Exception as problem:
        return {"error": describe(problem)}


def judged_pair(call: PairedCall, seconds: float) -> dict[str, Any]:
    """The verdict for each part of the derivative of a pair: a row for each reading that is judged.

    Values are looked at first; where they do not agree, the oracles are asked, too.
    """
    call.ends = monotonic() + seconds
    checks, notes, code = [], [], (call.derivative, call.value)
    for fitting in conventions.readings(call):
        rows = []
        for reading in conventions.chosen(fitting):
            subject = conventions.subject(call, reading)
            answer = judged(few := conventions.of_few(subject), seconds / 2, BY_VALUES, code, 0)
            if few is not subject:
                moved = f"of {reading.argument} {FEW} entries were moved one by one, the others together"
                answer["notes"].append(moved)
            first = reading is fitting[0] and answer["checks"][0]["verdict"] in ("DISAGREES", "INCONCLUSIVE")
            if answer["checks"][0]["verdict"] not in SETTLED:
                answer = judged(subject, seconds / 2, 0.0 if first else BY_VALUES, code)
            if answer["checks"][0]["verdict"] == "DISAGREES" and conventions.is_gradient(call, reading) is False:
                answer["checks"][0]["message"] += NO_GRADIENT
            right = answer["checks"][0]["verdict"] in RIGHT and reading.factor == 1 and not reading.whole
            fits = {"agrees": reading.gap == 0 or right, "convention": reading.convention}
            fits |= {name: getattr(reading, name) for name in ("factor", "gap", "flat", "whole")}
            rows.append({**answer["checks"][0], "reading": fits})
            notes += answer["notes"]
        # smaller steps than those of a first look may show which argument is meant
        checks += sorted(rows, key=lambda row: not (row["reading"]["agrees"] and row["reading"]["factor"] == 1))
    wrong = [check for check in checks if check["reading"]["gap"] and check["verdict"] not in SETTLED]
    if wrong and conventions.without_settings(call):
        for check in wrong:
            reason = "right without the object's domain or the like, as its caller may mean"
            check |= {"verdict": LOOK, "message": f"{reason}: {check['message']}"}
    point = {name: packed(numbers(value)) for name, value in call.at.items() if conventions.moves(value)}
    unset = sorted(name for name, value in getattr(call.owner, "__dict__", {}).items() if value is None)
    taken = signature(call.value).parameters  # a whole number that only the derivative takes may be its order
    unset += [f"{name}={x}" for name, x in call.at.items() if type(x) is int and name not in taken]
    return {"checks": checks, "notes": notes, "point": point, "unset": unset}


def judged(
    subject: Subject, seconds: float, rtol: float = 0.0, code: Sequence[object] = (), samples: int = SAMPLES
) -> dict[str, Any]:
    """The verdict for each argument of one call; `code` are functions that those of the subject call."""
    f, derivative, at = subject
    draws = Draws()
    f = draws.behind(f)
    options: dict[str, Any] = {name: draws.behind(x) if callable(x) else x for name, x in derivative.items()}
    report = check_callable(f, **options, at=at, samples=samples, timeout=seconds, rtol=rtol)
    if draws.have_moved():
        draws.is_drawn = True
        report = check_callable(f, **options, at=at, samples=samples, timeout=seconds, rtol=rtol)
    names = options.get("names") or parameters(f) or [f"x{i}" for i in range(len(at))]
    arguments = at if isinstance(at, dict) else dict(zip(names, at, strict=False))
    arrays = {name: numbers(value) for name, value in arguments.items()}
    checks = []
    for check in report.checks:
        row = {"leaf": check.leaf, "verdict": check.verdict, "message": check.message, "evidence": check.evidence}
        checks.append(row)
        if check.verdict in SETTLED or (check.verdict == "ERROR" and check.leaf is None):
            continue
        claimed = ClaimedDerivative(**{way: options[way] for way in ClaimedDerivative._fields if way in options})
        wrt = [check.leaf] if check.leaf else None
        with boxed(f, claimed, at=at, names=options.get("names"), wrt=wrt, timeout=seconds) as box:
            box, _ = opened(box)
            category = sorted_out(box, check, draws, [*filter(callable, derivative.values()), f, *code])
        if category is not None:
            row |= {"verdict": category.word, "message": category.reason}
    notes = [note.message for note in report.diagnostics]
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

        def vjp(*moved: Any) -> Any:
            return tuple(map(np.asarray, pullback(np.reshape(moved[-1], size), *moved[:-1])))

        return f, {"vjp": vjp, "names": [f"x{i}" for i in range(len(point))]}, point

    sys.stdout.write(json.dumps(answer(subject, {"timeout": seconds})) + "\n")


def loaded(path: str, kept: Sequence[int], like: Sequence[Any], shape_of: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a module that was exported here or there, whose arguments are `like` these.

    Reading a whole `Exported` needs a package that JAX does not bring along. So one of the same shapes is made, of a
    function `shape_of` that returns anything, and its module is replaced.
    """
    import jax
    from jax import export

    shapes = [jax.ShapeDtypeStruct(np.shape(array), np.float64) for array in like]
    exported = export.export(jax.jit(shape_of), platforms=["cpu"])(*shapes)
    module = Path(path).read_bytes()
    call: Callable[..., Any] = jax.jit(
        replace(exported, mlir_module_serialized=module, module_kept_var_idx=tuple(kept)).call
    )
    return call


# --- what is no mistake -----------------------------------------------------------------------------------------------

STILL = (1e-7, 1e-5)  # relative steps at which a surrogate's forward does not move
MOSTLY = 0.9  # of the outputs stand still at the larger step, where some may pass a threshold
APPROXIMATE = 1e-4  # the largest relative error of a numerical derivative
LONGEST = 1e-5  # relative to 1 + abs(x): a step of a one-sided difference
UNSEEN = 1e-8  # a relative error that differences do not see
LOUDEST = 1e-2  # a noise that a difference may have
NOISY = 30  # times that scatter: a larger error than APPROXIMATE is noise up to this
DRAWS = 32  # of random numbers
STEP = 1e-4  # relative, of a slope that is compared with its scatter over draws
FAR, SHIFT = 6.0, 1e-6  # a mean is off by more than so many standard errors, or so much of the slope
# names of what computes derivatives approximately
NUMERICAL = re.compile(rf"{DIFFERENCES.pattern}|_adjoint|odeint|solve_ivp", re.IGNORECASE)


class Sorted(NamedTuple):
    """A class, and in words what was seen."""

    word: str
    reason: str


def sorted_out(box: BlackBox, check: Check, draws: Draws, code: Sequence[object] = ()) -> Sorted | None:
    """The class of a gradient that does not agree; None where it fits none, and is as the check says.

    The box holds the one argument that the check is about. `code` are the functions that compute value and derivative.
    """
    try:
        if not np.isfinite(box.pullback(box.x, np.ones(box.size), at_the_point=True)).all():
            return None
        category = unsteady(box, draws) or surrogate(box)
        if category is None and check.verdict == "DISAGREES":
            category = constrained(box)
        return category or approximate(box, check, code)
    except (Failed, OutOfTime):
        return None


def unsteady(box: BlackBox, draws: Draws) -> Sorted | None:
    """STATE CHANGED or STOCHASTIC, where the function or its derivative gives other values when it is called again."""
    weights = np.ones(box.size)
    asked: tuple[tuple[str, Callable[[], Floats]], ...] = (
        ("f", box.again),
        (box.role, lambda: box.pullback(box.x, weights, at_the_point=True)),
    )
    for role, ask in asked:
        if not np.array_equal(ask(), ask(), equal_nan=True):
            reason = f"{role} gives different numbers for the same argument and the same random numbers"
            return Sorted("STATE CHANGED", f"{reason}: it keeps state")
    slopes, sent = drawn(box, draws)
    if np.ptp(slopes) == 0 and np.ptp(sent) == 0:
        return None
    gaps = sent - slopes
    error = float(gaps.std(ddof=1)) / DRAWS**0.5
    mean = abs(float(gaps.mean()))
    if mean > FAR * error + SHIFT * float(np.abs(slopes).max()):
        return None  # an estimate, and off on the average
    average = f"whose average over {DRAWS} draws agrees with finite differences"
    return Sorted("STOCHASTIC", f"it depends on random numbers: an estimate {average}")


def drawn(box: BlackBox, draws: Draws) -> tuple[Floats, Floats]:
    """Slopes along one direction for different random numbers: of the function by differences, and as they are sent."""
    generator = np.random.default_rng(3)
    d = generator.uniform(0.5, 1.5, box.x.size) * np.maximum(np.abs(box.x), 1e-3)
    weights = generator.uniform(0.5, 1.5, box.size)
    slopes, sent = [], []
    for seed in range(DRAWS):
        draws.seed = seed
        rise = weights @ (box.value(box.x + STEP * d) - box.value(box.x - STEP * d))
        slopes.append(rise / (2 * STEP))
        sent.append(box.pullback(box.x, weights) @ d)
        if seed == 1 and slopes[0] == slopes[1] and sent[0] == sent[1]:
            break
    draws.seed = None
    return np.array(slopes), np.array(sent)


def surrogate(box: BlackBox) -> Sorted | None:
    """SURROGATE: forward stands still where backward is not 0, or returns its argument where backward does not.

    It may return other outputs beside it, which do not depend on it.
    """
    weights = np.ones(box.size)
    sent = box.pullback(box.x, weights)
    value = box.again()
    moved = box.x + 0.01 * (1 + np.abs(box.x))
    there = box.value(moved)
    own = there != value
    if np.array_equal(value[own], box.x) and np.array_equal(there[own], moved):
        if not np.allclose(sent, weights[own], rtol=1e-9, atol=0):
            return Sorted("SURROGATE", "forward returns its argument unchanged, but backward is not the identity")
    if not np.any(sent):
        return None
    directions = np.random.default_rng(0).standard_normal((3, box.x.size))
    for step, share in zip(STILL, (1.0, MOSTLY), strict=True):
        for d in directions:
            there = box.value(box.x + step * np.maximum(np.abs(box.x), 1e-3) * d)
            if np.mean(there == value) < share:
                return None
    return Sorted("SURROGATE", "forward is constant here, but backward is not 0")


# --- arguments that are known to stay in some set ------------------------------------------------------------------


class Constraint(NamedTuple):
    """A set of arrays: its word, whether an array lies in it, the map into it, and the pullback of that map."""

    word: str
    reason: str
    holds: Callable[[Floats], bool]
    project: Callable[[Floats], Floats]
    pullback: Callable[[Floats, Floats], Floats]


def symmetrised(a: Floats) -> Floats:
    return (a + np.swapaxes(a, -1, -2)) / 2


def is_symmetric(a: Floats) -> bool:
    """Whether it is a symmetric matrix, or many; a diagonal one may be so by accident."""
    if a.ndim < 2 or not a.shape[-1] == a.shape[-2] > 1 or not np.allclose(a, symmetrised(a), rtol=1e-9, atol=0):
        return False
    return bool(np.any(a * (1 - np.eye(a.shape[-1]))))


def is_mixed(x: Floats) -> bool:
    """Whether a vector has different entries beside 0: (1, 0) and (1/2, 1/2) satisfy a constraint by accident."""
    return x.ndim == 1 and np.unique(x[x != 0]).size > 1


def unit(x: Floats) -> Floats:
    return np.asarray(x / np.linalg.norm(x))


CONSTRAINTS = (
    Constraint(
        "SYMMETRIC",
        "right for symmetric matrices, which its argument is; wrong for others",
        is_symmetric,
        symmetrised,
        lambda a, ct: symmetrised(ct),
    ),
    Constraint(
        "ON THE SPHERE",
        "right for vectors of length 1, which its argument is; wrong for others",
        lambda x: is_mixed(x) and abs(float(np.linalg.norm(x)) - 1) < 1e-9,
        unit,
        lambda x, ct: (ct - unit(x) * float(unit(x) @ ct)) / float(np.linalg.norm(x)),
    ),
    Constraint(
        "ON THE SIMPLEX",
        "right for weights that sum to 1, which its argument is; wrong for others",
        lambda x: is_mixed(x) and bool((x >= 0).all()) and abs(float(x.sum()) - 1) < 1e-9,
        lambda x: x - (float(x.sum()) - 1) / x.size,
        lambda x, ct: ct - ct.mean(),
    ),
)


def constrained(box: BlackBox) -> Sorted | None:
    """SYMMETRIC and its like: the gradient is right for directions that stay in a set which holds the argument."""
    name = box.names[0]
    shape = box.shape_of(name)
    point = box.x.reshape(shape)
    for constraint in CONSTRAINTS:
        if not constraint.holds(point):
            continue

        def value(x: Floats, constraint: Constraint = constraint) -> Floats:
            return box.value(constraint.project(x).reshape(-1))

        def vjp(x: Floats, ct: Floats, constraint: Constraint = constraint) -> Floats:
            sent = box.pullback(constraint.project(x).reshape(-1), np.asarray(ct))
            return constraint.pullback(x, sent.reshape(shape))

        report = check_callable(value, vjp=vjp, at=(point,), samples=0, timeout=box.seconds)
        if all(check.verdict in ("AGREES", "IMPRECISE") for check in report.checks):
            return Sorted(constraint.word, constraint.reason)
    return None


# --- numerical derivatives -----------------------------------------------------------------------------------------


def approximate(box: BlackBox, check: Check, code: Sequence[object]) -> Sorted | None:
    """APPROXIMATE: a small relative error of a derivative that scatters as differences do, or whose code names some.

    Or one that only a proof sees: an iteration that has not quite converged, a rounded constant.
    """
    errors, size = differences_of(check)
    if not errors:
        return None
    error = max(errors)
    gap = error / size if size else np.inf
    if gap < UNSEEN:
        return Sorted("APPROXIMATE", f"off by {gap:.1g}, as an iteration or a rounded constant makes it")
    scatter = scatter_of(box)
    if scatter > NOISE and (gap <= APPROXIMATE or (scatter < LOUDEST and NOISY * scatter >= gap)):
        return Sorted("APPROXIMATE", f"off by {gap:.1g}, and it has a noise of {scatter:.0e}, like a finite difference")
    name = next((name for function in code for name in names_in(function) if NUMERICAL.search(name)), None)
    if name is not None and gap <= APPROXIMATE:
        return Sorted("APPROXIMATE", f"off by {gap:.1g}, and its code calls {name}")
    if name is not None and error <= truncation(box):
        return Sorted("APPROXIMATE", f"off by {error:.1g} near a stationary point, and its code calls {name}")
    return None


def truncation(box: BlackBox) -> float:
    """The largest error of a one-sided difference with a small step: beside a stationary point it is all there is."""
    weights, steps = np.ones(box.size), STEP * (1 + np.abs(box.x))
    bend = box.pullback(box.x + steps, weights) - box.pullback(box.x - steps, weights)
    largest = float(np.abs(bend).max()) / (2 * STEP)
    return LONGEST / 2 * largest if np.isfinite(largest) else 0.0


def names_in(function: object, depth: int = 3) -> Iterator[str]:
    """The names that a function's code uses, and the code that its closure, its class and its object hold."""
    if isinstance(function, type):
        for name in ("forward", "backward"):
            yield from names_in(getattr(function, name, None), depth)
    elif callable(function) and not hasattr(function, "__code__"):
        function = function.__call__
    owner, code = getattr(function, "__self__", None), getattr(function, "__code__", None)
    if code is None or depth == 0:
        return
    yield from code.co_names
    for name in code.co_names if owner is not None else ():
        attribute = getattr_static(owner, name, None)
        is_method = isinstance(attribute, FunctionType)
        yield from names_in(MethodType(attribute, owner) if is_method else attribute, depth - 1)
    for cell in getattr(function, "__closure__", None) or ():
        yield from names_in(cell.cell_contents, depth - 1)
    for const in code.co_consts:  # functions that it defines
        yield from getattr(const, "co_names", ())
    for name in code.co_names:
        yield from names_in(getattr(function, "__globals__", {}).get(name), depth - 1)


def differences_of(check: Check) -> tuple[list[float], float]:
    """The errors of the entries that were seen, and the largest size of these entries."""
    rows: Any = check.evidence.get("worst")
    rows = [*rows] if isinstance(rows, list) else []
    counterexample: Any = check.evidence.get("counterexample")
    rows += [row for row in (counterexample, check.evidence) if isinstance(row, dict) and "claimed" in row]
    right = ((row["claimed"], row.get("differences", row.get("exact"))) for row in rows)
    pairs = [(number(claimed), number(shown)) for claimed, shown in right if shown is not None]
    return [abs(claimed - shown) for claimed, shown in pairs], max((abs(shown) for _, shown in pairs), default=0.0)


def number(shown: Any) -> float:
    """A number of some evidence, which may be a text that ends in dots."""
    return float(str(shown).rstrip("."))
