"""The text of a node is what `ast.get_source_segment` says, without dividing the whole file for each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from gradcli.recording.runs.source_tree import SourceTree

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = (
    "größe = [ä + 'ü' for ä in range(3)]; β = größe[0]\n",
    'def f(x,\n      y="é"):\n    return (x\n            + y)\n\nf("""a\nb""", "c")  # ende',
    "a = 1\r\nb = f(a,\r\n      2)\r\n",
)


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_a_node(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    tree = SourceTree(str(path))
    nodes = [node for node in ast.walk(tree.root) if isinstance(node, (ast.stmt, ast.expr))]
    assert nodes
    for node in nodes:
        assert tree.source(node) == ast.get_source_segment(tree.text, node)
