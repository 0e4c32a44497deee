"""The README as a package index shows it: without the files beside it.

Links to files become their paths in the source distribution. Pictures need an address: where `files` under
`[tool.hatch.metadata.hooks.custom]` in pyproject.toml has one, they are shown from there, otherwise left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[([^]]*)\]\((?!https:)([^)]*)\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\((?!https:|#)([^)]*)\)")


def standalone(text: str, files: str = "") -> str:
    """The text with pictures from an address only, and with paths in place of links to files."""
    shown = rf"![\1]({files.rstrip('/')}/\2)\n\n" if files else ""
    return LINK.sub(
        lambda link: f"`{link[2]}`" if link[1] == link[2] else f"{link[1]} (`{link[2]}`)", PICTURE.sub(shown, text)
    )


class Readme(MetadataHookInterface):
    """Puts the text into the metadata."""

    def update(self, metadata: dict[str, object]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = standalone(text, self.config.get("files", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
