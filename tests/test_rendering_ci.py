"""Reports for build servers: well-formed XML whatever the user wrote, and log commands that cannot be forged."""

from __future__ import annotations

from xml.etree import ElementTree

import handmade

from gradcli.rendering.ci import github, junit

HOSTILE = handmade.report(
    handmade.check(
        "DISAGREES",
        False,
        leaf="w<&>\"'",
        file='a"b\x00\x1b\ufffe.grad',
        line=3,
        message="not\x0bright ]]> <!-- &amp; \ud800",
        evidence={"text\x01": ["one\x02", "two"]},
    ),
    handmade.check("ERROR", False, message="could not be run"),
    file='a"b\x00.grad',
)


def test_junit_counts() -> None:
    root = ElementTree.fromstring(junit([handmade.good, handmade.bad]))
    assert root.attrib == {
        "name": "gradcli check",
        "tests": "6",
        "failures": "2",
        "errors": "0",
        "skipped": "1",
    }
    assert [suite.get("name") for suite in root] == ["(x*y + x)**2", "models/loss.grad"]
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "DISAGREES"
    assert "counterexample: at       w = 0.5, b = -1.0" in (failure.text or "")


def test_junit_is_xml_whatever_the_text() -> None:
    root = ElementTree.fromstring(junit([HOSTILE]).encode())
    assert len(root.findall("testsuite/testcase/error")) == 1
    case = root.find("testsuite/testcase")
    assert case is not None
    assert case.get("line") == "3"
    assert case.get("name") == "gradient w<&>\"' line 3"


def test_github_annotations() -> None:
    lines = list(github([handmade.bad]))
    assert lines[0] == (
        "::error file=models/loss.grad,line=9,title=gradcli DISAGREES::"
        "DISAGREES claim w: the claim is 1.5 times the derivative"
    )
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::warning"]
    many = handmade.report(*[handmade.check("KINK", False)] * 12, handmade.check("DISAGREES", False))
    shown = list(github([many]))
    assert len(shown) == 11
    assert "DISAGREES" in shown[0]
    assert "3 more" in shown[-1]


def test_github_commands_cannot_be_forged() -> None:
    forged = handmade.report(
        handmade.check("DISAGREES", False, file="a\n::set-env name=x::y,z", message="50%\n::warning::x")
    )
    (line,) = github([forged])
    assert line.count("::") == 2
    assert "\n" not in line
