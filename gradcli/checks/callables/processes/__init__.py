"""Calls of Python functions in a process of their own.

`process` owns it, `runner` runs in it, `remote_calls` are the messages.
"""
