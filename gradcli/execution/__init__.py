"""Computes programs: namespaces, the evaluator, plans.

`evaluate.py` runs a program step by step. For a program that runs again `compiler/` records its `impl`s as steps on
arrays, which NumPy or machine code takes block by block; `cuda/` prints kernels of a GPU from the same steps.
`loops/` runs loops, by plans of their own where NumPy computes, and `emit_python.py` writes scalar programs as
functions of Python. Promises that the tests hold:

- Additions follow the shape of the arrays, never the number of threads or the GPU. Machine code contracts nothing but
  its own polynomials, so `+ - * /` and `sqrt` round as NumPy's do.
- An entry that no result reads has the derivative 0, also where the evaluator multiplies that zero by an infinity.
- Functions made of text come from `generated.py` alone.
"""
