"""The compiler of programs that run again on arrays of NumPy: it makes plans. Begin with `numpy_plan.py`.

`tracing` and `lower` iteration operations into the steps of `ir`, which `simplify` keeps few; `cores` runs what of
a loop needs one iteration after the other; `demand` leaves out what no output reads;
`schedule` decides which steps share a loop over blocks, `allocate` where results lie; `run` takes them, by the
functions of `emit_numpy` or as machine code of `emit_numba`.
"""
