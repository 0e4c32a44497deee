"""The command `gradcli`, which is also `python -m gradcli`.

Until `cli` handles signals, Ctrl-C ends the process without a traceback.
"""

import signal
import sys
from importlib import import_module


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(import_module("gradcli.interfaces.cli").entry())


if __name__ == "__main__":
    main()
