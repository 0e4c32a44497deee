"""`gradcli check`: judge one expression, script or function, or all scripts of folders."""

from __future__ import annotations

import os

from gradcli.commands import room
from gradcli.commands._acceptance import Acceptance
from gradcli.commands._check_inputs import boxes, callable_only, claims, existing, looks_like_path
from gradcli.commands._check_report import Cards, Nothing, Reporting, told
from gradcli.commands._declaration import Declaration, Operand, Option
from gradcli.commands._replay import replay
from gradcli.commands._shared import CLUSTER, EVALUATION, FORMATS, allowed, is_file, load, names, presentation
from gradcli.diagnostics import GradcliError, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli import batch, checks
    from gradcli.commands._check_report import Sink
    from gradcli.commands._shared import Output
else:
    batch, checks = room("batch"), room("checks")

SCRIPTS_ONLY = ("claims", "backend", "steps", "box", "dodge")  # options that functions do not have


def check(
    output: Output,
    targets: tuple[str, ...],
    *,
    claim: tuple[str, ...],
    python: str | None,
    grad: str | None,
    samples: int,
    seed: int | None,
    box: tuple[str, ...],
    dodge: bool,
    steps: bool,
    witnesses: str | None,
    timeout: float,
    require: str | None,
    allow_kink: bool,
    lenient: bool,
    allow_empty: bool,
    baseline: str | None,
    write_baseline: str | None,
    docs: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    shard: str | None,
    last_failed: bool,
    jobs: int | None,
    memory: int | None,
    cluster: str | None,
    fail_fast: bool,
    watch: bool,
    cache: str | None,
    no_cache: bool,
    show: str,
    verdict: str | None,
    verbose: bool,
    update: bool,
    diff: bool,
    json: str | None,
    junit: str | None,
    sarif: str | None,
    gitlab: str | None,
    markdown: str | None,
    github: bool,
    tap: bool,
    at: tuple[str, ...],
    wrt: str | None,
    dtype: str,
    backend: str,
    limit: tuple[str, ...],
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
    options: dict[str, Any] = {"at": at, "wrt": names(wrt), "dtype": dtype, "backend": backend}
    options |= {"limits": allowed(limit, output), "claims": claims(claim), "samples": samples, "seed": seed}
    options |= {"timeout": timeout, "require": require, "allow_kink": allow_kink, "lenient": lenient}
    options |= {"steps": steps, "box": boxes(box), "dodge": dodge}
    asked = [("--python", (python,) if python else ()), ("--grad", (grad,) if grad else ()), ("--at", at)]
    asked += [
        ("--wrt", (wrt,) if wrt else ()),
        ("--claim", claim),
        ("--box", box),
        ("--dtype", () if dtype == "float64" else (dtype,)),
        ("--backend", () if backend == "auto" else (backend,)),
        ("--samples", () if samples == 3 else (str(samples),)),
    ]
    if tap:
        output.format = "tap"
    accepted = Acceptance(
        output,
        baseline=baseline,
        record=write_baseline,
        update=update,
        diff=diff,
        lenient=lenient,
        allow_empty=allow_empty,
    )
    folder = None if no_cache else cache or batch.default_folder(os.environ)
    files = {"json": json, "junit": junit, "sarif": sarif, "gitlab": gitlab, "markdown": markdown}
    annotate = github or os.environ.get("GITHUB_ACTIONS") == "true"
    only = batch.parse_verdicts(verdict) if verdict else frozenset[str]()
    cases: list[Any] = []
    opened: set[str] = set()

    def cards() -> Sink:
        return Nothing() if diff else Cards(output, show, lambda: len(cases) > 1, verbose, replay(targets, asked))

    def run() -> int:
        with Reporting(output, files, annotate, only, cards) as sinks, batch.Journal(folder) as journal:
            try:
                paths = existing(targets or (".",), at)
            except GradcliError as problem:
                sinks.refuse(checks.refused(problem.diagnostics))
                raise
            cases[:] = batch.find_cases(paths, select, exclude, docs=docs)
            nothing = "" if cases else batch.nothing_found(paths, select, exclude, docs)
            cases[:] = batch.sharded(cases, shard) if shard else cases
            if last_failed:
                cases[:], note = batch.last_failed(cases, journal.failed())
                if note:
                    output.say(f"gradcli check: {note}")
            output.note(*journal.notes)
            work = batch.Run(
                cases,
                options,
                journal=journal,
                jobs=jobs,
                memory=memory,
                cluster=cluster,
                fail_fast=fail_fast,
                adjust=accepted.adjust,
                settle=accepted.settle,
                progress=output.progress,
            )
            reported(work, sinks)
            opened.update(work.opened)
            said = len(journal.notes)
        output.note(*journal.notes[said:])  # closing it may add one
        return accepted.exit_code(work.totals, nothing)

    if python is not None or grad is not None or is_single(targets):
        shown = output.format == "table" and not is_file(targets[0] if targets else "")
        options["witnesses"] = witnesses or ("all" if shown else "none")
        with Reporting(output, files, annotate, only, cards) as sinks:
            totals = one(output, targets, options, python, grad, sinks, accepted)
        return accepted.exit_code(totals)
    if claim:
        hint = "write the claims as asserts in the scripts"
        raise error("GC725", "--claim needs one expression or one file", help=hint)
    if witnesses and checks.parse_witnesses(witnesses):
        raise error("GC721", "--witnesses needs one expression or one file", help="check the files one after the other")
    if box:
        raise error("GC735", "--box needs one expression or one file", help="check the files one after the other")
    if not watch:
        return run()
    code = 0
    for _ in batch.changes(targets or (".",), select, exclude, docs, also=lambda: opened):
        code = run()
        output.say("gradcli check: waiting for changes; Ctrl-C ends")
    return code


def is_single(targets: tuple[str, ...]) -> bool:
    """Whether there is one target, and it is an expression or a script."""
    single = targets[0] if len(targets) == 1 else None
    return single is not None and not os.path.isdir(single) and (is_file(single) or not os.path.exists(single))


def one(
    output: Output,
    targets: tuple[str, ...],
    options: dict[str, Any],
    python: str | None,
    grad: str | None,
    sinks: Reporting,
    accepted: Acceptance,
) -> Any:
    """Judge one expression, script or Python function; the counts of its report.

    Raises GradcliError where it cannot be read; report files say so too.
    """
    target = targets[0] if targets else python or ""
    try:
        if python is not None or grad is not None:
            used = "--box" if options["box"] else "--dodge" if options["dodge"] else None
            place = callable_only(targets, tuple(options["claims"]), options["backend"], python, used)
            kept = {key: value for key, value in options.items() if key not in SCRIPTS_ONLY}
            report = checks.check_target(place, grad, **kept)
        else:
            if looks_like_path(target) and not options["at"] and not options["claims"]:
                shown = visible(target, 200)
                hint = f'to check it as an expression, give a point, or write "({shown})"'
                raise error("GC601", f"cannot read {shown}: no such file or folder", help=hint)
            report = checks.check_script(load(target, output, options["limits"]), **options)
    except GradcliError as problem:
        file = target if is_file(target) else None
        sinks.refuse(checks.refused(problem.diagnostics, "" if file else target, file))
        raise
    report = accepted.adjust(accepted.settle(report))
    if not isinstance(sinks.main, Cards):
        output.note(*told(report))
    totals = batch.Totals.of([report])
    sinks.take(report)
    sinks.finish(totals)
    return totals


def reported(run: Any, sinks: Reporting) -> None:
    """Hand the reports of a run to their sinks; where the run is interrupted, what is there is written first."""
    try:
        for report in run.reports():
            sinks.take(report)
    except BaseException as stop:  # Ctrl-C or a signal that ends the process in order; a lost cluster, a full disk
        if isinstance(stop, Exception) and not isinstance(stop, GradcliError):
            raise
        for report in run.rest():
            sinks.take(report)
        if run.totals.files < run.totals.selected:
            run.totals.stopped = stop.diagnostics[0].message if isinstance(stop, GradcliError) else "interrupted"
        sinks.finish(run.totals)
        raise
    sinks.finish(run.totals)


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
    (*EVALUATION, *presentation(*FORMATS, "concise", "tap")),
    {
        "What is judged": (
            Option(
                "--claim",
                many=True,
                metavar='"LEAF = SCRIPT"',
                help="A derivative worked out by hand, to be judged. May be repeated.",
            ),
            Option(
                "--python",
                metavar="TARGET:NAME",
                help="A Python function to be judged; TARGET is a path ending in .py or a dotted module. "
                "Runs its code.",
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
            Option("--steps", kind="flag", help="Show differences for a sequence of steps, and plot their errors."),
            Option(
                "--witnesses",
                metavar="all|none|WORDS",
                help="Derivatives to show beside each other: reverse, enclosure, sympy, differences. "
                "Default: all for one expression on a terminal.",
            ),
            Option(
                "--timeout",
                kind="float",
                default=60.0,
                low=0,
                metavar="SECONDS",
                setting=True,
                help="Time for one check; over it the verdict is INCONCLUSIVE.",
            ),
        ),
        "What counts as a failure": (
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
            Option("--allow-empty", kind="flag", setting=True, help="Nothing to check is fine."),
            Option("--baseline", metavar="FILE", setting=True, help="Let the failures pass that this file lists."),
            Option("--write-baseline", metavar="FILE", help="List the failures of this run in a file for --baseline."),
        ),
        "Which files": (
            Option("--docs", kind="flag", setting=True, help="Check the gradcli blocks of .md and .rst documents too."),
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
            Option("--shard", metavar="K/N", help="Only every N-th case, from the K-th: one of N machines."),
            Option(
                "--last-failed", kind="flag", help="Only what failed in the last run; everything where nothing did."
            ),
        ),
        "How it runs": (
            Option("--jobs", kind="int", low=1, setting=True, help="Worker processes. Default: one per processor."),
            Option("--memory", kind="int", low=256, metavar="MIB", setting=True, help="Memory that a worker may use."),
            CLUSTER,
            Option("--fail-fast", kind="flag", help="Stop after the first case that fails."),
            Option("--watch", kind="flag", help="Check again whenever a file changes, until Ctrl-C."),
            Option("--cache", metavar="FOLDER", help="Where results are kept. Default: the user's own cache folder."),
            Option("--no-cache", kind="flag", help="Judge everything anew, and keep nothing."),
        ),
        "What is shown": (
            Option(
                "--show",
                choices=("all", "failing"),
                default="failing",
                setting=True,
                help="Which checks to show with their evidence.",
            ),
            Option(
                "--verdict", metavar="WORDS", help="Report only checks with these verdicts, such as KINK,DISAGREES."
            ),
            Option("--verbose", kind="flag", setting=True, help="A line for each file, as soon as it is done."),
            Option("--update", kind="flag", help="Rewrite expected results (lines #> ...) that differ in the scripts."),
            Option("--diff", kind="flag", help="Print what --update would rewrite, and nothing else."),
        ),
        "Report files": (
            Option("--json", metavar="FILE", help="Write a JSON report to FILE, beside the output."),
            Option("--junit", metavar="FILE", help="Write a JUnit XML report to FILE, beside the output."),
            Option("--sarif", metavar="FILE", help="Write a SARIF 2.1.0 report to FILE, for code scanning."),
            Option("--gitlab", metavar="FILE", help="Write a GitLab code quality report to FILE."),
            Option("--markdown", metavar="FILE", help="Write a Markdown summary to FILE."),
            Option("--github", kind="flag", help="Annotations and a step summary, as on GitHub by default."),
            Option("--tap", kind="flag", help="Print TAP (Test Anything Protocol); short for --format tap."),
        ),
    },
)
