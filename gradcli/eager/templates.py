"""The texts of operators on plain tensors, with gaps for what an operation computes and saves; nothing is run here.

`ONE` is a function of a tensor, `TWO` one of a tensor and a tensor or number. Each asks what has to be asked, computes,
and writes the fields of the node; whatever is not plain goes the long way.
"""

from __future__ import annotations

# what is the same for every recorded result: the parts of a node that do not depend on the operation
NODE = """
            n._seq = next(sequence)
            n.extra = None
            f = _getframe(1)
            code = f.f_code
            if code is not caller.code:
                if ours[f.f_globals.get("__name__")]:
                    code = None
                else:
                    caller.code = code
            if code is None:
                n.place = outside(f)
            else:
                n._code = code
                n._at = f.f_lasti
            r._node = n
            r._requires = True"""

SILENT = """
            r = new(Tensor)
            r._raw = out
            r._count = None
            if m or not ({needed}):
                r._node = None
                r._requires = False
                return r"""

ONE = (
    """
def {name}(input, *, out=None):
    m = state.mode
    if m < 2 and out is None and isinstance(input, Tensor) and not input._odd:
        a = input._raw
        k = a.__class__
        if k is float32 or k is float64:
            double = k is float64
            {scalar}
        else:
            d = a.dtype
            double = d is F64
            if not double and d is not F32:
                return long_way(input)
            out = {text}"""
    + SILENT.format(needed="input._requires").replace("\n    ", "\n")
    + """
        n = Made()
        n.ins = (input._node or input,)
        n.way = (ways64[1] or made64(1)) if double else (ways32[1] or made32(1))
        n.fits = None
        {kept}
        n.vers = {vers}"""
    + NODE.replace("\n    ", "\n")
    + """
        return r
    return long_way(input) if out is None else written("{name}", long_way, (input,), {{}}, out)
"""
)

TWO = (
    """
def {name}({signature}):
    m = state.mode
    if m < 2{guard} and out is None and isinstance(input, Tensor) and not input._odd:
        a = input._raw
        k = a.__class__
        if isinstance(other, Tensor):
            b = other._raw
            if other._odd:
                return long_way({call})
            if k is b.__class__ and (k is float32 or k is float64):
                double = k is float64
                fits = None
                out = {text}
            else:
                d = a.dtype
                double = d is F64
                if d is not b.dtype or (not double and d is not F32):
                    return long_way({call})
                try:
                    out = {text}
                except (ValueError, TypeError):
                    return long_way({call})
                fits = None if a.shape == b.shape else ((a.shape, d), (b.shape, d))"""
    + SILENT.format(needed="input._requires or other._requires")
    + """
            n = Made()
            if not other._requires:
                i = 1
                n.ins = (input._node or input, None)
                {kept1}
            elif input._requires:
                i = 3
                n.ins = (input._node or input, other._node or other)
                {kept3}
            else:
                i = 2
                n.ins = (None, other._node or other)
                {kept2}
            n.fits = fits
            n.vers = {vers}
        elif other.__class__ is float or other.__class__ is int:
            if k is float32 or k is float64:
                double = k is float64
                y = (scalar64 if double else scalar32)[other]
            else:
                d = a.dtype
                double = d is F64
                if not double and d is not F32:
                    return long_way({call})
                y = (array64 if double else array32)[other]
            b = y._raw
            out = {text}"""
    + SILENT.format(needed="input._requires")
    + """
            i = 1
            n = Made()
            n.ins = (input._node or input, None)
            {kept1n}
            n.fits = None
            n.vers = {vers1n}
        else:
            return long_way({call})
        n.way = (ways64[i] or made64(i)) if double else (ways32[i] or made32(i))"""
    + NODE.replace("\n    ", "\n")
    + """
        return r
    return long_way({call}) if out is None else written("{name}", long_way, {given}, out)
"""
)
