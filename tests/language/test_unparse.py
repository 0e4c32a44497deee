"""Printing and reading are inverse: any tree that the parser can build survives unparse and parse."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.base.diagnostics import Span
from gradcli.language import parse, parse_expression, unparse
from gradcli.language import syntax as s

HERE = Span(1, 1, 1, 2)
NAMES = st.sampled_from(["x", "y", "w1", "alpha", "β", "Σ", "T", "e", "vjp", "real", "range", "np", "_"])
NUMBERS = st.sampled_from(["0", "2", "10", "0.5", ".5", "3.", "1e-3", "2E5", "1_000", "007", "True", "False"])
STRINGS = st.text("abc ,=()[]#.'/", max_size=6) | st.text('abc"', max_size=4)


def number(text: str) -> s.Number:
    found = parse_expression(text)
    assert isinstance(found, s.Number)
    return found


def name(text: str) -> s.Name:
    return s.Name(text, HERE)


def keywords(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[s.Keyword, ...]]:
    pairs = st.dictionaries(st.sampled_from(["axis", "k", "keepdims", "T"]), values, max_size=2)
    return pairs.map(lambda found: tuple(s.Keyword(key, value, HERE) for key, value in found.items()))


def compounds(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(below, min_size=1, max_size=3).map(tuple)
    slices = st.builds(s.Slice, st.none() | below, st.none() | below, st.none() | below, st.just(HERE))
    items = st.lists(below | slices | st.just(s.NewAxis(HERE)), min_size=1, max_size=3).map(tuple)
    compare = st.lists(st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), below), min_size=1, max_size=3)
    options = keywords(below | st.just(name("None")))
    ordinary = st.builds(s.Call, st.builds(name, NAMES), several, options, st.just(False), st.none(), st.just(HERE))
    path = st.builds(s.String, STRINGS, st.just(HERE))
    load = st.builds(
        lambda file, part: s.Call(name("load"), (file,), (s.Keyword("columns", part, HERE),), False, None, HERE),
        path,
        slices | below,
    )
    mode = st.builds(
        lambda value, text: s.Call(name("pad"), (value,), (s.Keyword("mode", text, HERE),), False, None, HERE),
        below,
        path,
    )
    return st.one_of(
        st.builds(s.Unary, st.sampled_from(["-", "+", "not"]), below, st.just(HERE)),
        st.builds(
            s.Binary,
            st.sampled_from(["+", "-", "*", "/", "@", "**", "and", "or"]),
            below,
            below,
            st.booleans(),
            st.just(HERE),
        ),
        st.builds(
            lambda first, rest: s.Compare((first, *(value for _, value in rest)), tuple(op for op, _ in rest), HERE),
            below,
            compare,
        ),
        ordinary,
        load,
        mode,
        st.builds(s.Transpose, below, st.just(HERE)),
        st.builds(s.Subscript, below, items, st.just(HERE)),
        st.builds(s.List, st.lists(below, max_size=3).map(tuple), st.just(HERE)),
        st.builds(s.Tuple, st.lists(below, max_size=3).map(tuple), st.just(HERE)),
    )


EXPRESSIONS = st.recursive(st.builds(name, NAMES) | NUMBERS.map(number), compounds, max_leaves=12)
NOT_TUPLE = EXPRESSIONS.filter(lambda node: not isinstance(node, s.Tuple))
EXPECTED = st.none() | st.sampled_from(["kink", "fail", "undefined", "inconclusive"])


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_expressions_survive(tree: s.Expression) -> None:
    (statement,) = parse(unparse(tree)).statements
    assert isinstance(statement, s.ExpressionStatement)
    assert s.same(statement.value, tree)
    assert unparse(statement.value) == unparse(tree)


def lines(below: st.SearchStrategy[Any], function: bool) -> st.SearchStrategy[Any]:
    """Statements that may stand in a block."""
    assign = st.builds(
        lambda target, value, operator: s.Assign((name(target),), value, operator, None, False, HERE),
        NAMES,
        EXPRESSIONS,
        st.sampled_from([None, "+", "**", "@"]),
    )
    pair = st.builds(lambda value: s.Assign((name("a"), name("b")), value, None, None, False, HERE), EXPRESSIONS)
    claim = st.builds(s.Assert, EXPRESSIONS, st.none() | st.floats(1e-12, 1e3), EXPECTED, st.just(HERE))
    output = st.builds(s.ExpressionStatement, EXPRESSIONS, st.just(HERE))
    found = assign | pair | claim | output
    if function:
        found |= st.builds(s.Return, EXPRESSIONS, st.just(HERE))
    return found | below if below is not None else found


def blocks(function: bool) -> st.SearchStrategy[Any]:
    def extend(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        body = st.lists(below, min_size=1, max_size=3).map(tuple)
        bounds = st.lists(EXPRESSIONS, min_size=1, max_size=3).map(tuple)
        loop = st.builds(lambda i, b, inner: s.For(name(i), b, inner, HERE), NAMES, bounds, body)
        branch = st.builds(s.If, EXPRESSIONS, body, st.just(()) | body, st.just(HERE))
        return loop | branch

    return st.recursive(lines(None, function), extend, max_leaves=5)  # type: ignore[arg-type]


def top() -> st.SearchStrategy[Any]:
    function = st.builds(
        lambda body, rule, value: s.FunctionDef(
            name("f"), rule, (name("a"), name("ct")), (*body, s.Return(value, HERE)), HERE
        ),
        st.lists(blocks(True), max_size=3).map(tuple),
        st.sampled_from([None, "vjp"]),
        EXPRESSIONS,
    )
    sizes = st.lists(st.builds(name, NAMES) | st.just(number("3")), min_size=1, max_size=2).map(tuple)
    interval = st.builds(
        lambda low, high, a, b: s.Domain("interval", low, high, a, b, HERE),
        EXPRESSIONS,
        EXPRESSIONS,
        st.booleans(),
        st.booleans(),
    )
    word = st.sampled_from(["real", "positive", "nonnegative", "unit", "symmetric"])
    domain = interval | word.map(lambda kind: s.Domain(kind, None, None, False, False, HERE))
    declare = st.builds(
        s.Declare, st.builds(name, NAMES), st.none() | sizes, domain, st.none() | EXPRESSIONS, st.just(HERE)
    )
    constant = st.builds(
        lambda target, value: s.Assign((name(target),), value, None, None, True, HERE), NAMES, EXPRESSIONS
    )
    return blocks(False) | function | declare | constant


@settings(max_examples=60, deadline=None)
@given(st.lists(top(), min_size=1, max_size=4), st.none() | st.sampled_from(["fail", "error GC301"]))
def test_scripts_survive(statements: list[s.Statement], expect: str | None) -> None:
    text = "\n".join(map(unparse, statements))
    script = parse(text if expect is None else f"# expect: {expect}\n{text}")
    assert script.expect == expect
    assert len(script.statements) == len(statements)
    for found, wanted in zip(script.statements, statements, strict=True):
        assert s.same(found, wanted), unparse(wanted)
    again = parse(unparse(script))
    assert s.same(again, script)
    assert unparse(again) == unparse(script)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["w", "W1"]), st.lists(NUMBERS.map(number), min_size=1, max_size=2), EXPRESSIONS)
def test_shapes_survive(target: str, sizes: list[s.Number], value: s.Expression) -> None:
    shape = tuple(size for size in sizes if size.ratio[0]) or (number("2"),)
    tree = s.Assign((name(target),), value, None, shape, False, HERE)
    assert s.same(parse(unparse(tree)).statements[0], tree)


def test_remarks_survive() -> None:
    text = "assert x == y  # rtol=1e-08  # expect: kink\nx  # expect: undefined"
    assert unparse(parse(text)) == text
