"""Evaluation again and again: `compiled.py` is `gradcli.compile`; begin there.

`prepared.py` keeps what does not change between points, `blocks.py` cuts many points into blocks, `planning.py`
describes the plan, and `fitting.py` compares arguments with what is expected.
"""
