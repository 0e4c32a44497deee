"""Plans for a GPU (CuPy); programs without one are left to the evaluator.

Steps are those of `compiler/lower.py`. `fuse` puts operations entry by entry into one kernel, with the sums over
the same entries, `emit` and `kernels` write its text, `plan` runs it. Matrix products and factorisations are CuPy's
own. Nothing of this is imported unless the backend is `cupy`.
"""
