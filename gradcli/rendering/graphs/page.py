"""A graph as one HTML file: a drawing to pan and zoom, both directions, facts at the pointer, groups that open.

The file needs no network: style and script are in it, and the script reads only the drawing. A small graph is drawn
here (`drawn.js` shows it); a large one is written as groups (`groups.js` lays out those that are open).
"""

from __future__ import annotations

from html import escape as escaped
from importlib.resources import files

from gradcli.rendering.graphs.grouped import embedded
from gradcli.rendering.graphs.picture import picture
from gradcli.rendering.graphs.svg import svg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.rendering.document import Style

CONTROLS = (
    '<input id="search" type="search" placeholder="search (/)" aria-label="search"><span id="hits"></span>'
    '<button id="open" type="button">open all</button><button id="close" type="button">close</button>'
)


def page(graph: Graph, style: Style, *, backward: bool, torch: bool, most: int, text: str = "") -> str:
    """The page as HTML; above `most` nodes with groups that open and close. `text` is HTML to stand beside it."""
    large = len(graph.vertices) > most
    if large:
        drawing = '<canvas class="stage" role="img" aria-label="graph"></canvas>'
        drawing += f'<script id="graph" type="application/json">{embedded(graph, style, torch, backward)}</script>'
        usage = '<span id="count"></span>; click a group to open or close it, drag to move, wheel to zoom'
    else:
        drawn = picture(graph, style, torch=torch, most=most)
        drawing = svg(drawn, backward).replace('class="gradcli ', 'class="stage gradcli ', 1)
        usage = f"one box per operation, {len(drawn.boxes)} boxes; drag to move, wheel to zoom, point at a box"
    words = {
        "TITLE": escaped(" ; ".join(graph.expression.split("\n"))[:160]),
        "CONTROLS": CONTROLS if large else "",
        "TOLD": usage,
        "CHECKED_FORWARD": "" if backward else " checked",
        "CHECKED_BACKWARD": " checked" if backward else "",
        "TEXT": f"<aside>{text}</aside>" if text else "",
        "DRAWING": drawing,
        "SCRIPT": resource("groups.js" if large else "drawn.js"),
    }
    parts = resource("page.html").split("%%")
    return "".join(words[part] if at % 2 else part for at, part in enumerate(parts))


def plain_page(text: str, title: str) -> str:
    """A page of HTML without a graph."""
    head, _, _ = resource("page.html").partition("<body>")
    return head.replace("%%TITLE%%", escaped(title)) + f"<body><aside>{text}</aside></body></html>\n"


def resource(name: str) -> str:
    """The text of a file in this folder."""
    return files("gradcli.rendering.graphs").joinpath(name).read_text(encoding="utf-8")
