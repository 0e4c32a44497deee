"""Plans: programs prepared for arrays of NumPy, to be run again and again. Begin with `numpy_plan.py`.

`tracing` and `recording` turn operations into the steps of `values`; `ranges` leaves out what no output reads;
`schedule` decides which steps share a loop over blocks, `memory` where results lie; `running` and `blocks` run them.
"""
