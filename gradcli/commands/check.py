"""Scripts or folders and claims in, verdicts and an exit code out: one call of `checks` or of `batch`."""

from __future__ import annotations

import os

from gradcli.commands import room
from gradcli.commands._check_inputs import boxes, callable_only, claims, existing, looks_like_path
from gradcli.commands._declaration import Declaration, Operand, Option
from gradcli.commands._replay import replay
from gradcli.commands._shared import EVALUATION, OUTPUT, allowed, is_file, load, names
from gradcli.commands._views import View
from gradcli.diagnostics import GradcliError, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from gradcli import batch, checks
    from gradcli.commands._shared import Output
    from gradcli.diagnostics import Diagnostic
    from gradcli.rendering import ci, machine, verdicts
else:
    batch, checks = room("batch"), room("checks")
    ci, machine, verdicts = room("ci"), room("machine"), room("verdicts")

SCRIPTS_ONLY = ("claims", "backend", "steps", "box", "dodge")  # options that functions do not have


def check(
    output: Output,
    targets: tuple[str, ...],
    *,
    at: tuple[str, ...],
    wrt: str | None,
    dtype: str,
    backend: str,
    limit: tuple[str, ...],
    claim: tuple[str, ...],
    python: str | None,
    grad: str | None,
    samples: int,
    seed: int | None,
    box: tuple[str, ...],
    dodge: bool,
    require: str | None,
    allow_kink: bool,
    lenient: bool,
    timeout: float,
    jobs: int | None,
    cluster: str | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    show: str,
    steps: bool,
    json: str | None,
    junit: str | None,
) -> int:
    """Judge gradients and hand-written derivatives.

    An expression or script: the gradient of every output is compared with oracles that read no derivative
    rule (rigorous balls, differences, symbolic algebra). Each `assert a == b` in a script and each
    --claim is judged too. A folder is searched for .grad files; without a target the current folder is.

    Verdicts: PROVED, CERTIFIED and AGREES are good. IMPRECISE: the rule is right, the number is not.
    DISAGREES: wrong, with a counterexample. KINK, BOUNDARY, DISCONTINUOUS, UNDEFINED speak of the point.
    INCONCLUSIVE: it could not be decided, and why.

    Exit codes: 0 fine, 1 a check failed, 2 usage or syntax, 3 inconclusive only, 4 internal, 5 nothing to
    check.

    Examples:
      gradcli check "x**2*sin(y)" --claim "x = 2*x*sin(y)"
      gradcli check loss.grad --at w=[0.5,-1]
      gradcli check models/ --junit report.xml --require certified
      gradcli check "relu(x)" --at x=0 --allow-kink
      gradcli check --python losses.py:f --grad losses.py:df --at x=[0.5,-1]
    """
    bounds = allowed(limit, output)
    told: dict[str, Any] = {"at": at, "wrt": names(wrt), "dtype": dtype, "backend": backend, "limits": bounds}
    told |= {"claims": claims(claim), "samples": samples, "seed": seed, "timeout": timeout}
    told |= {"require": require, "allow_kink": allow_kink, "lenient": lenient}
    asked = [("--python", (python,) if python else ()), ("--grad", (grad,) if grad else ()), ("--at", at)]
    asked += [
        ("--wrt", (wrt,) if wrt else ()),
        ("--claim", claim),
        ("--box", box),
        ("--dtype", () if dtype == "float64" else (dtype,)),
        ("--backend", () if backend == "auto" else (backend,)),
        ("--samples", () if samples == 3 else (str(samples),)),
    ]
    again = replay(targets, asked)
    told |= {"steps": steps, "box": boxes(box), "dodge": dodge}
    running = {"jobs": jobs, "cluster": cluster, "select": select, "exclude": exclude, "progress": output.progress}
    name = targets[0] if len(targets) == 1 else python or ""
    try:
        if python is not None or grad is not None:
            used = "--box" if box else "--dodge" if dodge else None
            target = callable_only(targets, claim, backend, python, used)
            kept = {key: value for key, value in told.items() if key not in SCRIPTS_ONLY}
            reports = [checks.check_target(target, grad, **kept)]
        else:
            reports = judged(output, targets, told, running)
    except GradcliError as problem:  # reports are for build servers, which show what is in them only
        file = name if is_file(name) else None
        save(output, [checks.refused(problem.diagnostics, "" if file else name, file)], json, junit)
        raise
    save(output, reports, json, junit)  # first: they are whole even where standard output is closed early
    output.emit(view(reports, show, again, output.settings["notes"]))
    code, reason = outcome(reports, lenient)
    if code:
        output.say(f"gradcli check: {reason}")
    return code


def judged(output: Output, targets: tuple[str, ...], told: dict[str, Any], running: dict[str, Any]) -> list[Any]:
    """The reports on scripts: `told` says how each is judged, `running` which files are taken and by whom.

    Raises GradcliError where a single script cannot be read, or there is no file or folder of a name.
    """
    single = targets[0] if len(targets) == 1 else None
    if single is not None and not os.path.isdir(single) and (is_file(single) or not os.path.exists(single)):
        if looks_like_path(single) and not told["at"] and not told["claims"]:
            shown = visible(single, 200)
            raise error(
                "GC601",
                f"cannot read {shown}: no such file or folder",
                help=f'to check it as an expression, give a point, or write "({shown})"',
            )
        return [checks.check_script(load(single, output, told["limits"]), **told)]
    if told["claims"]:
        raise error(
            "GC725",
            "--claim needs one expression or one file",
            help="write the claims as asserts in the scripts",
        )
    if told["box"]:
        raise error("GC735", "--box needs one expression or one file", help="check the files one after the other")
    paths = existing(targets or (".",), told["at"])
    return list(batch.check_paths(paths, {**told, **running}))


def save(output: Output, reports: list[Any], json: str | None, junit: str | None) -> None:
    """Write the report files that were asked for, and put failures beside their lines where GitHub runs the command."""
    if json:
        output.save(json, machine.text(machine.check("check", reports, output.settings["notes"])))
    if junit:
        output.save(junit, ci.junit(reports))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in ci.github(reports):
            output.say(line)


def view(
    reports: Sequence[Any], show: str, again: Callable[[Any, Any], str] | None = None, notes: Sequence[Diagnostic] = ()
) -> View:
    """The reports in every format; `notes` on the settings have been printed, and belong to the report."""
    return View(
        document=lambda style: verdicts.reports(reports, style, show, again),
        payload=lambda: machine.check("check", reports, notes),
        lines=lambda: machine.check_lines("check", reports),
        tidy=lambda: verdicts.tidy(reports),
        diagnostics=tuple(told(reports)),
    )


def told(reports: Sequence[Any]) -> Iterator[Diagnostic]:
    """What was reported beside the verdicts: notes, and why a script could not be run."""
    for report in reports:
        yield from report.diagnostics
        for one in report.checks:
            if one.verdict == "ERROR" and not one.passed:
                yield from one.diagnostics


def outcome(reports: Sequence[Any], lenient: bool) -> tuple[int, str]:
    """The exit code, the first that occurs in the order 4, 2, 1, 3, 5, 0, and why."""
    open_checks = [one for report in reports for one in report.checks if not one.passed]
    errors = [one for one in open_checks if one.verdict in ("ERROR", "CRASHED")]
    broken = sum(1 for one in errors if not one.diagnostics)
    refused = len(errors) - broken
    undecided = sum(1 for one in open_checks if one.verdict == "INCONCLUSIVE")
    failed = len(open_checks) - len(errors) - undecided
    if broken:
        return 4, f"{counted(broken, 'check')} could not be run"
    if refused:
        if any(one.kind == "callable" for one in errors):
            return 2, f"{counted(refused, 'function')} could not be checked"
        return 2, f"{counted(refused, 'script')} could not be read"
    if failed:
        return 1, f"{counted(failed, 'check')} failed"
    if undecided and not lenient:
        return 3, f"{counted(undecided, 'check')} could not be decided"
    if not any(report.checks for report in reports):
        return 5, "nothing to check"
    return 0, ""


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


TARGETS = Operand(
    "targets",
    "[PATH ... | EXPR]",
    "Files, folders, or one expression. Default: this folder.",
    required=False,
    many=True,
)
DECLARATION = Declaration(
    check,
    (TARGETS,),
    (
        *EVALUATION,
        Option(
            "--claim",
            many=True,
            metavar='"LEAF = SCRIPT"',
            help="A derivative worked out by hand, to be judged. May be repeated.",
        ),
        Option(
            "--python",
            metavar="TARGET:NAME",
            help="A Python function to be judged; TARGET is a path ending in .py or a dotted module. Runs its code.",
        ),
        Option("--grad", metavar="TARGET:NAME", help="Its hand-written gradient, or its Jacobian."),
        Option("--samples", kind="int", default=3, low=0, setting=True, help="Points beside the given one."),
        Option(
            "--seed",
            kind="int",
            low=0,
            setting=True,
            help="Seed of the points. Default: from the text of the case.",
        ),
        Option(
            "--box",
            many=True,
            metavar="LEAF=LO:HI",
            help="Judge on a whole box: every entry of LEAF between LO and HI. May be repeated.",
        ),
        Option("--dodge", kind="flag", setting=True, help="At a kink, judge at a point beside it instead."),
        Option(
            "--require",
            choices=("certified", "precise"),
            setting=True,
            help="Fail on AGREES (certified) or on IMPRECISE (precise) as well.",
        ),
        Option(
            "--allow-kink",
            kind="flag",
            setting=True,
            help="A KINK whose value lies between the one-sided slopes is fine.",
        ),
        Option("--lenient", kind="flag", setting=True, help="INCONCLUSIVE is fine."),
        Option(
            "--timeout",
            kind="float",
            default=60.0,
            low=0,
            metavar="SECONDS",
            setting=True,
            help="Time for one check; over it the verdict is INCONCLUSIVE.",
        ),
        Option("--jobs", kind="int", low=1, setting=True, help="Worker processes. Default: one per processor."),
        Option(
            "--cluster",
            metavar="ADDRESS",
            help="Check on the workers of a Dask scheduler, such as tcp://HOST:8786, which you trust. Extra: cluster.",
        ),
        Option(
            "--select",
            many=True,
            metavar="PATTERN",
            help="In folders take only files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option(
            "--exclude",
            many=True,
            metavar="PATTERN",
            help="In folders leave out files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option(
            "--show",
            choices=("all", "failing"),
            default="failing",
            setting=True,
            help="Which checks to show with their evidence.",
        ),
        Option("--steps", kind="flag", help="Show differences for a ladder of steps, and how their error falls."),
        Option("--json", metavar="FILE", help="Write a JSON report to FILE, beside the output."),
        Option("--junit", metavar="FILE", help="Write a JUnit XML report to FILE, beside the output."),
        *OUTPUT,
    ),
)
