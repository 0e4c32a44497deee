"""`gradcli audit`: run a command and check the hand-written gradients that it calls."""

from __future__ import annotations

import os

from gradcli.base.diagnostics import error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts.check_inputs import permitted
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import batch
    from gradcli.audit import audit_report
    from gradcli.audit import command as commands
    from gradcli.audit import pairs as pair_files
    from gradcli.audit import source_scan as scanning
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.rendering import formats, machine
    from gradcli.rendering.documents import audits
else:
    audit_report, commands = room("audit_report"), room("audited_command")
    pair_files, scanning = room("audit_pairs"), room("audit_scan")
    batch = room("batch")
    audits, formats, machine = room("audits"), room("report_formats"), room("machine")


class Auditing(NamedTuple):
    """What is watched, and how it is checked."""

    only: str | None
    timeout: float
    budget: float
    size: float
    jobs: int | None
    no_callbacks: bool


class Tolerated(NamedTuple):
    """What counts as a failure."""

    report_only: bool
    expect: dict[str, str] | tuple[str, ...]
    allow: tuple[str, ...]


class Reported(NamedTuple):
    """What is shown, and the report files."""

    show: str
    json: str | None
    junit: str | None
    sarif: str | None


def audit(
    output: CommandOutput,
    args: tuple[str, ...],
    *,
    scan: str | None,
    pairs: str | None,
    again: str | None,
    auditing: Auditing,
    tolerated: Tolerated,
    reported: Reported,
) -> int:
    """Run a command and check the gradients that it calls.

    It watches hand-written gradients in every Python process that the command starts: torch.autograd.Function,
    jax.custom_vjp and custom_jvp, primitives of autograd, jac=, hess=, hessp= and fprime= of scipy.optimize
    and solve_ivp, and functions marked with @gradcli.gradient_of(f). Up to three calls of each are checked
    against finite differences of the function, at the point of the call and near it.

    Exit codes: that of the command if it is not 0, else 1 (a gradient is wrong), 3 (some undecided, none
    wrong), 5 (no gradient was called) or 0.

    Details:

    The command keeps its input, its output and its exit code. The report follows its output. For each wrong
    gradient it names a command with --again, which reruns the program and checks that call alone.

    --scan lists functions and derivatives of a package by their names (fit_deriv and evaluate, score and
    loglike, a flag return_grad=), without importing it. --pairs watches such pairs, too, and finds out by
    which argument a derivative is; without a command it calls them itself, by doctests and defaults. A pair
    that does not agree is one to LOOK at, or UNPAIRED. It is called DISAGREES where another call, or other
    pairs of the same rule, show what is meant, or where the file confirms it.

    Gradients that differ from the derivative on purpose are not called wrong: SURROGATE (forward does not
    change with its input, or is the identity), SYMMETRIC (right for symmetric matrices), APPROXIMATE (finite
    differences), STOCHASTIC, STATE CHANGED, and KINK or UNDEFINED at the point. DISAGREES fails the run if
    the code is in the current folder, or of the package that --only or --pairs names; in other packages it
    is only reported.

    Examples:
      gradcli audit -- python train.py --epochs 1
      gradcli audit --junit audit.xml -- pytest tests/test_model.py
      gradcli audit --only statsmodels -- python fit.py
      gradcli audit --scan pvlib --output pairs.toml
      gradcli audit --pairs pairs.toml -- pytest --pyargs pvlib
      gradcli audit --pairs pvlib
    """
    if scan is not None:
        listed = scanned(output, scan)
        view = View(
            texts=lambda name, style: pair_files.written(listed, scan), payload=lambda: audits.scanned(listed, scan)
        )
        output.emit(view)
        return 0
    saved = audit_report.saved_point(again) if again else None
    if saved is not None:
        if args:
            raise error("GC745", "--again runs the command that its file names", help="leave the command out")
        args, reported = tuple(saved["command"]), reported._replace(show="all")
        os.chdir(saved["folder"])
        pairs = saved["pairs"]
    watched = [] if pairs is None else pair_files.read(pairs) if pairs.endswith(".toml") else scanned(output, pairs)
    if saved is not None:  # what made it more than a guess were other calls
        watched = [pair._replace(confirmed=True) for pair in watched]
    if not args and pairs is not None:
        args = commands.calling(pairs)
    if not args:
        raise error("GC745", "no command to audit", help="write it after --: gradcli audit -- pytest tests/")
    for file in filter(None, reported[1:]):
        output.expect(file)
    expected = audit_report.expectations(tolerated.expect)
    accepted = permitted(tolerated.allow, ("inconclusive",))
    limits = commands.AuditLimits(
        timeout=auditing.timeout,
        budget=auditing.budget,
        size=int(auditing.size * 2**20),
        only=auditing.only or "",
        jobs=auditing.jobs or os.cpu_count() or 1,
        callbacks=not auditing.no_callbacks,
        again=None if saved is None else (str(saved["key"]), int(saved["call"])),
        pairs=watched,
    )
    outcome = commands.audited(args, limits, lambda done, total, label: output.progress(done, total, label))
    packages = [auditing.only] if auditing.only else sorted({pair.module.partition(".")[0] for pair in watched})
    findings = audit_report.findings(outcome, expected, packages)
    if saved is None:
        audit_report.save_points(findings, args, batch.default_folder(os.environ), pairs)
    else:
        findings = [finding for finding in findings if finding.key == saved["key"]]
    for name in audit_report.unused(findings, expected):
        output.say(f"gradcli audit: no gradient is called {visible(name, 200)}, but a verdict is expected of it")
    for reason in outcome.missed:
        output.say(f"gradcli audit: {visible(reason, 300)}")
    for fault in outcome.faults:
        output.say(f"gradcli audit: an internal error while watching, which did not affect the command: {fault}")
    if outcome.code:
        output.say(f"gradcli audit: the command ended with exit code {outcome.code}")
    code, verdict = audit_report.exit_code(findings, outcome, packages, "inconclusive" in accepted)
    output.emit(
        View(
            document=lambda style: audits.findings(findings, outcome, len(watched), style, reported.show),
            payload=lambda: audits.payload(findings, outcome, len(watched)),
            tidy=lambda: audits.tidy(findings),
        )
    )
    if reported.json:
        output.save(reported.json, (machine.text(audits.payload(findings, outcome, len(watched))) + "\n",))
    reports = audit_report.reports(findings)
    for name, report_file in (("junit", reported.junit), ("sarif", reported.sarif)):
        if report_file:
            output.save(report_file, (formats.written(formats.writer(name), reports, batch.Totals.of(reports)),))
    if saved is not None and (difference := audit_report.compared(findings, saved)):
        output.say(f"gradcli audit: {difference}")
    if verdict:
        output.say(f"gradcli audit: {verdict}")
    return outcome.code or (0 if tolerated.report_only else code)


def scanned(output: CommandOutput, target: str) -> list[pair_files.Pair]:
    """The pairs of a package; files that are no Python are named."""
    listed, unread = scanning.scan(target)
    for path in unread:
        output.say(f"gradcli audit: not read: {visible(path, 200)}")
    return listed


ARGS = PositionalArgument("args", "COMMAND ...", "The command and its arguments, after --.", required=False, rest=True)
DECLARATION = Declaration(
    audit,
    (ARGS,),
    (
        Option(
            "--scan",
            metavar="PACKAGE|FOLDER",
            help="List the functions with derivatives that its source names, as TOML. No command is run.",
        ),
        Option(
            "--pairs",
            metavar="FILE|PACKAGE",
            help="Watch these pairs, too: those of a file that --scan wrote, or of a package that is scanned now.",
        ),
        Option(
            "--report-only", kind="flag", setting=True, help="Exit with the command's exit code, even if checks fail."
        ),
        Option(
            "--only", metavar="PACKAGE", setting=True, help="Check only the gradients of one package, such as scipy."
        ),
        Option(
            "--expect",
            kind="table",
            metavar="NAME=VERDICT",
            setting=True,
            help="The verdict that you expect; any other fails, even a better one. May be repeated.",
        ),
        Option(
            "--timeout",
            kind="float",
            default=10.0,
            bounds=(0, 86_400),
            metavar="SECONDS",
            setting=True,
            help="Time for one point.",
        ),
        Option(
            "--budget",
            kind="float",
            default=300.0,
            bounds=(0, 86_400),
            metavar="SECONDS",
            setting=True,
            help="Time for checking all points; those left over are NOT JUDGED.",
        ),
        Option(
            "--size",
            kind="float",
            default=1.0,
            bounds=(0, None),
            metavar="MIB",
            setting=True,
            help="Skip calls whose arguments take more memory.",
        ),
        Option(
            "--jobs",
            "-j",
            kind="int",
            bounds=(1, None),
            setting=True,
            help="Points checked at a time. Default: one per processor.",
        ),
        Option(
            "--no-callbacks",
            kind="flag",
            setting=True,
            help="Put no callbacks into functions that JAX traces; check these at random points.",
        ),
        Option("--allow", kind="texts", metavar="WORDS", setting=True, help="Accept inconclusive."),
        Option("--show", choices=("all", "failing"), default="failing", setting=True, help="Which evidence to show."),
        Option("--again", metavar="FILE", help="Run the command of a saved point again, and check that call alone."),
        Option("--json", metavar="FILE", help="Write a JSON report to FILE, in addition to the output."),
        Option("--junit", metavar="FILE", help="Write a JUnit XML report to FILE, in addition to the output."),
        Option("--sarif", metavar="FILE", help="Write a SARIF report to FILE, in addition to the output."),
        *OUTPUT,
    ),
    groups=(Auditing, Tolerated, Reported),
    endings={".toml": ("scan", ())},
    short={"-v": "--show=all"},
    renamed={"--lenient": "--allow=inconclusive"},
)
