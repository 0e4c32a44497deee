"""The base of this package: the tensor, the nodes of the graph, dtypes, devices, modes and printing.

Begin with `tensor.py` (the payload and its flags) and `node.py` (what an operation remembers). Nothing here computes.
"""
