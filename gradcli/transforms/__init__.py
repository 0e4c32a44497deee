"""Programs from programs: reverse mode, forward mode, and the derivative operators built on them.

The operations that this room may name are few: add, mul, neg, broadcast, reshape, sum, where, and, or, not, not_equal,
cast; `derivatives.py` unslice, concat and permute, `gathering.py` unslice, concat and put_static, `taylor.py` div.
A test reads the sources. In a loop (`loops.py`) each cotangent keeps its mask, and a carry that no cotangent has
reached is absent, not 0.
"""
