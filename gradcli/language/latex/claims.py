r"""Claims beside a script: their LaTeX means what it means in the script, and entries stand for an array.

What is an array in the script is one in a claim, which may have no transpose or norm that shows it: R u beside
u^\top R u. A claim for z_k, or for \frac{\partial L}{\partial z_k}, says what each entry of the gradient is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gradcli.base.diagnostics import error, visible
from gradcli.language.latex import is_latex, translated
from gradcli.language.source import Source, words
from gradcli.language.values import leaf_of

BY = re.compile(  # x in \frac{\partial L}{\partial x}, \nabla_x L
    r"\\[dt]?frac\s*\{.*\}\s*\{\s*(?:\\partial|\\mathrm\{d\}|d)\s*(.+)\}|\\nabla\s*_\s*(?:(\\?[A-Za-z]+)|\{(.+?)\}(?!\}|_)).*"
)
ENTRY = re.compile(r"(\w+)_([a-z]{1,2}|[i-np-t]{3,4})")
SCRIPT = re.compile(r"[*@\[]|\w\w\(")  # what only scripts have
PRODUCT = re.compile(r"[\w)] +[\w(]|\) *[\w(]|(?<!\w)[^\W\d]\(")  # factors beside each other


def claims_beside(source: Source, claims: Mapping[str, str]) -> dict[str, str]:
    r"""Claims about a script, in the language of scripts, by the names of leaves.

    >>> claims_beside(Source(r"x^\top A x"), {"x": "A x + A^T x"})
    {'x': 'A @ x + A.T @ x'}
    >>> claims_beside(Source(r"-\sum_k t_k \log p_k"), {r"\frac{\partial L}{\partial p_k}": "-t_k/p_k"})
    {'p': '[-t[k]/p[k] for k in range(len(p))]'}
    >>> claims_beside(Source("x**2*y"), {"hessian(x)": "2*y"})
    {'hessian(x)': '2*y'}
    """
    script = translated(source)
    names, texts = words(script.text), dict[str, str]()

    def as_there(name: str) -> str:
        return f"{name}_" if name not in names and f"{name}_" in names else name  # e_, pi_

    for target, text in claims.items():
        target, order = leaf_of(target)
        leaf = target if target.isidentifier() else name_of(target)
        leaf = as_there(leaf)
        entry = ENTRY.fullmatch(leaf)
        ranges = {}
        if entry and leaf not in names and as_there(entry[1]) in names:
            leaf = as_there(entry[1])
            ranges = {
                index: f"shape({leaf})[{axis}]" if axis else f"len({leaf})" for axis, index in enumerate(entry[2])
            }
        about = f"hessian({leaf})" if order == 2 else leaf
        if about in texts:
            raise error("GC138", f"there are two claims for `{visible(about)}`", help="give one claim per leaf")
        plain = SCRIPT.search(text) or not (script.mathematics or is_latex(text))
        unknown = any(name not in names for name in re.findall(r"[^\W\d]\w+", text))
        if is_latex(text) or (not plain and (ranges or unknown or PRODUCT.search(text) or "^T" in text)):
            text = translated(Source(text, f"<claim for {leaf}>"), source, ranges, leaf).text
        for index, span in reversed(ranges.items()):
            text = f"[{text} for {index} in range({span})]"
        texts[about] = text
    return texts


def name_of(target: str) -> str:
    r"""The name of a leaf that is written in LaTeX: \theta, \mathbf{w}, w_{ij}, \frac{\partial L}{\partial w_{i,j}}."""
    by = BY.fullmatch(target)
    inner = (next(filter(None, by.groups())) if by else target).replace(",", "")
    if inner.isidentifier():
        return inner
    from gradcli.language.latex.latex_parser import symbol  # most claims are no LaTeX: start-up time
    from gradcli.language.latex.latex_tokens import LatexTokens

    t = LatexTokens(Source(inner, "<claim>"), inner, 0, frozenset(), frozenset(), inner)
    text = symbol(t).text
    if t.token:
        raise t.unexpected()
    return text
