"""`assert_gradient` for tests: raises an AssertionError with a report where a function and its gradient disagree.

It works with pytest or any other runner, judges nothing itself, and is never imported by the package.
"""

from __future__ import annotations

from gradcli.interfaces.checking import check_callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["assert_gradient"]


def assert_gradient(f: Callable[..., Any], grad: Any = None, *, at: Any, **options: Any) -> None:
    """Fail unless `grad` is the gradient of `f` at a point, as far as differences of f's values show.

    Takes what `gradcli.check_callable` takes: `jac=`, `vjp=`, `wrt=`, `rtol=`, `samples=`, `allow_kink=`, ...
    INCONCLUSIVE fails too, unless `lenient=True`. Nothing is printed where the gradient is right.

    Raises AssertionError with the report as its message; GradcliError GC732 where the point does not fit the function.

    >>> import numpy as np
    >>> assert_gradient(lambda x: np.sum(np.sin(x)), lambda x: np.cos(x), at=np.array([0.5, -1.0]))
    """
    __tracebackhide__ = True
    report = check_callable(f, grad, at=at, **options)
    if not report.ok:
        raise AssertionError(str(report))
