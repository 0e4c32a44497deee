"""From a declared operation to a value, a node and a gradient.

Begin with `record.py` (an operation runs and leaves a node) and `backward.py` (the sweep). `plan.py` derives value and
gradients from the declaration, `codegen.py` prints them as Python functions, `fastpath.py` generates what is called
often.
"""
