"""Derivations as documents: formulas by leaf, their assumptions, and how far they were checked."""

from __future__ import annotations

from gradcli.base.results.calculations import derivative_label, wherever
from gradcli.rendering.document import GAP, Column, Document, Facts, Formula, Grid, Line, Style, document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.base.results.calculations import Derivation, DerivationStep
    from gradcli.rendering.document import Block
    from gradcli.rendering.mathematics import Mathematics

RANKS = ("a number", "a vector", "a matrix")
REMARKS = {
    "CERTIFIED": "equal to the derivative in rigorous enclosures at the points that were checked",
    "AGREES": "equal to finite differences at the points that were checked",
    "IMPRECISE": "right, but it loses digits in floating point",
}


def derivation(result: Derivation, style: Style) -> Document:
    """`derive`: the expression, a formula for each leaf, the assumed shapes, and the verdicts."""
    ranks = {name: len(axes) for name, axes in result.assumes.items()}
    blocks: list[Block] = [Line(Formula.of(line, ranks), "code") for line in result.expression.splitlines() or [""]]
    shapes = [f"{name}: {shape_text(axes)}" for name, axes in result.assumes.items() if axes]
    if shapes:
        blocks.append(Facts((("shapes", ", ".join(shapes), "code"),)))
    for own in result.derivatives:
        if own.steps is not None:
            blocks += [GAP, Line(f"Steps to {derivative_label(own.leaf)}", "title"), *lines(own.steps), GAP]
    for own in result.derivatives:
        blocks.append(Facts(((derivative_label(own.leaf), Formula.of(own.short or own.text, ranks), "title"),)))
    for place, (name, text) in enumerate((result.parts or {}).items()):
        blocks.append(Facts((("" if place else "where", Formula.of(f"{name} = {text}", ranks), "code"),)))
    for leaf, reason in result.missing.items():
        blocks.append(Facts(((derivative_label(leaf), f"no closed form: {reason}", "doubt"),)))
    blocks += [Facts((row,)) for row in verdicts(result)]
    return document(*blocks, *notes(result), equations=lambda kind: equations(result, kind(ranks)))


def lines(steps: Sequence[DerivationStep]) -> Iterator[Block]:
    """The lines of a derivation, numbered, with their rules and how they are proved."""
    if not steps:
        yield Line("The script has too many operations to show them line by line.", "note")
        return
    rows: list[tuple[str, str, str]] = []
    for number, step in enumerate(steps, 1):
        texts = [f"{step.left} = {step.line or step.result}"]
        texts += [f"= {step.result}"] if step.line and step.result else []
        texts[:0] = [f"{step.letter} = {step.of}"] if step.letter else []
        rows += [(f"{number} {step.rule}" if not place else "", text, "code") for place, text in enumerate(texts)]
    yield Facts(tuple(rows))
    weak = [str(number) for number, step in enumerate(steps, 1) if step.proof != "reverse mode"]
    text = "each line has the normal form of the derivative by reverse mode"
    if weak:
        text += f"; line {', '.join(weak)} of that by forward mode only"
    yield Line(f"Proved: {text}.", "note")


def equations(result: Derivation, notation: Mathematics) -> Iterator[tuple[str, str]]:
    """The function, the formulas by leaf, and what their names stand for."""
    function = notation.function_name(result.expression)
    yield from notation.outputs(result.expression, function)
    for own in result.derivatives:
        leaves, _, along = own.leaf.partition(" along ")
        yield notation.derivative(function, leaves.split(","), along, own.short or own.text)
    for name, text in (result.parts or {}).items():
        yield notation.name(name), notation.formula(text)


def shape_text(axes: Sequence[str | int]) -> str:
    """Sizes as people write them: m x n."""
    texts = [axis if len(axes) == 1 or axis.isalnum() else f"({axis})" for axis in map(str, axes)]
    return " x ".join(texts) or "number"


def verdicts(result: Derivation) -> Iterator[tuple[str, str, str]]:
    """One line for formulas with the same verdict at the same sizes."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for own in result.derivatives:
        choices, others = own.checked or [], ""
        sizes = sizes_text(choices)
        if own.only is not None:
            others = "; other sizes have other formulas"
        elif own.every and own.verdict == "PROVED":
            names = list(choices[0])
            sizes = f"all {' and '.join(part for part in (', '.join(names[:-1]), names[-1]) if part)}"
        elif sizes:
            sizes += ", the same formula at every size"
        alike.setdefault((own.verdict, sizes, wherever(own.assumptions) + others), []).append(own.leaf)
    for (verdict, sizes, said), leaves in alike.items():
        label = "verdict" if len(alike) == 1 else f"verdict on {', '.join(map(derivative_label, leaves))}"
        text = verdict + (f" for {sizes}" if sizes else "") + said
        if verdict in REMARKS:
            text += f" ({REMARKS[verdict]})"
        yield label, text, "good" if verdict in ("PROVED", "CERTIFIED") else "doubt"


def sizes_text(choices: Sequence[Mapping[str, int]]) -> str:
    """Choices of sizes: (m, n) = (3, 2), (2, 3)."""
    if not choices or not choices[0]:
        return ""
    names = list(choices[0])
    if len(names) == 1:
        return f"{names[0]} = {', '.join(str(sizes[names[0]]) for sizes in choices)}"
    values = ", ".join(f"({', '.join(str(size) for size in sizes.values())})" for sizes in choices)
    return f"({', '.join(names)}) = {values}"


def notes(result: Derivation) -> Iterator[Block]:
    """The assumptions, and how to change them."""
    if any(result.assumes.values()) and not any(" along " in key for key in result.text):
        layout = "a gradient has the shape of its leaf"
        if result.rows:
            layout = "rows stand for the entries of the output, columns for those of the leaf"
        yield Facts((("layout", layout, "note"),))
        if not result.rows and any("," in key for key in result.text):
            yield Facts((("", "second derivatives have rows for the first leaf, columns for the second", "note"),))
    for name, ranks in result.others.items():
        for rank in ranks:
            sizes = ",".join("mn"[:rank])
            yield Facts((("or", f"{name} is {RANKS[rank]}: --shape {name}={sizes}", "note"),))


def tidy(result: Derivation) -> Grid:
    """A formula per row, for CSV."""
    rows = [(own.leaf, own.formula, own.verdict) for own in result.derivatives]
    rows += [(leaf, "", f"no closed form: {reason}") for leaf, reason in result.missing.items()]
    return Grid((Column("leaf"), Column("formula"), Column("verdict")), tuple(rows))
