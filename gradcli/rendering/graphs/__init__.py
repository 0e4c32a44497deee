"""Pictures of graphs: a text tree, DOT, Mermaid, SVG and a page for the browser; each format is one module."""

from __future__ import annotations
