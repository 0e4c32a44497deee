"""The table of picture formats, and the function that draws a graph in one of them."""

from __future__ import annotations

from importlib import import_module

from gradcli.base.diagnostics import error, visible
from gradcli.rendering.document import Style
from gradcli.rendering.graphs.picture import payload, picture
from gradcli.rendering.graphs.picture_boxes import MOST_BOXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.rendering.document import Document

__all__ = ["form_of", "payload", "saved", "text"]

WRITERS = {"tree": "words", "dot": "words", "mermaid": "words", "svg": "svg", "html": "page"}
ENDINGS = {"svg": "svg", "html": "html", "dot": "dot", "gv": "dot", "mmd": "mermaid"}


def text(
    form: str, graph: Graph, style: Style, *, backward: bool = False, torch: bool = False, most: int = MOST_BOXES
) -> str:
    """The graph as a tree, DOT, Mermaid, SVG or an HTML page."""
    module = import_module(f"gradcli.rendering.graphs.{WRITERS[form]}")
    if form == "html":
        return str(module.page(graph, style, backward=backward, torch=torch, most=most))
    return str(getattr(module, form)(picture(graph, style, torch=torch, most=most, short=form != "tree"), backward))


def beside(graph: Graph | None, document: Document, title: str) -> str:
    """A page with a document, and the graph that can be moved and searched beside it, if there is one."""
    module = import_module("gradcli.rendering.graphs.page")
    text = import_module("gradcli.rendering.tabular").html(document)
    if graph is None:
        return str(module.plain_page(text, title))
    return str(module.page(graph, Style(), backward=True, torch=True, most=MOST_BOXES, text=text))


def form_of(path: str) -> str:
    """The format for the ending of a file's name. Raises GradcliError (GC721) for an unknown ending."""
    form = ENDINGS.get(path.rpartition(".")[2].lower())
    if form is None:
        raise error("GC721", f"{visible(path, 200)} names no format of a graph", help="use .svg, .html, .dot or .mmd")
    return form


def saved(path: str, graph: Graph, *, backward: bool = False) -> str:
    """The text of a file of this name."""
    return text(form_of(path), graph, Style(), backward=backward)
