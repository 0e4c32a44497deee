"""The README as a package index shows it: without the files beside it, so without pictures and links to them."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^]]*\]\((?!https:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\((?!https:|#)([^)]*)\)")


def standalone(text: str) -> str:
    """The text without pictures from files, and with paths in the source distribution in place of links to them."""
    return LINK.sub(
        lambda link: f"`{link[2]}`" if link[1] == link[2] else f"{link[1]} (`{link[2]}`)", PICTURE.sub("", text)
    )


class Readme(MetadataHookInterface):
    """Puts the text into the metadata."""

    def update(self, metadata: dict[str, object]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": standalone(text)}
