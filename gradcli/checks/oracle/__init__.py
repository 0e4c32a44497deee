"""Exact arithmetic in its own process: `oracle_client` asks, `worker` owns the process, `oracle_server` answers."""
