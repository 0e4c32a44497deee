"""Formulas with names for their parts, and a script as a self-contained function: value, gradient, a test."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError, error
from gradcli.base.results.calculations import SelfContained, derivative_label, wherever
from gradcli.calculator.formula_values import TINY, entry_pairs
from gradcli.calculator.questions import gradient_question, leaf_names, prepare, value_question
from gradcli.checks import check_script
from gradcli.formulas import formula_texts
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.language.parser import parse
from gradcli.language.source import Source, words
from gradcli.language.substitution import expression_of, replaced, substituted, with_names
from gradcli.language.syntax import (
    Assert,
    Assign,
    Binary,
    Call,
    Clause,
    Comprehension,
    Declare,
    ExpressionStatement,
    Name,
    Number,
    Tuple,
    Unary,
    names_in,
    nodes_of,
)
from gradcli.language.unparse import unparse
from gradcli.lowering import lower
from gradcli.lowering.shapes.ranks import FixedShapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set
    from typing import Any

    from gradcli.base.results.calculations import Derivation
    from gradcli.graph.node import Node
    from gradcli.language.syntax import Syntax
    from gradcli.lowering import Lowered

LONG = 60  # characters of a formula whose parts get names
LETTERS = {0: "stcdgh", 1: "ruvwzpq", 2: "MSRUVWZP"}  # for numbers, vectors and matrices
EXACT = 1e-10  # what a formula may lose at the point of the test
LARGEST = 1000  # denominators of simple fractions
NOISE = 1e-13  # relative to the larger of a constant and 1
MOST_POINTS = 40  # that are tried for one where value and gradient are numbers


# functions that other languages lack, in those that they have
DEFINITIONS = {
    "elu(x)": "where(x > 0, x, expm1(x))",
    "elu(x, y)": "where(x > 0, x, y*expm1(x))",
    "leaky_relu(x)": "where(x > 0, x, 0.01*x)",
    "leaky_relu(x, y)": "where(x > 0, x, y*x)",
    "clamp(x, y, z)": "minimum(maximum(x, y), z)",
    "hardtanh(x)": "minimum(maximum(x, -1), 1)",
    "hardsigmoid(x)": "minimum(maximum(x + 3, 0), 6)/6",
    "logit(x)": "log(x/(1 - x))",
    "add(x, y)": "x + y",
    "sub(x, y)": "x - y",
    "mul(x, y)": "x*y",
    "div(x, y)": "x/y",
    "neg(x)": "-x",
    "xlogy(x, y)": "where(x == 0, 0, x*log(where(x == 0, 1, y)))",
    # of labels, which are positions
    "cross_entropy(x, y)": "-sum(log_softmax(x)*eye(shape(x)[1])[y])/shape(x)[0]",
    "nll_loss(x, y)": "-sum(x*eye(shape(x)[1])[y])/shape(x)[0]",
}
KEPT = frozenset(
    ["softmax", "log_softmax", "logsumexp", "norm", "mean", "var", "std", "relu", "softplus", "logsigmoid", "arange"]
)
OF_LABELS = ("cross_entropy", "nll_loss")


class SelfContainedScript(NamedTuple):
    """A script's intermediates by name, and its output, both in terms of the leaves."""

    assigned: dict[str, str]
    output: str | None


def written(lowered: Lowered) -> SelfContainedScript:
    """The names that a script assigns, and its output; empty unless it is assignments and an expression."""
    assigned: dict[str, str] = {}
    output: str | None = None
    leaves = lowered.program.leaves
    for statement in lowered.script.statements:
        if isinstance(statement, (Assert, Declare)):
            continue
        if any(isinstance(node, Comprehension) for node in nodes_of(statement)):
            return SelfContainedScript({}, None)
        if isinstance(statement, Assign) and len(statement.targets) == 1 and statement.operator is None:
            name = statement.targets[0].id
            if name in leaves:
                continue
            if name in assigned:
                return SelfContainedScript({}, None)
            output = assigned[name] = substituted(unparse(statement.value), assigned)
        elif isinstance(statement, ExpressionStatement):
            output = substituted(unparse(statement.value), assigned)
        else:
            return SelfContainedScript({}, None)
    return SelfContainedScript(assigned, output)


def simple(text: str, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[int, str]) -> str:
    """A formula of leaves with these shapes, with their definitions in place of losses and activations.

    `sizes` are symbols for sizes that are primes. A function stays where its definition has no formula without it.
    """

    def output(text: str, shapes: Mapping[str, tuple[int, ...]]) -> Node:
        own = {**dict.fromkeys(sizes.values(), ()), **shapes}
        known = {name: size for size, name in sizes.items()}
        (node,) = lower(parse(Source(text)), shapes=FixedShapes(own, known)).program.outputs
        return node

    def change(node: Syntax) -> Syntax | None:
        if not isinstance(node, Call):
            return None
        name = node.function.id
        args: list[Any] = [replaced(arg, change) for arg in node.args]
        definition = DEFINITIONS.get(f"{name}({', '.join('xyz'[: len(args)])})")
        if definition and not node.keywords:
            if name not in OF_LABELS or len(output(unparse(args[0]), shapes).shape) == 2:
                return expression_of(substituted(definition, dict(zip("xyz", map(unparse, args), strict=False))))
        kept = copy(node)
        kept.args = tuple(args)
        if name in KEPT:
            return kept
        letters = {f"arg_{k}": arg for k, arg in enumerate(args) if not isinstance(arg, (Number, Tuple))}
        call = copy(node)
        call.args = tuple([Name(f"arg_{k}", arg.span) if f"arg_{k}" in letters else arg for k, arg in enumerate(args)])
        try:
            inner = {letter: output(unparse(arg), shapes).shape for letter, arg in letters.items()}
            result = output(unparse(call), inner)
            with building(result.builder, reachable([result])):
                own = result.primitive
                if own.name == name and own.pointwise and own.definition is not None and not own.steady:
                    result = own.definition(*result.args)
                texts = formula_texts(result, None, sizes) if result.primitive.name != name else ()
                definition = next((text for text in texts if name not in words(text)), None)
        except GradcliError:
            definition = None
        if definition is None:
            return kept
        whole = substituted(definition, {letter: unparse(arg) for letter, arg in letters.items()})
        return replaced(expression_of(whole), change)

    return unparse(replaced(expression_of(text), change))


def named_parts(
    texts: Mapping[str, str],
    lowered: Lowered,
    sizes: Mapping[str, int],
    longest: int = LONG,
    simple: Callable[[str], str] = str,
) -> tuple[dict[str, str], dict[str, str]]:
    """Formulas in which long parts have names, those of the script first, and the definitions of these names."""
    assigned = {} if not texts else {name: simple(text) for name, text in written(lowered).assigned.items()}
    shapes = {name: leaf.node.shape for name, leaf in lowered.program.leaves.items()}
    formulas = list(map(expression_of, texts.values()))
    taken = {*assigned, *shapes, *sizes, *(name for formula in formulas for name in names_in(formula))}
    indices = {node.target.id for formula in formulas for node in nodes_of(formula) if isinstance(node, Clause)}

    def new_name(part: str) -> str | None:
        if not indices.isdisjoint(words(part)):
            return None
        full = part
        for name in reversed(new_parts):
            full = substituted(full, {name: new_parts[name]})
        for name in reversed(assigned):
            full = substituted(full, {name: assigned[name]})
        try:
            (output,) = lower(
                parse(Source(full)), shapes=FixedShapes({**shapes, **dict.fromkeys(sizes, ())}, {})
            ).program.outputs
        except GradcliError:
            return None
        for letter in LETTERS.get(len(output.shape), ""):
            if letter not in taken:
                taken.add(letter)
                new_parts[letter] = part
                return letter
        return None

    new_parts: dict[str, str] = {}
    return with_names(texts, assigned, new_name, longest)


def self_contained(
    derivation: Derivation,
    lowered: Lowered,
    sizes: Mapping[str, int],
    places: Callable[[], Iterator[dict[str, Any]]],
    simple: Callable[[str], str],
    general: tuple[dict[str, int], Lowered],
) -> SelfContained:
    """A script with its gradient as a function of its leaves; `places` are points for a test.

    `simple` replaces functions that other languages lack; `general` is the program at sizes that stand for all.
    Raises GradcliError GC512 if the value has no formula, or no point gives numbers.
    """
    if derivation.only:
        leaf, chosen = next(iter(derivation.only.items()))
        name, own = next((name, own) for name, own in derivation.assumes.items() if {*own} & {*chosen})
        sized = f"{name}={','.join(str(chosen.get(str(axis), axis)) for axis in own)}"
        message = f"the gradient in `{leaf}` is another formula at other sizes"
        raise error("GC512", message, help=f"give the sizes, such as --shape {sized}")
    program = lowered.program
    axes = {name: derivation.assumes.get(name) or list(leaf.node.shape) for name, leaf in program.leaves.items()}
    output = written(lowered).output or value_text(*general) or value_text({}, lowered)
    if not output:
        raise error("GC512", "the value of the script has no closed form, so it is not a function on its own")
    texts = {"": simple(output), **{leaf: simple(text) for leaf, text in derivation.text.items() if "," not in leaf}}
    shown, parts = named_parts(texts, lowered, sizes, 0, simple)
    value = shown.pop("")
    read = set().union(*(names_in(expression_of(text)) for text in (value, *shown.values(), *parts.values())))
    leaves = {name: own for name, own in axes.items() if name in read or name in derivation.formula}
    used = {name: place for name in sizes if (place := place_of(name, leaves)) is not None}
    known = {*leaves, *used, *parts}
    value, *texts_shown = (fold_constants(text, known) for text in (value, *shown.values()))
    shown = dict(zip(shown, texts_shown, strict=True))
    parts = {name: fold_constants(text, known) for name, text in parts.items()}
    at, number, numbers = sample(lowered, derivation.formula, places())
    return SelfContained(
        derivation.expression,
        leaves,
        used,
        parts,
        value,
        shown,
        {name: at[name] for name in leaves},
        number,
        {leaf: folded_number(text, numbers[leaf]) for leaf, text in shown.items()},
        [
            f"{derivative_label(leaf)} holds {wherever(derivation.assumptions[leaf])[2:]}."
            for leaf in shown
            if derivation.assumptions[leaf]
        ],
    )


def fold_constants(text: str, own: Set[str]) -> str:
    """A formula in which every operation on constants is its value; `own` are names that are no constants.

    >>> fold_constants("2**3*x + 4/2*sqrt(2*e)*e - --x", {"e", "x"})
    '8*x + 2*sqrt(2*e)*e - x'
    >>> fold_constants("cos(pi/3)*x + sin(6*pi)", {"x"})
    '0.5*x + 0'
    """

    def folded(node: Syntax) -> Syntax | None:
        if isinstance(node, Unary) and isinstance(node.operand, Unary) and node.op == node.operand.op == "-":
            return replaced(node.operand.operand, folded)
        if not isinstance(node, (Binary, Call)) or names_in(node) & own:
            return None
        try:
            question = value_question(prepare(unparse(node), {}))
            (value,) = question.run(question.values({}), "auto", "float64")
        except GradcliError:  # it reads an index or the like
            return None
        if not isinstance(value, float) or not isfinite(value):
            return None
        value = without_noise(unparse(node), value)
        return expression_of(str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value))

    return unparse(replaced(expression_of(text), folded))


def folded_number(text: str, number: Any) -> Any:
    """The number of a formula, which is the formula itself where that is a constant."""
    return float(text) if isinstance(number, float) and isinstance(expression_of(text), Number) else number


def without_noise(text: str, value: float) -> float:
    """The value of a constant, which is a simple fraction if it lies near one and is proved to be equal to it."""
    fraction = Fraction(value).limit_denominator(LARGEST)
    if float(fraction) == value or abs(value - fraction) > NOISE * max(abs(value), 1):
        return value
    checks = check_script(f"assert {text} == {fraction}\n{fraction}").checks
    return float(fraction) if {check.verdict for check in checks} == {"PROVED"} else value


def place_of(size: str, leaves: Mapping[str, list[str | int]]) -> tuple[str, int] | None:
    """A leaf and an axis that has a size."""
    return next(((name, axes.index(size)) for name, axes in leaves.items() if size in axes), None)


def value_text(sizes: Mapping[str, int], lowered: Lowered) -> str:
    """The output as a formula of the leaves, with the names of sizes; empty where it has none."""
    (output,) = lowered.program.outputs
    with building(output.builder, reachable([output])):
        return next(formula_texts(output, None, {size: name for name, size in sizes.items()}), "")


def sample(
    lowered: Lowered, formulas: Mapping[str, str], places: Iterator[dict[str, Any]]
) -> tuple[dict[str, Any], float, dict[str, Any]]:
    """A point without kinks of the formulas, and the value and the gradient there."""
    question = gradient_question(lowered)
    for _, place in zip(range(MOST_POINTS), places, strict=False):
        at = {name: rounded(value) for name, value in place.items()}
        try:
            values = question.values({**{name: plain(value) for name, value in lowered.values.items()}, **at})
            value, *gradient = question.run(values, "auto", "float64")
        except GradcliError:
            continue
        numbers = dict(zip(leaf_names(lowered), gradient, strict=True))
        every = {name: plain(entry) for name, entry in values.items()}
        if isfinite(value) and all(smooth(text, every, numbers[leaf]) for leaf, text in formulas.items()):
            return every, float(value), {name: plain(entry) for name, entry in numbers.items()}
    raise error("GC512", "no point was found for the test of the function", help="give the domains of the leaves")


def smooth(text: str, place: dict[str, Any], value: Any) -> bool:
    """Whether a formula has the numbers of the gradient at a point: at a kink it need not."""
    pairs = entry_pairs(text, place, value)
    return pairs is not None and all(isfinite(y) and abs(x - y) <= EXACT * abs(y) + TINY for x, y in pairs)


def rounded(value: Any) -> Any:
    """Numbers with few digits, for people."""
    return [rounded(entry) for entry in value] if isinstance(value, list) else round(value, 2)


def plain(value: Any) -> Any:
    """An array as nested lists, a number as a float."""
    return value.tolist() if hasattr(value, "tolist") else float(value) if isinstance(value, (int, float)) else value
