"""Repeated evaluation, for `gradcli.compile` (`interfaces/compiled_function.py`); begin in `compiled.py`.

`prepared.py` keeps everything that does not change between points, `blocks.py` divides many points into blocks,
`planning.py` describes the plan, and `argument_shapes.py` checks the shapes of arguments.
"""
