"""Loops while a program runs: iteration by iteration (`scan.py`), or as code made for them (`compiled_scan.py`)."""
