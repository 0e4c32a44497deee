"""Checks a script, or a recorded program, at a point: a report with a verdict on every gradient, claim and rule.

The same script, point and options give the same report, byte for byte. What cannot be lowered raises an error;
everything else is a verdict.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.floats import evaluator
from gradcli.checks.decide.refutation import blaming
from gradcli.checks.decide.verdict import judge, unanswered
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.expectations import check_ids, expected_error, settled, suppressed
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import GOOD, Check, Report, Settings, timed
from gradcli.checks.subjects import Subject, subjects
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import namespace
from gradcli.graph.node import dependents, is_reader, reachable
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import LoweringMode, lower, missing_values, refuse_numbers, unused_values
from gradcli.lowering.lowered import Lowered
from gradcli.lowering.points import array_of, dtype_at, read_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.decide.boxes import Box
    from gradcli.checks.inline_results import Stated
    from gradcli.checks.oracle.oracle_client import Oracle
    from gradcli.graph.node import Node
    from gradcli.language.limits import Limits, LimitsLike
    from gradcli.lowering.shapes.open_shapes import OpenShapes

    Floats = NDArray[np.floating[Any]]
    Pair = tuple[Subject, Outcome]

UNLIKE, ROUNDED, DUST = 1e-6, 1e-2, 1e-13  # of formulas, beside an entry, with rounded constants, and the largest one
DRAWS = 2000  # operations on all points in a range, beside 100, to look at other branches
WRONG = ("DISAGREES", "UNDEFINED")  # verdicts on a step of a derivation


@oracle_client.exclusive
def check_script(
    source: str | Source,
    *,
    at: Mapping[str, Any] | Sequence[str] = (),
    wrt: Sequence[str] | None = None,
    claims: Mapping[str, str] | None = None,
    samples: int = 3,
    seed: int | None = None,
    timeout: float = 60.0,
    require: str | None = None,
    allow_kink: bool = False,
    lenient: bool = False,
    limits: LimitsLike = None,
    dtype: str = "float64",
    backend: str = "auto",
    steps: bool = False,
    witnesses: str | Sequence[str] | None = "none",
    box: Mapping[str, tuple[float, float]] | None = None,
    dodge: bool = False,
    prove: bool = True,
    oracle: Oracle | None = None,
    beat: Callable[[], None] | None = None,
) -> Report:
    """Judge every gradient, claim and hand-written rule of a script.

    `at` is a point as for every other command, `claims` maps leaves to hand-written gradients, `samples` counts
    points near the given one. A check that takes more than `timeout` seconds is INCONCLUSIVE, whatever it had found;
    budgets of operations end most of them long before, so that no verdict depends on the machine. `require` is
    "certified" or "precise". A leaf without a value is sampled inside its domain. With `steps` every derivative gets
    finite differences for a sequence of steps in its evidence. `witnesses` ("all", or some of reverse, enclosure, sympy
    and differences with commas between them) puts derivatives from other sources into it; no verdict depends on them.
    None is all of them, in `Report.shown`. `box` gives leaves an interval, on the whole of which a verdict then
    has to hold; with `dodge` a kink at the point is left for a point beside it. Without `prove` the best verdict is
    CERTIFIED. `backend` computes the floats that are judged ("auto" is NumPy). `beat` is called after each check.
    Threads that check with one oracle do so one after the other.

    Raises GradcliError for a script that cannot be read, unless its first line expects exactly that error.

    >>> [one.verdict for one in check_script("x**2*y", at={"x": 2, "y": 3}).checks]  # doctest: +SKIP
    ['PROVED', 'PROVED']
    """
    chosen = () if witnesses == "none" else room("witnesses").parse_witnesses(witnesses)
    backend = "numpy" if backend == "auto" else backend
    namespace(backend, dtype)  # an error where the library is not installed
    oracle = oracle or oracle_client.shared()
    oracle.warm()
    script = source if isinstance(source, Source) else Source(source)
    if claims is not None and not hasattr(claims, "items"):
        raise error("GC725", f"{visible(repr(claims))} names no leaves", help='write claims={"x": "2*x"}')
    claims = import_module("gradcli.language.latex.claims").claims_beside(script, claims) if claims else None
    judging: dict[str, Any] = {"samples": samples, "timeout": timeout, "dtype": dtype, "seed": seed, "backend": backend}
    judging |= {"witnesses": chosen, "steps": steps, "dodge": dodge, "allow_kink": allow_kink, "lenient": lenient}
    settings = Settings.of_caller(require, **judging)
    prepare = partial(prepared, script, at, wrt, claims, limits_of(limits), settings, box)

    def judged(ready: PreparedChecks) -> tuple[list[Pair], list[float]]:
        """Each subject with its outcome; and the times of the start and after each."""
        outcomes, times = list[Any](), [monotonic()]
        exact = Exact(oracle, [node for subject in ready.subjects for node in subject.nodes()], timeout, prove)
        widening = at_other_sizes(exact, ready, at, claims, limits_of(limits))
        for subject in ready.subjects:
            exact.seconds = subject.settings.timeout
            subject, outcome = verdict_on(exact, subject, ready.box)
            if subject.kind == "claim":
                outcome = next(widening, lambda known: known)(outcome)
                subject, outcome = on_other_branches(exact, ready, subject, outcome)
            if beat is not None:
                beat()
            outcomes.append((subject, outcome))
            times.append(monotonic())
        return outcomes, times

    ready = prepare()
    if isinstance(ready, Report):
        return ready
    outcomes, times = judged(ready)
    if "UNDEFINED" in verdicts_of(outcomes) and any("free size" in note.message for note in ready.notes):
        with suppress(GradcliError):  # the script cannot have the other sizes
            all_sizes = room("all_sizes")
            other: Any = prepare(shapes=all_sizes.OtherSizes(all_sizes.TALL, chosen=True))
            others, then = judged(other)
            if "UNDEFINED" not in verdicts_of(others):
                ready, outcomes, times = other, others, then
    lowered, settings = ready.lowered, ready.settings
    checks = settled(first_wrong_steps([*map(partial(blamed, outcomes), outcomes)]), lowered)
    results: list[Check] = []
    if ready.stated:
        results = room("inline_results").compared(lowered, ready.stated, verdicts_of(outcomes), ready.values, settings)
    placed = [*zip(checks, [subject.place for subject in ready.subjects], strict=True)]
    placed += [(result, result.line) for result in results]
    checks, notes = suppressed(lowered, placed, require, warn=wrt is None)
    times += [monotonic() for _ in results]
    report = Report(lowered.text, tuple(checks), (*ready.notes, *notes), script.path)
    report = timed(report, [after - before for before, after in pairwise(times)])
    return report if witnesses is None and not steps else report.shown()


def verdicts_of(outcomes: Sequence[Pair]) -> list[str]:
    return [outcome.verdict for _, outcome in outcomes]


def room(name: str) -> Any:
    """A module that not every check needs: start-up time is a feature."""
    return import_module(f"gradcli.checks.{name}")


def at_other_sizes(
    exact: Exact,
    ready: PreparedChecks,
    at: Mapping[str, Any] | Sequence[str],
    claims: Mapping[str, str] | None,
    limits: Limits,
) -> Iterator[Callable[[Outcome], Outcome]]:
    """For each claim what adds to its verdict what is known for other sizes; nothing where no size is open."""
    lowered, settings = ready.lowered, ready.settings
    declared = any(getattr(statement, "shape", None) for statement in lowered.script.statements)
    if not (lowered.claims and declared and exact.proving) or settings.plane:
        return
    all_sizes, (point, _) = room("all_sizes"), read_point(at, limits)

    @cache
    def claims_at(choice: tuple[int, ...]) -> tuple[dict[str, int], Lowered, list[Subject]]:
        shapes, values = all_sizes.OtherSizes(choice), all_sizes.without_sizes(lowered.script, point)
        other = lower(lowered.script, at=values, wrt=lowered.wrt, limits=limits, claims=claims, shapes=shapes)
        bare = settings._replace(witnesses=(), steps=False, dodge=False)
        drawn = subjects(other, place(other, bare, {}), bare)
        return shapes.sizes, other, [subject for subject in drawn if subject.kind == "claim"]

    def claim_at(i: int, choice: tuple[int, ...]) -> tuple[dict[str, int], Lowered, Subject]:
        sizes, other, others = claims_at(choice)
        return sizes, other, others[i]

    def judged(subject: Subject) -> Outcome:
        return verdict_on(exact.beside(subject.nodes()), subject)[1]

    for i, known in enumerate(all_sizes.known_sizes(lowered, point, claims, limits)):
        about = {"known": known, "exact": exact, "claim_at": partial(claim_at, i), "judged": judged}
        yield partial(all_sizes.for_other_sizes, **about)


def verdict_on(exact: Exact, subject: Subject, box: Box | None = None) -> Pair:
    """The verdict on a subject, with all that a report shows of it; the subject is another one where it was dodged.

    Scripts, recorded programs and recorded functions of Python have their verdicts from here.
    """
    settings, judged = subject.settings, partial(judge, exact)
    try:
        outcome = judged(subject)
        if settings.dodge and not settings.plane:
            subject, outcome = room("decide.boxes").dodged(subject, outcome, judged)
        if box:
            outcome = room("decide.boxes").on_box(exact, subject, outcome, box, judged)
    except oracle_client.NoAnswer as reason:
        outcome = unanswered(exact, subject, reason)
    if settings.steps or settings.witnesses:
        outcome = outcome._replace(later=cache(partial(room("witnesses").tables, exact, subject, outcome)))
    return subject, outcome


@np.errstate(all="ignore")
def on_other_branches(exact: Exact, ready: PreparedChecks, subject: Subject, outcome: Outcome) -> Pair:
    """What is right in the region of chosen values of a claim's leaves is refuted where another branch does it."""
    signs, right = outcome.evidence.get("region", ()), subject.left or subject.engine or subject.judged
    slack = ROUNDED if "reading" in outcome.evidence else UNLIKE
    limited = signs or outcome.verdict in ("CERTIFIED", "IMPRECISE") or "assumptions" in outcome.evidence
    if limited and outcome.verdict in GOOD and subject.rtol is None:
        sides = evaluator([subject.judged, right], subject.settings.doubles)
        draws = 1 + DRAWS // (100 + work_of(reachable([subject.judged, right])))
        for _, member in room("challenge").members(ready.lowered, subject, draws=draws, known=ready.box):
            claimed, wanted = sides(member.values)  # floats first: they are cheap
            off = np.abs(claimed - wanted) > slack * np.abs(wanted) + DUST * np.abs(wanted).max(initial=0.0)
            there = verdict_on(exact, member)[1] if off.any() else outcome
            if there.verdict == "DISAGREES":
                unnamed = signs and "the claim is right where" not in there.message
                right_where = f"; the claim is right where {' and '.join(signs)}" if unnamed else ""
                return member, there._replace(message=there.message + right_where)
    return subject, outcome


class PreparedChecks(NamedTuple):
    """A script lowered for a point, with all that its checks need."""

    lowered: Lowered
    notes: tuple[Diagnostic, ...]
    settings: Settings
    box: Box
    values: dict[str, Floats]
    subjects: list[Subject]
    stated: list[Stated]  # expected results


def prepared(
    source: Source,
    at: Mapping[str, Any] | Sequence[str],
    wrt: Sequence[str] | None,
    claims: Mapping[str, str] | None,
    limits: Limits,
    settings: Settings,
    box: Mapping[str, tuple[float, float]] | None = None,
    shapes: OpenShapes | None = None,
) -> PreparedChecks | Report:
    """A script with a value for every leaf and what is to be judged; the report, where nothing can be judged.

    That is so where the script expects an error, and gets it. A complex number in the point makes every leaf complex.

    The settings are those of the caller; those of the file come on top. Raises GradcliError for a script that cannot
    be read or evaluated, unless its first line expects exactly that error.
    """
    try:
        point, notes = read_point(at, limits)
        settings = settings._replace(dtype=dtype_at(point, settings.dtype))
        mode = LoweringMode(loops="node", plane=settings.plane)
        lowering: dict[str, Any] = {"at": point, "wrt": wrt, "limits": limits, "claims": claims, "mode": mode}
        lowering["shapes"] = shapes
        try:
            lowered = lower(parse(source, limits), **lowering)
            refuse_numbers(lowered, claims)
        except GradcliError as problem:
            ranks = import_module("gradcli.lowering.shapes.ranks")
            source = ranks.with_shapes(source, point, limits, problem, claims) if claims else source
            lowered = lower(parse(source, limits), **lowering)
        strange = [note for note in unused_values(lowered, point) if note.help or not source.path]  # no folder's point
        if strange and (missing := missing_values(lowered, point)):
            raise GradcliError(*missing)  # the point that is meant is another one
        notes = (*lowered.notes, *notes, *strange)
        settings = settings.with_directives(each for each in lowered.script.directives if each.whole)
        namespace(settings.backend, settings.dtype)
        expected = room("inline_results") if lowered.script.expected else None
        if settings.seed is None:
            text = lowered.script.source.text if expected is None else expected.text_without(lowered.script)
            settings = settings._replace(seed=chosen_points.seed_of(text, lowered.values))
        sides: Box = room("decide.boxes").checked_box(box, lowered.program.leaves) if box else {}
        sides = {} if settings.plane else {name: (low, high) for name, (low, high) in sides.items()}
        values = place(lowered, settings, sides)
        # what cannot be evaluated at any point is an error
        Tape(lowered.program).run(values, backend="numpy", dtype=settings.doubles)
        wanted = subjects(lowered, values, settings)
        stated = [] if expected is None else expected.expected_results(lowered, wanted, wrt)
    except GradcliError as problem:
        if (check := expected_error(source, problem.with_source(source))) is not None:
            return Report("", (check,), file=source.path)
        raise problem.with_source(source) from None
    return PreparedChecks(lowered, notes, settings, sides, values, wanted, stated)


def check_names(
    source: Source, *, limits: LimitsLike = None, dtype: str = "float64", backend: str = "auto"
) -> list[tuple[str, int | None]]:
    """The id and the line of each check that `check_script` makes of a script, in its order; nothing is judged.

    Raises GradcliError where `check_script` does.

    >>> check_names(Source("x**2*y"))
    [('gradient:x', 1), ('gradient:y', 1)]
    """
    backend = "numpy" if backend == "auto" else backend
    namespace(backend, dtype)
    ready = prepared(source, (), None, None, limits_of(limits), Settings(dtype=dtype, backend=backend))
    if isinstance(ready, Report):
        return [(check.id, check.line) for check in ready.checks]
    names = list(zip(check_ids(ready.subjects), [subject.line for subject in ready.subjects], strict=True))
    if ready.stated:
        ids = room("inline_results").result_ids(ready.stated)
        names += zip(ids, [result.expected.line for result in ready.stated], strict=True)
    return names


def place(lowered: Lowered, settings: Settings, box: Box) -> dict[str, Floats]:
    """A value for every leaf: given, default, inside its box, or sampled."""
    leaves = lowered.program.leaves
    values: dict[str, Floats] = {}
    for name in filter(lowered.values.__contains__, leaves):
        value = np.asarray(array_of(lowered.values[name]))
        if not settings.plane and value.dtype.kind == "c":
            raise error("GC333", f"the value of `{visible(name)}` is complex: use --dtype complex128")
        values[name] = np.array(value, dtype=settings.doubles)
    if box:
        values |= room("decide.boxes").point_inside(box, values, leaves)
    sides = [side for claim in lowered.claims for side in (claim.left, claim.right, *(claim.derivative or ()))]
    outputs = [*lowered.program.outputs, *sides]
    return values | chosen_points.sampled(leaves, values, outputs, settings.seed or 0, settings.doubles)


def blamed(outcomes: Sequence[Pair], pair: Pair) -> Pair:
    """A subject with its outcome, which names a wrong hand-written rule where that makes its gradient wrong."""
    subject, outcome = pair
    if subject.kind != "gradient" or outcome.verdict != "DISAGREES":
        return pair
    order = reachable(subject.nodes())
    used = operations(order if subject.target is None else [*dependents(order, [subject.target])])
    return subject, blaming(outcome, [pair for pair in outcomes if pair[0].rule in used])


def operations(nodes: Sequence[Node]) -> set[str]:
    """The names of the operations of some nodes and of the bodies of their loops."""
    bodies = {node.params["body"] for node in nodes if is_reader(node)}
    return {node.primitive.name for node in nodes}.union(*(operations(body.steps) for body in bodies))


def first_wrong_steps(outcomes: Sequence[Pair]) -> list[Pair]:
    """The same outcomes; of each derivation of two steps or more the first wrong one says so, in words and evidence.

    A claim continues the one before it where its left side is that one's right side, or where two equalities have one
    left side.
    """
    chains: list[list[Pair]] = []
    for pair in outcomes:
        if chains and continues(chains[-1][-1][0], pair[0]):
            chains[-1].append(pair)
        else:
            chains.append([pair])
    for chain in chains:
        wrong = next((i for i, (_, outcome) in enumerate(chain) if outcome.verdict in WRONG), None)
        if len(chain) > 1 and wrong is not None:
            subject, outcome = chain[wrong]
            message = f"step {wrong + 1} of {len(chain)} is the first wrong one: {outcome.message}"
            evidence = {**outcome.evidence, "step": wrong + 1, "steps": len(chain)}
            chain[wrong] = subject, outcome._replace(message=message, evidence=evidence)
    return [pair for chain in chains for pair in chain]


def continues(before: Subject, after: Subject) -> bool:
    """Whether a claim goes on where another ended, or two equalities have one left side."""
    if before.kind != "claim" or after.kind != "claim":
        return False
    if after.left is None:
        return after.engine is before.judged
    return after.left is before.judged or after.left is before.left
