"""The operations of `torch` and the methods of its tensors, one file for each kind.

Begin with `elementwise.py`. Each file has a TABLE from PyTorch's names to functions; `tensor_methods.py` makes methods
and operators of them.
"""
