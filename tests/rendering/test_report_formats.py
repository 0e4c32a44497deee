"""Every report format stays valid whatever the user wrote: each is read back by a reader that knows its specification.

A reader raises AssertionError for a text that is not valid, and returns how many failed checks the text shows. Readers
share no code with the writers, except for `visible`, which says how a character that nothing draws is written.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from gradcli import checks
from gradcli.base.codes.verdict_codes import VERDICT_CODES
from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.checks.report import VERDICTS
from gradcli.language import read_source
from gradcli.rendering import machine
from gradcli.rendering.formats import WRITERS, writer, written
from gradcli.rendering.formats.issues import BY_CODE, RULES, issues, posix, rule_of
from gradcli.rendering.safe_text import visible
from tests.rendering.test_schema import validator
from tests.support import handmade
from tests.support.report_views import commands_in
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMAS = Path(__file__).parents[1] / "schemas"


def text_of(name: str, *reports: Any, stopped: str = "", selected: int = 0) -> str:
    totals = handmade.totals(*reports, stopped=stopped, selected=selected)
    return written(writer(name), reports, totals)


def drawn(value: Any) -> None:
    """Every string in plain data consists of characters that a screen draws."""
    if isinstance(value, str):
        assert value.isprintable(), ascii(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            drawn(key)
            drawn(item)
    elif isinstance(value, list):
        for item in value:
            drawn(item)


# --- readers -------------------------------------------------------------------------------------------------


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / name).read_text()))


MARKDOWN = MarkdownIt("commonmark").enable("table")
SARIF, CODE_QUALITY = schema("sarif.json"), schema("code-quality.json")

# junit-10.xsd of Jenkins' xUnit plugin, as far as it knows what is written here: required attributes, optional ones,
# children, and whether there may be text
JUNIT: dict[str, tuple[set[str], set[str], set[str], bool]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}, False),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "group"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        False,
    ),
    "properties": (set(), set(), {"property"}, False),
    "property": ({"name", "value"}, set(), set(), False),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
        False,
    ),
    "failure": (set(), {"type", "message"}, set(), True),
    "error": (set(), {"type", "message"}, set(), True),
    "skipped": (set(), {"type", "message"}, set(), True),
}
SUREFIRE_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")


def read_junit(text: str) -> int:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children, textual = JUNIT[element.tag]
        assert required <= set(element.attrib) <= required | optional
        assert {child.tag for child in element} <= children
        assert textual or not (element.text or "").strip()
        assert all(
            line.isprintable() for value in [*element.attrib.values(), element.text or ""] for line in lines(value)
        )
        assert SUREFIRE_TIME.fullmatch(element.get("time", ""))
    for suite in [root, *root]:
        tags = Counter(child.tag for case in suite.iter("testcase") for child in case)
        assert int(suite.get("tests", "")) == len(list(suite.iter("testcase")))
        assert int(suite.get("failures", "")) == tags["failure"]
        assert int(suite.get("errors", "")) == tags["error"]
        assert suite.get("skipped") in (None, str(tags["skipped"]))
    messages = [child.get("message", "") for case in root.iter("testcase") for child in case]
    return sum(not message.startswith("accepted by the baseline") for message in messages)


def lines(text: str) -> list[str]:
    return text.split("\n")


GROUPS = ("passed", "accepted", "failed", "inconclusive")


def read_json(text: str) -> int:
    payload = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert sum(payload["summary"].get(word, 0) for word in GROUPS) == len(payload["checks"])
    return sum(not one["passed"] for one in payload["checks"])


def read_sarif(text: str) -> int:
    log = json.loads(text)
    SARIF.validate(log)
    drawn(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0].get("physicalLocation", {}).get("artifactLocation")
        if place:
            assert ("uriBaseId" in place) != place["uri"].startswith("file:///")
            assert place.get("uriBaseId", "%SRCROOT%") in run["originalUriBaseIds"]
            assert not re.match(r"[^/]*:", place["uri"]) or place["uri"].startswith("file:///")  # no scheme but this
    prints = [tuple(one["partialFingerprints"].items()) for one in run["results"]]
    assert len(set(prints)) == len(prints)
    return sum("suppressions" not in one for one in run["results"])


def read_gitlab(text: str) -> int:
    found = json.loads(text)
    CODE_QUALITY.validate(found)
    drawn(found)
    prints = [one["fingerprint"] for one in found]
    assert len(set(prints)) == len(prints)
    return sum(one["check_name"] != "incomplete" for one in found)


COMMAND = re.compile(r"::(error|warning|notice) ([^:]*?)::(.*)")


def read_github(text: str) -> int:
    """The runner splits at the first `::` behind the command, then at commas and the first equals sign."""
    shown = 0
    for line in text.splitlines():
        found = COMMAND.fullmatch(line)
        assert found and line.isprintable(), ascii(line)
        assert "::" not in found[3]
        properties = dict(one.split("=", 1) for one in found[2].split(","))
        assert set(properties) <= {"file", "line", "col", "title"}
        assert all(properties.get(name, "1").isdigit() for name in ("line", "col"))
        for value in (*properties.values(), found[3]):
            assert not re.sub("%(25|0A|0D|3A|2C)", "", value).count("%")
        shown += properties["title"] != "gradcli"
    return shown


def read_markdown(text: str) -> int:
    """Two tables at most, and in them no HTML, link, emphasis or mention."""
    tokens = MARKDOWN.parse(text)
    assert all(line.isprintable() for line in text.splitlines())
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
    assert kinds <= {"heading", "paragraph", "inline", "table", "thead", "tbody", "tr", "th", "td"}, kinds
    inner = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inner} <= {"text", "code_inline", "strong_open", "strong_close"}
    assert not any(re.search(r"@\w", child.content) for child in inner if child.type == "text")
    tables: list[int] = []
    for token in tokens:
        if token.type == "table_open":
            tables.append(0)
        elif token.type == "tr_open":
            tables[-1] += 1
    cells = Counter(len(re.split(r"(?<!\\)\|", line)) - 2 for line in text.splitlines() if line.startswith("|"))
    assert sorted(cells) == [2, 4][: len(tables)]  # a reader drops cells that a row has too many
    return tables[1] - 1 if len(tables) == 2 else 0


POINT = re.compile(r"(not )?ok ([0-9]+) - (.*)")
UNESCAPED_HASH = re.compile(r"(?<!\\)(?:\\\\)*#")
YAML_LINE = re.compile(r'  [a-z]+: ("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"|[0-9]+|GC8[0-9]{2})')


def read_tap(text: str) -> int:
    """A reader of versions 13 and 14: no line of it may be `anything else`."""
    first, *rest, last, end = text.split("\n")
    assert (first, end) == ("TAP version 13", "")
    assert text.replace("\n", "").isprintable()
    number = failed = 0
    state = ""
    for line in rest:
        if state == "yaml":
            assert line == "  ..." or YAML_LINE.fullmatch(line), line
            state = "" if line == "  ..." else state
        elif state == "failed" and line == "  ---":
            state = "yaml"
        else:
            point = POINT.fullmatch(line)
            assert point, line
            number += 1
            assert int(point[2]) == number
            described, *directive = re.split(r"\s#\s(?=SKIP |TODO )", point[3])
            assert not any(map(UNESCAPED_HASH.search, [described, *directive]))
            known = bool(point[1] and directive)  # a TODO is known to fail
            state = "failed" if point[1] and not known else ""
            failed += bool(point[1] or directive) and not known
    assert state != "yaml"
    if last.startswith("Bail out! "):
        return failed
    assert last == (f"1..{number}" if number else "1..0 # SKIP nothing to check")
    return failed


CONCISE = re.compile(r"(?P<path>.+?):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*): (?P<code>GC8[0-9]{2}) [A-Z]+ .*")


def read_concise(text: str) -> int:
    found = text.splitlines()
    if found and found[-1].startswith("incomplete: "):
        found.pop()
    for line in found:
        assert CONCISE.fullmatch(line) and line.isprintable(), ascii(line)
    return len(found)


def read_csv(text: str) -> int:
    """CSV whose rows have a cell for each title; no cell starts a formula."""
    titles, *found = csv.reader(io.StringIO(text, newline=""))
    assert titles[:2] == ["id", "file"]
    for row in found:
        assert len(row) == len(titles)
        assert not any(cell[:1] in ("=", "+", "@") for cell in row)
    return sum(row[titles.index("passed")] == "false" for row in found)


def read_jsonl(text: str) -> int:
    """An object a line, the last one with the counts."""
    *found, last = map(json.loads, text.splitlines())
    assert all(one["command"] == "check" for one in (*found, last))
    assert sum(last["summary"].get(word, 0) for word in GROUPS) == len(found)
    return sum(not one["passed"] for one in found)


READERS: dict[str, Callable[[str], int]] = {
    "concise": read_concise,
    "csv": read_csv,
    "github": read_github,
    "github-summary": read_markdown,
    "gitlab": read_gitlab,
    "json": read_json,
    "jsonl": read_jsonl,
    "junit": read_junit,
    "markdown": read_markdown,
    "sarif": read_sarif,
    "tap": read_tap,
}

# --- what all formats have in common -------------------------------------------------------------------------

EVERY = handmade.report(
    *(handmade.check(word, word == "PROVED", leaf=word, file="a.grad") for word in VERDICTS),
    handmade.check("DISAGREES", True, file="a.grad", line=3, leaf="s", evidence={"suppressed": "known, see #12"}),
    handmade.check("KINK", True, file="a.grad", line=4, leaf="b", evidence={"baseline": "k.json"}),
    handmade.check("DISAGREES", False, file="a.grad", line=5, kind="expectation", message="5, not 4"),
    file="a.grad",
)
RUNS = {
    "nothing": (),
    "passed": (handmade.good,),
    "several": (handmade.good, handmade.bad),
    "every verdict": (EVERY, handmade.bad),
    "one expression": (handmade.report(handmade.check("KINK", False, diagnostics=(handmade.NOTE,))),),
}


def test_every_format_has_a_reader() -> None:
    assert set(READERS) == set(WRITERS)


@all_rows("name", WRITERS)
@all_rows("run", RUNS)
@all_rows("stopped", ["", "first failure"])
def test_a_report_is_valid_and_shows_every_failed_check(name: str, run: str, stopped: str) -> None:
    reports = RUNS[run]
    failed = sum(not one.passed for report in reports for one in report.checks)
    shown = READERS[name](text_of(name, *reports, stopped=stopped))
    assert shown == (min(failed, 10 - bool(stopped)) if name == "github" else failed)


FRAGMENTS = [
    "x", "\x00", "\x1b[31m", "\x7f", "\u202e", "\u200b", "\n", "\r\n", "\u2028", "\x0b", "\t", " ", "]]>", "<!--", "-->", '"', "'", "`",
    "``", "|", "\\", "::error::", "##[error]", "##vso[task.x]", "##teamcity[x", "%0A", "%", "{0}", "](javascript:x)", "[a](b)", "![a](b)", "=1+1", "-x", "@user",
    "+", "#", " # SKIP ", "<b>", "&lt;", "...", "---", "\nBail out!", "\nok 1", "1..5", "x" * 300, "\udcff", "\ud800", "\ufffe",
    "\U0001f600", "é", ",", ":", "$x$", "~~", "__", "*", "{", "}", "a.grad", "http://x.y",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(FRAGMENTS) | st.characters(), min_size=1, max_size=4).map("".join)
PATHS = HOSTILE.filter(posix)


@st.composite
def hostile_reports(draw: Callable[..., Any]) -> list[Any]:
    """Reports in which every text is one that nobody wants."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        file = draw(st.none() | PATHS)
        spans = st.none() | st.just(Span(2, 3, 2, 9))
        cases = [
            handmade.check(
                draw(st.sampled_from(VERDICTS)),
                draw(st.booleans()),
                id=draw(HOSTILE),
                file=file,
                line=draw(st.none() | st.integers(1, 99)),
                leaf=draw(st.none() | HOSTILE),
                kind=draw(st.sampled_from(("gradient", "claim", "expectation"))),
                message=draw(st.just("") | HOSTILE),
                expected=draw(st.none() | HOSTILE),
                evidence=draw(
                    st.dictionaries(
                        st.sampled_from(("suppressed", "baseline", "claim", "wéird\n")), HOSTILE, max_size=2
                    )
                ),
                diagnostics=(Diagnostic("GC410", draw(HOSTILE), draw(spans)),),
            )
            for _ in range(draw(st.integers(0, 2)))
        ]
        found.append(handmade.report(*cases, expression=draw(HOSTILE), file=file))
    names = [one.file or one.expression for one in found]
    return found if len(set(map(posix, names))) == len(names) else found[:1]


@settings(max_examples=60, deadline=None)
@given(hostile_reports())
@example(
    [handmade.report(handmade.check("DISAGREES", False, evidence={"claim": "\n ::error::", "suppressed": "\n::x::"}))]
)
def test_no_text_of_a_user_breaks_a_format(reports: list[Any]) -> None:
    failed = sum(not one.passed for report in reports for one in report.checks)
    for name, reader in READERS.items():
        text = text_of(name, *reports)
        assert reader(text) == failed, name
        assert name == "github" or not commands_in(text), name


HARD = handmade.report(
    handmade.check(
        "DISAGREES",
        False,
        file="a\n|b\u202e\x1b::error::#.grad",
        line=3,
        leaf="`w|\u200b",
        message="\x00 # <!-- ]]> | @user ##[error]\n::error::x\u202e",
        evidence={"claim": "]]>\x01"},
    ),
    file="a\n|b\u202e\x1b::error::#.grad",
)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"csv", "json", "jsonl", "github-summary"}))
def test_a_writer_that_neutralises_nothing_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers can fail: without `visible` none of them accepts a hard case, with it all do."""
    assert READERS[name](text_of(name, HARD)) == 1
    monkeypatch.setattr(f"{WRITERS[name][0]}.visible", str)
    with pytest.raises((AssertionError, ElementTree.ParseError, UnicodeError)):
        READERS[name](text_of(name, HARD))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("markdown", "gradcli.rendering.formats.markdown.escaped"),
        ("markdown", "gradcli.rendering.formats.markdown.code_cell"),
        ("tap", "gradcli.rendering.formats.tap.escaped"),
        ("tap", "gradcli.rendering.formats.tap.quoted"),
        ("github", "gradcli.rendering.formats.github.property_value"),
        ("junit", "gradcli.rendering.formats.junit.attribute"),
        ("junit", "gradcli.rendering.formats.junit.content"),
    ],
)
def test_a_writer_that_does_not_escape_is_found_out(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, visible)
    with pytest.raises((AssertionError, ElementTree.ParseError)):
        READERS[name](text_of(name, HARD))


STOPPED: dict[str, Callable[[str], bool]] = {
    "concise": lambda text: text.endswith("incomplete: interrupted: 1 of 9 cases were checked\n"),
    "github": lambda text: text.startswith("::warning title=gradcli::incomplete: interrupted: 1 of 9 "),
    "github-summary": lambda text: "\n**Incomplete:** interrupted: 1 of 9 cases" in text,
    "gitlab": lambda text: json.loads(text)[-1]["check_name"] == "incomplete",
    "jsonl": lambda text: '"complete": false, "stopped": "interrupted"' in text.splitlines()[-1],
    "json": lambda text: json.loads(text).items() >= {"complete": False, "stopped": "interrupted"}.items(),
    "junit": lambda text: ElementTree.fromstring(text).find(".//property[@name='incomplete']") is not None,
    "markdown": lambda text: "\n**Incomplete:** interrupted: 1 of 9 cases" in text,
    "sarif": lambda text: json.loads(text)["runs"][0]["invocations"][0]["executionSuccessful"] is False,
    "tap": lambda text: text.endswith("\nBail out! interrupted: 1 of 9 cases were checked\n") and "\n1.." not in text,
}


@pytest.mark.parametrize("name", STOPPED)
def test_an_incomplete_run_is_marked_and_a_complete_one_is_not(name: str) -> None:
    assert set(STOPPED) == set(WRITERS) - {"csv"}  # which has rows only
    assert STOPPED[name](text_of(name, handmade.bad, stopped="interrupted", selected=9))
    assert "ncomplete" not in text_of(name, handmade.bad)
    assert not STOPPED[name](text_of(name, handmade.bad))


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_keeps_little(name: str) -> None:
    """What a writer remembers does not grow with the number of reports."""
    one = writer(name)
    sizes = []
    for count in range(1500):
        one.part(handmade.bad)
        if count in (499, 1499):
            sizes.append(len(repr(vars(one))))
    assert sizes[1] <= sizes[0] + 20


# --- codes, fingerprints, places -----------------------------------------------------------------------------


def test_every_verdict_has_its_code_and_every_code_its_text() -> None:
    codes = "DISAGREES IMPRECISE KINK BOUNDARY DISCONTINUOUS UNDEFINED INCONCLUSIVE ERROR CRASHED".split()
    assert [RULES[word].code for word in codes] == [f"GC80{number}" for number in range(1, 10)]
    assert sorted(BY_CODE) == list(VERDICT_CODES)
    for word in set(VERDICTS) - set(codes):
        assert rule_of(handmade.check(word, False)).code == "GC810", word
        assert VERDICT_CODES.keys() >= {rule_of(handmade.check(word, True)).code}


def fingerprints(*checks: Any, **fields: Any) -> list[str]:
    return [one.fingerprint for one in issues(handmade.report(*checks, **{"file": "a.grad", **fields}))]


def test_a_fingerprint_depends_on_path_case_and_leaf_only() -> None:
    def claim(line: int, leaf: str = "w", message: str = "", passed: bool = False, kind: str = "claim") -> Any:
        return handmade.check(
            "DISAGREES", passed, id=f"{kind}:{line}", line=line, leaf=leaf, message=message, kind=kind
        )

    (first,) = fingerprints(claim(3))
    assert fingerprints(claim(8, message="off by 2")) == [first]
    assert (
        fingerprints(claim(3), file="./a.grad")
        == fingerprints(claim(3), file=str(Path("a.grad").absolute()))
        == [first]
    )
    others = [*fingerprints(claim(3, "v")), *fingerprints(claim(3), file="b.grad"), *fingerprints(claim(3, kind="vjp"))]
    twice = fingerprints(claim(3), claim(4))
    block = replace(handmade.report(claim(3), file="a.grad"), block=2)
    found = [*others, *twice, *(one.fingerprint for one in issues(block))]
    assert len(set(found)) == len(found) and twice[0] == first
    assert fingerprints(claim(3, passed=True), claim(4)) == twice[1:]  # the other one is mended


def test_a_suppressed_check_is_an_issue_of_sarif_only() -> None:
    (run,) = json.loads(text_of("sarif", EVERY))["runs"]
    told = [one["suppressions"] for one in run["results"] if "suppressions" in one]
    assert told == [
        [{"kind": "inSource", "justification": "known, see #12"}],
        [{"kind": "external", "justification": "accepted by the baseline k.json"}],
    ]
    assert [one.rule.code for one in issues(EVERY) if one.line in (3, 4)] == []


def test_a_region_is_where_the_diagnostic_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "50% ü.grad"
    path.write_text("x = 2\nassert grad(x**2, x) == x\nx**2\n")
    for place in (str(path), f"./{path.name}"):
        report = checks.check_script(read_source(place))
        (result,) = json.loads(text_of("sarif", report))["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"] == {
            "artifactLocation": {"uri": "50%25%20%C3%BC.grad", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 2, "startColumn": 13, "endLine": 2, "endColumn": 17},
        }
        assert text_of("concise", report).startswith(
            "50% ü.grad:2:13: GC801 DISAGREES claim x: the exact derivative is 4"
        )


@pytest.mark.parametrize(
    ("path", "uri", "base"),
    [
        ("a/b.grad", "a/b.grad", True),
        ("a:b?#[1].grad", "a%3Ab%3F%23%5B1%5D.grad", True),
        ("b\udcff.grad", "b%FF.grad", True),
        ("../b.grad", "../b.grad", True),
        ("/elsewhere/b c.grad", "file:///elsewhere/b%20c.grad", False),
    ],
)
def test_a_path_becomes_a_uri_of_its_bytes(path: str, uri: str, base: bool) -> None:
    report = handmade.report(handmade.check("KINK", False, file=path, line=1), file=path)
    (result,) = json.loads(text_of("sarif", report))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": uri, **({"uriBaseId": "%SRCROOT%"} if base else {})}
    assert unquote_to_bytes(uri.removeprefix("file://")) == path.encode("utf-8", "surrogateescape")


# --- one format at a time ------------------------------------------------------------------------------------


def payload(reports: Sequence[Any], notes: Sequence[Diagnostic] = ()) -> dict[str, Any]:
    """The payload of a complete run, field by field as the schema lists them."""
    found = {"schema_version": 1, "command": "check"}
    if len(reports) == 1 and reports[0].expression:
        found["expression"] = reports[0].expression
    found["checks"] = [machine.check_fields(one) for report in reports for one in report.checks]
    counts = {"passed": 0, "failed": 0, "inconclusive": 0}
    for word, count in (item for report in reports for item in report.summary.items()):
        counts[word] = counts.get(word, 0) + count
    found["summary"] = counts
    noted = [one.as_json() for one in [*notes, *(one for report in reports for one in report.diagnostics)]]
    return found | ({"diagnostics": noted} if noted else {})


NOTED = handmade.report(handmade.check("PROVED", True), diagnostics=(handmade.NOTE,), expression="log(x)")


@pytest.mark.parametrize("reports", [*RUNS.values(), (NOTED,), (NOTED, handmade.bad, NOTED)])
@pytest.mark.parametrize("notes", [(), (Diagnostic("GC731", "a setting"),)])
def test_json_is_the_payload_byte_for_byte(reports: Sequence[Any], notes: Sequence[Diagnostic]) -> None:
    text = written(writer("json", notes=notes), reports, handmade.totals(*reports))
    assert text == json.dumps(payload(reports, notes), allow_nan=False) + "\n"


@pytest.mark.parametrize("stopped", ["", "interrupted"])
def test_json_obeys_its_schema(stopped: str) -> None:
    found = json.loads(text_of("json", handmade.good, handmade.bad, stopped=stopped))
    validator("check").validate(found)
    assert ("complete" in found) == bool(stopped)


def test_junit_counts() -> None:
    root = ElementTree.fromstring(text_of("junit", handmade.good, handmade.bad))
    assert root.attrib == {"name": "gradcli check", "tests": "6", "failures": "2", "errors": "0", "time": "1.500"}
    assert [suite.get("time") for suite in root] == ["0.500", "1.000"]
    assert {case.get("time") for case in root.iter("testcase")} == {"0.250"}
    assert [suite.get("name") for suite in root] == ["(x*y + x)**2", "models/loss.grad"]
    assert [suite.get("file") for suite in root] == [None, "models/loss.grad"]
    failure = root.find("testsuite/testcase[@name='claim w line 9']/failure")
    assert failure is not None
    assert failure.get("type") == "DISAGREES"
    assert (failure.text or "").startswith("models/loss.grad:9\n")
    assert "counterexample: at       w = 0.5, b = -1" in (failure.text or "")


def test_junit_text_is_what_was_written() -> None:
    case = ElementTree.fromstring(text_of("junit", HARD)).find("testsuite/testcase")
    assert case is not None
    assert case.get("name") == "gradient `w|\\u200b line 3"
    assert case[0].get("message") == "DISAGREES: " + "\n".join(map(visible, HARD.checks[0].message.split("\n")))


def test_github_annotations() -> None:
    found = text_of("github", handmade.bad).splitlines()
    assert found[0] == (
        "::error file=models/loss.grad,line=9,title=gradcli GC801 DISAGREES::"
        "DISAGREES claim w: the claim is 1.5 times the derivative"
    )
    assert [line.split()[0] for line in found] == ["::error", "::error", "::warning"]
    kinks = handmade.report(*[handmade.check("KINK", False, leaf=str(leaf)) for leaf in range(46)])
    shown = text_of("github", kinks, handmade.report(handmade.check("DISAGREES", False))).splitlines()
    assert len(shown) == 11
    assert "GC801 DISAGREES" in shown[0]
    assert [f"gradient {leaf}:" in line for leaf, line in enumerate(shown[1:10])] == [True] * 9  # in their order
    assert shown[10] == "::notice title=gradcli::and 37 more, which are in the log"


def test_github_commands_cannot_be_forged() -> None:
    path = "a\n::set-env name=x::y,z%0A"
    (line,) = text_of(
        "github", handmade.report(handmade.check("ERROR", False, file=path, message="50%\r\n::x"))
    ).splitlines()
    assert line == (
        "::error file=a%0A%3A%3Aset-env name=x%3A%3Ay%2Cz%250A,title=gradcli GC808 ERROR::"
        "ERROR gradient x: 50%25%0D%0A:%3Ax"
    )


def test_a_step_summary_is_not_too_long() -> None:
    long = [handmade.report(handmade.check("KINK", False, message="é" * 300), file=f"{n}.grad") for n in range(3000)]
    text = text_of("github-summary", *long)
    left = int(text.splitlines()[-1].removeprefix("and ").removesuffix(" more"))
    assert 2**19 < len(text.encode()) < 2**20
    assert read_markdown(text) == 3000 - left > 0
    assert len(text_of("markdown", *long).encode()) > 2**20  # a file of its own has no limit


@pytest.mark.parametrize(
    ("path", "shown"),
    [("::error::x", "./::error::x:1:1: "), (":", "./::1:1: "), (" ::x", "./ ::x:1:1: "), (None, "<expression>:1:1: ")],
)
def test_a_concise_line_is_no_command(path: str | None, shown: str) -> None:
    text = text_of("concise", handmade.report(handmade.check("KINK", False, file=path), file=path))
    assert text.startswith(shown + "GC803 KINK ")


SHOWN = {
    "concise": """\
models/loss.grad:9:1: GC801 DISAGREES claim w: the claim is 1.5 times the derivative
models/loss.grad:4:1: GC803 KINK gradient b: the derivative is not unique at this point
models/loss.grad:1:1: GC807 INCONCLUSIVE gradient c: could not be decided
""",
    "markdown": """\
## gradcli check: 4 checks: 1 passed, 2 failed, 1 inconclusive

| result | checks |
| --- | ---: |
| passed | 1 |
| failed | 2 |
| inconclusive | 1 |
| CERTIFIED | 1 |
| DISAGREES | 1 |
| KINK | 1 |
| INCONCLUSIVE | 1 |

| where | check | verdict | message |
| --- | --- | --- | --- |
| `models/loss.grad:9` | `claim w` | DISAGREES (GC801) | the claim is 1.5 times the derivative |
| `models/loss.grad:4` | `gradient b` | KINK (GC803) | the derivative is not unique at this point |
| `models/loss.grad` | `gradient c` | INCONCLUSIVE (GC807) | could not be decided |
""",
    "tap": """\
TAP version 13
ok 1 - models/loss.grad: gradient w
not ok 2 - models/loss.grad: claim w line 9
  ---
  message: "the claim is 1.5 times the derivative"
  verdict: "DISAGREES"
  code: GC801
  file: "models/loss.grad"
  line: 9
  ...
not ok 3 - models/loss.grad: gradient b line 4
  ---
  message: "the derivative is not unique at this point"
  verdict: "KINK"
  code: GC803
  file: "models/loss.grad"
  line: 4
  ...
ok 4 - models/loss.grad: gradient c # SKIP could not be decided
1..4
""",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_people_read(name: str) -> None:
    assert text_of(name, handmade.bad) == SHOWN[name]


def test_markdown_shows_what_was_written() -> None:
    table = MARKDOWN.parse("| where" + text_of("markdown", HARD).partition("| where")[2])
    cells = ["".join(child.content for child in token.children or ()) for token in table if token.type == "inline"]
    one = HARD.checks[0]
    assert cells[4:] == [
        visible(f"{one.file}:3"),
        visible(f"gradient {one.leaf}"),
        "DISAGREES (GC801)",
        visible(one.message).strip(),
    ]
