"""What runs inside a watched process; standard library only, and nothing here raises into the user's program.

`import_hook.py` puts a watcher into each library as it is imported: `scipy_solvers.py`, `torch_functions.py`,
`jax_rules.py`, `autograd_primitives.py`. `paired_gradients.py` watches the derivatives that a file of pairs names, and
has the decorator of the public interface. They hand calls to `recorder.py`, which counts them and keeps a few, each as
a copy of the process (`snapshots.py`) that waits.
"""

from __future__ import annotations

from gradcli.audit.watching import import_hook, recorder


def start(folder: str) -> None:
    """Watch this process; what is seen is written to a folder."""
    recorder.start(folder)
    import_hook.install()
