"""A graph and the name of a format go in, the text of that format comes out; the one table of formats."""

from __future__ import annotations

from importlib import import_module

from gradcli.rendering.graphs.picture import MOST_BOXES, payload, picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.execution.graphs import Graph
    from gradcli.rendering.document import Style

__all__ = ["payload", "text"]

WRITERS = {"tree": "words", "dot": "words", "mermaid": "words", "svg": "svg", "html": "page"}


def text(
    form: str, graph: Graph, style: Style, *, backward: bool = False, torch: bool = False, most: int = MOST_BOXES
) -> str:
    """The graph as a tree, DOT, Mermaid, SVG or an HTML page."""
    module = import_module(f"gradcli.rendering.graphs.{WRITERS[form]}")
    writer = getattr(module, {"html": "page"}.get(form, form))
    drawn: str = writer(picture(graph, style, torch=torch, most=most, short=form != "tree"), backward)
    return drawn
