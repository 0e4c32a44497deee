"""How people and programs reach gradcli: the command line, the prompt, notebooks, and functions of Python.

Begin in `cli.py`, which reads a command line and runs a file of `commands/`. `options/` reads command lines and
settings, `command_parts/` holds what several commands share, and `output.py` writes results.
"""
