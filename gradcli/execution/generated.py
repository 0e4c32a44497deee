"""Makes functions from generated source text; the only place in the package that does so.

User text never reaches it: printers check the names of leaves first, and everything else is a constant of
the printer. The text holds one `def` and nothing is run: the code of that `def` becomes the function.
"""

from __future__ import annotations

from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BACKGROUND = "gradcli code"


def function(text: str, scope: dict[str, Any], title: str = "generated") -> Callable[..., Any]:
    """The function that a text defines, with `scope` as its global names; default values are for the caller to set.

    >>> function("def double(x):\\n    return two * x\\n", {"two": 2})(21)
    42
    """
    module = compile(text, f"<gradcli {title}>", "exec")  # allowed: printed by us, see the sentence of this module
    codes = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
    assert len(codes) == 1, "one function per text"
    return FunctionType(codes[0], scope, codes[0].co_name)


def in_background(make: Callable[[], None]) -> Any:
    """Run what makes code in a thread, which does not keep the process alive; returns the thread."""
    from threading import Thread  # most programs are short

    thread = Thread(target=make, name=BACKGROUND, daemon=True)
    thread.start()
    return thread
