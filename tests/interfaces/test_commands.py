"""What single commands do around their one library call: exit codes of `check`, lines of `batch`, `ops`, `explain`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gradcli
import gradcli.rendering.formats.github  # imported before `rooms` takes the place of what it imports
from gradcli import batch
from gradcli.base.codes import CODES
from gradcli.base.diagnostics import Diagnostic, GradcliError
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.totals import Totals
from gradcli.checks.report import refused
from gradcli.graph.domain import Open
from gradcli.graph.primitive import Kink
from gradcli.interfaces.cli import main
from gradcli.interfaces.command_parts.acceptance import outcome
from gradcli.interfaces.command_parts.check_inputs import claims
from tests.support import handmade
from tests.support.handmade import check, report

BROKEN = Diagnostic("GC112", "unexpected `)`")


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Fakes of the rooms that commands call, in an empty folder; `asked` keeps the calls."""
    asked: list[tuple[Any, ...]] = []
    found = SimpleNamespace(asked=asked, script=handmade.good, paths=[handmade.good, handmade.bad])

    def check_script(source: Any, **told: Any) -> Any:
        asked.append(("check_script", source.text, told))
        return found.script

    def cases(paths: list[str], *patterns: Any, docs: bool) -> list[BatchCase]:
        asked.append(("cases", paths))
        return [BatchCase(one.file or "a.grad") for one in found.paths]

    class Run:
        """A run whose reports are known."""

        def __init__(self, cases: list[BatchCase], options: dict[str, Any], **told: Any) -> None:
            asked.append(("run", options, told))
            self.totals = Totals(selected=len(cases))
            self.opened: set[str] = set()
            self.deliver = told["handling"].deliver

        def reports(self) -> Iterator[Any]:
            for one in found.paths:
                self.deliver(one)
                self.totals.add(one)
                yield one

    def serve(lines: Iterable[str], write: Callable[[Any], None]) -> None:
        for line in lines:
            write(json.dumps({"id": line}))
            write({"id": line, "value": float("nan")})
            write(SimpleNamespace(id=line, outcome=handmade.gradient))

    exponential = SimpleNamespace(
        form="exp(x)",
        name="exp",
        kind="elementwise",
        summary="The exponential.",
        formula="d exp(x) = exp(x)",
        aliases=("e_to_the",),
        domain=(Open(0.0, 1.0),),
        kinks=(Kink(abs, "x = 0", "0"),),
        examples=(("exp(0)", 1.0),),
        internal=False,
        arity=1,
        argument_names=lambda: ("x",),
        partials=lambda x, *, out: (out,),
    )
    hidden = SimpleNamespace(name="hidden", internal=True, aliases=())
    fakes: dict[str, dict[str, Any]] = {
        "gradcli.checks": {"check_script": check_script, "refused": refused},
        "gradcli.primitives": {"catalogue": lambda: {"exp": exponential, "hidden": hidden}},
    }
    compiled = SimpleNamespace(gradient_formula=lambda leaf: "exp(x)")
    monkeypatch.setattr(gradcli, "evaluate", lambda text: SimpleNamespace(value=1.0), raising=False)
    monkeypatch.setattr(gradcli, "compile", lambda text: compiled, raising=False)
    for name, value in {"Run": Run, "find_cases": cases, "serve": serve}.items():
        monkeypatch.setattr(batch, name, value, raising=False)
    for name, content in fakes.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return found


GOOD, WRONG = check("CERTIFIED", True), check("DISAGREES", False)
OPEN, KINK = check("INCONCLUSIVE", False), check("KINK", True)
REFUSED = check("ERROR", False, diagnostics=(BROKEN,))
CRASHED = check("ERROR", False)
EXPECTED = check("ERROR", True, diagnostics=(BROKEN,), expected="error GC112")


@pytest.mark.parametrize(
    ("reports", "strict", "lenient"),
    [
        ([report(GOOD, KINK)], 0, 0),
        ([report(GOOD), report(WRONG)], 1, 1),
        ([report(OPEN), report(GOOD)], 3, 0),
        ([report(OPEN, WRONG)], 1, 1),
        ([report(REFUSED, WRONG, OPEN)], 2, 2),
        ([report(CRASHED, REFUSED)], 4, 4),
        ([report(EXPECTED)], 0, 0),
        ([report(REFUSED), report(WRONG)], 2, 2),
        ([], 5, 5),
        ([report()], 5, 5),
    ],
)
def test_exit_codes_of_check(reports: list[Any], strict: int, lenient: int) -> None:
    totals = Totals.of(reports)
    assert outcome(totals, False)[0] == strict
    assert outcome(totals, True)[0] == lenient
    assert bool(outcome(totals, False)[1]) == bool(strict)


def test_check_of_an_expression(rooms: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["check", "x**2*y", "--claim", "x = 2*x*y", "--claim", "y = x**2", "--at", "x=1", "--seed", "7"]
    assert main([*argv, "--format", "json"]) == 0
    kind, text, told = rooms.asked[0]
    assert (kind, text) == ("check_script", "x**2*y")
    assert told == {
        "at": ("x=1",),
        "wrt": None,
        "dtype": "float64",
        "backend": "auto",
        "limits": None,
        "claims": {"x": "2*x*y", "y": "x**2"},
        "samples": 3,
        "seed": 7,
        "timeout": 60.0,
        "require": None,
        "allow_kink": False,
        "lenient": False,
        "steps": False,
        "box": {},
        "dodge": False,
        "witnesses": "none",
    }
    answer = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in answer["checks"]] == ["CERTIFIED", "PROVED"]
    assert answer["summary"]["passed"] == 2


def test_check_of_folders_and_reports(
    rooms: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    assert main(["check", "models", "--json", "r.json", "--junit", "r.xml", "--jobs", "2"]) == 1
    (kind, paths), (other, options, told) = rooms.asked
    assert (kind, paths, other, told["workers"].jobs, options["samples"]) == ("cases", ["models"], "run", 2, 3)
    out, err = capsys.readouterr()
    assert "6 checks in 2 scripts: 3 passed, 2 failed, 1 inconclusive" in out
    assert err == "gradcli check: 2 checks failed, 1 check could not be decided\n"
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["failed"] == 2
    assert (tmp_path / "r.xml").read_text().startswith("<?xml")


def test_check_without_a_target_searches_this_folder(
    rooms: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    rooms.paths = []
    assert main(["check"]) == 5
    assert rooms.asked[0][1] == ["."]
    told = "gradcli check: no .grad files in this folder; name a file or folder that has some\n"
    assert capsys.readouterr() == ("0 checks: 0 passed\n", told)


def test_check_of_a_single_file(rooms: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("x**2")
    assert main(["check", "a.grad"]) == 0
    assert rooms.asked[0][:2] == ("check_script", "x**2")
    assert main(["check", "missing.grad"]) == 2
    assert main(["check", "models_that_are_not_there"]) == 2
    assert main(["check", "a.grad", "x**2"]) == 2
    assert main(["check", "a.grad", str(tmp_path), "--claim", "x = 1"]) == 2
    assert len(rooms.asked) == 1


def test_github_annotations(
    rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    rooms.script = handmade.bad
    assert main(["check", "(x)"]) == 1
    assert "::error file=models/loss.grad,line=9," in capsys.readouterr().err


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (("x = 2*x*y, y = x**2",), {"x": "2*x*y", "y": "x**2"}),
        (("x = sum(x, axis=0), y=1", "z = 3"), {"x": "sum(x, axis=0)", "y": "1", "z": "3"}),
        (("x = q, r = qr(A); sum(r)",), {"x": "q, r = qr(A); sum(r)"}),
    ],
)
def test_claims_are_separated_by_commas(texts: tuple[str, ...], found: dict[str, str]) -> None:
    assert claims(texts) == found


@pytest.mark.parametrize("texts", [("2*x",), ("x = 1, x = 2",), ("2 = x",), ("x = 1", "x = 2"), ("x.y = 1",)])
def test_malformed_claims(texts: tuple[str, ...]) -> None:
    with pytest.raises(GradcliError) as caught:
        claims(texts)
    assert caught.value.diagnostics[0].code == "GC725"


def test_batch(
    rooms: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\r\n\xff\n")))
    assert main(["batch", "-"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["id"] for answer in answers] == ["one"] * 3 + ["\udcff"] * 3
    assert answers[1] == {"id": "one", "schema_version": 1, "value": "nan"}
    assert answers[2]["gradient"] == {"x": 64.0, "y": 32.0}
    (tmp_path / "r.jsonl").write_text("two")
    assert main(["batch", "r.jsonl", "--output", "a.jsonl"]) == 0
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 3
    assert main(["batch", "missing.jsonl"]) == 2
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["batch", "-"]) == 2


def test_ops(rooms: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    out = capsys.readouterr().out
    assert "exp" in out
    assert "hidden" not in out
    assert main(["ops", "e_to_the"]) == 0
    out = capsys.readouterr().out
    for told in ("exp(x)", "d exp(x) = exp(x)", "(0, 1)", "x = 0", "exp(0)"):
        assert told in out
    assert main(["ops", "exq", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"].startswith("GC2")
    assert "did you mean `exp`?" in err


def test_explain(rooms: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    for code, one in CODES.items():
        assert main(["explain", code.lower()]) == 0 == main(["explain", code.removeprefix("GC")])
        out = capsys.readouterr().out
        assert one.title in out
        assert one.instead in out
    assert main(["explain", "GC000"]) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(shell: str, rooms: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completions", shell]) == 0
    assert "exp" in capsys.readouterr().out
    assert main(["completions", "tcsh"]) == 2


@pytest.mark.parametrize(
    ("command", "script", "at", "expected"),
    [
        ("hessian", "x**2*y + z[0]", "x=1,y=3,z=[1,2]", [[6, 2, 0, 0], [2, 0, 0, 0], [0] * 4, [0] * 4]),
        ("hessian", "sum(x**4)/3", "x=[0.1,0.7]", [[4 * 0.1**2, 0], [0, 4 * 0.7**2]]),
        ("jacobian", "x[1:]*x[:-1], x[0]*y", "x=[1,2,3],y=2", [[2, 1, 0, 0], [0, 3, 2, 0], [2, 0, 0, 1]]),
        ("jacobian", "floor(x)", "x=[1,2]", [[0, 0], [0, 0]]),
    ],
)
def test_files_of_sparse_matrices(
    command: str, script: str, at: str, expected: list[list[float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SciPy reads them: one matrix over all outputs and leaves, with all digits."""
    import numpy as np
    import scipy.io
    import scipy.sparse

    archive, text = tmp_path / "matrix.npz", tmp_path / "matrix.mtx"
    for options in (["-o", str(archive)], ["-o", str(text)], ["--format", "mtx"]):
        assert main([command, script, "--at", at, *options]) == 0
    printed = scipy.io.mmread(io.StringIO(capsys.readouterr().out))
    for matrix in (scipy.sparse.load_npz(archive), scipy.io.mmread(text), printed):
        assert matrix.toarray() == pytest.approx(np.array(expected, dtype=float), rel=1e-15)
        assert matrix.nnz == sum(entry != 0 for row in expected for entry in row)


def test_an_archive_of_a_matrix_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hessian", "x**2", "--at", "x=1", "--format", "npz"]) == 2
    assert "--output matrix.npz" in capsys.readouterr().err


def test_a_matrix_beyond_the_limit_goes_to_a_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["hessian", "sum(x[1:]**2*x[:-1])", "--at", "x=randn(30000)"]
    assert main(command) == 2
    assert "--format mtx" in capsys.readouterr().err
    assert main([*command, "-o", str(tmp_path / "h.npz")]) == 0
