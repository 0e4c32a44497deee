"""`gradcli.compile`: a script as a Python function, with its derivatives and their formulas."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.repeated.compiled import CompiledScript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.language.limits import LimitsLike
    from gradcli.language.source import Source


class Compiled(CompiledScript):
    """A compiled script, which several threads may call at the same time. Leaves that you do not pass have defaults.

    >>> f = compile("(x*y + x)**2")
    >>> f(x=2, y=3)
    64.0
    >>> f.value_and_grad(x=2, y=3)
    (64.0, {'x': 64.0, 'y': 32.0})
    """

    def gradient_formula(self, leaf: str, /, **leaves: Any) -> str:
        """The derivative in one leaf as a formula in the script language, valid where the script is smooth.

        Values of leaves determine their shapes. Without values, open shapes in a script with matrices are inferred as
        by `derive`. Raises GradcliError GC511 if the gradient has no formula of readable length.

        >>> compile("x*exp(-y)").gradient_formula("y")
        '-x*exp(-y)'
        >>> compile("sum((A @ x - b)**2)").gradient_formula("x", A=[[1, 2], [3, 4], [5, 6]], x=[1, 2], b=[0, 1, 0])
        '2*A.T @ (A @ x - b)'
        >>> compile("mean((A @ x - b)**2)").gradient_formula("x")  # doctest: +SKIP
        '2/len(b)*A.T @ (A @ x - b)'
        """
        from gradcli.derivation.gradient_text import gradient_text  # 50 ms, for one method

        try:
            return gradient_text(self.source, leaf, leaves, self.limits)
        except GradcliError as problem:
            if leaves or problem.diagnostics[0].code not in ("GC301", "GC302", "GC307", "GC321"):
                raise
        from gradcli.derivation.deriving import derive

        return derive(self.source, wrt=[leaf], limits=self.limits).formula[leaf]


def compile(  # the name that users of other libraries expect
    script: str | Source,
    wrt: Sequence[str] | None = None,
    *,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    relax: bool = False,
) -> Compiled:
    """A script as a function of its leaves; `relax` allows rewrites with larger rounding errors.

    Raises GradcliError for text that cannot be parsed.

    >>> area = compile("pi*r**2")
    >>> area(r=1)
    3.141592653589793
    """
    return Compiled(script, wrt, dtype, backend, limits, relax)
