"""The processes that check cases: on this machine under a supervisor, or on a Dask cluster.

Begin in `supervisor`, which gives each process (`local_worker`) one case at a time; `cluster` does the same with the
workers of Dask (`dask_worker`). `transport` turns reports into JSON data and back.
"""
