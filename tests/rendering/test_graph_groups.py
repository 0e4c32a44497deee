"""Pages of large graphs: groups by call, layer and loop, and what a real browser makes of them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from gradcli import calculator
from gradcli.interfaces import cli
from gradcli.recording import runs
from gradcli.rendering.document import Style
from gradcli.rendering.graphs.grouped import MOST_MEMBERS, embedded
from tests.support.browser import CHROMIUM, Browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gradcli.base.results.graph_vertices import Graph

NESTED = """import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
    def forward(self, x):
        for one in self.inner:
            x = one(x)
        return torch.tanh(x)
def squared(x):
    return x * x
def loss_of(block, x):
    return squared(block(x)).sum() + squared(x).sum()
torch.manual_seed(0)
block = Block()
x = torch.ones(1, 2, requires_grad=True)
for step in range(3):
    y = x
    for again in range(2):
        y = y * 2
    loss = loss_of(block, y)
    loss.backward()
"""
STEP = ("for step in range(3)", "iteration 3")
CALLED = (*STEP, "loss_of()")
LAYER = (*CALLED, "Block", "for one in self.inner")
PATHS = [  # operation, groups
    ("mul", (*STEP, "for again in range(2)", "iteration 1")),
    ("mul", (*STEP, "for again in range(2)", "iteration 2")),
    ("t", (*LAYER, "iteration 1", "inner.0: Linear")),
    ("addmm", (*LAYER, "iteration 1", "inner.0: Linear")),
    ("t", (*LAYER, "iteration 2", "inner.1: Linear")),
    ("addmm", (*LAYER, "iteration 2", "inner.1: Linear")),
    ("tanh", (*CALLED, "Block")),
    ("mul", (*CALLED, "squared()")),
    ("sum", CALLED),
    ("mul", (*CALLED, "squared()")),
    ("sum", CALLED),
    ("add", CALLED),
]


def graph_of(path: Path, torch: bool = False) -> Graph:
    from gradcli.interfaces.command_parts.python_file import FileRun, recorded

    class Quiet:
        def say(self, text: str) -> None:
            pass

    how = FileRun("torch" if torch else "gradcli", extents=True)
    _, watch, _ = recorded(Quiet(), str(path), (), how)  # type: ignore[arg-type]
    return runs.drawing(runs.graphs_of(watch, str(path)), runs.lines(str(path)))


@pytest.mark.parametrize("torch", [False, pytest.param(True, marks=pytest.mark.peers)])
def test_operations_have_their_calls_layers_and_iterations(torch: bool, tmp_path: Path) -> None:
    if torch:
        pytest.importorskip("torch")
    path = tmp_path / "nested.py"
    path.write_text(NESTED, encoding="utf-8")
    graph = graph_of(path, torch)
    found = [(one.name, tuple(group.label for group in one.groups)) for one in graph.vertices if one.role != "leaf"]
    assert found == [(name.partition(":")[0], groups) for name, groups in PATHS]
    keys = [tuple(group.key for group in one.groups) for one in graph.vertices if one.groups]
    both = [keys[at] for at, (name, _) in enumerate(PATHS) if name == "mul" and at > 1]
    assert both[0][:-1] == both[1][:-1] and both[0][-1] != both[1][-1]  # two calls of one function are two groups


SCRIPT = """def f(x, w):
    a = tanh(w*x + 1)
    return a*0.9 + sin(a)
x = 0.5
w = 0.3
h = x
for i in range(ITERATIONS):
    h = f(h, w) + sin(h)*0.1
    for j in range(2):
        h = h*f(h, w + j)
h**2
"""


def test_a_script_has_its_calls_and_iterations() -> None:
    graph = calculator.graph(SCRIPT.replace("ITERATIONS", "3"))
    found = {tuple(group.label for group in one.groups) for one in graph.vertices if one.role == "operation"}
    outer = [("for i in range(3)", f"iteration {iteration}") for iteration in (1, 2, 3)]
    inner = [(*one, "for j in range(2)", f"iteration {iteration}") for one in outer for iteration in (1, 2)]
    assert found == {(), *outer, *inner, *((*one, "f()") for one in (*outer, *inner))}


@pytest.mark.parametrize("script", [SCRIPT.replace("ITERATIONS", "50"), " + ".join(f"x{at}**2" for at in range(900))])
def test_groups_have_few_members_and_every_node_one_place(script: str) -> None:
    graph = calculator.graph(script)
    found = json.loads(embedded(graph, Style(), False, False))
    members: dict[int, int] = {}
    for parent, *_ in found["groups"][1:]:
        members[parent] = members.get(parent, 0) + 1
    for group, *_ in found["nodes"]:
        members[group] = members.get(group, 0) + 1
    assert max(members.values()) <= MOST_MEMBERS + 4
    assert all(parent < at for at, (parent, *_) in enumerate(found["groups"]))
    drawn = [one for one in graph.vertices if one.role != "constant"]
    assert [node[1] for node in found["nodes"]] == [one.index for one in drawn]
    assert len(found["arrows"]) == 2 * sum(
        graph.vertices[read].role != "constant" for one in drawn for read in one.inputs
    )


def test_texts_of_users_do_not_act_in_a_large_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert (
        cli.main(["graph", "x</script><b>".replace("</script><b>", " < 2"), "--max-nodes", "1", "--output", str(path)])
        == 0
    )
    text = path.read_text(encoding="utf-8")
    assert text.count("</script>") == 2 and "x < 2" not in text.split("application/json")[1].partition("</script>")[0]


# --- in a browser ----------------------------------------------------------------------------------------------------

DEEP_NET = """import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))
net = nn.Sequential(*[Block() for _ in range(BLOCKS)])
loss = (net(torch.randn(3, 4)) ** 2).mean()
loss.backward()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


def page(folder: Path, text: str, *options: str) -> Path:
    """The page of a Python file, on our tensors."""
    source, path = folder / "big.py", folder / "big.html"
    source.write_text(text, encoding="utf-8")
    assert (
        cli.main(["graph", str(source), "--on", "gradcli", "--view", "backward", "--output", str(path), *options]) == 0
    )
    return path


def test_groups_open_and_close_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, DEEP_NET.replace("BLOCKS", "40")))
    count = browser.run("gradcli.nodes.length")
    assert count > 450
    shown = browser.run("gradcli.boxes().length")
    assert 1 < shown <= 40 and 0.7 <= browser.run("gradcli.view.s") <= 1.3  # legible: twelve points stay nine
    x, y = browser.run(
        "(g => { const r = gradcli.onScreen(g); return [r.left + 9, r.top + 9]; })(gradcli.boxes().find(g => g.items))"
    )
    browser.click(x, y)
    opened = browser.run("gradcli.boxes().length")
    assert opened > shown
    browser.click(x, y)  # what was clicked has stayed where it was
    assert browser.run("gradcli.boxes().length") == shown
    browser.run("gradcli.all(true)")
    boxes = browser.run("gradcli.boxes().map(b => [b.X, b.Y, b.X + b.w, b.Y + b.h, b.group])")
    frames = {one[4]: one for one in browser.run("gradcli.frames().map(g => [g.X, g.Y, g.X + g.w, g.Y + g.h, g.at])")}
    assert len(boxes) == count
    for at, (left, top, right, bottom, group) in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
        if group in frames:
            assert (
                frames[group][0] <= left
                and right <= frames[group][2] + 0.01
                and frames[group][1] <= top
                and bottom <= frames[group][3]
            )


def test_search_opens_what_it_finds(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, DEEP_NET.replace("BLOCKS", "40")))
    browser.run("document.getElementById('search').focus()")
    browser.ask("Input.insertText", text="33.up.bias")
    assert browser.run("document.getElementById('hits').textContent") == "1 found"
    browser.ask("Input.dispatchKeyEvent", type="keyDown", key="Enter")
    where = browser.run(
        "(b => { const r = gradcli.onScreen(b); return [r.left, r.top, r.right, r.bottom]; })"
        "(gradcli.boxes().find(b => b.title && b.title.endsWith('33.up.bias')))"
    )
    assert 0 <= where[0] < where[2] <= 1280 and 0 <= where[1] < where[3] <= 800


FACTS = (
    "(() => { const f = document.getElementById('facts'); if (f.hidden) return null;"
    " const r = f.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })()"
)


@pytest.mark.parametrize("large", [False, True])
def test_facts_never_cover_their_box(large: bool, browser: Browser, tmp_path: Path) -> None:
    """Wherever a box stands, however large it is drawn: with the pointer on it, its facts are beside it and in the window."""
    browser.open(page(tmp_path, NESTED, "--max-nodes", "1" if large else "150"))
    if large:
        browser.run("gradcli.all(true)")
    found = (
        "gradcli.boxes().map(b => gradcli.onScreen(b))"
        if large
        else ("[...document.querySelectorAll('.box rect')].map(b => b.getBoundingClientRect())")
    )
    told = 0
    for scale in (0.4, 1.0, 2.0):
        for corner in (0, 4, 9):
            browser.run(
                f"(() => {{ const {{view, look, fit, main}} = gradcli; fit(); const r = {found}[{corner}], m = main.getBoundingClientRect();"
                f" look(view.x + (r.left - m.left - 300) * view.s, view.y + (r.top - m.top - 200) * view.s, {scale}); }})()"
            )
            for left, top, right, bottom in browser.run(f"({found}).map(r => [r.left, r.top, r.right, r.bottom])"):
                x, y = (left + right) / 2, (top + bottom) / 2
                if not (0 < x < 1280 and 80 < y < 800):
                    continue
                browser.mouse("moved", 1, 1)
                browser.mouse("moved", x, y)
                facts = browser.run(FACTS)
                if facts is not None:
                    told += 1
                    assert facts[2] <= left or right <= facts[0] or facts[3] <= top or bottom <= facts[1]
                    assert facts[0] >= -0.5 and facts[1] >= -0.5 and facts[2] <= 1280.5 and facts[3] <= 800.5
    assert told > 20


PANNED = (  # frames in a second and a half of panning
    "new Promise(done => { let count = 0, began = null; const step = now => { if (began === null) began = now; count++;"
    " gradcli.look(gradcli.view.x + DX * gradcli.view.s, gradcli.view.y + DY * gradcli.view.s, gradcli.view.s);"
    " if (now - began < 1500) requestAnimationFrame(step); else done(1000 * (count - 1) / (now - began)); };"
    " requestAnimationFrame(step); })"
)


@pytest.mark.deep
@pytest.mark.parametrize(("blocks", "nodes"), [(40, 500), (400, 5000)])
def test_large_pages_are_made_and_moved_in_little_time(
    blocks: int, nodes: int, browser: Browser, tmp_path: Path
) -> None:
    source = tmp_path / "net.py"
    source.write_text(DEEP_NET.replace("BLOCKS", str(blocks)), encoding="utf-8")
    graph = graph_of(source)
    assert len(graph.vertices) >= nodes
    from gradcli.rendering.graphs import formats

    began = time.process_time()
    text = formats.text("html", graph, Style(), backward=True)
    assert time.process_time() - began < 2 and len(text.encode()) < 1_000_000
    path = tmp_path / "net.html"
    path.write_text(text, encoding="utf-8")
    browser.open(path)
    views: dict[str, Any] = {
        "first sight": "0",
        "all open, whole": "(gradcli.all(true), gradcli.fit())",
        "all open, near": "gradcli.look(gradcli.boxes()[200].X - 300, gradcli.boxes()[200].Y - 300, 1)",
    }
    for name, begin in views.items():
        browser.run(f"{begin}, 0")
        pan = PANNED.replace("DX", "3").replace("DY", "5")
        rates = [browser.run(pan) for _ in range(3)]  # the best of three: other programs run beside the browser
        assert max(rates) >= 30, (name, rates)


def test_what_is_computed_from_constants_alone_is_no_node() -> None:
    """One 1/10 that every iteration reads would draw an arrow into each of them."""
    graph = calculator.graph("h = x; " + "; ".join("h = h*(1/10) + sin(h)" for _ in range(40)) + "; h", at={"x": 0.5})
    page = json.loads(embedded(graph, Style(), torch=False, backward=False))
    titles = {page["words"][node[2]] for node in page["nodes"]}
    assert "div" not in titles and {"mul", "sin", "x"} <= titles


def test_neighbours_that_are_alike_are_counted() -> None:
    graph = calculator.graph("def f(h):\n    return tanh(h)\nh = x\n" + "h = f(h)\n" * 40 + "h", at={"x": 0.5})
    page = json.loads(embedded(graph, Style(), torch=False, backward=False))
    labels = [page["words"][label] for _, label, _ in page["groups"]]
    counts = [int(label.split(" x ")[0]) for label in labels if label.endswith(" x f()")]
    assert sum(counts) == 40 and labels.count("f()") == 40
