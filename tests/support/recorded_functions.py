"""Bodies of derivatives as people write them, on what recorders of NumPy, PyTorch and JAX could miss; no test by itself.

Each is the gradient of a sum of squares: of `x`, which is [1, 2, 3], or of the matrix `A`. Those of tensors take the
cotangent `g` too. WRONG ones are right at that point only, by what a recorder must not miss; FEWER digits than those of
the arguments are sent by others; RIGHT ones do the same in a way that is right.
"""

from __future__ import annotations

NUMPY_WRONG = {
    "a dtype of what makes arrays": [
        "return np.array(2*x, dtype=int)", "return np.array(2*x, int)", "return 2*np.asarray(x, int)",
        "return 2*np.asarray(x, dtype='int8')", "return 2*np.asanyarray(x, dtype=np.int32)",
        "return 2*np.ascontiguousarray(x, dtype=int)", "return np.array([2*x[0], 2*x[1], 2*x[2]], dtype=int)",
        "return (2*x).astype(int)", "return (2*x).astype(dtype=np.int64)", "return np.array([2*int(v) for v in x])",
        "g = np.zeros_like(x, dtype=int)\nfor i in range(3): g[i] = 2*x[i]\nreturn g",
        "g = np.empty_like(x, int)\ng[:] = 2*x\nreturn g", "g = np.full_like(x, 0, int)\ng[...] = 2*x\nreturn g",
        "g = np.full(3, 0, int)\ng[:] = 2*x\nreturn g", "g = np.full(3, 0)\ng[:] = 2*x\nreturn g",
        "g = np.zeros(3, 'i8')\ng[:] = 2*x\nreturn g", "g = np.array([0, 0, 0])\ng[:] = 2*x\nreturn g",
    ],
    "a dtype of a reduction": [
        "return 2*x*np.sum(x, dtype=int)/6", "return 2*x*x.sum(dtype=int)/6", "return 2*x*x.sum(None, int)/6",
        "return 2*x*np.add.reduce(x, dtype=int)/6", "return np.diff(np.cumsum(2*x, dtype=int), prepend=0)",
        "return 2*x*np.prod(x, dtype=int)/6", "return 2*x*np.mean(x, None, int)/2",
    ],
    "a view": [
        "g = 2*x\nt = g[1:]\nt *= x[0]\nreturn g", "g = 2*x\nt = g.reshape(3, 1)\nt *= x[0]\nreturn g",
        "g = 2*x\nt = g.ravel()\nt += np.log(x[0])\nreturn g", "g = 2*x\nt = g[:, None]\nt *= x[0]\nreturn g",
        "g = 2*np.outer(x, np.ones(3))\nfor row in g: row *= x[0]\nreturn g.sum(1)/3",
        "g = 2*A\nt = g.T\nt[0] *= A[0, 0]\nreturn g", "g = 2*A\nt = np.transpose(g)\nt *= A[0, 0]\nreturn g",
        "g = 2*A\nt = np.swapaxes(g, 0, 1)\nt += A[0, 0] - 1\nreturn g", "g = 2*A\nt = g[::-1]\nt *= A[0, 0]\nreturn g",
        "g = 2*A\nt = np.flip(g, 0)\nt[0] *= A[0, 0]\nreturn g", "g = 2*A\na, b = np.split(g, 2)\na *= A[0, 0]\nreturn g",
        "g = 2*x\nt = np.expand_dims(g, 0)\nt *= x[0]\nreturn g", "g = 2*A\ng.ravel()[::3] *= A[0, 0]\nreturn g",
        "g = 2*A[None]\nt = g.squeeze()\nt *= A[0, 0]\nreturn g[0]", "g = 2*A\nt = np.asarray(g)\nt *= A[0, 0]\nreturn g",
        "g = 2*A\nt = g.view()\nt *= A[0, 0]\nreturn g", "g = 2*A\nt = g.astype(float, copy=False)\nt *= A[0, 0]\nreturn g",
        "g = 2*A\nt = np.atleast_2d(g)\nt *= A[0, 0]\nreturn g", "g = 2*A\ng[1:].T.reshape(-1)[:] *= A[0, 0]\nreturn g",
        "g = 2*A\ng[:1].fill(2.0)\ng[0, 1] = 4.0\nreturn g", "g = 2*A\ndef scale(t): t *= A[0, 0]\nscale(g[0])\nreturn g",
        "g = 2*A\nfor i, row in enumerate(g): row += (A[0, 0] - 1)*i\nreturn g",
        "g = 2*A\nt = np.moveaxis(g, 0, 1)\nt *= A[0, 0]\nreturn g", "g = 2*A\nt = np.real(g)\nt *= A[0, 0]\nreturn g",
    ],
    "out=": [
        "g = 2*A\nnp.multiply(g[:1], A[0, 0], out=g[:1])\nreturn g", "g = 2*x\nnp.cumsum(g - g[0] + g, out=g)\nreturn g",
        "g = 2*x\nnp.clip(g, 2.0, 6.0, out=g)\nreturn g", "g = 2*x\nnp.add(x, x*x[0], out=g)\nreturn g",
    ],
    "what writes into an argument": [
        "g = 2*x\nnp.copyto(g[:1], 2*x[:1]*x[0])\nreturn g", "g = 2*x\nnp.put(g, [0], 2.0)\nreturn g",
        "g = 2*np.outer(x, x)/x\nnp.fill_diagonal(g, 4.0)\nreturn g[:, 0]", "g = 2*x\ng.put(0, 2.0)\nreturn g",
        "g = 2*x\nnp.add.at(g, [0], x[0] - 1)\nreturn g", "g = 2*x\nh = copy.deepcopy(g)\nh *= x[0]\nreturn h",
    ],
    "scalars, which are no arrays": [
        "a = x[0]\nb = a\na *= 3\nreturn 2*x*b", "a = x.sum()/6\nb = a\na += x[0] - 1\nreturn 2*x*b*x[0]",
    ],
    "rounding": [
        "return np.around(2*x, 2)", "return np.round(2*x, 1)", "return (2*x).round(2)", "return 2*np.fix(x)",
        "return np.array([round(v, 1) for v in 2*x])", "g = 2*x\ng[0] = np.round(g[0], 2)\nreturn g",
        "return 2*np.floor(x)", "return 2*np.ceil(x)", "return 2*(x//1)", "return 2*x - x % 1", "return 2*np.rint(x)",
    ],
    "classes": [
        "return 2*x*x[0] if isinstance(x, np.ndarray) else 2*x", "return 2*x*x[0] if type(x) is np.ndarray else 2*x",
        "return 2*x*x[0] if x.__class__ is np.ndarray else 2*x", "return 2*x*x[0] if isinstance(x[0], float) else 2*x",
        "return 5*x if type(x) is np.ndarray and x[0] != 1 else 2*x",
        "return 2*x*x[0] if type(x).__module__ == 'numpy' else 2*x",
    ],
    "exceptions that are swallowed": [
        *(
            f"s = 1.0\ntry: s = {value}\nexcept {caught}: pass\nreturn 2*x*s"
            for caught in ("Exception", "BaseException", "(TypeError, ValueError, AttributeError)", "")
            for value in ("float(x[0])", "x[0].item()", "x.tolist()[0]", "x.flat[0]", "[1, 0.5][int(x[0] != 1)]")
        ),
        "try:\n    if x[0] > 5: return 0*x\n    return 2*x*x[0]\nexcept Exception: return 2*x",
        "try: return 2*x*{x[0]: x[0]}[x[0]]\nexcept Exception: return 2*x",
        "try: return 2*x*np.sort_complex(x)[0].real\nexcept Exception: return 2*x",
        "try: s = float(f'{x[0]:.3f}')\nexcept Exception: s = 1.0\nreturn 2*x*s",
        "try: s = float(str(x[0]))\nexcept Exception: s = 1.0\nreturn 2*x*s",
        "g = np.array([2.0, 4.0, 6.0])\ntry: g[0] = 2*x[0]\nexcept Exception: pass\nreturn g",
        "g = 2*x\nwith contextlib.suppress(Exception): g = 2*x*float(x[0])\nreturn g",
        "return 2*x*(x[0] if hasattr(x, '__array_interface__') else 1.0)",
    ],
    "state and random numbers": [
        "return 2*kept.setdefault('x', x)", "return 2*STORE.setdefault('x', x.copy())", "LIST.append(x)\nreturn 2*LIST[0]",
        "STORE.setdefault('x', x.copy())\nreturn cached('x')", "LIST.append(0)\nreturn 2*x if len(LIST) < 4 else 3*x",
        "return 2*x*np.random.default_rng().integers(1, 3)", "return 2*x + (np.random.rand(3) > 0.5)",
        "global KEPT\nKEPT = x.copy() if KEPT is None else KEPT\nreturn 2*KEPT",
    ],
    "branches on values, and numbers": [
        "return np.where(x == np.array([1.0, 2.0, 3.0]), 2*x, 3*x)", "return [2.0, 4.0, 6.0]",
        "return np.select([x <= 1, x <= 2, x <= 3], [2.0, 4.0, 6.0], 0.0)", "return 2*np.digitize(x, [0.5, 1.5, 2.5])*1.0",
        "return np.array([{1.0: 2.0, 2.0: 4.0, 3.0: 6.0}.get(float(v), 0.0) for v in x])",
        "return np.where(np.array_equal(x, np.array([1.0, 2.0, 3.0])), 2*x, 3*x)",
    ],
}  # fmt: skip
NUMPY_FEWER = [
    "return (2*x).astype(np.float16)", "return 2*np.asarray(x, np.float16)", "return np.multiply(2, x, dtype=np.float16)",
    "g = np.zeros(3, np.float32)\nfor i in range(3): g[i] = 2*x[i]\nreturn g", "return np.array(2*x, dtype='f4').astype(float)",
    "g = np.empty_like(x, dtype=np.float32)\ng[:] = 2*x\nreturn g", "return np.float32(2)*x.astype(np.float32)",
    "return (2*x).astype('f4').view()", "return np.concatenate([2*x[:1], 2*x[1:]], dtype=np.float32)",
    "return [np.float32(v) for v in 2*x]", "g = 2*x\ng[1] = np.float16(g[1])\nreturn g",
    "return np.diff(np.cumsum(2*x, dtype='f2'), prepend=0)", "return x if x[0] > 1e9 else (2*x).astype(np.float16)",
    "return x if x[0] > 1e9 else (2*x).astype(np.float32)", "return np.full(3, 2, 'f2')*x.astype('f2')",
]  # fmt: skip
NUMPY_RIGHT = [
    "return 2*x", "g = np.zeros_like(x)\nfor i in range(3): g[i] = 2*x[i]\nreturn g", "g = x.copy()\ng *= 2\nreturn g",
    "g = np.zeros(3)\nt = g[1:]\nt += 2*x[1:]\ng[0] = 2*x[0]\nreturn g", "return (2*x).reshape(3, 1).ravel()",
    "g = np.zeros((3, 2))\nfor i, row in enumerate(g): row[:] = x[i]\nreturn g.sum(1)",
    "g = np.zeros((2, 2))\ng.T[...] = 2*A.T\nreturn g", "g = np.empty_like(A)\nnp.multiply(A, 2, out=g)\nreturn g",
    "g = np.empty_like(A)\nnp.multiply(A[:1], 2, out=g[:1])\nnp.add(A[1:], A[1:], out=g[1:])\nreturn g",
    "g = np.zeros_like(A)\na, b = np.split(g, 2)\na += 2*A[:1]\nb += 2*A[1:]\nreturn g",
    "g = np.zeros_like(A)\nf = g.ravel()\nfor i, v in enumerate(A.ravel()): f[i] = 2*v\nreturn g",
    "g = np.zeros(4)\nh = g.reshape(2, 2)\nh[:] = 2*A\nreturn h", "x = np.asarray(x, dtype=float)\nreturn 2*x",
    "if not isinstance(x, np.ndarray): raise TypeError\nreturn 2*x", "print('x is', x, f'{x}')\nreturn 2*x",
    "return np.array(2*x, dtype=np.float64)", "return 2*x*np.sum(x, dtype=float)/x.sum()", "g = 2*x\ng[x > 10] = 0\nreturn g",
    "return np.eye(3) @ x*2", "return 2*x[np.arange(3)]", "return np.roll(np.roll(2*x, 1), -1)", "return np.flip(2*x[::-1])",
    "return 2*np.pad(x, 1)[1:-1]", "return np.stack([x, x]).sum(0)", "return [2*v for v in x]", "return np.nan_to_num(2*x)",
    "return np.array([2*v for v in x])", "try: return 2*x\nexcept ValueError: return x", "LIST.append(0)\nreturn 2*x",
    "return copy.deepcopy(2*x)", "with np.errstate(all='ignore'): return 2*x", "g = np.zeros_like(x)\ng += 2*x\nreturn g",
]  # fmt: skip

TORCH_WRONG = {
    "formats of whole numbers, and rounding": [
        "return g*2*x.trunc()", "return g*2*x.long()", "return g*(2*x).int().to(x.dtype)", "return g*2*x.floor()",
        "return g*(2*x).round()", "return g*torch.round(2*x, decimals=2)", "return g*2*(x//1)", "return g*2*x.fix()",
    ],
    "exceptions that are swallowed": [
        f"s = 1.0\ntry: s = {value}\nexcept {caught}: pass\nreturn g*2*x*s"
        for caught in ("Exception", "BaseException", "")
        for value in ("float(x[0])", "x[0].item()", "x.tolist()[0]", "float(x.detach().numpy()[0])", "1.0 + bool(x[0] != 1)")
    ],
    "views": [
        f"h = g*2*x\n{view}\nreturn h" for view in (
            "t = h[1:]; t *= x[0]", "h.view(3, 1).mul_(x[0])", "h.unsqueeze(0).mul_(x[0])", "[r.mul_(x[0]) for r in h]",
            "torch.mul(h[:1], x[0], out=h[:1])", "h.data.mul_(x[0])", "h.detach().mul_(x[0])", "h.unbind()[1].mul_(x[0])",
            "h.as_strided((2,), (1,), 1).mul_(x[0])", "h.split([1, 2])[1].mul_(x[0])", "h.narrow(0, 1, 2).mul_(x[0])",
        )
    ],
    "state, random numbers, branches": [
        "return g*2*STORE.setdefault('x', x.clone())", "LIST.append(x.clone())\nreturn g*2*LIST[0]", "return 2*x",
        "return g*2*x*torch.randint(1, 3, (1,))", "return g*2*x*float(np.random.randint(1, 3))", "return g*2*x*float('nan')",
        "return torch.where(x == torch.tensor([1.0, 2, 3]), g*2*x, g*3*x)", "return g*torch.tensor([2.0, 4, 6])",
    ],
}  # fmt: skip
TORCH_FEWER = [
    "return (g*2*x).half().to(x.dtype)", "return (g*2*x).bfloat16().double()", "return (g*2*x).float().double()",
    "return g*2*x.half().double()", "return (g.half()*2*x.half()).double()", "h = torch.zeros(3)\nh[:] = g*2*x\nreturn h.double()",
    "h = torch.empty(3, dtype=torch.float16)\nh.copy_(g*2*x)\nreturn h.double()", "return (g*2*x).float()",
    "return torch.sum(torch.stack([g*x, g*x]), 0, dtype=torch.float32).double()",
]  # fmt: skip
TORCH_RIGHT = [
    "return g*2*x", "h = torch.zeros_like(x)\nh[1:] += 2*g*x[1:]\nh[0] = 2*g*x[0]\nreturn h", "return g*2*x.flip(0).flip(0)",
    "h = torch.empty(3, 1, dtype=x.dtype)\nh.view(-1).copy_(2*g*x)\nreturn h.squeeze()", "h = x.clone()\nh.mul_(2).mul_(g)\nreturn h",
    "try: return g*2*x\nexcept ValueError: return x", "return torch.cat([g*2*x[:1], g*2*x[1:]])", "return g*2*x.detach()",
    "LIST.append(0)\nreturn g*2*x", "return g*x.expand(2, 3).sum(0)", "return g*2*x.gather(0, torch.arange(3))",
]  # fmt: skip

JAX_WRONG = {
    "formats of whole numbers, and rounding": [
        "return g*2*jnp.trunc(x)", "return g*2*x.astype(int)", "return g*(2*x).astype(int).astype(float)",
        "return g*2*jnp.floor(x)", "return g*jnp.round(2*x)", "return g*jnp.round(2*x, 2)", "return g*2*(x//1)",
        "return g*2*jnp.asarray(x, jnp.int8)", "return g*2*jax.lax.round(x)", "return g*2*(x - x % 1)",
    ],
    "exceptions that are swallowed": [
        f"s = 1.0\ntry: s = {value}\nexcept {caught}: pass\nreturn g*2*x*s"
        for caught in ("Exception", "BaseException", "")
        for value in ("float(x[0])", "x[0].item()", "x.tolist()[0]", "np.asarray(x)[0]", "1.0 + bool(x[0] != 1)")
    ],
    "classes, writes, state, branches": [
        "return g*2*x*(1.0 if isinstance(x, jax.core.Tracer) else x[0])", "return (g*2*x).at[1:].multiply(x[0])",
        "return g*2*x*np.random.randint(1, 3)", "return g*2*x*float('nan')", "return g*jnp.array([2.0, 4, 6])",
        "return jnp.where(x == jnp.array([1.0, 2, 3]), g*2*x, g*3*x)", "return (g*2*x).at[0].set(2.0)", "return 2*x",
        "return g*2*jax.lax.cond(x[0] > 1, lambda v: v*2, lambda v: v, x)", "return jnp.abs(g)*2*x",
    ],
}  # fmt: skip
JAX_FEWER = [
    "return (g*2*x).astype(jnp.float16).astype(x.dtype)", "return (g*2*x).astype(jnp.bfloat16).astype(x.dtype)",
    "return (g*2*x).astype(jnp.float32).astype(x.dtype)", "return jax.lax.reduce_precision(g*2*x, 5, 10)",
    "return (g*2*jnp.asarray(x, jnp.float32)).astype(x.dtype)", "return jnp.zeros(3, 'f4').at[:].set(g*2*x).astype(x.dtype)",
]  # fmt: skip
JAX_RIGHT = [
    "return g*2*x", "return jnp.zeros(3).at[1:].set(2*g*x[1:]).at[0].set(2*g*x[0])", "return g*2*x.astype(jnp.float64)",
    "try: return g*2*x\nexcept ValueError: return x", "LIST.append(0)\nreturn g*2*x", "return g*2*jnp.roll(jnp.roll(x, 1), -1)",
    "return g*2*jax.lax.scan(lambda c, v: (c, v), 0.0, x)[1]", "return g*2*jnp.where(x > 0, x, x)",
]  # fmt: skip
