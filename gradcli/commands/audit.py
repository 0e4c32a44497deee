"""`gradcli audit`: run a command and check the hand-written gradients that it calls."""

from __future__ import annotations

import os

from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Operand, Option
from gradcli.commands._shared import OUTPUT
from gradcli.commands._views import View
from gradcli.diagnostics import error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import batch
    from gradcli.audit import audit_report
    from gradcli.audit import command as commands
    from gradcli.commands._shared import Output
    from gradcli.rendering import formats, machine
    from gradcli.rendering.documents import audits
else:
    audit_report, commands = room("audit_report"), room("audited_command")
    batch = room("batch")
    audits, formats, machine = room("audits"), room("report_formats"), room("machine")


def audit(
    output: Output,
    args: tuple[str, ...],
    *,
    report_only: bool,
    only: str | None,
    expect: dict[str, str] | tuple[str, ...],
    timeout: float,
    budget: float,
    size: float,
    jobs: int | None,
    no_callbacks: bool,
    lenient: bool,
    show: str,
    again: str | None,
    json: str | None,
    junit: str | None,
) -> int:
    """Run a command and check the gradients that it calls.

    It watches hand-written gradients in every Python process that the command starts: torch.autograd.Function,
    jax.custom_vjp and custom_jvp, primitives of autograd, jac=, hess=, hessp= and fprime= of scipy.optimize
    and solve_ivp, and functions marked with @gradcli.gradient_of(f). Up to three calls of each are checked
    against finite differences of the function, at the point of the call and near it.

    The command keeps its input, its output and its exit code. The report follows its output. For each wrong
    gradient it names a command with --again, which reruns the program and checks that call alone.

    Gradients that differ from the derivative on purpose are not called wrong: SURROGATE (forward does not
    change with its input, or is the identity), SYMMETRIC (right for symmetric matrices), APPROXIMATE (finite
    differences), STOCHASTIC, STATE CHANGED, and KINK or UNDEFINED at the point. DISAGREES fails the run if
    the code is in the current folder; in installed packages it is only reported.

    Exit codes: that of the command if it is not 0, else 1 (a gradient is wrong), 3 (some undecided, none
    wrong), 5 (no gradient was called) or 0.

    Examples:
      gradcli audit -- python train.py --epochs 1
      gradcli audit --junit audit.xml -- pytest tests/test_model.py
      gradcli audit --only statsmodels -- python fit.py
    """
    saved = audit_report.saved_point(again) if again else None
    if saved is not None:
        if args:
            raise error("GC745", "--again runs the command that its file names", help="leave the command out")
        args, show = tuple(saved["command"]), "all"
        os.chdir(saved["folder"])
    if not args:
        raise error("GC745", "no command to audit", help="write it after --: gradcli audit -- pytest tests/")
    for path in (json, junit):
        if path:
            output.expect(path)
    expected = audit_report.expectations(expect)
    limits = commands.Limits(
        timeout=timeout,
        budget=budget,
        size=int(size * 2**20),
        only=only or "",
        jobs=jobs or os.cpu_count() or 1,
        callbacks=not no_callbacks,
        again=None if saved is None else (str(saved["key"]), int(saved["call"])),
    )
    outcome = commands.audited(args, limits, lambda done, total, label: output.progress(done, total, label))
    findings = audit_report.findings(outcome, expected)
    if saved is None:
        audit_report.save_points(findings, args, batch.default_folder(os.environ))
    else:
        findings = [finding for finding in findings if finding.key == saved["key"]]
    code, reason = audit_report.exit_code(findings, outcome.processes, lenient)
    output.emit(
        View(
            document=lambda style: audits.findings(findings, outcome.processes, outcome.seconds, style, show),
            payload=lambda: audits.payload(findings, outcome.processes, outcome.code, outcome.faults),
            tidy=lambda: audits.tidy(findings),
        )
    )
    if json:
        fields = audits.payload(findings, outcome.processes, outcome.code, outcome.faults)
        output.save(json, (machine.text(fields) + "\n",))
    if junit:
        reports = audit_report.reports(findings)
        output.save(junit, (formats.written(formats.writer("junit"), reports, batch.Totals.of(reports)),))
    if saved is not None and (difference := audit_report.compared(findings, saved)):
        output.say(f"gradcli audit: {difference}")
    for name in audit_report.unused(findings, expected):
        output.say(f"gradcli audit: no gradient is called {visible(name, 200)}, but a verdict is expected of it")
    for fault in outcome.faults:
        output.say(f"gradcli audit: an internal error while watching, which did not affect the command: {fault}")
    if outcome.code:
        output.say(f"gradcli audit: the command ended with exit code {outcome.code}")
        return outcome.code
    if reason:
        output.say(f"gradcli audit: {reason}")
    return 0 if report_only else code


ARGS = Operand("args", "COMMAND ...", "The command and its arguments, after --.", required=False, rest=True)
DECLARATION = Declaration(
    audit,
    (ARGS,),
    (
        Option(
            "--report-only", kind="flag", setting=True, help="Exit with the command's exit code, even if checks fail."
        ),
        Option(
            "--only", metavar="PACKAGE", setting=True, help="Check only the gradients of one package, such as scipy."
        ),
        Option(
            "--expect",
            kind="table",
            many=True,
            metavar="NAME=VERDICT",
            setting=True,
            help="The verdict that you expect; any other fails, even a better one. May be repeated.",
        ),
        Option(
            "--timeout",
            kind="float",
            default=10.0,
            low=0,
            high=86_400,
            metavar="SECONDS",
            setting=True,
            help="Time for one point.",
        ),
        Option(
            "--budget",
            kind="float",
            default=300.0,
            low=0,
            high=86_400,
            metavar="SECONDS",
            setting=True,
            help="Time for checking all points; those left over are NOT JUDGED.",
        ),
        Option(
            "--size",
            kind="float",
            default=1.0,
            low=0,
            metavar="MIB",
            setting=True,
            help="Skip calls whose arguments take more memory.",
        ),
        Option("--jobs", kind="int", low=1, setting=True, help="Points checked at a time. Default: one per processor."),
        Option(
            "--no-callbacks",
            kind="flag",
            setting=True,
            help="Put no callbacks into functions that JAX traces; check these at random points.",
        ),
        Option("--lenient", kind="flag", setting=True, help="Accept INCONCLUSIVE."),
        Option("--show", choices=("all", "failing"), default="failing", setting=True, help="Which evidence to show."),
        Option("--again", metavar="FILE", help="Run the command of a saved point again, and check that call alone."),
        Option("--json", metavar="FILE", help="Write a JSON report to FILE, in addition to the output."),
        Option("--junit", metavar="FILE", help="Write a JUnit XML report to FILE, in addition to the output."),
        *OUTPUT,
    ),
)
