"""Expected results, `#> value = 64`: how they are read and compared, `check --update` and `--diff`, `freeze`."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import stat
from pathlib import Path

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import Check, check_script
from gradcli.checks.inline_results import written
from gradcli.interfaces import cli
from gradcli.interfaces.command_parts.written_expectations import updated
from gradcli.language import Source, parse
from gradcli.language.comments.inline_expectations import read_numbers

SCRIPT = "x = [2, 3]\nw = 0.5\nassert grad(sum(x**2), x) == 2*x\nw*sum(x**3)\n"


def expectations(script: str, **options: object) -> list[Check]:
    return [one for one in check_script(script, **options).checks if one.kind == "expectation"]


def ran(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(list(arguments))
    return code, out.getvalue(), err.getvalue()


# --- what is expected, and what is computed ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("#> value = 17.5", "AGREES"),
        ("#>value=17.5", "AGREES"),
        ("#> value = 17.50000001", "AGREES"),
        ("#> value = 17.5000001", "DISAGREES"),
        ("#> value = 17.51  # gradcli: rtol=1e-3", "AGREES"),
        ("#> value = 17.6  # gradcli: rtol=1e-3", "DISAGREES"),
        ("#> value = [17.5]", "DISAGREES"),
        ("#> value = nan", "DISAGREES"),
        ("#> value = inf", "DISAGREES"),
        ("#> value (output 1) = 17.5", "AGREES"),
        ("#> grad x = [6, 13.5]", "AGREES"),
        ("#> grad x = [6, 13.4]", "DISAGREES"),
        ("#> grad x = [6, 13.5, 0]", "DISAGREES"),
        ("#> grad x = 6", "DISAGREES"),
        ("#> grad w = 35", "AGREES"),
        ("#> sum(grad x) = 19.5", "AGREES"),
        ("#> norm(grad x) = 14.773286702694158", "AGREES"),
        ("#> moment(grad x) = 16.5", "AGREES"),
        ("#> moment(grad x) = 12.75", "DISAGREES"),
        ("#> check x = PROVED", "AGREES"),
        ("#> check x = CERTIFIED", "DISAGREES"),
        ("#> check claim 1 = PROVED", "AGREES"),
    ],
)
def test_a_line_is_one_check(line: str, verdict: str) -> None:
    (one,) = expectations(SCRIPT + line, samples=1)
    assert (one.verdict, one.passed, one.line) == (verdict, verdict == "AGREES", 5)
    assert one.evidence["expected"] == line.partition("=")[2].partition("  #")[0].strip()
    assert one.id == "expectation:" + line[2:].partition("=")[0].strip()
    json.dumps(one.evidence, allow_nan=False)


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("x = 0\n1/x", ["value = inf", "grad x = -inf"]),
        ("x = -1\nlog(x)", ["value = nan", "grad x = -1"]),
        ("x = [[1, 2], [3, 4]]\nsum(x**2)", ["grad x = [[2, 4], [6, 8]]"]),
        ("x = 2; y = 3\nx*y, x + y", ["value (output 2) = 5", "grad y (output 1) = 2", "check y (output 2) = PROVED"]),
        ("# gradcli: dtype=complex128\nz = 2\nsum(z*[1, 2])", ["value = 6", "grad z = 3"]),
        (
            "def f(a, b): return a*b\ndef f.vjp(a, b, ct): return (ct*b, ct*a)\nx = 2\nf(x, 3)",
            ["check f.vjp by a = PROVED", "check f.vjp by b = PROVED"],
        ),
        (
            "x = 1\ny = sin(x)  #> the line below is one\n#> value = 0.8414709848078965\ny",
            ["grad x = 0.5403023058681398"],
        ),
    ],
)
def test_other_results(script: str, lines: list[str]) -> None:
    script = script.replace("  #> the line below is one", "")
    found = expectations(script + "".join(f"\n#> {line}" for line in lines))
    assert {one.verdict for one in found} == {"AGREES"}, found
    assert len(found) == script.count("#>") + len(lines)


def test_a_complex_number() -> None:
    script = "# gradcli: dtype=complex128\nz = 2\nreal = z**2\nreal\n#> value = 4\n#> grad z = {}"
    assert expectations(script.format("4"))[1].verdict == "AGREES"
    assert expectations(script.format("4+1j"))[1].verdict == "DISAGREES"
    at = {"z": complex(1, 2)}
    found = expectations("z = 2\nz*z\n#> value = -3+4j\n#> value = -3-4j", at=at, dtype="complex128")
    assert [one.verdict for one in found] == ["AGREES", "DISAGREES"]


def test_entries_that_cancel_agree_to_the_last_digits_of_the_largest() -> None:
    script = "x = 1e8\nx*[1, 0] + [0, 1e-9]\n#> value = [1e8, {}]"
    assert expectations(script.format("1.2e-9"))[0].passed  # less than 64 units in the last place of 1e8
    assert not expectations(script.format("1e-3"))[0].passed
    assert not expectations("x = 0\nx + 1e-9\n#> value = 1.2e-9")[0].passed


def test_a_sum_is_compared_by_the_size_of_its_terms() -> None:
    script = "x = [1, 2, 3]\nsum(x*[1e6, -1e6, 1/3])\n#> sum(grad x) = {}"
    assert expectations(script.format("0.3333"))[0].passed  # 1e-9 of 2e6
    assert not expectations(script.format("0.33"))[0].passed
    unbounded = "x = [0, 1]\nsum(sqrt(x))\n#> sum(grad x) = {}\n#> norm(grad x) = {}"
    assert [one.verdict for one in expectations(unbounded.format("inf", "inf"))] == ["AGREES", "AGREES"]
    assert [one.verdict for one in expectations(unbounded.format("5", "5"))] == ["DISAGREES", "DISAGREES"]


def test_the_tolerance_of_the_output_and_of_the_file() -> None:
    line = "\n#> value = 17.51"
    assert expectations(SCRIPT.strip() + "  # gradcli: rtol=1e-3" + line)[0].passed
    assert expectations("# gradcli: rtol=1e-3\n" + SCRIPT.strip() + line)[0].passed
    assert not expectations("# gradcli: rtol=1e-3\n" + SCRIPT.strip() + line + "  # gradcli: rtol=1e-5")[0].passed


def test_a_leaf_without_value_has_no_result() -> None:
    script = "y**2\n#> value = 9\n#> check y = PROVED"
    assert [one.verdict for one in expectations(script)] == ["INCONCLUSIVE", "AGREES"]
    assert [one.verdict for one in expectations(script, at={"y": 3})] == ["AGREES", "AGREES"]


def test_leaves_that_are_not_asked_for_are_left_out() -> None:
    script = SCRIPT + "#> grad x = [6, 13.5]\n#> grad w = 0\n#> check w = KINK\n#> value = 17.5"
    assert [one.id for one in expectations(script, wrt=["x"])] == ["expectation:grad x", "expectation:value"]


def test_a_suppressed_expectation() -> None:
    report = check_script(SCRIPT + "#> value = 1  # gradcli: ignore[GC801] waits for new data")
    assert report.checks[-1].passed and report.checks[-1].evidence["suppressed"] == "waits for new data"
    report = check_script(SCRIPT + "#> value = 17.5  # gradcli: ignore[GC801] waits for new data")
    assert [one.code for one in report.diagnostics] == ["GC811"]


def test_requirements_do_not_concern_expectations() -> None:
    assert all(one.passed for one in check_script(SCRIPT + "#> value = 17.5", require="certified").checks)


def test_expected_lines_move_no_random_point() -> None:
    bare, more = check_script("y*x**2\n"), check_script("#> check y = PROVED\ny*x**2\n#> check x = PROVED\n")
    assert [one.evidence["seed"] for one in bare.checks] == [one.evidence["seed"] for one in more.checks[:2]]
    assert bare.checks[0].evidence["at"] == more.checks[0].evidence["at"]


def test_a_string_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "#> value = 1.csv").write_text("1,2\n")
    path = tmp_path / "a.grad"
    path.write_text('x = 2\nX = load("#> value = 1.csv")\nx*sum(X)\n')
    assert ran("check", str(path))[0] == 0
    assert parse(path.read_text()).expected == ()


# --- malformed ones ---------------------------------------------------------------------------------------

MALFORMED = [
    "#>", "#> value", "#> valu = 3", "#> value x = 3", "#> grad = 3", "#> grad 3 = 3", "#> value =", "#> value = x",
    "#> value = [1, [2]]", "#> value = [1,, 2]", "#> value = [1", "#> value = 1]", "#> value = 1 2", "#> value = []",
    "#> value = (1", "#> sum(value = 3", "#> sum(value) = [3]", "#> mean(value) = 3", "#> sum(check x) = 3",
    "#> value (output 0) = 3", "#> grad x(output 1 = 3", "#> check x PROVED", "#> value = 3 4j",
]  # fmt: skip
UNKNOWN = [
    ("#> grad v = 3", "there are: x, w"), ("#> check q = PROVED", "there are"), ("#> check x = PROOVED", "did you mean"),
    ("#> value (output 2) = 3", "the script has 1"), ("#> check claim 2 = PROVED", "did you mean"),
]  # fmt: skip


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_line_is_an_error_of_every_command(line: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse(SCRIPT + line)
    (one,) = caught.value.diagnostics
    assert (one.code, one.span and one.span.line) == ("GC136", 5)
    assert one.help


@pytest.mark.parametrize(("line", "hint"), UNKNOWN)
def test_what_the_script_does_not_have_is_an_error_of_check(line: str, hint: str) -> None:
    parse(SCRIPT + line)
    with pytest.raises(GradcliError) as caught:
        check_script(SCRIPT + line)
    (one,) = caught.value.diagnostics
    assert (one.code, one.span and one.span.line) == ("GC136", 5)
    assert hint in (one.help or "")


def test_a_claim_of_the_caller_is_none_of_the_script() -> None:
    script = "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n#> check claim {} = PROVED"
    assert check_script(script.format(1), claims={"x": "2*x"}).checks[-1].passed
    with pytest.raises(GradcliError, match="GC136"):
        check_script(script.format(2), claims={"x": "2*x"})


def test_an_array_has_no_gradient_to_record() -> None:
    with pytest.raises(GradcliError, match="GC136"):
        check_script("x = 2\nx*[1, 2]\n#> grad x = 3")


def test_behind_a_statement_it_is_an_error() -> None:
    with pytest.raises(GradcliError, match="GC136"):
        parse("x = 2\nx**2  #> value = 4")


def test_long_lines_are_read_in_time() -> None:
    """No pattern may take more than linear time in a comment."""
    for filler in (" ", "(", "(output ", "[", "#", "# gradcli", ","):
        with contextlib.suppress(GradcliError):
            parse(f"x = 2\nx\n#> value{filler * (30_000 // len(filler))}z = 3")
        with contextlib.suppress(GradcliError):
            parse(f"x = 2\nx  # gradcli: rtol={filler * (30_000 // len(filler))}z")


# --- numbers as text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        64.0,
        1e22,
        5e-324,
        1 / 3,
        -2.0,
        math.inf,
        -math.inf,
        [1.0, -0.25],
        [[1.5], [2.0]],
        complex(1, -2),
        1e15,
        123456789.5,
    ],
)
def test_numbers_come_back_as_they_were(value: object) -> None:
    assert read_numbers(written(value)) == value


def test_nan_comes_back() -> None:
    found = read_numbers(written([math.nan, 1.0]))
    assert math.isnan(found[0]) and found[1] == 1.0


def test_the_text_of_numbers() -> None:
    assert written([64.0, 0.5, 1e300]) == "[64, 0.5, 1e+300]"
    assert written(complex(0.5, -2)) == "0.5-2.0j"


# --- check --update and --diff ----------------------------------------------------------------------------

FILE = "# café\r\nx = 3\r\n#> value = 8 # gradcli: rtol=1e-6\r\n  #>  grad x=6.0\rx**2\n#> check x = AGREES"


def test_only_values_that_differ_are_rewritten() -> None:
    after = updated(Source(FILE), check_script(FILE))
    assert after == FILE.replace("value = 8 ", "value = 9 ").replace("AGREES", "PROVED")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_update_rewrites_the_file_byte_for_byte(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "a.grad"
    path.write_bytes((mark + FILE).encode())
    path.chmod(0o640)
    code, out, _ = ran("check", str(path), "--diff")
    assert code == 1
    assert path.read_bytes() == (mark + FILE).encode()
    assert re.findall(r"^[-+][^-+].*$", out.replace("\r", "\n"), re.MULTILINE) == [
        "-#> value = 8 # gradcli: rtol=1e-6", "+#> value = 9 # gradcli: rtol=1e-6",
        "-#> check x = AGREES", "+#> check x = PROVED",
    ]  # fmt: skip
    assert "\\ No newline at end of file" in out
    assert ran("check", str(path), "--update")[0] == 0
    expected = FILE.replace("value = 8 ", "value = 9 ").replace("AGREES", "PROVED")
    assert path.read_bytes() == (mark + expected).encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.grad"]
    assert ran("check", str(path), "--diff") == (0, "", "")
    assert ran("check", str(path))[0] == 0


def test_update_of_a_folder_leaves_other_failures(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("x = 3\nx**2\n#> value = 8\n")
    (tmp_path / "b.grad").write_text("x = 3\nassert grad(x**2, x) == x\nx**2\n#> value = 9\n")
    code, _, err = ran("check", str(tmp_path), "--update", "--jobs", "1")
    assert code == 1 and "1 check failed" in err
    assert (tmp_path / "a.grad").read_text() == "x = 3\nx**2\n#> value = 9\n"
    assert (tmp_path / "b.grad").read_text().endswith("#> value = 9\n")


def test_a_file_that_changed_meanwhile_is_not_spoilt() -> None:
    report = check_script("x = 3\nx**2\n#> value = 8\n")
    assert updated(Source("x = 3\nx**2\n#> grad x = 7\n"), report) == "x = 3\nx**2\n#> grad x = 7\n"
    assert updated(Source("x = 3\n"), report) == "x = 3\n"


def test_update_needs_a_file() -> None:
    code, _, err = ran("check", "x**2", "--at", "x=3", "--update")
    assert code == 2 and "GC721" in err


# --- freeze -----------------------------------------------------------------------------------------------

FROZEN = [
    "x = 2\ny = [1, 2]\nx**2*sum(y**3)",
    "x = 2\r\nx**0.5*exp(x)\r\n# the end",
    "W = randn(7, 8, seed=1)\nsum(W**3)\n",
    "def f(a): return a**3\ndef f.vjp(a, ct): return ct*3*a**2\nx = 2\nassert grad(x**2, x) == 2*x\nf(x), [x, 2*x]\n",
    "x = 0\nabs(x)  # gradcli: ignore[GC803] on purpose\n",
    "# gradcli: dtype=float32\nx = 0.1\nsin(x)\n",
    "x**2 + y\n",
    "x = -1\nlog(x)  # gradcli: ignore[GC806] on purpose\n",
]


@pytest.mark.parametrize("script", FROZEN)
def test_a_frozen_script_passes_and_freezing_again_changes_nothing(tmp_path: Path, script: str) -> None:
    path = tmp_path / "a.grad"
    path.write_bytes(script.encode())
    assert ran("freeze", str(path))[0] == 0
    frozen = path.read_bytes()
    assert frozen.startswith(script.encode()) and b"\n#> check" in frozen
    ending = b"\r\n" if b"\r\n" in script.encode() else b"\n"
    assert frozen.endswith(ending) and frozen.count(ending) == frozen.count(b"\n")
    assert ran("check", str(path))[0] == 0
    assert ran("freeze", str(path))[0] == 0
    assert path.read_bytes() == frozen


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.5", "0.50001"), ("x**0.5", "x**0.5*1.00000001"), ("exp(x)", "exp(x) + abs(x - 2)"), ("x = 2", "x = 2.5")],
)
def test_a_change_of_a_frozen_script_fails(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "a.grad"
    path.write_text("x = 2\nx**0.5*exp(x)  # gradcli: allow-kink\n")
    assert ran("freeze", str(path))[0] == 0
    head, mark, rest = path.read_text().partition("#>")
    path.write_text(head.replace(old, new) + mark + rest)
    assert ran("check", str(path))[0] == 1
    assert ran("freeze", str(path))[0] == 0
    assert ran("check", str(path))[0] == 0


def test_moved_entries_of_a_large_array_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_text("W = reshape(arange(64), (8, 8))/7\nsum(W**3)\n")
    assert ran("freeze", str(path))[0] == 0
    assert "#> moment(grad W) = " in path.read_text()
    path.write_text(path.read_text().replace("/7", ".T/7"))
    failing = [one.id for one in check_script(Source(path.read_text())).checks if not one.passed]
    assert failing == ["expectation:moment(grad W)"]


def test_a_script_that_does_not_pass_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_text("x = 1\nassert x == 2*x\nx\n")
    code, _, err = ran("freeze", str(path))
    assert code == 1 and "GC738" in err and "line 2: DISAGREES" in err
    assert path.read_text() == "x = 1\nassert x == 2*x\nx\n"
    code, out, _ = ran("freeze", "--force", "--stdout", str(path))
    assert code == 0 and out.endswith("#> check x = PROVED\n#> check claim 1 = DISAGREES\n")
    assert "#>" not in path.read_text()


def test_lines_elsewhere_and_directives_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    script = "x = 3\n#> grad x = 6\nx**2\n#> grad x = 5  # gradcli: rtol=1e-3\n# between\n#> value = 8\n"
    path.write_text(script)
    assert ran("freeze", str(path))[0] == 0
    assert path.read_text() == (
        "x = 3\n#> grad x = 6\nx**2\n# between\n"
        "#> value = 9\n#> grad x = 6  # gradcli: rtol=1e-3\n#> check x = PROVED\n"
    )


def test_freeze_takes_the_settings_of_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.grad").write_text("x = 0\nabs(x)\n")
    assert ran("freeze", "a.grad")[0] == 1
    (tmp_path / "gradcli.toml").write_text("[check]\nallow = 'kink'\n")
    assert ran("freeze", "a.grad")[0] == 0
    assert "#> check x = KINK\n" in (tmp_path / "a.grad").read_text()


def test_freeze_refuses_what_is_no_script(tmp_path: Path) -> None:
    assert ran("freeze", str(tmp_path))[0] == 2
    assert ran("freeze", str(tmp_path / "missing.grad"))[0] == 2
    (tmp_path / "a.grad").write_text("x +")
    assert ran("freeze", "--force", str(tmp_path / "a.grad"))[0] == 2
