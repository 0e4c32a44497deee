"""Results in Python and in notebooks: `str` is what the command prints, displays are rich, and `%%grad` works in a real one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces import cli, notebook

ROOT = Path(__file__).parents[2]
POINT = {"x": 2.0, "y": 3.0}
SCRIPT = "(x*y + x)**2"
RESULTS: list[tuple[list[str], Any]] = [
    (["eval", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.evaluate(SCRIPT, at=POINT)),
    (["grad", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.grad(SCRIPT, at=POINT)),
    (["hessian", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.hessian(SCRIPT, at=POINT)),
    (["jacobian", "[x*y, x]", "--at", "x=2,y=3"], lambda: gradcli.jacobian("[x*y, x]", at=POINT)),
    (["trace", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.trace(SCRIPT, at=POINT)),
    (["derive", SCRIPT], lambda: gradcli.derive(SCRIPT)),
    (["graph", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.graph(SCRIPT, at=POINT)),
    (["plot", SCRIPT], lambda: gradcli.plot(SCRIPT)),
    (["check", SCRIPT, "--at", "x=2,y=3"], lambda: gradcli.check(SCRIPT, at=POINT)),
]
IDS = [arguments[0] for arguments, _ in RESULTS]


@pytest.mark.parametrize(("arguments", "made"), RESULTS[:-1], ids=IDS[:-1])  # a report has all its cards
def test_str_is_what_the_command_prints(arguments: list[str], made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert str(made()).rstrip() == capsys.readouterr().out.rstrip()


@pytest.mark.parametrize(("arguments", "made"), RESULTS, ids=IDS)
def test_results_display(arguments: list[str], made: Any) -> None:
    bundle = made()._repr_mimebundle_()
    assert bundle["text/plain"] == str(made())
    if "text/html" in bundle:
        ElementTree.fromstring(f"<div>{bundle['text/html']}</div>")
        assert "<table>" in bundle["text/html"]
    kind = {"derive": "text/latex", "graph": "image/svg+xml", "check": "text/markdown"}.get(arguments[0])
    if kind is None and arguments[0] != "plot":
        kind = "text/html"
    assert kind is None or kind in bundle
    if "image/svg+xml" in bundle:
        ElementTree.fromstring(bundle["image/svg+xml"])


def test_formulas_display_as_mathematics() -> None:
    latex = gradcli.derive("x**2*y")._repr_mimebundle_()["text/latex"]
    assert (
        latex.startswith("$$") and latex.endswith("$$") and r"\frac{\partial f}{\partial x}" in latex and "2" in latex
    )


def test_texts_of_users_do_not_act_in_a_display() -> None:
    found = gradcli.grad("where(x < 1, x, 2*x)", at={"x": 3})
    assert "x < 1" not in found._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("line", "cell", "names", "kind", "gradient"),
    [
        ("", "x**2*y", {"x": 2.0, "y": 3}, "Gradient", {"x": 12.0, "y": 4.0}),
        ("x**2 --at x=3", None, {}, "Gradient", {"x": 6.0}),
        ("--at x=3", "x**2", {"x": 1.0}, "Gradient", {"x": 6.0}),
        ("--wrt x", "x*y", {"x": 1.0, "y": 5.0, "z": 4}, "Gradient", {"x": 5.0}),
        ("hessian", "x**2", {"x": 1.0}, "Hessian", {"x": 2.0}),
        ("derive", "x**2", {"x": 1.0}, "Derivation", None),
        ("check", "x**2", {"x": "text"}, "Report", None),
        ('check --claim "x = 2*x" --at x=3', "x**2", {}, "Report", None),
        ('plot --claim "x = 2*x" --box x=0:3', "x**2", {}, "Curves", None),
        ("trace x*x", None, {"x": 2, "open": open}, "Trace", {"x": 4.0}),
    ],
    ids=str,
)
def test_the_magic_asks_the_question(
    line: str, cell: str | None, names: dict[str, Any], kind: str, gradient: Any
) -> None:
    found = notebook.answer(line, cell, names)
    assert type(found).__name__ == kind
    assert gradient is None or found.gradient == gradient


REFUSED = [
    ("--att x=1", "x", "did you mean --at?"),
    ('--claim "x = 1"', "x", "grad has no option --claim"),
    ('check claim "x = 3*x" --at x=2', "x**3", "`claim` means nothing here\nhelp: did you mean --claim?"),
    ('claim "x = 3*x"', "x**3", "`claim` means nothing here"),
    ('check -claim "x = 3*x"', "x**3", "check has no option -claim\nhelp: did you mean --claim?"),
    ("hesian", "x**3", "did you mean hessian?"),
    ("x**3", "x**3", "means nothing here"),
    ("check --claim", "x**3", "cannot read --claim"),
    ("check --avoid-kinks=maybe", "x**3", "cannot read --avoid-kinks=maybe"),
    ("--at x=2 y=3", "x*y", "--at x=2,y=3"),
    ("x*y --at x=2 y=3", None, "--at x=2,y=3"),
    ("x*y -wrt x", None, "did you mean --wrt?"),
    ("--dtype complex64", "x", "float64, float32, complex128"),
    ("--order 2 --order 3", "x", "give it once"),
    ("--order=-1", "x", "at least 1"),
    ("check --python f.py:f", "x", "check has no option --python"),
    ("check --json report.json", "x", "check has no option --json"),
    ("derive --at x=2", "x", "derive has no option --at"),
    ("--format latex", "x", "grad has no option --format"),
    ('check "x', "x", "close the quotation marks"),
    ('plot --claim "x = 2*x, y = 3"', "x", "a plot shows one claim"),
]


@pytest.mark.parametrize(("line", "cell", "text"), REFUSED, ids=str)
def test_what_means_nothing_is_an_error(line: str, cell: str | None, text: str) -> None:
    with pytest.raises(GradcliError) as refused:
        notebook.answer(line, cell, {"x": 1.0, "y": 5.0})
    assert text in str(refused.value)


def test_options_are_those_of_the_command() -> None:
    """Every option whose parameter the function has, except those that present a result or need files."""
    z = notebook.answer("--dtype=complex128", "abs(z)", {"z": 3 + 4j})
    assert z.value == 5.0
    assert notebook.answer("x**3 --order 2 --wrt x", None, {"x": 2.0}).derivatives == {"x": (12.0, 12.0)}
    (check,) = notebook.answer("check --at x=0 --allow kink --samples 0 --seed 3", "abs(x)", {}).checks
    assert (check.verdict, check.passed, check.evidence["seed"]) == ("KINK", True, 3)
    with pytest.raises(GradcliError, match="GC505"):
        notebook.answer("--limit nodes=1", "x*y", {"x": 1.0, "y": 1.0})
    assert notebook.answer("-x**2 --at x=3", None, {}).value == -9.0


FAILS = [
    ('check --claim "x = 3*x"', "x**3", "DISAGREES claim x"),
    ("check", "x = 2\nassert grad(x**2, x) == 3*x\nx**2", "DISAGREES claim x"),
    ("check --at x=0", "abs(x)", "KINK gradient x"),
    ("check", "x = 0\nwhere(x == 0, 0, x*sin(1/sin(1/x)))", "INCONCLUSIVE gradient x"),
    ('check --claim "x = 5"', "x**2", "DISAGREES claim x"),
    ("check", "const x = 2; x", "0 checks"),
    ("", "x +", "GC112"),
    ("", "nowhere", "GC202"),
    ("--at x=2 y=3", "x*y", "means nothing here"),
]


@pytest.mark.parametrize(("cell", "x", "slope"), [("x**2*y", 1.0, 4.0), ("x = 3\nx**2", 3.0, 6.0)])
def test_free_names_have_the_values_of_the_notebook(cell: str, x: float, slope: float) -> None:
    """A value that the script gives is its own."""
    names = {"x": 1.0, "y": 2.0, "z": [1]}
    assert notebook.answer("", cell, names).gradient["x"] == slope
    assert notebook.answer("check", cell, names).checks[0].evidence["at"]["x"] == x


@pytest.mark.parametrize(("line", "cell", "text"), FAILS, ids=str)
def test_a_check_that_does_not_pass_and_an_error_fail_the_cell(line: str, cell: str, text: str) -> None:
    magics: dict[str, Any] = {}

    class Shell:
        user_ns = {"x": 1.0}

        def register_magic_function(self, function: Any, kind: str, name: str) -> None:
            magics[name] = function

    notebook.register(Shell())
    with pytest.raises(notebook.FailedCell) as failure:
        magics["grad"](line, cell)
    assert text in str(failure.value)
    assert failure.value._render_traceback_() == str(failure.value).splitlines()
    assert magics["grad"]('check --claim "x = 3*x**2"', "x**3").ok


def executed(monkeypatch: pytest.MonkeyPatch, cells: list[str]) -> Any:
    """The notebook of these cells after it ran."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "x"}
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    manager = AsyncKernelManager(kernel_name="here")
    manager._kernel_spec = KernelSpec(**kernel, language="python")
    nbclient.NotebookClient(book, km=manager, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    json.dumps(book)
    return [cell["outputs"] for cell in book.cells]


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        "%load_ext gradcli\nx, y = 2.0, 3.0",
        "%%grad\n(x*y + x)**2",
        "%grad derive x**2",
        "%%grad graph\nx*y",
        "import gradcli\ngradcli.trace('x*y', at={'x': 2, 'y': 3})",
    ]
    outputs = executed(monkeypatch, cells)
    assert "64.0" in outputs[1][0]["data"]["text/html"] or "64" in outputs[1][0]["data"]["text/html"]
    assert "text/latex" in outputs[2][0]["data"] and "image/svg+xml" in outputs[3][0]["data"]
    assert "Backward" in outputs[4][0]["data"]["text/html"]
    nbclient = pytest.importorskip("nbclient")
    for cell, text in (("%grad x +", "GC112"), ('%%grad check --claim "x = x"\nx**2', "DISAGREES claim x")):
        with pytest.raises(nbclient.exceptions.CellExecutionError, match=text) as failure:
            executed(monkeypatch, [*cells[:1], cell])
        assert "Traceback" not in str(failure.value)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_pytorch_is_watched_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    cells = [
        "import gradcli, torch\nnet, x = torch.nn.Linear(2, 1), torch.ones(3, 2)\n"
        "def held(x):\n    with torch.no_grad():\n        return net(x)",
        "bias = torch.zeros(1, requires_grad=True)\nwith gradcli.watch(net) as w:\n"
        "    loss = (held(x) + bias).sum()\n    loss.backward()",
        "w.why('weight')",
        "gradcli.graph(loss)",
    ]
    outputs = executed(monkeypatch, cells)
    assert "no_grad at Cell In[1], line 5: `net(x)`" in outputs[2][0]["data"]["text/plain"]
    assert "image/svg+xml" in outputs[3][0]["data"] and "bias" in outputs[3][0]["data"]["text/plain"]
