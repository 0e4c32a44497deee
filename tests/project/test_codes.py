"""The catalogue of codes goes in: every code that is used has a row, every row is used, every example triggers it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gradcli
from gradcli.base.codes import CODES, FAMILIES
from gradcli.base.diagnostics import Diagnostic
from gradcli.checks import check_script
from gradcli.execution.namespaces import namespace
from gradcli.interfaces import cli
from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.rendering.formats.issues import issues
from tests.support import handmade
from tests.support.rows import all_rows

PACKAGE = Path(__file__).parents[2] / "gradcli"
CATALOGUE = PACKAGE / "base" / "codes"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if CATALOGUE not in path.parents]

# rows whose example no test can run as it stands, and what is run instead
SPECIAL = {
    "GC506": "no machine of a test may run out of memory: the evaluator is told that it did",
    "GC640": "a baseline is a file beside the command: tests/batch/test_baseline.py reads a damaged one",
    "GC691": "a folder that cannot be used is a matter of the machine: tests/batch/test_journal.py makes some",
    "GC692": "no disk of a test may be full: tests/batch/test_journal.py limits the file",
    "GC693": "the file is damaged in tests/batch/test_journal.py",
    "GC713": "whether a library is installed is a matter of the machine: its import is refused",
    "GC714": "depends on what the library of a backend lacks: an operation is taken from it",
    "GC809": "no script ends its process: a check made by hand has the verdict",
    "GC741": "needs Dask, an extra: tests/batch/test_cluster.py has addresses without a scheduler",
    "GC742": "needs a cluster: tests/batch/test_cluster.py has workers with another gradcli",
    "GC743": "needs a cluster: tests/batch/test_cluster.py ends one",
    "GC748": "needs a folder with such a file: tests/interfaces/test_main.py makes one",
    "GC749": "the error of a Python file that runs: tests/eager/test_run.py runs some",
    "GC999": "there is no way to trigger a fault on purpose: one is put into a command",
}
IN_SETTINGS, IN_PYTHON = "  # in gradcli.toml", "  # in Python"
MISSPELT = {"GC721"}  # the row whose example is an option that does not exist
JUDGED = {"GC409", "GC410", "GC412"}  # notes that belong to a verdict


def constants(path: Path) -> set[str]:
    """The codes that stand as strings of their own in a file: those that it raises."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if re.fullmatch(r"GC\d{3}", text)}


def test_every_code_that_is_used_has_a_row_and_every_row_is_used() -> None:
    used = set().union(*map(constants, SOURCES))
    assert used - set(CODES) == set(), "without a row in gradcli/base/codes/"
    assert set(CODES) - used == set(), "a row that nothing raises"


def test_codes_that_a_docstring_mentions_exist() -> None:
    for path in SOURCES:
        assert set(re.findall(r"GC\d{3}", path.read_text(encoding="utf-8"))) <= set(CODES), path


def test_families_are_files_in_order() -> None:
    assert list(CODES) == sorted(CODES)
    assert {code[:3] for code in CODES} == set(FAMILIES)
    for path in CATALOGUE.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 300, path
        assert len({code[:3] for code in constants(path)}) <= 1, f"{path.name} holds several families"


def test_no_two_rows_say_the_same() -> None:
    for field in ("title", "what", "example"):
        texts = [getattr(one, field) for one in CODES.values()]
        assert len(set(texts)) == len(texts), field


def test_a_row_is_brief() -> None:
    for code, one in CODES.items():
        assert len(one.title) <= 45, code
        assert not {"TODO", "FIXME"} & set(one.what.split()), code


def test_the_catalogue_is_not_loaded_with_the_package() -> None:
    importers = [p for p in SOURCES if "gradcli.base.codes" in p.read_text(encoding="utf-8")]
    names = {str(path.relative_to(PACKAGE)) for path in importers}
    allowed = {
        "interfaces/commands/explain.py",
        "interfaces/commands/completions.py",
        "rendering/documents/catalogue.py",
    }
    assert names <= allowed | {"rendering/formats/sarif.py"}


# --- every example triggers its code ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data files that examples name."""
    place = tmp_path_factory.mktemp("codes")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
    for name, count, rest in (("huge.npy", 2**40, b""), ("cut-off.npy", 3, b"12345678")):
        text = (header % count).ljust(117) + b"\n"
        (place / name).write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + rest)
    np.save(place / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (place / "points.csv").write_text("1,2\n3,4\n")
    (place / "text.csv").write_text("a,b\n1,two\n")
    (place / "ragged.csv").write_text("1,2\n3\n")
    (place / "losses.py").write_text(
        "slope = lambda x: 2*x\n\ndef broken(x):\n    raise ValueError\n\ndef chatty(x):\n    print(x)\n    return x*x\n"
    )
    (place / "gaps.csv").write_text("1\nnan\n")
    (place / "wrong.grad").write_text("x = 2\nassert grad(x**2, x) == x\nx**2\n")
    return place


def triggered(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codes that the example of a row leads to, in order."""
    monkeypatch.chdir(folder)
    example = CODES[code].example
    if example.endswith("  # as a line of requests"):
        return answered(example.removesuffix("  # as a line of requests"), monkeypatch)
    if example.endswith(IN_SETTINGS):
        (folder / "gradcli.toml").write_text(example.removesuffix(IN_SETTINGS) + "\n")
        try:
            return ran(["check" if code == "GC727" else "eval", "x", "--at", "x=1"])
        finally:
            (folder / "gradcli.toml").unlink()
    if example.startswith("gradcli "):
        return ran(shlex.split(example)[1:])
    if example.endswith(IN_PYTHON):
        with pytest.raises(gradcli.GradcliError) as caught:
            exec(example, {"gradcli": gradcli})
        return [one.code for one in caught.value.diagnostics]
    script, _, remark = example.partition("  # with ")
    options = shlex.split(remark, posix=False)
    if code in JUDGED:
        report = check_script(script, at=options[1])
        return [one.code for check in report.checks for one in check.diagnostics]
    if code.startswith("GC8"):  # the code of a verdict stands in report files only
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        return ran(["check", script, *options])
    return ran(
        [{"GC725": "check", "GC735": "check", "GC510": "graph", "GC728": "trace"}.get(code, "grad"), script, *options]
    )


def ran(arguments: list[str]) -> list[str]:
    """The codes on standard error of a command line, run in this process: of diagnostics, then of annotations."""
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        cli.main(arguments)
    found = re.findall(r"^\w+\[(GC\d{3})\]", told.getvalue(), re.MULTILINE)
    return found + re.findall(r"^::\w+ .*title=gradcli (GC\d{3}) ", told.getvalue(), re.MULTILINE)


def answered(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The code of batch's answer to one line."""
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(line.encode() + b"\n")))
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        cli.main(["batch", "-"])
    return re.findall(r'"code": "(GC\d{3})"', told.getvalue())


@all_rows("code", [code for code in CODES if code not in MISSPELT])
def test_an_example_names_only_options_that_exist(code: str) -> None:
    """Every option in any text of a row is one that some command declares, or an option of gradcli itself."""
    known = {"--help", "--version", "--show-settings"}
    known |= {spelling for name in COMMANDS for one in declaration(name).options for spelling in one.spellings}
    row = CODES[code]
    texts = " ".join((row.title, row.what, row.why, row.example, row.instead))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", texts)) <= known


@pytest.mark.parametrize("code", [code for code in CODES if code not in SPECIAL])
def test_the_example_triggers_its_code(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code in triggered(code, folder, monkeypatch)


def test_a_fault_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.delenv("GRADCLI_DEBUG", raising=False)
    monkeypatch.setattr("gradcli.calculator.evaluate", fault)
    assert ran(["eval", "x", "--at", "x=1"]) == ["GC999"]


def test_a_full_memory_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr(namespace("numpy"), "matmul", full, raising=False)
    assert ran(["eval", "ones(300, 300) @ ones(300, 300)"]) == ["GC506"]
    monkeypatch.setattr("gradcli.calculator.evaluate", full)
    assert ran(["eval", "x", "--at", "x=1"]) == ["GC506"]


def test_a_crash_and_an_unused_suppression_have_their_codes() -> None:
    crashed = handmade.check("CRASHED", False)
    unused = handmade.check("PROVED", False, diagnostics=(Diagnostic("GC811", "suppresses nothing"),))
    assert [one.rule.code for one in issues(handmade.report(crashed, unused))] == ["GC809", "GC811"]


def test_a_missing_backend_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "gradcli.execution.namespaces.cupy_", raising=False)
    assert ran(["eval", "x", "--at", "x=1", "--backend", "cupy"]) == ["GC713"]
