"""Judges the hand-written gradients that a command really calls.

`watching/` runs inside the watched processes, on the standard library alone: it recognises gradients and copies the
process at some of their calls. `injected/` is the folder that brings it there. `judging.py` checks a gradient inside a
copy, and names what is not wrong although it is no derivative. `command.py` runs the command and has its copies judged
one by one; `audit_report.py` makes one verdict of them. Begin with `command.py`.

Pairs of functions and derivatives are recognised in source by their names (`pairs.py`, `source_scan.py`) and watched
like the others. `conventions.py` finds out by trying how a derivative belongs to its function, and `guesses.py` what
may be said of a pair that is only a guess. `pair_calls.py` calls pairs where no command does.
"""

from __future__ import annotations
