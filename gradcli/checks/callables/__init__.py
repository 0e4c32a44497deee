"""Python functions with hand-written derivatives go in, verdicts from values alone come out: AGREES at best."""

from __future__ import annotations
