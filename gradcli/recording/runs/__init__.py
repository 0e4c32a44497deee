"""Records the run of a Python file on any library of tensors, and draws what it built.

`run_record.py` is the record, `tensors.py` what it keeps and what an adaptor must read of a tensor; the adaptors are
in `libraries/`. `script_run.py` runs the file, and `run_graphs.py` draws its graphs. `why/` explains gradients.
"""

from __future__ import annotations

from gradcli.recording.runs.run_graphs import Graphs, drawing, graphs_of
from gradcli.recording.runs.run_record import Watch
from gradcli.recording.runs.script_run import RunOutcome, lines, one_line, read, report, run_file, silenced

__all__ = [
    "Graphs",
    "RunOutcome",
    "Watch",
    "drawing",
    "graphs_of",
    "lines",
    "one_line",
    "read",
    "report",
    "run_file",
    "silenced",
]
