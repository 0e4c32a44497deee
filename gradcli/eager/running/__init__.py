"""Runs a Python file as a script, with `torch` standing for these tensors, and records it."""

from __future__ import annotations

from gradcli.eager.running.graphs import Graphs, drawing, graphs_of
from gradcli.eager.running.script import (
    Finder,
    Outcome,
    aliases,
    hushed,
    installed,
    lines,
    read,
    report,
    run_file,
    told,
)
from gradcli.eager.running.watch import Watch

__all__ = [
    "Finder",
    "Graphs",
    "Outcome",
    "Watch",
    "aliases",
    "drawing",
    "graphs_of",
    "hushed",
    "installed",
    "lines",
    "read",
    "report",
    "run_file",
    "told",
]
