"""Judges Python functions with hand-written derivatives from values alone: AGREES at best."""

from __future__ import annotations
