"""`gradcli check`: check one expression, script or function, or all scripts in folders."""

from __future__ import annotations

import os

from gradcli.base.diagnostics import GradcliError, error
from gradcli.interfaces.command_parts import check_inputs as inputs
from gradcli.interfaces.command_parts.acceptance import Acceptance
from gradcli.interfaces.command_parts.check_report import Cards, Reporting, notes_of
from gradcli.interfaces.command_parts.replay import replay
from gradcli.interfaces.commands import room
from gradcli.interfaces.options import check_options as declared
from gradcli.interfaces.options.declaration import Declaration
from gradcli.interfaces.options.shared_options import EVALUATION, FORMATS, allowed, is_file, load, names, presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gradcli import batch, checks
    from gradcli.interfaces.command_parts.check_report import ReportSink
    from gradcli.interfaces.options.check_options import (
        Failing,
        Files,
        Judged,
        Running,
        Shown,
    )
    from gradcli.interfaces.options.shared_options import CommandOutput, Point
    from gradcli.primitives import plugins

    Sinks = Callable[[Callable[[], bool]], Reporting]
else:
    batch, checks, plugins = room("batch"), room("checks"), room("plugins")

SCRIPTS_ONLY = ("claims", "backend", "steps", "box", "dodge")  # options of `check_script` that functions do not have
REPEATED = ("python", "grad", "at", "wrt", "claim", "box", "dtype", "backend", "samples")
REPORTS = ("json", "junit", "sarif", "gitlab", "markdown")
# options that one file, too, needs workers for
IN_WORKERS = {"memory", "cache", "cluster", "watch", "shard", "last_failed"}


def check(
    output: CommandOutput,
    targets: tuple[str, ...],
    *,
    judged: Judged,
    failing: Failing,
    files: Files,
    running: Running,
    shown: Shown,
    point: Point,
) -> int:
    """Check gradients and hand-written derivatives.

    In an expression or script, the gradient of every output is compared with oracles that use no derivative
    rule (rigorous balls, finite differences, symbolic algebra). Each `assert a == b` in a script and each
    --claim is checked too. In a folder, every .grad file is checked; without an argument, the current folder.

    Exit codes: 0 all passed, 1 a check failed, 2 usage or syntax, 3 some undecided, none failed, 4 internal
    error, 5 nothing to check.

    Details:

    What exists is a path. Any other argument is an expression if it holds one of ( ) * + @ ^ = < > or a blank, else
    a path that does not exist, which is an error: for the expressions a/b and x-y write -e a/b and -e x-y.

    Verdicts: PROVED, CERTIFIED and AGREES pass. IMPRECISE: the rule is right, but its number is not.
    DISAGREES: wrong, with a counterexample. KINK, BOUNDARY, DISCONTINUOUS, UNDEFINED describe the point.
    INCONCLUSIVE: not decided, with the reason.

    Examples:
      gradcli check "x**2*sin(y)" --claim "x = 2*x*sin(y)"
      gradcli check loss.grad --at "w=[0.5,-1]"
      gradcli check models/ -x -j4 --junit report.xml --require certified
      gradcli check "relu(x)" --at x=0 --allow kink
      gradcli check --python losses.py:f --grad losses.py:df --at "x=[0.5,-1]"
    """
    inputs.python_targets(targets)
    only = frozenset[str]() if shown.show in inputs.SHOWN else batch.parse_verdicts(shown.show, inputs.SHOWN)
    options = options_of_checks(output, judged, failing, point)
    accepted = Acceptance(output, failing, shown, options, files.keyword)
    command = replay(targets, repeated(judged, point))
    kind = kind_of(targets, judged)
    paths = targets if kind == declared.FILES else ()
    inputs.for_this_kind(kind, output.explicit, DECLARATION.options, paths, point.at)

    def sinks(several: Callable[[], bool]) -> Reporting:
        def cards() -> ReportSink | None:
            return None if shown.diff else Cards(output, "all" if only else shown.show, several, command)

        files = kind in (declared.FILE, declared.FILES)  # which settings concern
        paths = {form: getattr(shown, form) for form in REPORTS if files or form in output.explicit}
        annotate = shown.github or os.environ.get("GITHUB_ACTIONS") == "true"
        return Reporting(output, paths, annotate, only, cards)

    if kind != declared.FILES and (kind != declared.FILE or IN_WORKERS.isdisjoint(output.explicit)):
        on_terminal = output.format == "table" and kind == declared.EXPRESSION
        options["witnesses"] = judged.witnesses or ("all" if on_terminal else "none")
        with sinks(lambda: False) as where:
            totals = single(output, targets, options, judged, where, accepted, running.memory)
        return accepted.exit_code(totals)
    opened: set[str] = set()
    if not running.watch:
        return many(output, targets, options, files, running, sinks, accepted, opened)
    code = 0
    more = [path for point in plugins.entry_points() for path in plugins.sources(point)]
    more += [*([failing.baseline] if failing.baseline else []), *plugins.imported]
    places = targets or (".",)
    inputs.existing(places, options["at"])  # what does not exist at the beginning is a mistake
    for _ in batch.changes(places, files.select, files.exclude, files.docs, also=lambda: {*opened, *more}):
        try:
            for path in [*plugins.imported]:
                plugins.import_file(path)
            accepted = Acceptance(output, failing, shown, options, files.keyword)
            code = many(output, targets, options, files, running, sinks, accepted, opened)
        except GradcliError as problem:
            output.note(*problem.diagnostics)
        output.say("gradcli check: waiting for changes; Ctrl-C ends")
    return code


def kind_of(targets: tuple[str, ...], judged: Judged) -> str:
    """What kind of check it is; raises GC732 for a function that is not alone."""
    if judged.python is None and judged.grad is None:
        target = targets[0] if len(targets) == 1 else "."
        if inputs.is_expression(target):
            return declared.EXPRESSION
        return declared.FILE if is_file(target) and not os.path.isdir(target) else declared.FILES
    if judged.python is None:
        raise error("GC732", "--grad needs --python", help="write --python losses.py:f --grad losses.py:df")
    if targets:
        raise error("GC732", "a script does not go with --python", help="check them one after the other")
    return declared.FUNCTION


def options_of_checks(output: CommandOutput, judged: Judged, failing: Failing, point: Point) -> dict[str, Any]:
    """The options of `checks.check_script`."""
    return {
        **inputs.judging({**judged._asdict(), **failing._asdict(), **point._asdict()}),
        "at": point.at,
        "wrt": names(point.wrt),
        "limits": allowed(point.limit, output),
        "claims": inputs.claims(judged.claim),
        "steps": judged.step_sizes,
        "box": inputs.boxes(judged.box),
    }


def repeated(judged: Judged, point: Point) -> list[tuple[str, tuple[str, ...]]]:
    """The options of the command that reproduces a check, with their values."""
    values, defaults = {**judged._asdict(), **point._asdict()}, DECLARATION.defaults()
    chosen = {name: values[name] for name in REPEATED if values[name] != defaults[name]}
    return [(f"--{name}", value if isinstance(value, tuple) else (str(value),)) for name, value in chosen.items()]


def many(
    output: CommandOutput,
    targets: tuple[str, ...],
    options: dict[str, Any],
    files: Files,
    running: Running,
    sinks: Sinks,
    accepted: Acceptance,
    opened: set[str],
) -> int:
    """Check the scripts of files and folders; returns the exit code. `opened` receives the data files read."""
    folder = None if running.no_cache else running.cache or batch.default_folder(os.environ)
    cases: list[Any] = []
    with sinks(lambda: len(cases) > 1) as where, batch.Journal(folder) as journal:
        try:
            paths = inputs.existing(targets or (".",), options["at"])
        except GradcliError as problem:
            where.refuse(checks.refused(problem.diagnostics))
            raise
        cases += batch.find_cases(paths, files.select, files.exclude, docs=files.docs)
        nothing = "" if cases else batch.nothing_found(paths, files.select, files.exclude, files.docs)
        cases[:] = cases if accepted.keywords is None else accepted.keywords.cases(cases)
        cases[:] = batch.sharded(cases, files.shard) if files.shard else cases
        if files.last_failed:
            cases[:], note = batch.last_failed(cases, journal.failed())
            if note:
                output.say(f"gradcli check: {note}")
        output.note(*journal.notes)
        work = batch.Run(
            cases,
            options,
            journal=journal,
            workers=batch.Workforce(running.jobs, running.memory, running.cluster),
            fail_fast=running.fail_fast,
            handling=batch.Handling(
                lambda report, case: accepted.adjust(report, case.source), accepted.settle, where.take
            ),
            progress=output.progress,
        )
        run_to_the_end(work, where)
        opened.update(work.opened)
        said = len(journal.notes)
    output.note(*journal.notes[said:])  # closing it may add one
    return accepted.exit_code(work.totals, nothing)


def single(
    output: CommandOutput,
    targets: tuple[str, ...],
    options: dict[str, Any],
    judged: Judged,
    sinks: Reporting,
    accepted: Acceptance,
    memory: int | None,
) -> Any:
    """Check one expression, script or Python function; returns the counts of its report.

    Raises GradcliError if it cannot be read; report files say so too.
    """
    target = targets[0] if targets else judged.python or ""
    script = None
    try:
        if judged.python is not None:
            kept = {key: value for key, value in options.items() if key not in SCRIPTS_ONLY}
            report = checks.check_target(judged.python, judged.grad, **kept, memory=memory)
        else:
            if is_file(target):
                inputs.existing(targets)
            script = load(target, output, options["limits"])
            report = checks.check_script(script, **options)
    except GradcliError as problem:
        file = target if is_file(target) else None
        sinks.refuse(checks.refused(problem.diagnostics, "" if file else target, file))
        raise
    report = accepted.adjust(accepted.settle(report), lambda: script, (judged.python, judged.grad))
    if not isinstance(sinks.main, Cards):
        output.note(*notes_of(report))
    totals = batch.Totals.of([report])
    sinks.take(report)
    sinks.finish(totals)
    return totals


def run_to_the_end(run: Any, sinks: Reporting) -> None:
    """Run to the end and finish the reports; if the run is interrupted, write the reports that exist first."""
    try:
        for _ in run.reports():
            pass
    except BaseException as stop:  # Ctrl-C or a signal that ends the process in order; a lost cluster, a full disk
        if isinstance(stop, Exception) and not isinstance(stop, GradcliError):
            raise
        for _ in run.rest():
            pass
        if run.totals.files < run.totals.selected:
            run.totals.stopped = stop.diagnostics[0].message if isinstance(stop, GradcliError) else "interrupted"
        sinks.finish(run.totals)
        raise
    sinks.finish(run.totals)


DECLARATION = Declaration(
    check,
    (declared.TARGETS,),
    (
        *[option for own in declared.SECTIONS.values() for option in own],
        *EVALUATION,
        *presentation(*FORMATS, "concise", "tap"),
    ),
    declared.GROUPS,
    {option.name: title for title, own in declared.SECTIONS.items() for option in own},
    common=declared.COMMON,
    short=declared.SHORT,
    renamed=declared.RENAMED,
    conflicts={"cache": ("no_cache",)},
)
