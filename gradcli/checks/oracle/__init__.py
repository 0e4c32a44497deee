"""Exact arithmetic in its own process: `oracle_client` sends requests to `oracle_server`; `worker` owns the process."""
