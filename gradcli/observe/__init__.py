"""Records the run of a Python file on a library of tensors, and reads the record: graphs, and why gradients are wrong.

`run_record.py` is the record, `tensors.py` what it keeps and what an adaptor must read of a tensor. The adaptors are
`eager/run_recorder.py` for gradcli's tensors and `frameworks/torch_recorder.py` for the installed PyTorch; nothing
here imports a library of tensors. `script.py` runs the file, `graphs.py` makes rows and drawings of what it built, and
`why/` explains gradients that are None, zero, NaN or huge.
"""

from __future__ import annotations

from gradcli.observe.graphs import Graphs, drawing, graphs_of
from gradcli.observe.run_record import Watch
from gradcli.observe.script import Outcome, lines, one_line, read, report, run_file, silenced

__all__ = [
    "Graphs",
    "Outcome",
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
