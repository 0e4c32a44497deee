"""Directives, `# gradcli: ...`: where they hold, what they change, what they must not change, and what is an error."""

from __future__ import annotations

from time import monotonic

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import Check, Report, check_script
from gradcli.checks.oracle import oracle_client
from gradcli.language import parse
from gradcli.language.comments.directives import longest_timeout


def by_id(script: str, **options: object) -> dict[str, Check]:
    return {one.id: one for one in check_script(script, **options).checks}


def codes(script: str) -> list[tuple[str, str]]:
    """The codes and underlined texts of the errors of a script."""
    with pytest.raises(GradcliError) as caught:
        parse(script)
    found = []
    for one in caught.value.diagnostics:
        assert one.span is not None and one.help
        found.append((one.code, script.splitlines()[one.span.line - 1][one.span.column - 1 : one.span.end_column - 1]))
    return found


# --- where a directive holds ------------------------------------------------------------------------------

PLACES = """\
# gradcli: samples=4
x = 2
# gradcli: samples=5

# gradcli: samples=6
# another comment
assert grad(x**2, x) == 2*x
assert grad(x**3, x) == 3*x**2  # gradcli: samples=7
y = (x**2
     # gradcli: samples=8
     + x)
y
"""


def test_a_directive_belongs_to_the_file_to_the_statement_below_it_or_to_its_own() -> None:
    found = parse(PLACES).directives
    assert [(one.line, one.first, one.last) for one in found] == [
        (1, 0, 0), (3, 3, 3), (5, 7, 7), (8, 8, 8), (10, 9, 11),
    ]  # fmt: skip
    warned = [one.span.line for one in parse(PLACES).diagnostics if one.code == "GC135" and one.span]
    assert warned == [3, 10]


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("for i in range(2):  # gradcli: samples=2\n    assert x == x\nx", (1, 2)),
        ("x = 2\nfor i in range(2):\n    assert x == x  # gradcli: samples=2\nx", (3, 3)),
        ("def f(a): return a**2\ndef f.vjp(a, ct):  # gradcli: samples=2\n    return ct*2*a\nx = 2\nf(x)", (2, 3)),
        ("def f(a): return a**2\ndef f.vjp(a, ct): return ct*2*a  # gradcli: samples=2\nf(x)", (2, 2)),
        ("x = 2; assert x == x; x**2  # gradcli: samples=2", (1, 1)),
        ("x = 2\nsum([x,\n  x])  # gradcli: samples=2", (2, 3)),
    ],
)
def test_a_directive_of_a_block_holds_for_all_its_lines(script: str, lines: tuple[int, int]) -> None:
    (one,) = parse(script).directives
    assert (one.first, one.last) == lines
    assert not parse(script).diagnostics


def test_text_in_quotes_is_no_directive() -> None:
    script = "X = 2  # write `# gradcli: nonsense=1` here\nX**2  # see page#gradcli:x"
    assert parse(script).directives == ()


def test_many_directives_are_placed_in_time() -> None:
    """Neither the statements nor the comments may be walked for every directive."""
    above = parse("x = 2\n" + "#gradcli:rtol=1\n" * 4_000 + "x")
    assert {(one.first, one.last) for one in above.directives} == {(4_002, 4_002)}
    behind = parse("x\n" + "x #gradcli:rtol=1\n" * 3_300 + "x")
    assert len({one.first for one in behind.directives}) == 3_300


def test_the_longest_timeout_of_a_text() -> None:
    script = "# gradcli: samples=3, timeout=7\nx = 2\nx**2  #gradcli: timeout = 90.5, rtol=1\n# timeout=1000"
    assert longest_timeout(script) == 90.5
    assert longest_timeout("x = 2  # gradcli: timeout=a\n") == 0.0


# --- what it changes --------------------------------------------------------------------------------------

WIDE = "x = 0.9\nassert grad(sin(2*x), x) == 2.001*cos(2*x){}\nassert grad(sin(2*x), x) == 2.001*cos(2*x)\nx"


def test_a_tolerance_holds_for_its_claim_only() -> None:
    found = by_id(WIDE.format("  # gradcli: rtol=1e-3"))
    assert (found["claim:2"].verdict, found["claim:3"].verdict) == ("CERTIFIED", "DISAGREES")
    assert found["claim:2"].evidence["rtol"] == 1e-3


@pytest.mark.parametrize(
    ("head", "line", "verdict"),
    [
        ("# gradcli: rtol=1e-3\n", "", "CERTIFIED"),
        ("# gradcli: rtol=1e-3\n", "  # rtol=1e-6", "DISAGREES"),
        ("# gradcli: rtol=1e-3\n", "  # gradcli: rtol=1e-6", "DISAGREES"),
        ("# gradcli: rtol=1e-6\n", "  # gradcli: rtol=1e-3", "CERTIFIED"),
        ("", "  # rtol=1e-6  # gradcli: rtol=1e-3", "CERTIFIED"),
    ],
)
def test_the_nearest_tolerance_counts(head: str, line: str, verdict: str) -> None:
    script = f"{head}x = 0.9\nassert grad(sin(2*x), x) == 2.001*cos(2*x){line}\nx"
    assert next(one for one in check_script(script).checks if one.kind == "claim").verdict == verdict


def test_points_and_seed() -> None:
    def points(script: str) -> object:
        return by_id(script, samples=1, prove=False)["claim:3"].evidence["points"]

    script = "{}\nx = 2\nassert grad(x**2, x) == 2*x{}\nx"
    assert points(script.format("", "")) == 2
    assert points(script.format("# gradcli: samples=4", "")) == 5
    assert points(script.format("# gradcli: samples=4", "  # gradcli: points=0")) == 1
    seeded = by_id("# gradcli: seed=7\nx = 2\nx**2", seed=8)
    assert seeded["gradient:x"].evidence["seed"] == 7


def test_dtype_of_a_file() -> None:
    script = "{}\nx = 1e-4\n(1 - cos(x))/x**2"
    found = [
        by_id(script.format("#"), seed=3)["gradient:x"],
        by_id(script.format("#"), seed=3, dtype="float32")["gradient:x"],
        by_id(script.format("# gradcli: dtype=float32"), seed=3)["gradient:x"],
        by_id(script.format("# gradcli: dtype=float64"), seed=3, dtype="float32")["gradient:x"],
    ]
    double, single, asked, back = [one.evidence for one in found]
    assert double != single
    assert (asked, back) == (single, double)


def test_a_timeout_is_that_of_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    begin = oracle_client.Exact.begin

    def spied(self: oracle_client.Exact) -> None:
        begin(self)
        seconds.append(round(self.end - monotonic()))

    monkeypatch.setattr(oracle_client.Exact, "begin", spied)
    check_script("# gradcli: timeout=30\nx = 2\nassert grad(x**2, x) == 2*x  # gradcli: timeout=7\nx**2", timeout=20)
    assert seconds == [30, 7]  # of the gradient, the claim


KINKED = "x = 0\nabs(x){}"


def test_allow_kink() -> None:
    assert not by_id(KINKED.format(""))["gradient:x"].passed
    assert by_id(KINKED.format("  # gradcli: allow-kink"))["gradient:x"].passed
    assert by_id("# gradcli: allow_kink\n" + KINKED.format(""))["gradient:x"].passed


def imprecise(head: str = "", line: str = "", **options: object) -> Report:
    """A script whose gradient loses its digits: IMPRECISE."""
    report = check_script(f"{head}x = 1e-9\n(1 - cos(x))/x{line}", **options)
    assert [one.verdict for one in report.checks] == ["IMPRECISE"]
    return report


def test_a_script_may_require_more_than_the_caller_but_not_less() -> None:
    assert imprecise().checks[0].passed
    assert not imprecise("# gradcli: require=precise\n").checks[0].passed
    assert not imprecise(line="  # gradcli: require=precise").checks[0].passed
    assert not imprecise("# gradcli: require=certified\n", require="precise").checks[0].passed
    assert not imprecise("# gradcli: require=precise\n", require="certified").checks[0].passed


def test_what_permits_more_than_the_caller_requires_is_named() -> None:
    loose = imprecise(line="  # gradcli: ignore[GC802] known to lose digits", require="precise")
    assert loose.checks[0].passed
    assert [one.code for one in loose.diagnostics] == ["GC727"]
    assert "--require precise" in loose.diagnostics[0].message
    assert [one.code for one in check_script("x = 2\nx**2  # gradcli: rtol=1e-3", require="certified").diagnostics] == [
        "GC727"
    ]
    assert check_script("x = 2\nx**2  # gradcli: rtol=1e-3").diagnostics == ()


# --- suppressions -----------------------------------------------------------------------------------------


def test_a_suppressed_check_passes_and_keeps_its_verdict() -> None:
    report = check_script(KINKED.format("  # gradcli: ignore[GC803] the corner, on purpose"))
    (one,) = report.checks
    assert (one.verdict, one.passed, one.evidence["suppressed"]) == ("KINK", True, "the corner, on purpose")
    assert report.summary["passed"] == 1 and report.summary["failed"] == 0
    assert report.diagnostics == ()


@pytest.mark.parametrize(
    ("script", "passed"),
    [
        ("x = 2\nassert grad(x**2, x) == x  # gradcli: ignore[GC412] a slip\nx", True),
        ("x = 2\nassert grad(x**2, x) == x  # gradcli: ignore[GC801] a slip\nx", True),
        ("x = 2\nassert grad(x**2, x) == x  # gradcli: ignore[GC803] no kink\nx", False),
        ("x = 2\nassert grad(x**2, x) == x\nx  # gradcli: ignore[GC801] another line", False),
        ("# gradcli: ignore[GC801, GC803] all of it\nx = 2\nassert grad(x**2, x) == x\nx", True),
        ("x = 2\nassert grad(x**2, x) == 2*x  # expect: fail  # gradcli: ignore[GC810] not yet\nx", True),
    ],
)
def test_a_suppression_covers_its_codes_on_its_line(script: str, passed: bool) -> None:
    report = check_script(script)
    assert all(one.passed for one in report.checks) == passed
    unused = [one for one in report.diagnostics if one.code == "GC811"]
    assert bool(unused) == (not passed or "GC803" in script)
    assert all(one.severity == "warning" and one.span and one.source for one in unused)


def test_a_suppression_does_not_reach_a_claim_of_the_command_line() -> None:
    script = "x = 2; x**2  # gradcli: ignore[GC801] its own line"
    report = check_script(script, claims={"x": "x"})
    assert [(one.kind, one.passed) for one in report.checks] == [("gradient", True), ("claim", False)]


# --- errors -----------------------------------------------------------------------------------------------

ERRORS = [
    ("rtoll=1e-6", "rtoll=1e-6"),
    ("rtol=0", "rtol=0"),
    ("rtol=nan", "rtol=nan"),
    ("rtol=inf", "rtol=inf"),
    ("samples=-1", "samples=-1"),
    ("samples=99999999999999999999", "samples=99999999999999999999"),
    ("samples=5, timeout=0", "timeout=0"),
    ("samples=2, points=3", "points=3"),
    ("require=all", "require=all"),
    ("allow-kink=yes", "allow-kink=yes"),
    ("ignore[GC803]", "ignore[GC803]"),
    ("ignore[GC808] it does not parse", "ignore[GC808] it does not parse"),
    ("ignore[803] a kink", "ignore[803] a kink"),
    ("ignore", "ignore"),
    ("", "# gradcli:"),
    ("samples=3,", "# gradcli: samples=3,"),
    ("dtype=float32", "# gradcli: dtype=float32"),
    ("seed=3", "# gradcli: seed=3"),
]


@pytest.mark.parametrize(("text", "underlined"), ERRORS)
def test_a_slip_in_a_directive_is_an_error(text: str, underlined: str) -> None:
    assert codes(f"x = 2\nx**2  # gradcli: {text}".rstrip()) == [("GC134", underlined)]


def test_all_slips_are_reported_at_once_with_other_errors() -> None:
    found = codes("x = 2\nassert x == x  # gradcli: rtol=a, sampels=1\nx y  # gradcli: seed=1\nx  # gradcli: nonsense")
    assert [code for code, _ in found] == ["GC134", "GC134", "GC114", "GC134", "GC134"]


def test_the_nearest_key_is_proposed() -> None:
    with pytest.raises(GradcliError) as caught:
        parse("x**2  # gradcli: timout=3")
    assert caught.value.diagnostics[0].help == "did you mean `timeout`?"


def test_a_script_without_directives_is_judged_as_before() -> None:
    """The text of a comment has no part in a report but the seed."""
    plain = check_script("x = 2\nx**2  # a comment", seed=1)
    assert plain == check_script("x = 2\nx**2  # gradcli: samples=3", seed=1)
