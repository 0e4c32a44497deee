"""Pictures as text: a tree for the terminal, DOT for Graphviz, Mermaid for Markdown."""

from __future__ import annotations

from gradcli.rendering.graphs.picture_boxes import shortened
from gradcli.rendering.safe_text import pad, visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.rendering.graphs.picture_boxes import Box, Picture

DEEPEST = 24  # levels of a tree that are indented; below, the level is given by its number
MOST_TEXT = 60  # characters of an expression in a tree
FILLS = {
    "leaf": "#dbeafe",
    "constant": "#f1f5f9",
    "operation": "#ffffff",
    "output": "#dcfce7",
    "gradient": "#ffedd5",
}


# --- a tree -----------------------------------------------------------------------------------------------------


def tree(picture: Picture, backward: bool = False) -> str:
    """A tree from the outputs to what they read; a box that is read twice is drawn once, then only named.

    In the backward view, each line shows what is sent along the arrow, and the cotangent.
    """
    rows = list(tree_rows(picture, backward))
    sizes = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(pad, row, sizes)).rstrip() for row in rows]
    return "\n".join([visible(picture.title.replace("\n", "; ")), "", *lines])


def tree_rows(picture: Picture, backward: bool) -> Iterator[tuple[str, ...]]:
    """The columns of each line: the branch with its name, and what is known of it."""
    reads: list[list[tuple[int, str]]] = [[] for _ in picture.boxes]
    read: set[int] = set()
    for arrow in picture.arrows:
        reads[arrow.end].append((arrow.start, arrow.sent))
        if arrow.start != arrow.end:
            read.add(arrow.start)
    roots = [at for at, box in enumerate(picture.boxes) if at not in read or box.kind == "output"]
    seen: set[int] = set()
    pending = [(at, "", "", "", 0) for at in reversed(roots)]
    while pending:
        at, sent, branch, inner, level = pending.pop()
        box = picture.boxes[at]
        again = at in seen
        name = f"{branch}{visible(box.title)}"
        known_facts = facts(box, sent, backward)
        if again:
            yield (name, *(known_facts if box.kind in ("leaf", "constant") or backward else ("(above)", "", "")))
            continue
        seen.add(at)
        yield (name, *known_facts)
        below = reads[at]
        for place in range(len(below) - 1, -1, -1):
            other, back = below[place]
            last = place == len(below) - 1
            if level < DEEPEST:
                pending.append(
                    (other, back, inner + ("└─ " if last else "├─ "), inner + ("   " if last else "│  "), level + 1)
                )
            else:
                pending.append((other, back, f"{inner[: 3 * DEEPEST]}[{level + 1}] ", inner, level + 1))


def facts(box: Box, sent: str, backward: bool) -> tuple[str, ...]:
    """The facts after a name in the tree: value, type and expression, or what is received and held."""
    if backward:
        return (f"receives {sent}" if sent else "", f"holds {box.cotangent}" if box.cotangent else "")
    known = dict(box.facts)
    expression = known.get("each iteration", known.get("expression", known.get("operations", "")))
    named = expression == box.title or box.kind == "leaf"
    text = "" if named else visible(shortened(expression, MOST_TEXT))
    if "own rule" in known:
        text = f"{text}  ({visible(shortened(known['own rule'], MOST_TEXT))})"
    return visible(box.value), known.get("type", ""), text


# --- DOT ------------------------------------------------------------------------------------------------------


def dot(picture: Picture, backward: bool = False) -> str:
    """The graph in the language of Graphviz: `dot -Tpng graph.dot -o graph.png`."""
    lines = ["digraph gradcli {", '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=11];']
    lines.append(f'  label="{dot_text(picture.title)}"; labelloc=t; fontname="monospace";')
    for at, box in enumerate(picture.boxes):
        if backward and box.idle:
            continue  # nothing is sent back to it
        label = dot_text("\n".join(words(box, backward)))
        lines.append(f'  n{at} [label="{label}", fillcolor="{FILLS[box.kind]}"];')
    for arrow in picture.arrows:
        if backward and not arrow.live:
            continue
        if backward:
            label = f' [label="{dot_text(arrow.sent)}"]' if arrow.sent else ""
            lines.append(f"  n{arrow.end} -> n{arrow.start}{label};")
        else:
            lines.append(f"  n{arrow.start} -> n{arrow.end};")
    return "\n".join([*lines, "}"])


def words(box: Box, backward: bool) -> list[str]:
    """The lines of a box: its title, and its value or its cotangent."""
    second = box.cotangent if backward else box.value
    return [visible(box.title), visible(second)] if second and second != box.title else [visible(box.title)]


def dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- Mermaid ------------------------------------------------------------------------------------------------------

HTML = {38: "#amp;", 34: "#quot;", 60: "#lt;", 62: "#gt;", 35: "#35;", 96: "#96;", 10: " "}


def mermaid(picture: Picture, backward: bool = False) -> str:
    """The graph as a Mermaid flowchart, which many Markdown viewers draw."""
    lines = ["flowchart TD"]
    for at, box in enumerate(picture.boxes):
        if backward and box.idle:
            continue
        label = "<br/>".join(line.translate(HTML) for line in words(box, backward))
        start, end = ("([", "])") if box.kind in ("leaf", "constant") else ("[", "]")
        lines.append(f'  n{at}{start}"{label}"{end}:::{box.kind}')
    for arrow in picture.arrows:
        if backward and not arrow.live:
            continue
        if backward:
            label = f'|"{arrow.sent.translate(HTML)}"|' if arrow.sent else ""
            lines.append(f"  n{arrow.end} -->{label} n{arrow.start}")
        else:
            lines.append(f"  n{arrow.start} --> n{arrow.end}")
    lines += [f"  classDef {kind} fill:{fill},stroke:#64748b,color:#0f172a" for kind, fill in FILLS.items()]
    return "\n".join(lines)
