"""A picture goes in, one HTML file comes out: the drawing to pan and zoom, both directions, facts under the pointer.

The file needs no network: style and script stand inside, and the script reads nothing but the drawing.
"""

from __future__ import annotations

from importlib.resources import files

from gradcli.execution.results import escaped
from gradcli.rendering.graphs.svg import svg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.rendering.graphs.picture import Picture


def page(picture: Picture, backward: bool = False) -> str:
    """The page as text; raises GradcliError GC510 where the drawing is too large."""
    template = files("gradcli.rendering.graphs").joinpath("page.html").read_text(encoding="utf-8")
    title = " ; ".join(picture.title.split("\n"))
    told = "one box per source line" if picture.folded else "one box per operation"
    words = {
        "TITLE": escaped(title[:160]),
        "TOLD": f"{told}, {len(picture.boxes)} boxes",
        "CHECKED_FORWARD": "" if backward else " checked",
        "CHECKED_BACKWARD": " checked" if backward else "",
        "DRAWING": svg(picture, backward),
    }
    parts = template.split("%%")
    return "".join(words[part] if at % 2 else part for at, part in enumerate(parts))
