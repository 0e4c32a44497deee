"""What a reader sees in a drawing: words that fit and do not cover each other, arrows that mean something, loops."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from lark import Lark

from gradcli import calculator
from gradcli.base.results.graph_vertices import Extent
from gradcli.interfaces.cli import main
from gradcli.interfaces.commands.graph import ran
from gradcli.rendering.document import Style
from gradcli.rendering.graphs import formats, numbers
from gradcli.rendering.graphs.layout import layout
from gradcli.rendering.graphs.line_folding import unrolled
from gradcli.rendering.graphs.picture import picture
from gradcli.rendering.graphs.picture_boxes import Arrow
from gradcli.rendering.graphs.svg import outlines, pieces, samples
from tests.rendering.test_graph_drawings import some_graph
from tests.support.rows import all_rows

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = Style()
ATTENTION = """X = randn(3, 4, seed=1)
Wq = 0.5*randn(4, 4, seed=2)
Wk = 0.5*randn(4, 4, seed=3)
Wv = 0.5*randn(4, 4, seed=4)
q = X @ Wq
k = X @ Wk
v = X @ Wv
a = softmax(q @ k.T / 2)
mean((a @ v)**2)
"""
RECURRENT = """import torch
torch.manual_seed(0)
W = torch.randn(7, 4, requires_grad=True)
V = torch.randn(7, 4, requires_grad=True)
x = torch.randn(60, 1, 3)
H = torch.zeros(1, 4)
C = torch.zeros(1, 4)
loss = 0
for t in range(60):
    z = torch.cat([x[t], H], dim=1)
    f = torch.sigmoid(z @ W)
    C = f * C + z @ V
    H = f * torch.tanh(C)
    loss = loss + H.sum()
loss.backward()
"""
DOT = Lark(
    r"""
    start: "digraph" ID "{" (statement ";")* "}"
    statement: "node" attributes | ID "=" value | ID attributes? | ID "->" ID attributes?
    attributes: "[" ID "=" value ("," ID "=" value)* "]"
    value: ID | STRING | NUMBER
    ID: /[A-Za-z_][A-Za-z0-9_]*/
    STRING: /"(\\.|[^"\\])*"/
    NUMBER: /-?[0-9.]+/
    %ignore /\s+/
    """
)


class Quiet:
    def say(self, text: str) -> None:
        raise AssertionError(text)


def of_script(script: str, at: Any = None) -> Any:
    return calculator.graph(script, at=at or {})


def of_python(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "file.py"
    path.write_text(text)
    code, graph = ran(Quiet(), str(path), "gradcli", 1)
    assert code == 0
    return graph


def areas(svg: str, direction: str) -> tuple[list[Any], list[Any]]:
    """The rectangles of boxes, and those of the words beside arrows of one direction."""
    root = ElementTree.fromstring(svg)
    boxes, words = [], []
    for group in root.iter(f"{SVG}g"):
        kind = group.get("class") or ""
        if kind.startswith("box"):
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            x, y, wide, tall = (float(rect.get(name) or 0) for name in ("x", "y", "width", "height"))
            boxes.append((x, y, x + wide, y + tall))
            for text in group.iter(f"{SVG}text"):  # 12 px of a monospace font are 7.3 wide
                assert len(text.text or "") * 7.25 <= wide - 16
        elif kind.startswith(f"arrow {direction}"):
            words += [
                (float(t.get("x") or 0), float(t.get("y") or 0) - 10, float(t.get("x") or 0) + 6.6 * len(t.text or ""),
                 float(t.get("y") or 0))
                for t in group.iter(f"{SVG}text")
            ]  # fmt: skip
    return boxes, words


def meet(one: Any, other: Any) -> bool:
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


# --- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "at"),
    [
        ("(x*y + x)**2", {"x": 2.0, "y": 3.0}),
        (ATTENTION, {}),
        ("a = sin(x)\nb = a*x\nc = b*a + exp(x)\nd = c*b/a\nd*c + a*b*x", {"x": 0.7}),
        ("x = randn(6, 6, seed=1)\nsum(inv(x@x.T + eye(6))*x) + sum(x*x*x)", {}),
    ],
)
def test_words_beside_arrows_cover_neither_boxes_nor_each_other(script: str, at: dict[str, float]) -> None:
    boxes, words = areas(formats.text("svg", of_script(script, at), PLAIN, backward=True), "backward")
    assert words
    for word in words:
        assert not any(meet(word, box) for box in boxes)
    for one, other in itertools.combinations(words, 2):
        assert not meet(one, other)


def test_what_is_added_up_stands_beside_its_arrows() -> None:
    """X is read three times: three words; a box that receives once says its cotangent itself."""
    text = formats.text("svg", of_script(ATTENTION), PLAIN, backward=True)
    found = picture(of_script(ATTENTION), PLAIN)
    at = next(i for i, box in enumerate(found.boxes) if box.title == "X")
    parts = re.findall(rf'class="arrow backward" data-start="n{at}"[^>]*>.*?</g>', text)
    assert len(parts) == 3 and all('class="sent"' in part for part in parts)
    wq = next(i for i, box in enumerate(found.boxes) if box.title == "Wq")
    (part,) = re.findall(rf'class="arrow backward" data-start="n{wq}"[^>]*>.*?</g>', text)
    assert 'class="sent"' not in part


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (64.0, "64.0"), (0.11515927053158781, "0.115159"), (-1.5e-300, "-1.5e-300"), (float("nan"), "nan"),
        (np.array([0.0, 1.0]), "[0.0, 1.0]"), (np.array([0.02630, -0.2563123, 0.0845911, -0.46688]),
                                              "[0.0263, -0.256, 0.0846, -0.467]"),
        (np.full((3, 3), 2.0), "3x3 of 2"), (np.arange(12.0).reshape(3, 4), "3x4, 0 to 11"),
        (np.array([[1.0, np.nan, 3.0], [np.inf, 5.0, 6.0]]), "2x3, 1 to 6, 2 not finite"),
        (np.full(9, np.nan), "9, none finite"), (np.array([-0.0] * 4 + [1.0]), "5, 0 to 1"), (np.arange(6) > 2, "6, 0 to 1"),
        (np.array([3 + 4j] * 5), "5 of 5"), (Extent((64, 3), -1.23456, 7.0, 9.0, 0), "64x3, -1.23 to 7"),
    ],
)  # fmt: skip
def test_numbers_fit_into_boxes(value: Any, told: str) -> None:
    assert numbers.brief(value, None) == told


def test_facts_have_all_digits() -> None:
    found = picture(of_script("sin(x)", {"x": 0.1}), PLAIN)
    assert found.boxes[-1].value == "0.0998334"
    assert dict(found.boxes[-1].facts)["value"] == repr(float(np.sin(0.1)))
    assert "0.09983341664682815" in formats.text("tree", of_script("sin(x)", {"x": 0.1}), PLAIN)


def test_large_arrays_of_a_python_file_are_told_by_their_extent(tmp_path: Path) -> None:
    text = "import torch\nw = torch.arange(12.).reshape(3, 4).requires_grad_()\nloss = (w * w).sum()\nloss.backward()\n"
    found = picture(of_python(tmp_path, text), PLAIN)
    by_title = {box.title: box for box in found.boxes}
    assert (by_title["w"].value, by_title["w"].cotangent) == ("3x4, 0 to 11", "3x4, 0 to 22")
    assert by_title["mul"].cotangent == "3x4 of 1"
    assert by_title["loss: sum"].value == "506.0"


# --- arrows -----------------------------------------------------------------------------------------------------


def test_nothing_is_sent_to_constants() -> None:
    """Backward, no arrow leads to a constant, and it is faded; forward it is an operand as any other."""
    found = picture(of_script("3*x + 2*y", {"x": 1.0, "y": 1.0}), PLAIN)
    constants = {at for at, box in enumerate(found.boxes) if box.kind == "constant"}
    assert len(constants) == 2
    assert all(arrow.live == (arrow.start not in constants) for arrow in found.arrows)
    assert all(box.idle == (at in constants) for at, box in enumerate(found.boxes))
    text = formats.text("svg", of_script("3*x + 2*y", {"x": 1.0, "y": 1.0}), PLAIN, backward=True)
    assert text.count('class="arrow forward"') == 6 and text.count('class="arrow backward"') == 4
    for form in ("dot", "mermaid"):
        forward, backward = (
            formats.text(form, of_script("3*x + 2*y", {"x": 1.0, "y": 1.0}), PLAIN, backward=b) for b in (False, True)
        )
        sign = " -> " if form == "dot" else " -->"
        assert (forward.count(sign), backward.count(sign)) == (6, 4)


def test_arrows_at_one_box_do_not_meet() -> None:
    text = formats.text("svg", of_script("x*x + x", {"x": 2.0}), PLAIN)
    tips = re.findall(r'class="arrow forward"[^>]*>.*?<polygon class="tip" points="([\d.]+),([\d.]+)', text)
    assert len(tips) == len(set(tips)) == 4
    for (x0, y0), (x1, y1) in itertools.combinations(tips, 2):
        assert abs(float(x0) - float(x1)) > 8 or y0 != y1


def test_the_legend_names_what_is_there() -> None:
    def told(svg: str) -> list[str]:
        legend = svg[svg.index('<g class="legend">') :]
        return re.findall(r"<text[^>]*>([^<]*)</text>", legend)

    plain = told(formats.text("svg", of_script("2*x + y", {"x": 1.0, "y": 1.0}), PLAIN))
    assert plain == [
        "leaf", "constant", "operation", "output", "numbers: values", "numbers: cotangents, sent and added up",
    ]  # fmt: skip
    graph = calculator.graph("x**2", at={"x": 1.0}, gradient=True)
    assert "gradient" in told(formats.text("svg", graph, PLAIN))
    assert "constant" not in told(formats.text("svg", of_script("x*y", {"x": 1.0, "y": 1.0}), PLAIN))


@all_rows("seed", range(40))
def test_arrows_pass_beside_boxes(seed: int) -> None:
    """No curve goes through a box, not even its own ones, and each is upright where it leaves and reaches them."""
    sizes, pairs = some_graph(seed)
    sizes = [(wide, 46.0) for wide, _ in sizes]
    found = layout(sizes, pairs)
    lines = outlines([Arrow(start, end, "") for start, end in pairs], found, sizes)
    boxes = [
        (x - wide / 2 + 0.5, y - tall / 2 + 0.5, x + wide / 2 - 0.5, y + tall / 2 - 0.5)
        for (x, y), (wide, tall) in zip(found.places, sizes, strict=True)
    ]
    for line in lines:
        for x, y in samples(line):
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)
        cubics = list(pieces(line))
        assert cubics[0][1][0] == line[0][0] and cubics[-1][2][0] == line[-1][0]


# --- lines of a loop ---------------------------------------------------------------------------------------------


def test_a_recurrent_network_reads_from_above_to_below(tmp_path: Path) -> None:
    """Lines in their order; only the state goes back, dashed, and the lines that read themselves have a loop."""
    found = picture(of_python(tmp_path, RECURRENT), PLAIN)
    assert found.folded
    lines = [int(box.title.split()[1].rstrip(":")) for box in found.boxes if box.title.startswith("line")]
    assert lines == [10, 11, 12, 13, 14]
    title = [box.title.split(":")[0] for box in found.boxes]
    back = {(title[arrow.start], title[arrow.end]) for arrow in found.arrows if arrow.again}
    assert back == {("line 13", "line 10"), ("line 12", "line 12"), ("line 14", "line 14")}
    told = {box.title.split(":")[0]: box.value for box in found.boxes}
    assert told["line 11"] == "2 nodes, 60 times" and told["line 10"] == "1 node, 59 times"
    svg = formats.text("svg", of_python(tmp_path, RECURRENT), PLAIN)
    assert svg.count('class="arrow forward again"') == 3 and "between iterations of a loop" in svg
    ElementTree.fromstring(svg)


def test_a_line_has_the_norms_of_what_came_back(tmp_path: Path) -> None:
    graph = of_python(tmp_path, RECURRENT)
    found = {box.title.split(":")[0]: box for box in picture(graph, PLAIN).boxes}
    norms = [
        float(np.linalg.norm(one.cotangent)) for one in graph.vertices if one.line == 13 and one.cotangent is not None
    ]
    low, high = re.fullmatch(r"norms (\S+) to (\S+)", found["line 13"].cotangent).groups()  # type: ignore[union-attr]
    assert float(low) == pytest.approx(min(norms), rel=5e-3) and float(high) == pytest.approx(max(norms), rel=5e-3)


def test_a_large_python_graph_is_drawn_in_little_time(tmp_path: Path) -> None:
    """The walk over what a backward reached is done once, not once per node."""
    import time

    from gradcli.eager.torch_alias import aliases
    from gradcli.recording import runs
    from gradcli.recording.libraries.eager_recorder import EagerWatch

    path = tmp_path / "long.py"
    path.write_text(
        "import torch\nx = torch.ones((), requires_grad=True)\ny = x\nfor i in range(4000):\n    y = y * x\ny.backward()\n"
    )
    watch = EagerWatch(str(tmp_path) + "/", extents=True)
    runs.run_file(str(path), watch=watch, tell=False, inside=aliases())
    graphs = runs.graphs_of(watch, str(path))
    start = time.process_time()
    assert len(runs.drawing(graphs, []).vertices) == 4001
    assert time.process_time() - start < 3.0  # 0.05 s; with a walk per node 15 s


def test_unrolled_turns_as_few_reads_as_possible() -> None:
    reads = {("a", "b"): 9, ("b", "c"): 9, ("c", "a"): 8, ("c", "d"): 1, ("leaf", "a"): 1}
    assert unrolled(["d", "c", "b", "a", "leaf"], reads) == ["leaf", "a", "b", "c", "d"]
    assert unrolled(["x", "y"], {("y", "x"): 2, ("x", "y"): 1}) == ["y", "x"]
    chain = {(i, i + 1): 1 for i in range(500)}
    assert unrolled(list(range(501))[::-1], chain) == list(range(501))


# --- DOT and Mermaid ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("script", ["(x*y + x)**2", ATTENTION, 'a = x # "quo\\ted" [b] -> c;\na**2', "x", "3"])
def test_dot_obeys_its_grammar(script: str, backward: bool) -> None:
    text = formats.text("dot", of_script(script, {"x": 2.0, "y": 3.0} if "y" in script else {"x": 2.0}), PLAIN,
                        backward=backward)  # fmt: skip
    DOT.parse(text)
    nodes = set(re.findall(r"^  (n\d+) \[", text, re.M))
    assert set(re.findall(r"(n\d+) -> ", text)) | set(re.findall(r"-> (n\d+)", text)) <= nodes


@pytest.mark.parametrize("backward", [False, True])
def test_mermaid_has_one_statement_per_line(backward: bool) -> None:
    text = formats.text("mermaid", of_script(ATTENTION), PLAIN, backward=backward)
    kinds: Counter[str] = Counter()
    for line in text.splitlines()[1:]:
        node = re.fullmatch(r'  n\d+(\(\["[^"]*"\]\)|\["[^"]*"\]):::(\w+)', line)
        arrow = re.fullmatch(r'  n\d+ -->(\|"[^"]*"\|)? n\d+', line)
        style = re.fullmatch(r"  classDef (\w+) fill:#\w+,stroke:#\w+,color:#\w+", line)
        assert node or arrow or style, line
        kinds["node" if node else "arrow" if arrow else "style"] += 1
    found = picture(of_script(ATTENTION), PLAIN)
    assert kinds["arrow"] == sum(arrow.live or not backward for arrow in found.arrows)
    assert kinds["node"] == sum(not (backward and box.idle) for box in found.boxes)


def test_a_trace_may_have_the_names_of_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    """The same numbers under other names, in both passes and in the naive one; JSON too."""
    assert main(["trace", "h = x**2; h*sin(h)", "--at", "x=2", "--why-topo", "--names", "torch"]) == 0
    named = capsys.readouterr().out
    assert {"PowBackward0", "SinBackward0", "MulBackward0"} <= set(re.findall(r"\w+Backward\d", named))
    assert main(["trace", "h = x**2; h*sin(h)", "--at", "x=2", "--why-topo"]) == 0
    plain = capsys.readouterr().out
    assert "Backward0" not in plain
    numbers_of = re.compile(r"-?\d+\.\d+")
    assert numbers_of.findall(named) == numbers_of.findall(plain)
    summed = calculator.trace("sum(X, axis=0)[0] + sum(X)", at={"X": [[1.0, 2.0], [3.0, 4.0]]}, torch=True)
    assert [step.primitive for step in summed.forward if "Sum" in step.primitive] == ["SumBackward1", "SumBackward0"]
