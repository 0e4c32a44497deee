"""Small programs over `torch`, by name: both implementations run them, and every variable that they leave counts."""

from __future__ import annotations

X = "x = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)\n"
A = "a = torch.tensor([[1., 2.], [3., 4.], [5., 7.]], requires_grad=True)\n"

_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh atanh erf "
    "erfc lgamma digamma sigmoid relu neg abs sign floor ceil trunc round sinc square reciprocal"
).split()

SNIPPETS: dict[str, str] = {
    f"unary {name}": f"x = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)\ny = x.{name}()\ny.sum().backward()\n"
    for name in _UNARY
}
SNIPPETS |= {
    f"scalar {text}": X + f"y = {text}\ny.sum().backward()\n"
    for text in (
        "x + 1",
        "1 + x",
        "x - 1",
        "1 - x",
        "2 * x",
        "x * 2",
        "x / 2",
        "2 / x",
        "x ** 2",
        "x ** 3",
        "x ** 0.5",
        "2 ** x",
        "x ** -1",
        "-x",
        "+x",
        "x % 2",
        "x.clamp(1, 2)",
        "x.clamp(min=1)",
        "x ** x",
        "x.pow(2.0)",
        "abs(x)",
        "torch.where(x > 1, x, 0.)",
        "x.masked_fill(x > 1, 0)",
        "torch.maximum(x, x * 2)",
        "torch.atan2(x, x + 1)",
        "torch.hypot(x, x)",
        "torch.logaddexp(x, x)",
        "torch.add(x, x, alpha=3)",
        "x * True",
        "x.xlogy(x)",
    )
}
SNIPPETS |= {
    f"matrix {text}": A + f"y = {text}\ny.sum().backward()\n"
    for text in (
        "a.sum()", "a.sum(0)", "a.sum(dim=1, keepdim=True)", "a.sum((0, 1))", "a.mean()", "a.mean(0)", "a.var()", "a.std(0)",
        "a.var(0, correction=0)", "a.prod()", "a.prod(0)", "a.amax(0)", "a.amin()", "a.max()", "a.min()", "a.max(0).values",
        "a.max(1)[0]", "a.min(0).values", "a.sort(1).values", "a.logsumexp(1)", "a.norm()", "a.softmax(1)",
        "a.log_softmax(0)", "a.cumsum(0)", "a.cumprod(1)", "a.T", "a.t()", "a.mT", "a.reshape(2, 3)", "a.view(-1)",
        "a.flatten()", "a.T.reshape(-1)", "a.permute(1, 0)", "a.transpose(0, 1)", "a.unsqueeze(1)", "a.unsqueeze(0).squeeze(0)",
        "a.unsqueeze(0).expand(4, 3, 2)", "torch.cat([a, a])", "torch.stack([a, a], 1)", "a.flip(0)", "a.roll(1, 0)",
        "a.repeat(2, 2)", "a.tril()", "a.triu(1)", "a[:2].trace()", "a.unbind(1)[0]", "a.split(2)[0]", "a.chunk(2, 1)[1]",
        "list(a)[1]", "a[0]", "a[0, 1]", "a[:, 0]", "a[0:2]", "a[0:2, 1]", "a[None]", "a[None, 0]", "a[...]", "a[:]", "a[..., 1]",
        "a[[0, 2, 0]]", "a[torch.tensor([1, 1])]", "a[a > 2]", "a[[0, 1], [1, 0]]", "a[:, [1, 0]]", "a[-1]", "a[::2]",
        "a.select(0, 1)", "a.narrow(0, 1, 2)", "a.gather(1, torch.tensor([[0], [1], [0]]))",
        "a.index_select(0, torch.tensor([0, 2]))", "a @ a.T", "a.T @ torch.ones(3)", "torch.ones(3) @ a", "a.mm(a.t())",
        "torch.ones(2, 4, 3) @ a", "torch.ones(2, 4, 3) @ a.unsqueeze(0).expand(2, 3, 2)", "a[0].dot(a[1])", "a.clone()",
        "a.double()", "a.float()", "a.to(torch.float64) * 2", "a + torch.ones(2)", "a * torch.ones(3, 1)", "a.detach() * a",
        "a.T.contiguous()", "a.numel() * a", "a.exp().mul(2).add(1)", "a * a[0]",
    )
}  # fmt: skip
SNIPPETS |= {
    "accumulation": "x = torch.tensor(3., requires_grad=True)\nfor _ in range(3):\n    (x * x).backward()\n",
    "two paths": "x = torch.tensor(2., requires_grad=True)\ny = 2 * x + 5\nl = y + x\nl.backward()\n",
    "leaves": X + "y = x * 2\nz = x.detach()\nw = torch.ones(2)\nflags = [x.is_leaf, y.is_leaf, z.is_leaf, w.is_leaf]\n",
    "retain_grad": X + "y = x * 2\ny.retain_grad()\ny.sum().backward()\n",
    "grad of non leaf": X + "y = x * 2\ny.sum().backward()\ng = y.grad\n",
    "twice plus": X + "y = (x + 3).sum()\ny.backward()\ny.backward()\n",
    "twice mul": X + "y = (x * 3).sum()\ny.backward()\ny.backward()\n",
    "twice retain": X + "y = (x * 3).sum()\ny.backward(retain_graph=True)\ny.backward()\n",
    "not scalar": X + "(x * 2).backward()\n",
    "gradient": X + "(x * 2).backward(torch.tensor([1., 2., 3.]))\n",
    "wrong gradient": X + "(x * 2).backward(torch.tensor([1., 2.]))\n",
    "no graph": "torch.ones(2).sum().backward()\n",
    "int grad": "torch.tensor([1, 2], requires_grad=True)\n",
    "mean of ints": "torch.tensor([1, 2]).mean()\n",
    "requires on non leaf": X + "y = x * 2\ny.requires_grad = False\n",
    "inputs": X + "w = torch.ones(3, requires_grad=True)\n(x * w).sum().backward(inputs=[w])\n",
    "inputs empty": X + "x.sum().backward(inputs=[])\n",
    "create graph": X + "g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)\nh, = torch.autograd.grad(g.sum(), x)\n"
    "flag = g.requires_grad\ndel g\n",
    "backward create graph": X + "(x ** 3).sum().backward(create_graph=True)\ng = type(x.grad.grad_fn).__name__\nx.grad = None\n",
    "unused": X + "w = torch.ones(3, requires_grad=True)\ntorch.autograd.grad(x.sum(), [x, w])\n",
    "allow unused": X + "w = torch.ones(3, requires_grad=True)\ng = torch.autograd.grad(x.sum(), [x, w], allow_unused=True)\n",
    "grad of intermediate": X + "y = x * 2\ng = torch.autograd.grad((y * y).sum(), y)\n",
    "no_grad": X + "with torch.no_grad():\n    y = x * 2\nwith torch.no_grad():\n    with torch.enable_grad():\n        z = x * 2\n",
    "no_grad decorator": X + "@torch.no_grad()\ndef f(x):\n    return x * 2\n@torch.no_grad\ndef g(x):\n    return x * 2\ny, z = f(x), g(x)\ndel f, g\n",
    "no_grad generator": X + "@torch.no_grad()\ndef f():\n    yield torch.is_grad_enabled()\n    yield torch.is_grad_enabled()\n"
    "flags = []\nfor flag in f():\n    flags += [flag, torch.is_grad_enabled()]\ndel f\n",
    "set_grad_enabled": X + "torch.set_grad_enabled(False)\ny = x * 2\ntorch.set_grad_enabled(True)\nz = x * 2\n",
    "mode by name": X + "with torch.set_grad_enabled(mode=False):\n    y = x * 2\n@torch.inference_mode(mode=False)\ndef f(x):\n    return x * 2\nz = f(x)\ndel f\n",
    "inference": X + "with torch.inference_mode():\n    y = x * 2\nflag = y.is_inference()\n(x * y).sum().backward()\n",
    "numpy": X + "x.numpy()\n",
    "numpy detached": X + "y = x.detach().numpy().tolist()\n",
    "item": "y = torch.tensor(2.5).item()\nz = torch.tensor([[1, 2]]).tolist()\n",
    "item several": X + "x.item()\n",
    "bool several": X + "bool(x > 1)\n",
    "float several": "float(torch.ones(2))\n",
    "unknown": X + "x.no_such_method()\n",
    "hook": X + "y = x * 2\nh = y.register_hook(lambda g: g * 10)\ny.sum().backward()\ndel h\n",
    "hook order": X + "seen = []\nx.register_hook(lambda g: seen.append('a'))\nx.register_hook(lambda g: seen.append('b'))\n"
    "h = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))\n(x * 2).sum().backward()\ndel h\n",
    "hook removed": X + "h = x.register_hook(lambda g: g * 10)\nh.remove()\nx.sum().backward()\ndel h\n",
    "node hooks": X + "seen = []\ny = x * 2\ny.grad_fn.register_prehook(lambda gs: seen.append(['pre', gs[0].tolist()]))\n"
    "y.grad_fn.register_hook(lambda gi, go: seen.append([gi[0].tolist(), len(gi), go[0].tolist()]))\ny.sum().backward()\n",
    "retain after hook": X + "y = x * 2\ny.retain_grad()\ny.register_hook(lambda g: g * 3)\ny.sum().backward()\n",
    "saved": X + "y = x ** 2\nsame = y.grad_fn._saved_self is x\nz = x.exp()\nr = z.grad_fn._saved_result.tolist()\n",
    "saved freed": X + "y = x ** 2\ny.sum().backward()\ny.grad_fn._saved_self\n",
    "in place after save": X + "y = x * 1\nz = y ** 2\ny.add_(1)\nz.sum().backward()\n",
    "in place result": X + "y = x.exp()\ny.add_(1)\ny.sum().backward()\n",
    "in place fine": X + "y = x * 2\ny.add_(1)\ny.mul_(3)\ny.sum().backward()\n",
    "in place leaf": X + "x.add_(1)\n",
    "in place leaf no_grad": X + "with torch.no_grad():\n    x -= 1\nv = x._version\n",
    "in place leaf view": X + "x[0] = 1.\n",
    "in place plain": "x = torch.zeros(3)\nx[1] = 2.\nx += 1\nv = x._version\n",
    "in place takes history": X + "y = torch.zeros(3)\ny[0] = x[1] * 5\ny.sum().backward()\n",
    "in place slice": X + "y = x * 1\ny[1:] = y[1:] * 2\n(y * y).sum().backward()\n",
    "in place slice saved": X + "y = x * 1\ny[1:] = y[:1] * x[1:]\ny.sum().backward()\n",
    "in place view op": X + "y = x * 1\ny[1:].mul_(x[:2])\ny.sum().backward()\nflag = y.requires_grad\ndel y\n",
    "in place other view": X + "y = x * 1\nv = y[:2]\ny.mul_(2)\n(v * v).sum().backward()\nname = v.grad_fn.name()\ndel y, v\n",
    "in place transposed": A + "y = a * 1\ny.T.mul_(2)\n(y * y).sum().backward()\ndel y\n",
    "in place index": X + "y = x * 1\ny[[0, 2]] = x[:2] * 3\n(y * y).sum().backward()\n",
    "in place mask": X + "y = x * 1\ny[y > 1] = 0.\n(y * y).sum().backward()\n",
    "in place zero": X + "y = x * 1\ny.zero_()\ny.sum().backward()\n",
    "in place fill": X + "y = x * 2\ny.fill_(3.)\n",
    "in place copy": X + "y = torch.zeros(3)\ny.copy_(x)\n(y * y).sum().backward()\n",
    "in place unbind": X + "y = x * 1\nv = y.unbind()[0]\nv.mul_(2)\n",
    "in place no_grad view": X + "y = x * 1\nwith torch.no_grad():\n    v = y[:2]\nv.mul_(2)\n",
    "in place expanded": "torch.ones(1).expand(3).add_(1)\n",
    "in place wrong type": "x = torch.tensor([1, 2])\nx += 1.5\n",
    "in place keeps type": "x = torch.ones(2)\nx += torch.ones(2, dtype=torch.float64)\n",
    "detach shares": X + "y = x * 1\nz = y.detach()\nz.zero_()\nv = [y._version, z._version]\n",
    "detach version": X + "y = x * 1\nw = y ** 2\ny.detach().zero_()\nw.sum().backward()\n",
    "data bypasses": X + "y = x * 1\nw = y ** 2\ny.data.zero_()\nw.sum().backward()\n",
    "promotion": "a = torch.ones(2) * torch.tensor(2., dtype=torch.float64)\nb = torch.ones(2) * torch.ones(2, dtype=torch.float64)\n"
    "c = torch.tensor([1, 2]) * 2.5\nd = torch.tensor([1, 2]) / 2\ne = torch.tensor([1, 2]) ** 2\nf = torch.tensor([True]) + 1\n"
    "g = torch.tensor([1, 2]).sum()\nh = torch.tensor([1, 4]).sqrt()\ni = torch.tensor([True, True]).sum()\n"
    "j = torch.ones(2, dtype=torch.int32) + torch.ones(2, dtype=torch.int64)\n",
    "mixed gradient": X + "w = torch.ones(3, dtype=torch.float64, requires_grad=True)\n(x * w).sum().backward()\n",
    "factories": "a = torch.zeros(2, 3)\nb = torch.ones((2,))\nc = torch.full((2,), 3)\nd = torch.eye(2)\ne = torch.arange(5)\n"
    "f = torch.arange(0, 1, 0.25)\ng = torch.linspace(0, 1, 5)\nh = torch.zeros_like(e)\ni = torch.ones_like(f)\nj = torch.tensor([])\n",
    "random": "torch.manual_seed(7)\na = torch.rand(2, 3)\nb = torch.randn(4)\nc = torch.randint(0, 9, (5,))\nd = torch.randperm(6)\n"
    "e = torch.randn(3, requires_grad=True)\nf = torch.rand_like(b)\n",
    "comparison": X + "y = x > 1\nz = x == x\nw = (x != x).any()\nv = (x > 0).all()\nu = x.argmax()\nt = x.isnan()\n",
    "size mismatch": X + "x + torch.ones(2)\n",
    "matmul mismatch": A + "a @ a\n",
    "bad index": X + "x[3]\n",
    "bad axis": X + "x.sum(2)\n",
    "bad view": A + "a.T.view(-1)\n",
    "deepcopy": X + "import copy\ny = copy.deepcopy(x)\ndel copy\n",
    "deepcopy non leaf": X + "import copy\ncopy.deepcopy(x * 2)\n",
    "grad setter": X + "x.grad = torch.ones(2)\n",
    "grad setter type": X + "x.grad = 1.0\n",
    "tensor of tensor": X + "y = torch.tensor(x)\n",
    "empty": "x = torch.zeros(0, requires_grad=True)\nx.sum().backward()\nm = x.mean()\n",
    "format": "s = f'{torch.tensor(1.5):.2f}'\nt = f'{torch.tensor(1.5)}'\n",
    "format several": "f'{torch.ones(2):.2f}'\n",
    "jacobian": X + "j = torch.autograd.functional.jacobian(lambda x: x ** 2, x)\n",
    "hessian": X + "j = torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), x)\n",
    "hvp": X + "j = torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, torch.ones(3))[1]\n",
    "gradcheck": "x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)\n"
    "ok = torch.autograd.gradcheck(lambda x: x.sin() * x, x)\nok2 = torch.autograd.gradgradcheck(lambda x: x.sin() * x, x)\n",
    "gradcheck float32": X + "torch.autograd.gradcheck(lambda x: x.sin() * x * 1e3, x)\n",
    "gradcheck none": "torch.autograd.gradcheck(lambda x: x, torch.ones(2))\n",
}  # fmt: skip

_FUNCTION = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return %s
"""
SNIPPETS |= {
    "function": X
    + _FUNCTION % "2 * x * g * ctx.factor, None"
    + "y = Square.apply(x, 3)\ny.sum().backward()\ndel Square\n",
    "function twice": X
    + _FUNCTION % "2 * x * g * ctx.factor, None"
    + "y = Square.apply(x, 3).sum()\ny.backward()\ny.backward()\n",
    "function second order": X
    + _FUNCTION % "2 * x * g * ctx.factor, None"
    + "g, = torch.autograd.grad(Square.apply(x, 3).sum(), x, create_graph=True)\ng.sum().backward()\ndel Square, g\n",
    "function too few": X + _FUNCTION % "2 * x * g" + "Square.apply(x, 3).sum().backward()\n",
    "function not None": X + _FUNCTION % "2 * x * g, g" + "Square.apply(x, 3).sum().backward()\n",
    "function wrong shape": X + _FUNCTION % "torch.ones(2), None" + "Square.apply(x, 3).sum().backward()\n",
    "function wrong gradient": "x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)\n"
    + _FUNCTION % "3 * x * g, None"
    + "torch.autograd.gradcheck(lambda x: Square.apply(x, 1), x)\n",
    "straight through": X
    + """
class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.round()
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def backward(ctx, g):
        return g
y = Rounded.apply(x)
y.sum().backward()
del Rounded
""",
}
