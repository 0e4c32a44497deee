"""Value and gradient of a script at each row of a file, in bounded memory.

Begin in `sweep`; `sources` reads the points, `sinks` are the files of the results.
"""

from __future__ import annotations

from gradcli.batch.points.result_table import unfinished
from gradcli.batch.points.sweep import Summary, answer_points

__all__ = ["Summary", "answer_points", "unfinished"]
