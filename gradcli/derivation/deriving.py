"""Gradients of scripts as closed formulas, without a point: sizes are symbols, and every formula has been checked.

A formula is derived twice, with two sets of sizes that are different primes; it holds for every size only if both give
the same text. Before it is shown, `checks` judges it like a hand-written claim, at points of three sets of small sizes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, islice
from math import inf
from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError, error, pointing_into, visible
from gradcli.base.results.calculations import Derivation, DerivationStep, Derivative
from gradcli.calculator.questions import leaf_names, scalar_output
from gradcli.checks import check_script
from gradcli.checks.all_sizes import DECIDED, identity_of, proved
from gradcli.checks.challenge import CHOICES, counterexample
from gradcli.checks.decide.assumptions import Assumption, conditions_of_set, joined_conditions
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import GOOD
from gradcli.checks.subjects import of_claim
from gradcli.derivation.derivation_steps import steps_by
from gradcli.derivation.gradient_text import LONGEST, points
from gradcli.derivation.index_notation import index_text
from gradcli.derivation.quiz import Question
from gradcli.derivation.self_contained import LONG, named_parts, self_contained, simple
from gradcli.formulas import JacobianRows, NoFormula, formula_texts, why_none
from gradcli.formulas.index_proof import undefined
from gradcli.formulas.index_reading import FEW
from gradcli.graph.building import building, uncollected
from gradcli.graph.node import reachable
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import Source, words
from gradcli.language.syntax import Assign, FunctionDef, names_in
from gradcli.lowering import NO_CLAIMS, lower
from gradcli.lowering.shapes.ranks import (
    PAIRS,
    Assumed,
    FixedShapes,
    assumed_shapes,
    declared,
    probes,
    symbols_of,
    unallocated,
)
from gradcli.lowering.unknown_names import unused_values
from gradcli.primitives.axes import kept
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.positions import take_along
from gradcli.primitives.recurrence import prod
from gradcli.transforms import derivatives
from gradcli.transforms.masks import clean
from gradcli.transforms.reverse import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.base.results.calculations import SelfContained
    from gradcli.checks.report import Check
    from gradcli.formulas import index_proof
    from gradcli.graph.node import Node
    from gradcli.graph.program import Leaf, Program
    from gradcli.language.limits import Limits, LimitsLike
    from gradcli.language.syntax import Script
    from gradcli.lowering import Lowered
    from gradcli.lowering.shapes.ranks import Symbols

# sizes at which formulas are checked, by the order of the symbols; some formulas need more rows, or more columns
SMALL = ((3, 2, 4, 5), (2, 3, 5, 4), (4, 3, 2, 5), (2, 3, 4, 5), (3, 4, 5, 6), (4, 2, 3, 5), (2, 4, 3, 5))
WANTED = 3  # choices of sizes at which a formula has to hold
LARGER = (0, 2, 5)  # what is added to them where a script reads positions that they do not have
FIRST_SEEDS = (2, 0, 5)  # of points: large with both signs, positive, small with both signs
MOST_POINTS = 12  # that are tried for one set of sizes, until one decides
POOR = "IMPRECISE"  # ENCLOSED, but for the digits of its floats
ENCLOSED = "CERTIFIED"
COTANGENTS = ("u", "v", "w", "ct", "cotangent", "u_", "v_")  # names for the cotangent of an array
SECONDS = 20.0  # for SymPy's proposals; budgets of calls end them before
TOO_LARGE = "GC508"  # of an array
SOME_REGION = ["signs are those at the points that were checked"]
MARK = 0xE000  # private characters that stand for sizes until a text is written for people or for programs


class ScalarScript(NamedTuple):
    """A script whose output is a number, and the assumptions on its free names.

    For a Jacobian the script is the output times `rows`, the cotangent, and summed. With `by_entry` a formula in index
    notation is preferred to one in matrices.
    """

    script: Script
    source: Source
    wrt: Sequence[str] | None
    assumed: Assumed
    limits: Limits
    rows: str | None = None
    by_entry: bool = False

    def lowered(self, sizes: Mapping[str, int]) -> Lowered:
        """The program for these sizes."""
        shapes = FixedShapes(self.assumed.at(sizes), sizes)
        return lower(self.script, wrt=self.wrt, limits=self.limits, shapes=shapes, mode=NO_CLAIMS)

    def axes(self, lowered: Lowered) -> JacobianRows | None:
        """The rows of a Jacobian at the sizes of a program."""
        return None if self.rows is None else JacobianRows(self.rows, lowered.program.leaves[self.rows].node.shape)

    def claim(self, leaf: str, text: str) -> str:
        """The claim of a formula about the gradient of the script, in the language."""
        text = self.for_programs(text)
        if self.rows is None:
            return text
        return f"({text}).T @ {self.rows}" if self.assumed.shapes.get(leaf) else f"sum(({text})*{self.rows})"

    def primes(self, place: int) -> dict[str, int]:
        """Sizes by which a formula is derived for all sizes."""
        return dict(zip(self.assumed.symbols, probes([self.script], place), strict=False))

    def at_large(self) -> tuple[dict[str, int], Lowered]:
        """The first sizes that stand for all at which no array is too large, and the program there."""
        for place in range(PAIRS[-1][-1]):
            with suppress(GradcliError):
                return self.primes(place), self.lowered(self.primes(place))
        return self.primes(PAIRS[-1][-1]), self.lowered(self.primes(PAIRS[-1][-1]))

    def marked(self, place: int) -> tuple[dict[str, int], dict[int, str]]:
        """Such sizes, and the marks that stand for them in texts."""
        sizes = self.primes(place)
        return sizes, {size: chr(MARK + i) for i, size in enumerate(sizes.values())}

    def small(self) -> list[dict[str, int]]:
        """Choices of sizes at which a formula may be checked; without symbols points differ only."""
        if not self.assumed.symbols:
            return [{}] * WANTED
        choices: list[dict[str, int]] = []
        for sizes in SMALL:
            for more in LARGER:
                chosen = {name: sizes[i % 4] + i // 4 + more for i, name in enumerate(self.assumed.symbols)}
                if not all(size > 0 for shape in self.assumed.at(chosen).values() for size in shape):
                    continue
                try:
                    self.lowered(chosen)
                except GradcliError:
                    continue
                choices += [chosen] if chosen not in choices else []
                break
        return choices

    def for_people(self, text: str) -> str:
        """A text with the symbols of sizes in place of their marks."""
        return text.translate({MARK + i: name for i, name in enumerate(self.assumed.symbols)})

    def for_programs(self, text: str) -> str:
        """A text with expressions of the language in place of the marks."""
        return text.translate({MARK + i: self.assumed.place(name) for i, name in enumerate(self.assumed.symbols)})


def subject_of(
    source: Source,
    wrt: Sequence[str] | None,
    known: Mapping[str, Sequence[str | int]],
    limits: Limits,
    scalar: bool = True,
) -> ScalarScript:
    """A script with the shapes of its free names, of which those in `known` are given."""
    source.scalars = frozenset(name for name, axes in known.items() if not axes)
    script = parse(source, limits)
    shapes: dict[str, Symbols] = {name: tuple(axes) for name, axes in known.items()}
    try:
        assumed = assumed_shapes(script, at={}, known=shapes, limits=limits, scalar=scalar)
    except GradcliError as problem:
        first = problem.diagnostics[0]
        if first.code == "GC306" and "--at" in (first.help or ""):  # a formula has no point
            hint = "assign it in the script, as in n = 3; in LaTeX, \\sum_i runs over all entries"
            raise error(first.code, first.message, first.span, help=hint) from None
        raise
    for name in sorted(known.keys() & names_in(script) - assumed.shapes.keys()):
        hint = "the free names are: " + (", ".join(assumed.shapes) or "none")
        raise error("GC206", f"`{visible(name)}` is given a shape, and is no free name", help=hint)
    return ScalarScript(script, source, wrt, assumed, limits)


class ConfirmedFormula(NamedTuple):
    """A confirmed formula: its text with marks for sizes, the weakest verdict on it, and the sizes that were checked.

    `general`: it is the same at every size; `every`: it is proved for all of them, under the assumptions.
    """

    text: str
    verdict: str
    checked: list[dict[str, int]]
    general: bool
    every: bool = False
    assumptions: list[dict[str, str]] = []


def derive(
    script: str | Source,
    *,
    wrt: Sequence[str] | None = None,
    shapes: Mapping[str, Symbols] | None = None,
    style: str = "simplified",
    quantity: str = "gradient",
    order: int = 1,
    steps: bool = False,
    direction: str | None = None,
    limits: LimitsLike = None,
) -> Derivation:
    """The derivatives of a script in closed form, leaf by leaf, as a `gradcli.base.results.calculations.Derivation`.

    `shapes` gives the sizes of free names, each a symbol or a number; others are inferred from how they are used.
    `style` is "simplified", or "factored" by SymPy, which is for formulas without arrays, or "index": index notation.
    `quantity` is "gradient", "jacobian" or "hessian"; with `order` a gradient by numbers has higher derivatives too.
    With `direction`, a name, the derivative along it replaces the gradient (`x along v`), and "hessian" adds the
    Hessian times the direction (`x,x along v`). With `steps` the first derivatives have the lines of their derivation.

    Raises GradcliError for a script that cannot be lowered, and GC511 if no leaf has a closed form.

    >>> derive("mean((A@x - b)**2)", wrt=["x"]).formula  # doctest: +SKIP
    {'x': '2/len(b)*A.T @ (A @ x - b)'}
    """
    source = script if isinstance(script, Source) else Source(script)
    bounds = limits_of(limits)
    with uncollected(), pointing_into(source):
        if direction is not None:
            derivation = along(source, wrt, shapes or {}, style, direction, quantity == "hessian", bounds)
            return with_parts(derivation, source, bounds)
        first = derived(source, wrt, shapes or {}, style, quantity == "jacobian", bounds)
        derivation = first
        if quantity == "hessian":
            for leaf, second in combinations_with_replacement(first.formula, 2):
                derivation = joined(derivation, leaf, second, style, bounds)
        for leaf in first.formula if order > 1 else ():
            if first.assumes.get(leaf):
                raise error("GC307", f"--order {order} needs numbers, and `{leaf}` is an array", help="use --hessian")
            key = leaf
            for _ in range(order - 1):
                derivation = joined(derivation, key, leaf, style, bounds)
                key = f"{key},{leaf}"
                if key not in derivation.formula:
                    break
        derivation = with_parts(derivation, source, bounds)
        return with_steps(derivation, source, bounds) if steps else derivation


def with_parts(derivation: Derivation, source: Source, limits: Limits) -> Derivation:
    """The derivations with names for parts of long formulas, those of the script first."""
    assigned = any(isinstance(statement, Assign) for statement in parse(source, limits).statements)
    if not assigned and all(len(text) <= LONG for text in derivation.text.values()):
        return derivation
    subject = subject_of(source, None, derivation.assumes, limits, scalar=False)
    try:
        sizes, lowered = subject.at_large()
        short, parts = named_parts(derivation.text, lowered, sizes)
    except GradcliError:  # a loop or a function: there are no parts to be named
        return derivation
    if not parts:
        return derivation
    derivatives = tuple([replace(own, short=short[own.leaf]) for own in derivation.derivatives])
    return replace(derivation, derivatives=derivatives, parts=parts)


def with_steps(derivation: Derivation, source: Source, limits: Limits) -> Derivation:
    """The derivations with the lines that lead to the first derivative with respect to each leaf."""
    leaves = [leaf for leaf in derivation.formula if "," not in leaf]
    subject = subject_of(source, leaves, derivation.assumes, limits, scalar=False)
    sizes, lowered = subject.at_large()
    names = {size: f"size_of_{name}" for name, size in sizes.items()}  # a name that parses

    def put(text: str, shown: Callable[[str], str]) -> str:
        for name in sizes:
            text = re.sub(rf"\bsize_of_{name}\b", shown(name), text)
        return text

    def shown(step: DerivationStep) -> DerivationStep:
        return DerivationStep(*[put(getattr(step, field), str) for field in DerivationStep._names])

    def with_lines(own: Derivative) -> Derivative:
        if own.leaf not in leaves:
            return own
        lines = [
            shown(step) for step in steps_by(lowered, own.leaf, names, lambda text: put(text, subject.assumed.place))
        ]
        if lines and sorted(lines[-1].result) == sorted(own.text):  # the same terms in another order
            lines[-1] = replace(lines[-1], result=own.text)
        return replace(own, steps=lines)

    return replace(derivation, derivatives=tuple(map(with_lines, derivation.derivatives)))


def questions(script: str | Source, derivation: Derivation, limits: LimitsLike = None) -> Iterator[Question]:
    """A question for the gradient with respect to each leaf of a script whose gradient has been derived."""
    source = script if isinstance(script, Source) else Source(script)
    bounds = limits_of(limits)
    subject = subject_of(source, None, derivation.assumes, bounds)
    sizes = subject.small()[0]
    place = next(places(subject.lowered(sizes), FIRST_SEEDS[0]))
    for leaf, text in derivation.text.items():
        axes = " x ".join(map(str, derivation.assumes.get(leaf, [])))
        what = f"What is the gradient in {leaf}, which has the shape {axes}?" if axes else f"What is d/d{leaf}?"
        yield Question(f"{derivation.expression}. {what}", source, leaf, {**place, **sizes}, leaf, text, None, bounds)


def emitted(script: str | Source, derivation: Derivation, limits: LimitsLike = None) -> SelfContained:
    """A script whose gradient has been derived as a function of its leaves, with a point for a test."""
    source = script if isinstance(script, Source) else Source(script)
    bounds = limits_of(limits)
    with uncollected(), pointing_into(source):
        subject = subject_of(source, list(derivation.formula), derivation.assumes, bounds)
        sizes = subject.small()[0]
        lowered = subject.lowered(sizes)

        def points() -> Iterator[dict[str, Any]]:
            for seed in range(12):
                yield from islice(places(lowered, seed), 1)

        general = subject.at_large()
        symbols = {size: name for name, size in general[0].items()}
        shapes = {name: leaf.node.shape for name, leaf in general[1].program.leaves.items()}
        return self_contained(derivation, lowered, sizes, points, lambda text: simple(text, shapes, symbols), general)


def along(
    source: Source,
    wrt: Sequence[str] | None,
    shapes: Mapping[str, Symbols],
    style: str,
    name: str,
    twice: bool,
    limits: Limits,
) -> Derivation:
    """The derivative with respect to one leaf along a direction, and with `twice` the Hessian times the direction.

    The first is the gradient of `sum(jvp(y, x, v)*u)` by u, which has the shape of y, the second that of
    `jvp(y, x, v)` by x.
    """
    subject = subject_of(source, wrt, shapes, limits, scalar=False)
    assumed = subject.assumed
    sizes, lowered = subject.at_large()
    leaves = leaf_names(lowered)
    taken = names_in(subject.script)
    if len(leaves) > 1:
        raise error("GC721", f"--direction moves one leaf, and there are {', '.join(leaves)}", help="choose with --wrt")
    if name in taken or not name.isidentifier():
        raise error(
            "GC721", f"--direction {visible(name)} is not a new name", help="take a name that is not in the script"
        )
    (output, *others) = lowered.program.outputs
    if others:
        raise error("GC307", f"a derivative along a direction needs one output, and this is {len(others) + 1} values")
    (leaf,) = leaves
    weight = next(letter for letter in COTANGENTS if letter not in {*taken, name})
    known = {**assumed.shapes, name: symbols_of(lowered.program.leaves[leaf].node.shape, sizes)}
    moved = f"jvp({lowered.text}, {leaf}, {name})"
    text = f"{source.text}\nsum({moved}*{weight})"
    derivation = derived(
        Source(text, source.name), [weight], {**known, weight: symbols_of(output.shape, sizes)}, style, False, limits
    )
    derivatives = [replace(derivation.derivatives[0], leaf=f"{leaf} along {name}")]
    if twice:
        if output.shape:
            raise error("GC307", "a Hessian needs a scalar output", output.span, help="leave out --hessian")
        second = derived(Source(f"{source.text}\n{moved}", source.name), [leaf], known, style, False, limits)
        derivatives.append(replace(second.derivatives[0], leaf=f"{leaf},{leaf} along {name}"))
    free = {own_name: own for own_name, own in derivation.assumes.items() if own_name != weight}
    return replace(
        derivation,
        expression=lowered.text,
        derivatives=tuple(derivatives),
        assumes=free,
        others={own_name: list(ranks) for own_name, ranks in assumed.others.items()},
    )


def joined(derivation: Derivation, key: str, leaf: str, style: str, limits: Limits) -> Derivation:
    """The derivations with that of one of their formulas by a leaf: of a number its gradient, of an array its Jacobian.

    Each formula is confirmed as a derivative of the one before it, which has been confirmed.
    """
    (before,) = [derivative for derivative in derivation.derivatives if derivative.leaf == key]
    own = f"{key},{leaf}"
    shapes: dict[str, Symbols] = {name: tuple(axes) for name, axes in derivation.assumes.items()}
    if leaf not in words(before.formula):
        axes = [*shapes.get(key, ()), *shapes.get(leaf, ())]
        places = [axis if isinstance(axis, int) else Assumed(shapes, (), {}).place(axis) for axis in axes]
        following = replace(before, leaf=own, formula=zeros(places), text=zeros(axes), verdict=GOOD[0], only=None)
    else:
        try:
            more = derived(Source(before.formula), [leaf], shapes, style, bool(shapes.get(key)), limits)
        except GradcliError as problem:
            reason = problem.diagnostics[0].message.rpartition("closed form: ")[2]
            return replace(derivation, missing={**derivation.missing, own: reason})
        (result,) = more.derivatives
        conditions = joined_conditions(before.assumptions, result.assumptions)
        following = replace(result, leaf=own, assumptions=conditions, every=result.every and before.every)
    return replace(derivation, derivatives=(*derivation.derivatives, following))


def zeros(axes: Sequence[str | int]) -> str:
    """An array of zeros, or 0."""
    return f"zeros({', '.join(map(str, axes))})" if axes else "0"


def derived(
    source: Source,
    wrt: Sequence[str] | None,
    shapes: Mapping[str, Symbols],
    style: str,
    jacobian: bool,
    limits: Limits,
) -> Derivation:
    """The first derivatives of a script in closed form."""
    subject = subject_of(source, wrt, shapes, limits, scalar=not jacobian)._replace(by_entry=style == "index")
    assumed = subject.assumed
    small = subject.small()
    lowered = subject.lowered(small[0]) if small else subject.at_large()[1]
    expression = lowered.text
    if jacobian:
        subject = with_rows(subject)
        assumed = subject.assumed
        small = subject.small()
        lowered = subject.lowered(small[0])
    left_out = {subject.rows, *(label_counts(lowered.program) if wrt is None else ())}
    leaves = [name for name in leaf_names(lowered) if name not in left_out]
    reasons: dict[str, str] = {}
    texts = {leaf: ways for leaf, ways in general_texts(subject, reasons).items() if ways}
    if style == "factored" and not any(leaf.node.shape for leaf in lowered.program.leaves.values()):
        texts = {leaf: factored_texts(subject, ways) for leaf, ways in texts.items()}
    formulas = confirmed(subject, texts, small, reasons, general=True)
    rest = [leaf for leaf in leaves if leaf not in formulas]
    if rest and assumed.symbols and small:
        texts = derived_texts(subject, small[0], {}, reasons)
        formulas |= confirmed(subject, {leaf: texts[leaf] for leaf in rest}, small[:1] * WANTED, reasons, general=False)
    missing = {leaf: reasons.get(leaf, UNCONFIRMED) for leaf in leaves if leaf not in formulas}
    if not formulas:
        leaf, reason = next(iter(missing.items()))
        raise error(
            "GC511",
            f"the {'Jacobian' if jacobian else 'gradient'} in `{visible(leaf)}` has no closed form: {reason}",
            help="`gradcli grad` computes it at a point, and `gradcli trace` shows the steps",
        )
    derivatives = [
        Derivative(
            leaf,
            subject.for_programs(formula.text),
            subject.for_people(formula.text),
            formula.verdict,
            formula.checked if assumed.symbols else None,
            formula.assumptions,
            formula.every,
            None if formula.general else small[0],
        )
        for leaf, formula in formulas.items()
    ]
    return Derivation(
        expression,
        tuple(derivatives),
        {name: list(axes) for name, axes in assumed.shapes.items() if name != subject.rows},
        {name: list(ranks) for name, ranks in assumed.others.items()},
        missing,
        subject.rows is not None,
        (*lowered.notes, *unused_values(lowered, shapes)),
    )


def stated(
    subject: ScalarScript, leaf: str, formula: ConfirmedFormula, regions: Sequence[Sequence[str]]
) -> ConfirmedFormula | str:
    """A formula with the conditions under which it holds, or the member of the set that it is for at which it fails.

    That set is all sizes where the formula is the same at each. `regions` are the signs of its proofs at points, which
    count where it is not proved for all values.
    """
    claims, script, symbols = {leaf: subject.claim(leaf, formula.text)}, subject.script, subject.assumed.symbols

    def claim_at(choice: tuple[int, ...]) -> tuple[Mapping[str, int], Lowered, Any]:
        sizes = {name: choice[i % len(choice)] for i, name in enumerate(symbols)}
        sizes = sizes if formula.general else formula.checked[0]
        bare, shapes = subject.lowered(sizes), FixedShapes(subject.assumed.at(sizes), sizes)
        labels = {name: next(places(bare, 0))[name] for name in label_counts(bare.program)}
        lowered = lower(script, at=labels, wrt=subject.wrt, limits=subject.limits, claims=claims, shapes=shapes)
        return sizes, lowered, of_claim(lowered, lowered.claims[-1], {})

    proof = proof_for_all_sizes(subject, claims) if formula.general and symbols else None
    every, signs = proof is not None, list[str]()
    if proof is None:
        claim = claim_at(tuple(formula.checked[0].values()) or (1,))[1].claims[-1]
        with suppress(NoFormula):
            proof = identity_of(claim, {}).proof()
        if proof is None:
            proof = undefined([claim.derivative[0] if claim.derivative else claim.left, claim.right])
            alike = regions[0] if all(region == regions[0] for region in regions) else SOME_REGION
            signs = [*alike] if formula.verdict == GOOD[0] else []
    assumed = [Assumption(kind, node=node) for node, kind in proof.items()]
    assumed += [Assumption("sign", text) for text in signs]
    oracle = oracle_client.shared()
    with oracle:
        choices = CHOICES if formula.general and symbols else CHOICES[:1]
        member = counterexample(Exact(oracle, [], SECONDS), claim_at, assumed, choices)
    if member is not None:
        return f"the formula that was found fails for {member.place}"
    if every and formula.verdict in DECIDED and DECIDED[formula.verdict].issuperset(proof.values()):
        formula = formula._replace(verdict=GOOD[0])
    return formula._replace(every=every, assumptions=conditions_of_set(assumed))


def proof_for_all_sizes(subject: ScalarScript, claims: Mapping[str, str]) -> index_proof.Assumed | None:
    """What the proof of a formula for all sizes assumes, as a claim of a script that declares its arrays."""
    try:
        source = declared(subject.source, subject.script, subject.assumed)
        script = parse(source, subject.limits)
        reason, assumed = proved(script, claims, {}, subject.limits)
    except GradcliError:  # a shape that the script gives a name in another way
        return None
    return assumed if reason is None else None


def with_rows(subject: ScalarScript) -> ScalarScript:
    """The script with its output times a cotangent, summed; the script itself where the output is a number."""
    sizes, lowered = subject.at_large()
    (output, *others) = lowered.program.outputs
    if others:
        raise error("GC307", f"a Jacobian in closed form needs one output, and this is {len(others) + 1} values")
    if not output.shape:
        return subject
    taken = names_in(subject.script)
    name = next(letter for letter in COTANGENTS if letter not in taken)
    shapes: dict[str, Symbols] = {**subject.assumed.shapes, name: symbols_of(output.shape, sizes)}
    source = Source(f"{subject.source.text}\nsum(({lowered.text})*{name})", subject.source.name)
    whole = subject_of(source, list(leaf_names(lowered)), shapes, subject.limits)
    assumed = whole.assumed._replace(others=subject.assumed.others)
    return whole._replace(assumed=assumed, rows=name, by_entry=subject.by_entry)


UNCONFIRMED = "the formula that was found could not be confirmed"


def general_texts(subject: ScalarScript, reasons: dict[str, str]) -> dict[str, list[str]]:
    """Formulas for each leaf that are the same at every size."""
    general: dict[str, list[str]] = {}
    subject = subject._replace(limits=unallocated(subject.limits))
    for pair in PAIRS if subject.assumed.symbols else ((0,),):
        try:
            first, *others = [derived_texts(subject, *subject.marked(place), reasons) for place in pair]
        except GradcliError as problem:
            code = problem.diagnostics[0].code
            if not (subject.assumed.symbols and code.startswith("GC5")):
                raise
            if code != TOO_LARGE:  # at any size
                break
            continue
        for leaf, texts in first.items():
            general[leaf] = general.get(leaf) or [
                text for text in texts if all(text in other[leaf] for other in others)
            ]
        if all(general[leaf] for leaf, texts in first.items() if texts):
            break
    return general


def derived_texts(
    subject: ScalarScript, sizes: Mapping[str, int], marks: Mapping[int, str], reasons: dict[str, str]
) -> dict[str, list[str]]:
    """Formulas for each leaf at these sizes, the best first; `reasons` receives the reason if there is none."""
    lowered = subject.lowered(sizes)
    names = leaf_names(lowered)
    gradient = gradient_of(scalar_output(lowered), [lowered.program.leaves[name].node for name in names])
    texts_by_leaf = {}
    taken = {*lowered.program.leaves, *subject.assumed.symbols, *own_names(lowered)}
    with building(gradient[0].builder, reachable(gradient)):
        for name, node in zip(names, gradient, strict=True):
            rows = subject.axes(lowered)
            own = own_names(lowered)
            ways = [*formula_texts(node, None, marks, rows)]
            if subject.by_entry or (not ways and (marks or not subject.assumed.symbols)):  # no page for one size
                with suppress(NoFormula):
                    ways.insert(0, index_text(node, marks, rows, taken))
            texts = [text for text in ways if len(text) <= LONGEST]
            texts_by_leaf[name] = [text for text in texts if words(text).isdisjoint(own)]
            if not texts:
                reasons[name] = reason_text(why_none(node, rows), subject.source)
            elif not texts_by_leaf[name]:
                clash = min(words(texts[0]) & own)
                reasons[name] = f"it calls `{visible(clash)}`, which means something else in this script"
    return texts_by_leaf


def gradient_of(output: Node, leaves: Sequence[Node]) -> list[Node]:
    """The gradient; that of a product of many entries has the product divided by each of them."""
    products = [node for node in reachable([output]) if node.primitive is prod and node.args[0].type.size > FEW]
    if not products:
        return derivatives.grad(output, leaves)
    with building(output.builder, [output, *leaves]) as builder:
        pairs = [(output, builder.constant(1))]
        for product in reversed(products):
            (arg,), axes = product.args, product.params["axis"]
            (arrived,) = sweep(builder, [(node, (ct, None)) for node, ct in pairs], [product], stops=products)
            if arrived is not None:
                weight = kept(clean(builder, arrived) * product, arg.shape, axes, True)
                pairs.append((arg, stretch(weight, arg.shape) / arg))
        sent = sweep(builder, [(node, (ct, None)) for node, ct in pairs], leaves, stops=products)
        return [
            builder.constant(0, leaf.shape) if ct is None else clean(builder, ct)
            for leaf, ct in zip(leaves, sent, strict=True)
        ]


def reason_text(reason: NoFormula, source: Source) -> str:
    """A reason, with the part of the script that it concerns."""
    span = reason.span
    if span is None or span.line != span.end_line:
        return str(reason)
    line = source.text.splitlines()[span.line - 1]
    part = line[span.column - 1 : span.end_column - 1]
    whole = all(
        part.count(opening) == part.count(closing) for opening, closing in ("()", "[]", "{}")
    )  # in LaTeX it may be cut
    return f"{reason}: {visible(part)}" if whole else str(reason)


def factored_texts(subject: ScalarScript, texts: list[str]) -> list[str]:
    """Formulas of numbers, those that SymPy proposes in front, the shortest first."""
    if "." in texts[0]:
        return texts  # decimals stay
    node = lower(parse(Source(texts[0]), subject.limits), limits=subject.limits).program.outputs[0]
    oracle = oracle_client.shared()
    with oracle:
        exact = Exact(oracle, [node], SECONDS)
        exact.begin()
        try:
            proposed = exact.ask("factor", node=node).get("texts", [])
        except oracle_client.NoAnswer:
            return texts
    return [*sorted(proposed, key=len), *texts]


def own_names(lowered: Lowered) -> set[str]:
    """Names that mean something else in the script than in the library."""
    defined = {statement.name.id for statement in lowered.script.statements if isinstance(statement, FunctionDef)}
    return (defined | set(lowered.names.values())) - set(lowered.program.leaves)


def confirmed(
    subject: ScalarScript,
    texts: Mapping[str, list[str]],
    choices: list[dict[str, int]],
    reasons: dict[str, str],
    general: bool,
) -> dict[str, ConfirmedFormula]:
    """For each leaf the first of its texts that holds at the wanted number of choices of sizes, and fails at none.

    A formula that loses digits in floating point is taken only if no other holds. A choice decides nothing if a formula
    has no value at any of its points, such as `inv(A @ B)` if that is singular.
    """
    formulas: dict[str, ConfirmedFormula] = {}
    waiting = {leaf: list(ways) for leaf, ways in texts.items() if ways}
    while waiting:
        asked = {leaf: ways.pop(0) for leaf, ways in waiting.items()}
        verdicts: dict[str, list[str]] = {leaf: [] for leaf in asked}
        held: dict[str, list[dict[str, int]]] = {leaf: [] for leaf in asked}
        regions: dict[str, list[Any]] = {leaf: [] for leaf in asked}
        for place, sizes in enumerate(choices):
            open_leaves = [leaf for leaf, known in verdicts.items() if len(known) < WANTED]
            claims = {leaf: subject.claim(leaf, asked[leaf]) for leaf in open_leaves}
            for leaf, check in judged(subject, claims, sizes, FIRST_SEEDS[place % WANTED]).items():
                verdicts[leaf].append(check.verdict)
                regions[leaf].append(check.evidence.get("region", []))
                held[leaf] += [sizes] if sizes not in held[leaf] else []
                if check.verdict not in GOOD:
                    del verdicts[leaf]
        for leaf, known in verdicts.items():
            if len(known) == WANTED:
                checked = ConfirmedFormula(asked[leaf], max(known, key=GOOD.index), held[leaf], general)
                formula = stated(subject, leaf, checked, regions[leaf])
                if isinstance(formula, str):
                    reasons[leaf] = formula
                else:
                    formulas[leaf] = min(formulas.get(leaf, formula), formula, key=lambda way: way.verdict == POOR)
        unsettled = {leaf for leaf in waiting if leaf not in formulas or formulas[leaf].verdict == POOR}
        waiting = {leaf: ways for leaf, ways in waiting.items() if ways and leaf in unsettled}
    return formulas


def judged(subject: ScalarScript, claims: Mapping[str, str], sizes: Mapping[str, int], seed: int) -> dict[str, Check]:
    """The check of each formula at the first point that decides, or the second where the first is badly conditioned.

    A formula that loses digits where reverse mode loses them as well has the verdict of one that loses none.
    """
    checks: dict[str, Check] = {}
    if not claims:
        return checks
    waiting = dict(claims)
    poor: set[str] = set()  # formulas that have lost digits at a point
    for place in islice(places(subject.lowered(sizes), seed), MOST_POINTS):
        ask = partial(check_script, subject.source, at=place, samples=1, limits=subject.limits, seed=seed)
        try:
            report = ask(wrt=[], claims=waiting)
        except GradcliError:
            break
        for check in report.checks:
            if check.kind == "claim" and check.leaf in waiting and check.verdict in (*GOOD, "DISAGREES"):
                checks[check.leaf] = check
        lossy = {leaf for leaf in waiting if leaf in checks and checks[leaf].verdict == POOR}
        for check in ask(wrt=sorted(lossy)).checks if lossy else ():
            if check.leaf in lossy and check.verdict == POOR:
                checks[check.leaf] = replace(checks[check.leaf], verdict=ENCLOSED)
        again = lossy - poor
        waiting = {leaf: text for leaf, text in waiting.items() if leaf not in checks or leaf in again}
        poor |= again
        if not waiting:
            break
    return checks


def places(lowered: Lowered, first: int) -> Iterator[dict[str, Any]]:
    """Points for free names and for leaves with defaults, inside the declared domains."""
    program = lowered.program
    classes = {name: count for name, count in label_counts(program).items() if name not in lowered.values}
    moving = {
        name: leaf
        for name, leaf in program.leaves.items()
        if name in classes or not (leaf.const or name in program.statics)
    }
    shapes = {name: leaf.node.shape for name, leaf in moving.items()}
    for place in points(shapes, {}, first):
        yield {
            name: labels_of(value, classes[name]) if name in classes else inside(value, moving[name])
            for name, value in place.items()
        }


def label_counts(program: Program) -> dict[str, int]:
    """The leaves that are labels, each with the number of classes: they choose an entry of each row."""
    return {
        leaf.params["name"]: node.args[0].shape[node.params["axis"]]
        for node in reachable(program.outputs)
        if node.primitive is take_along
        for leaf in reachable([node.args[1]])
        if "name" in leaf.params
    }


def labels_of(value: Any, count: int) -> Any:
    """Random numbers as labels from 0 to count - 1."""
    return [labels_of(entry, count) for entry in value] if isinstance(value, list) else int(abs(value) * 2**20) % count


def inside(value: Any, leaf: Leaf) -> Any:
    """Numbers moved into the set that a leaf is declared in."""
    domain = leaf.domain
    if isinstance(value, list):
        if "symmetric" in leaf.node.params:
            return [[value[max(i, j)][min(i, j)] for j in range(len(value))] for i in range(len(value))]
        return [inside(entry, leaf) for entry in value]
    if domain is None or domain.contains(value):
        return value
    if domain.low == -inf:
        return domain.high - abs(value)
    if domain.high == inf:
        return domain.low + abs(value)
    return domain.low + (domain.high - domain.low) * (value / 8 + 0.5)
