"""Rules of PyTorch and JAX as programs of gradcli's operations: what `torch.fx` and jaxprs record, translated.

`operations.py` is the one table of which operation of theirs is which of ours; `aten_graph.py` and `jaxpr_graph.py`
read a graph with it; `traced_rule.py` puts forward and backward together for the oracles. Begin there.
"""

from __future__ import annotations
