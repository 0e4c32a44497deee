"""Rules of NumPy, PyTorch and JAX as programs of gradcli's operations, recorded from what functions compute.

`operations.py` is the one table of which operation of theirs is which of ours; `aten_graph.py` and `jaxpr_graph.py`
read a graph with it, `numpy_graph.py` calls functions on arrays that record; `traced_rule.py` puts forward and backward
together for the oracles. Begin there.
"""

from __future__ import annotations
