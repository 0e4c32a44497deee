"""Graphs as trees, DOT, Mermaid, SVG and pages: what is drawn is what was computed, and no text of a user acts."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces.cli import main
from gradcli.rendering.document import Style
from gradcli.rendering.graphs import formats, svg
from gradcli.rendering.graphs.layout import FAR, ascending, inversions, layout, ranks
from gradcli.rendering.graphs.picture import picture
from tests.rendering.test_schema import validator
from tests.support.rows import all_rows

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = Style()
LOOP = "x = [0.2, 0.4]\nh = x\ns = 0\nfor i in range(60):\n    h = tanh(h*1.5)\n    s = s + sum(h**2)\nlog(s)\n"


def drawn(form: str, script: str = "(x*y + x)**2", at: object = None, **options: object) -> str:
    options = {"gradient": False, **options}
    graph = calculator.graph(script, at={"x": 2, "y": 3} if at is None else at, gradient=options.pop("gradient"))
    return formats.text(form, graph, PLAIN, **options)


# --- what is drawn ----------------------------------------------------------------------------------------------


def test_tree() -> None:
    """The example of the help, line by line."""
    assert drawn("tree").splitlines() == [
        "(x*y + x)**2",
        "",
        "power       64.0  f64  (x*y + x)**2",
        "└─ add      8.0   f64  x*y + x",
        "   ├─ mul   6.0   f64  x*y",
        "   │  ├─ x  2.0   f64",
        "   │  └─ y  3.0   f64",
        "   └─ x     2.0   f64",
    ]


def test_backward_tree_tells_what_is_received_and_held() -> None:
    lines = drawn("tree", backward=True).splitlines()
    assert lines[5] == "   │  ├─ x  receives 48.0  holds 64.0"
    assert lines[7] == "   └─ x     receives 16.0  holds 64.0"


def test_names_of_pytorch() -> None:
    text = drawn("tree", torch=True)
    assert [line.split("─ ")[-1].split("  ")[0] for line in text.splitlines()[2:]] == [
        "PowBackward0", "AddBackward0", "MulBackward0", "x AccumulateGrad", "y AccumulateGrad", "x AccumulateGrad",
    ]  # fmt: skip


def test_graph_agrees_with_the_gradient() -> None:
    """The cotangents of leaves are the gradient, and the sum of what comes back; every value is the trace's."""
    script, at = "z = sin(x)*y\nsum(z*z) + dot(x, x)", {"x": [0.3, 0.8], "y": 2.0}
    graph = calculator.graph(script, at=at)
    gradient = calculator.grad(script, at=at).gradient
    trace = calculator.trace(script, at=at)
    assert [str(one.value) for one in graph.vertices] == [str(step.value) for step in trace.forward]
    for leaf in ("x", "y"):
        vertex = next(one for one in graph.vertices if one.name == leaf)
        assert str(vertex.cotangent) == str(gradient[leaf])
        back = [
            sent for one in graph.vertices for read, sent in zip(one.inputs, one.sent, strict=True)
            if read == vertex.index
        ]  # fmt: skip
        assert sum(back) == pytest.approx(gradient[leaf], rel=1e-15)


def test_without_a_point_there_are_types_and_no_numbers() -> None:
    graph = calculator.graph("x*y + x")
    assert all(one.value is None and one.cotangent is None for one in graph.vertices)
    assert {one.type for one in graph.vertices} == {"f64"}
    assert "None" not in drawn("tree", "x*y + x", at={})


def test_gradient_is_part_of_the_graph() -> None:
    graph = calculator.graph("x**3*y", at={"x": 2, "y": 5}, gradient=True)
    assert {name: graph.vertices[at].value for name, at in graph.gradient.items()} == {"x": 60.0, "y": 8.0}
    assert "d/dx: " in drawn("tree", "x**3*y", gradient=True)
    with pytest.raises(GradcliError) as problem:
        calculator.graph("[x, y]", gradient=True)
    assert problem.value.diagnostics[0].code == "GC307"


def test_several_outputs_and_arrays() -> None:
    graph = calculator.graph("x = [1, 2, 3]\n[x[0]*x[1], x[2]]")
    assert len(graph.outputs) == 1
    assert drawn("svg", "x = [1, 2, 3]\n[x[0]*x[1], x[2]]", at={})


def test_an_operand_that_is_read_twice_has_two_arrows() -> None:
    found = picture(calculator.graph("x*x", at={"x": 3}), PLAIN)
    assert [(arrow.start, arrow.end, arrow.sent) for arrow in found.arrows] == [(0, 1, "3.0"), (0, 1, "3.0")]


def test_large_graphs_are_drawn_by_source_line() -> None:
    graph = calculator.graph(LOOP)
    found = picture(graph, PLAIN)
    assert found.folded
    assert [box.title for box in found.boxes] == [
        "x", "line 5: h = tanh(h*1.5)", "line 6: s = s + sum(h**2)", "line 7: log(s)",
    ]  # fmt: skip
    assert not picture(graph, PLAIN, most=1000).folded
    assert len(picture(graph, PLAIN, most=1000).boxes) == len(graph.vertices)


# --- of Python files ---------------------------------------------------------------------------------------------

NETWORK = """import torch
W = torch.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
b = torch.zeros(2, requires_grad=True)
x = torch.tensor([[1.0, 2.0]])
first = (W * W).sum()
h = torch.relu(x @ W + b)
loss = (h * h).sum()
print("the file prints")
loss.backward()
"""


def of_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> tuple[int, str, str]:
    path = tmp_path / "net.py"
    path.write_text(text)
    code = main(["graph", str(path), *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_python_file_is_drawn_as_its_last_backward_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = of_file(tmp_path, capsys, NETWORK, "--format", "json")
    assert code == 0
    payload = json.loads(out)
    validator("graph").validate(payload)
    names = [node["torch"] for node in payload["nodes"]]
    assert names == [
        "AccumulateGrad", "MmBackward0", "AccumulateGrad", "AddBackward0", "ReluBackward0", "MulBackward0",
        "SumBackward0",
    ]  # fmt: skip
    by_name = {node["name"]: node for node in payload["nodes"]}
    assert by_name["b"]["cotangent"] == [4.0, 8.0]
    assert by_name["W"]["cotangent"] == [[4.0, 8.0], [8.0, 16.0]]
    product = payload["nodes"][5]
    assert product["inputs"] == [4, 4]
    assert product["sent"] == [[[2.0, 4.0]], [[2.0, 4.0]]]
    assert product["line"] == 7


def test_a_python_file_without_a_backward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = NETWORK.replace("loss.backward()", "")
    code, out, _ = of_file(tmp_path, capsys, text)
    assert code == 0
    assert "the file prints" not in out
    assert "first: sum" in out and "loss: sum" in out
    _, named, _ = of_file(tmp_path, capsys, text, "--names", "torch")
    assert "first: SumBackward0" in named and "loss: SumBackward0" in named


@pytest.mark.parametrize(
    ("text", "options", "code", "told"),
    [
        ("x = 1\n", [], 2, "built no graph"),
        (NETWORK, ["--at", "x=1"], 2, "--at is for scripts"),
        (NETWORK, ["--view", "gradient"], 2, "--view gradient is for scripts"),
        (NETWORK + "raise SystemExit(3)\n", [], 3, ""),
        (NETWORK + "1/0\n", [], 1, 'net.py", line 10'),
    ],
)
def test_python_files_that_cannot_be_drawn(
    text: str, options: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = of_file(tmp_path, capsys, text, *options)
    assert found == code
    assert told in err
    assert err.count("File") == err.count("Traceback") == (code == 1), "a traceback of its own frames only"


# --- the formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("script", ["(x*y + x)**2", LOOP, "x", "3", "sum(softmax([x, y, x*y]))"])
def test_svg_is_well_formed_and_complete(script: str, backward: bool) -> None:
    text = drawn("svg", script, backward=backward)
    root = ElementTree.fromstring(text)
    assert root.get("class") == f"gradcli show-{'backward' if backward else 'forward'}"
    count = len(picture(calculator.graph(script, at={"x": 2, "y": 3}), PLAIN).boxes)
    assert len([one for one in root.iter(f"{SVG}g") if (one.get("class") or "").startswith("box")]) == count
    assert not re.search(r"href|url\(|@import", text)


@pytest.mark.parametrize("form", ["tree", "dot", "mermaid", "svg", "html"])
def test_texts_of_users_do_not_act(form: str) -> None:
    """Markup, quotes and line breaks of a script arrive as text."""
    script = 'a = x # <script>alert(1)</script>\nb = a*2 # "quoted" \\ `tick`\n' + "b = b + x\n" * 80 + "b"
    text = drawn(form, script)
    assert "<script>alert" not in text
    if form == "dot":
        assert text.count("{") == text.count("}") == 1
        for label in re.findall(r'label="((?:[^"\\]|\\.)*)"', text):
            assert "\n" not in label
    if form == "svg":
        ElementTree.fromstring(text)


def test_page_stands_alone() -> None:
    """No address of anything outside; a policy that forbids it; both directions; the facts of every box."""
    text = drawn("html")
    assert not re.search(r"(src|href)\s*=", text)
    assert re.findall(r"https?://[^\s\"'<]+", text) == ["http://www.w3.org/2000/svg"]
    assert "default-src 'none'" in text
    assert "%%" not in text
    for fact in ("type: f64", "cotangent: 16.0", "source: 1:2", "expression: x*y"):
        assert fact in text


def test_mermaid_and_dot_have_every_arrow() -> None:
    found = picture(calculator.graph("(x*y + x)**2"), PLAIN)
    assert drawn("mermaid").count(" --> ") == len(found.arrows) == drawn("dot").count(" -> ")
    assert '|"48.0"|' in drawn("mermaid", backward=True)
    assert 'n2 -> n0 [label="48.0"]' in drawn("dot", backward=True)


def test_json_obeys_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--at", "x=2,y=3"], [], ["--view", "gradient"]):
        assert main(["graph", "(x*y+x)**2", *arguments, "--format", "json"]) == 0
        payload = json.loads(capsys.readouterr().out)
        validator("graph").validate(payload)
        assert [node["index"] for node in payload["nodes"]] == list(range(len(payload["nodes"])))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.svg", "<svg"), ("a.html", "<!doctype html>"), ("a.dot", "digraph"), ("a.gv", "digraph"),
        ("a.mmd", "flowchart"), ("a.md", "flowchart"), ("a.json", '{"schema_version"'), ("a.txt", "x*y"),
    ],
)  # fmt: skip
def test_the_ending_chooses_the_format(name: str, start: str, tmp_path: Path) -> None:
    assert main(["graph", "x*y", "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text().startswith(start)


def test_other_commands_have_no_drawings(tmp_path: Path) -> None:
    assert main(["grad", "x*y", "--at", "x=2,y=3", "--output", str(tmp_path / "a.svg")]) == 2
    assert not (tmp_path / "a.svg").exists()


def test_too_large_a_drawing_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deep.grad"
    path.write_text("y = x\nfor i in range(9000):\n    y = sin(y)\ny\n")
    assert main(["graph", str(path), "--max-nodes", "100000", "--output", str(tmp_path / "a.svg")]) == 2
    assert "GC510" in capsys.readouterr().err
    assert not (tmp_path / "a.svg").exists()
    assert main(["graph", str(path), "--max-nodes", "100000", "--format", "dot"]) == 0
    assert capsys.readouterr().out.count(" -> ") == 9000
    assert main(["graph", str(path), "--max-nodes", "100000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9003
    assert max(map(len, lines)) < 400


# --- the layout -----------------------------------------------------------------------------------------------


def some_graph(seed: int) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    choose = random.Random(seed)
    count = choose.randrange(1, 40)
    sizes = [(choose.uniform(30, 200), choose.choice([29.0, 46.0])) for _ in range(count)]
    arrows = [(choose.randrange(end), end) for end in range(1, count) for _ in range(choose.randrange(3))]
    return sizes, arrows


@all_rows("seed", range(60))
def test_boxes_do_not_overlap_and_arrows_point_down(seed: int) -> None:
    sizes, arrows = some_graph(seed)
    found = layout(sizes, arrows)
    boxes = list(zip(found.places, sizes, strict=True))
    for ((x0, y0), (w0, h0)), ((x1, y1), (w1, h1)) in itertools.combinations(boxes, 2):
        assert abs(x0 - x1) >= (w0 + w1) / 2 - 1e-6 or abs(y0 - y1) >= (h0 + h1) / 2 - 1e-6
    for (start, end), route in zip(arrows, found.routes, strict=True):
        assert route[0] == found.places[start] and route[-1] == found.places[end]
        heights = [y for _, y in route]
        assert heights == sorted(heights) and heights[0] < heights[-1]
    for (x, y), (wide, tall) in boxes:
        assert wide / 2 - 1e-6 <= x <= found.width - wide / 2 + 1e-6
        assert tall / 2 - 1e-6 <= y <= found.height - tall / 2 + 1e-6
    assert found == layout(sizes, arrows)


def test_layers_crossings_and_places() -> None:
    assert ranks(5, [(0, 1), (1, 2), (3, 2), (0, 4)]) == [0, 1, 2, 1, 1]
    assert inversions([3, 2, 1, 0]) == 6
    for seed in range(200):
        choose = random.Random(seed)
        numbers = [choose.randrange(9) for _ in range(choose.randrange(9))]
        slow = sum(one > other for one, other in itertools.combinations(numbers, 2))
        assert inversions(numbers) == slow
    assert ascending([3.0, 1.0, 2.0, 9.0]) == [2.0, 2.0, 2.0, 9.0]


def test_long_arrows_run_in_lanes_at_the_left() -> None:
    """A leaf that each step of a long chain reads: few bends an arrow, a narrow drawing, and nothing left of it."""
    steps = range(2, 402)
    arrows = [(step - 1, step) for step in steps] + [(0, step) for step in steps]
    found = layout([(40.0, 30.0)] * 402, arrows)
    assert max(len(route) for route in found.routes) <= 2 + 2 * FAR
    assert found.width < 400
    assert min(x for route in found.routes for x, _ in route) >= 0
    lanes = {x for route in found.routes[-300:] for x, _ in route[1:-1]}
    assert len(lanes) == 1 and min(lanes) < min(x - 20 for x, _ in found.places)


def test_curves_stay_inside_the_picture() -> None:
    """A curve through a lane of many layers does not swing out at its ends: each is drawn within the width."""
    choose = random.Random(1)
    steps = [f"x{i} = sin(x{choose.randrange(max(0, i - 5), i)}) + x{choose.randrange(i)}" for i in range(1, 100)]
    text = drawn("svg", "\n".join(["x0 = 0.5", *steps, "x99"]))
    size = re.search(r'width="(\d+)"', text)
    paths = re.findall(r'<path d="(M[^"]+)"', text)
    assert size is not None and len(paths) > 150
    places = []
    for path in paths:
        points = [float(number) for number in re.findall(r"(-?[\d.]+),", path)]
        for x0, x1, x2, x3 in zip(*(points[k:][::3] for k in range(4)), strict=False):
            places += [
                (1 - t) ** 3 * x0 + 3 * t * (1 - t) * ((1 - t) * x1 + t * x2) + t**3 * x3 for t in (0, 0.2, 0.5, 0.8)
            ]
    assert min(places) >= -svg.MARGIN and max(places) <= float(size[1])


def test_terms_of_a_long_sum_stand_above_it() -> None:
    """Each term reads one leaf: it stands in the layer above its addition, not at the top."""
    count = 300
    arrows = [(0, term) for term in range(1, count + 1)] + [(term, count + term) for term in range(1, count + 1)]
    arrows += [(count + term, count + term + 1) for term in range(1, count)]
    found = layout([(40.0, 30.0)] * (2 * count + 1), arrows)
    heights = sorted({y for _, y in found.places})
    for term in range(1, count + 1):
        assert heights.index(found.places[count + term][1]) - heights.index(found.places[term][1]) == 1


@pytest.mark.parametrize("seed", range(8))
def test_large_graphs_with_lanes_have_no_overlaps(seed: int) -> None:
    """Boxes stay apart, lanes lie left of all boxes, and arrows that are in one lane at once come from one box."""
    choose = random.Random(seed)
    count = 200
    arrows = [(end - 1, end) for end in range(1, count)] + [(choose.randrange(end), end) for end in range(1, count)]
    found = layout([(40.0, 30.0)] * count, arrows)
    assert len(set(found.places)) == count
    taken: dict[float, list[tuple[float, float, int]]] = {}
    for (start, end), route in zip(arrows, found.routes, strict=True):
        x = route[1][0]
        if end - start > 20:
            assert len(route) == 6 and x < min(place[0] for place in found.places) - 20
            taken.setdefault(x, []).append((route[1][1], route[-2][1], start))
    for spans in taken.values():
        for (top, bottom, one), (other_top, other_bottom, other) in itertools.combinations(spans, 2):
            assert one == other or bottom < other_top or other_bottom < top


def test_a_tree_is_drawn_without_crossings() -> None:
    """A full binary tree in a bad order."""
    arrows = [(2 * node + 1, node) for node in range(15)] + [(2 * node + 2, node) for node in range(15)]
    turned = [(30 - start, 30 - end) for start, end in arrows]
    random.Random(1).shuffle(turned)
    found = layout([(40.0, 30.0)] * 31, turned)
    x = [place[0] for place in found.places]
    for one, other in itertools.combinations(turned, 2):
        if found.places[one[0]][1] == found.places[other[0]][1] and one[1] != other[1]:
            assert (x[one[0]] - x[other[0]]) * (x[one[1]] - x[other[1]]) >= 0


def test_the_picture_of_the_readme_is_what_is_drawn_now() -> None:
    path = Path(__file__).parents[2] / "samples" / "pictures" / "graph.svg"
    assert path.read_text() == drawn("svg", backward=True) + "\n"
