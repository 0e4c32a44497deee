"""`check_callable`: a report with a verdict for each argument of a Python function with a hand-written derivative.

The function runs in this process, whatever it does: `process` runs it in one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Diagnostic, visible
from gradcli.checks.decide.case import Outcome
from gradcli.checks.expectations import acceptable
from gradcli.checks.formatting import plain, point_text
from gradcli.checks.oracle import oracle_client
from gradcli.checks.report import GOOD, Check, Report, Settings
from gradcli.checks.witnesses import parse_witnesses, selected
from gradcli.recording.calls.box import (
    OWN,
    BlackBox,
    ClaimedDerivative,
    Defined,
    backward_of,
    boxed,
    function_name,
    opened,
)
from gradcli.recording.calls.failures import Failed
from gradcli.recording.calls.gradient_libraries import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.recording.calls.box import Derivative
    from gradcli.recording.calls.call_arguments import Argument

    Floats = NDArray[np.floating[Any]]


@oracle_client.exclusive  # streams and warnings are redirected for a whole process
def check_callable(
    f: Callable[..., Any],
    grad: Derivative = None,
    *,
    at: Any,
    jac: Derivative = None,
    vjp: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    wrt: Sequence[str] | None = None,
    samples: int = 3,
    seed: int | None = None,
    rtol: float = 0.0,
    timeout: float = 60.0,
    dtype: str = "float64",
    require: str | None = None,
    allow_kink: bool = False,
    lenient: bool = False,
    witnesses: str | None = "none",
    title: str | None = None,
) -> Report:
    """Judge the gradient of a Python function by differences of its values.

    `f` takes numbers, NumPy arrays, or tensors of gradcli.eager, PyTorch or JAX, and returns a number or an array.
    Its derivative is one of:

    - `grad=df`: the gradient of an `f` that returns one number: one array, a tuple in the order of the arguments,
      or a dict by name;
    - `jac=df`: the full Jacobian, of shape `f(x).shape + x.shape`; for one number the same as `grad`;
    - `vjp=df`: called as `df(x, ct)` with a cotangent of the shape of `f(x)`, returns the gradient of `sum(ct*f(x))`;
      as `df(ct, x)` if the names of the arguments of f follow its first one; so is a `grad=df` with one argument more;
    - `grad=True` or `jac=True`: `f` returns the pair (value, gradient), as SciPy has it;
    - nothing: the gradient of the library itself, as of a `torch.autograd.Function` or a `jax.custom_vjp`.

    `at` maps arguments to values; a tuple gives them by position, anything else is the first one. Floats and float
    arrays move; integers in arrays, texts and other objects are data. `names` are the arguments' names where f does
    not tell, `wrt` those to judge. `samples` counts points near the given one; `rtol` is a relative error that is
    tolerated. `timeout` is the time in seconds after which no new call is made. `witnesses` are those of
    `check_script`; a function that is not recorded has differences only. `title` names the function in the report.

    The function and its derivative are recorded where that is possible: what NumPy, gradcli's tensors, PyTorch or JAX
    compute becomes a program, and the derivative is PROVED, CERTIFIED or refuted as a script's claim is. A `Function`
    of gradcli's tensors that is called inside has a check of its own, of kind "vjp", at the line of its backward.

    Else (branches on values, functions that are not read, more than 1,024 entries) values alone decide: AGREES at best.
    DISAGREES needs two decades of steps and two directions. A function that does not move in float64, or whose noise
    hides its slope, is INCONCLUSIVE.

    Raises GradcliError: GC721 for an option that no check can have, GC732 where the point does not fit the function.

    >>> import numpy as np
    >>> report = check_callable(lambda x: np.sum(x**3), lambda x: 3*x**2, at=np.array([1.0, 2.0]))
    >>> [one.verdict for one in report.checks]
    ['PROVED']
    """
    judging: dict[str, Any] = {"samples": samples, "timeout": timeout, "seed": seed, "rtol": rtol, "lenient": lenient}
    judging |= {"allow_kink": allow_kink, "witnesses": parse_witnesses(witnesses)}
    settings = Settings.of_caller(require, **judging)
    claimed = ClaimedDerivative(grad, jac, vjp)
    with boxed(f, claimed, at=at, names=names, wrt=wrt, timeout=timeout, dtype=dtype) as box:
        form = f"{function_name(f)}({', '.join(arg.name for arg in box.arguments)})"
        about = About(title or form, None, Defined.of(f).line)
        arguments = box.arguments
        try:
            box, value = opened(box)
        except Failed as problem:
            return failed(problem, about)
        rule = next(filter(callable, claimed), None) or backward_of(f)
        if rule is not None:
            name, _, line = Defined.of(rule)
            about = About(about.title, None, line, name)
        report = report_on(box, value, about, arguments, settings)
        return report if witnesses is None else report.shown()


class About(NamedTuple):
    """What a report calls a function, and where that stands; of its hand-written derivative `rule`, if it has one."""

    title: str
    file: str | None = None
    line: int | None = None
    rule: str = ""


def report_on(
    box: BlackBox,
    value: Floats,
    about: About,
    arguments: Sequence[Argument],
    settings: Settings,
    record: Callable[[int], dict[str, Any]] | None = None,
) -> Report:
    """The report on a function that has been called once, and gave `value`.

    `arguments` are those before that call; `record` gives its recording, where that is made in another process.
    """
    # the process of a function starts before what judges it is imported
    from gradcli.checks.callables.black_box import examined, not_judged
    from gradcli.checks.callables.recorded import Rigorous, by_recording, recording
    from gradcli.checks.decide.chosen_points import seed_of

    moving = {arg.name: arg.array for arg in arguments if arg.array is not None}
    seed = seed_of(about.title, moving) if settings.seed is None else settings.seed
    exact, rules, seen = Rigorous({}, [], [])
    if not settings.rtol:
        program = recording(box, seed) if record is None else record(seed)
        exact, rules, seen = by_recording(box, program, seed, settings)
    verdicts, more = exact, list[str]()
    if {*box.names} - exact.keys():
        others, more = examined(box, value, seed, settings.samples, settings.rtol or 0.0)
        verdicts = {**others, **exact}
    remarks = [*box.remarks(), *seen, *not_judged(box), *more, *nothing_sent(box, verdicts)]
    where = point_text(moving, box.names or list(moving))
    rows = [(f"callable:{name}", "callable", name, about.file, about.line, out) for name, out in verdicts.items()]
    rows += [(f"vjp:{rule.text}", "vjp", str(rule.leaf), rule.file, rule.line, out) for rule, out in rules]
    checks = []
    for identity, kind, name, file, line, judged in rows:
        out = repeatable(judged, box.drawing)
        shown = {"at": where, "seed": seed, "library": TITLES[box.library.name]}
        shown |= {"function": about.rule} if about.rule and kind == "callable" else {}
        shown |= {"outside": "f raises at some points near the given one"} if box.outside and kind == "callable" else {}
        evidence = plain({**shown, **selected(out.evidence, settings.witnesses)})
        about_it = (identity, file, line, kind, name, out.verdict, evidence, out.message)
        checks.append(Check(*about_it, passed=acceptable(out, settings), later=out.later))
    checks += [failed_check(problem, about, name) for name, problem in box.misshapen.items()]
    notes = [Diagnostic("GC734", visible(text, 300), severity="note") for text in dict.fromkeys(remarks)]
    return Report(about.title, tuple(checks), tuple(notes))


# --- inner ----------------------------------------------------------------------------------------------------


def repeatable(out: Outcome, drawing: Sequence[str]) -> Outcome:
    """A verdict that passes where nothing draws random numbers; a gradient of noisy values may still agree."""
    if not drawing or out.verdict not in GOOD or (drawing == ["f"] and out.verdict == "AGREES"):
        return out
    return Outcome("INCONCLUSIVE", f"{drawing[0]} draws random numbers at each call: seed them inside", out.evidence)


def nothing_sent(box: BlackBox, verdicts: dict[str, Outcome]) -> Iterator[str]:
    """How to say that an argument to which a backward pass sends nothing is meant as data."""
    refuted = [name for name, verdict in verdicts.items() if verdict.verdict == "DISAGREES"]
    if not refuted or box.kind != OWN or len(box.names) < 2:
        return
    sent = box.pullback(box.x, np.ones(box.size), at_the_point=True)
    silent = [name for name in refuted if not sent[box.slices[name]].any()]
    others = [name for name in box.names if name not in silent]
    if silent and others:
        text = f"the backward pass returns no gradient for {', '.join(silent)}"
        yield f"{text}: if that is data, add --wrt {','.join(others)}"


def failed(problem: Failed, about: About) -> Report:
    """The report on a function that could not be run."""
    return Report(about.title, (failed_check(problem, about),))


def failed_check(problem: Failed, about: About, name: str | None = None) -> Check:
    """The check of a function, or of its gradient by one argument, that could not be made."""
    told_at = f" ({problem.place})" if problem.place else ""
    diagnostic = Diagnostic("GC733", f"{problem.reason}{told_at}", help=problem.help)
    evidence: dict[str, object] = {"role": problem.role, "place": problem.place, "help": problem.help}
    evidence = {key: value for key, value in evidence.items() if value}
    where = ("callable" if name is None else f"callable:{name}", about.file, about.line, "callable", name)
    return Check(*where, "ERROR", evidence, problem.reason, (diagnostic,), passed=False)
