"""Judges Python functions with hand-written derivatives by their recorded graphs, else by their values alone."""

from __future__ import annotations
