"""Exact arithmetic in its own process: `oracle_client` owns it and sends questions, `oracle_server` answers them."""
