"""The command `gradcli`, which is also `python -m gradcli`.

From the first line of this module until `cli` handles signals, Ctrl-C ends the process without a traceback. What comes
before it is Python's own start (`site`, `runpy`, the console script's first lines), which answers Ctrl-C by itself.
"""

import sys

# the module `signal` would first import `enum`
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

if getsignal(SIGINT) is default_int_handler:
    signal(SIGINT, SIG_DFL)


def main() -> None:
    from importlib import import_module

    sys.exit(import_module("gradcli.interfaces.cli").entry())


if __name__ == "__main__":
    main()
