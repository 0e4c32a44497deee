"""Repeated evaluation: `compiled.py` is `gradcli.compile`; begin there.

`prepared.py` keeps everything that does not change between points, `blocks.py` divides many points into blocks,
`planning.py` describes the plan, and `fitting.py` checks the shapes of arguments.
"""
