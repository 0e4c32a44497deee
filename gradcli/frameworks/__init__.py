"""Functions and runs of NumPy, PyTorch and JAX, read as if they ran on our tensors.

`gradient_libraries.py` recognises the library of a function, `call_arguments.py` reads its arguments, and `box.py`
calls it and its derivative. `operations.py` is the one table of which operation of theirs is which of ours;
`aten_graph.py` and `jaxpr_graph.py` read a graph with it, `numpy_graph.py` calls functions on arrays that record;
`traced_rule.py` puts forward and backward together, for the oracles of `checks/` to judge, and `function_program.py`
for `gradcli.record`. `torch_recorder.py` watches a run of the installed PyTorch and feeds the record of `observe/`;
`torch_tensors.py` reads its tensors. Nothing here judges or imports a framework: its caller has.
"""

from __future__ import annotations
