"""A file of points and a script go in, a value and a gradient per row come out, block by block in bounded memory."""

from __future__ import annotations

from gradcli.batch.points.results import unfinished
from gradcli.batch.points.sweep import Summary, answer_points

__all__ = ["Summary", "answer_points", "unfinished"]
