"""Judges the hand-written gradients that a command really calls.

`watching/` runs inside the watched processes, on the standard library alone: it recognises gradients and copies the
process at some of their calls. `injected/` is the folder that brings it there. `judging.py` checks a gradient inside a
copy, and names what is not wrong although it is no derivative. `command.py` runs the command and has its copies judged
one by one; `audit_report.py` makes one verdict of them. Begin with `command.py`.
"""

from __future__ import annotations
