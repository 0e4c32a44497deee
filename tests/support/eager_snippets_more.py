"""More small programs over `torch`, by area: linear algebra, movement, modes, hooks, forward mode, complex numbers."""

from __future__ import annotations

X = "x = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)\n"
A = "a = torch.tensor([[1., 2.], [3., 4.], [5., 7.]], requires_grad=True)\n"
M = "m = torch.tensor([[4., 1.], [1., 3.]], dtype=torch.float64, requires_grad=True)\n"
Z = "z = torch.tensor([1 + 2j, 3 - 1j, -0.5 + 0.25j], dtype=torch.complex128, requires_grad=True)\n"
F = "import torch.nn.functional as F\n"

MORE: dict[str, str] = {}


def _each(area: str, start: str, texts: tuple[str, ...], end: str = "y.sum().backward()\n") -> None:
    MORE.update({f"{area} {text}": f"{start}y = {text}\n{end}" for text in texts})


_each("linalg", M, (
    "torch.linalg.inv(m)", "torch.inverse(m)", "m.inverse()", "torch.linalg.det(m)", "m.det()", "torch.linalg.slogdet(m)[1]",
    "torch.logdet(m)", "torch.linalg.solve(m, torch.ones(2, dtype=torch.float64))", "torch.linalg.norm(m)", "torch.norm(m)",

    "torch.linalg.cholesky(m)", "torch.linalg.eigvalsh(m)", "torch.linalg.svdvals(m)", "torch.linalg.matrix_power(m, 3)",
    "torch.matrix_exp(m / 4)", "torch.linalg.vector_norm(m)", "torch.trace(m @ m)",
    "torch.linalg.eigh(m)[0]", "torch.linalg.matrix_norm(m)", "torch.linalg.pinv(m)", "torch.linalg.qr(m)[1].abs()",
    "torch.linalg.solve_triangular(m, m, upper=True)", "torch.linalg.solve_triangular(m, m + 1, upper=False, left=False)",
    "torch.linalg.solve_triangular(m, m, upper=True, unitriangular=True)", "torch.linalg.solve_triangular(m.expand(3, 2, 2), m, upper=False)",
    "torch.linalg.solve_triangular(m, m, upper=False, left=False, unitriangular=True)",
    "torch.linalg.solve_triangular(m, m[0], upper=True)", "torch.linalg.solve_triangular(m, m[:1], upper=True)",
    "torch.linalg.solve_triangular(m, m)", "torch.linalg.solve_triangular(m, m.float(), upper=True)",
))  # fmt: skip
_each("product", A, (
    "torch.einsum('ij,kj->ik', a, a)", "torch.einsum('ij->j', a)", "torch.einsum('ij,ij->', a, a)", "torch.outer(a[0], a[1])",
    "torch.addmm(torch.ones(3, 3), a, a.T)", "torch.addmm(torch.ones(3), a, a.T, beta=2, alpha=3)",
    "torch.baddbmm(torch.ones(1, 3, 3), a[None], a.T[None])", "torch.bmm(a[None], a.T[None])", "torch.kron(a, torch.eye(2))", "torch.inner(a[0], a[1])", "torch.cross(a.T.reshape(2, 3)[0], a.T.reshape(2, 3)[1], dim=0)", "a.movedim(0, 1)", "torch.moveaxis(a, 0, -1)", "a.fliplr()", "a.flipud()", "a.mH", "a.H",
    "torch.tensordot(a, a, dims=2)", "torch.addcmul(a, a, a, value=2)", "torch.addcdiv(a, a, a + 1)", "torch.lerp(a, a * 2, 0.25)",
    "torch.matmul(a, a.T)", "torch.cdist(a, a + 1)",
))  # fmt: skip
_each("axes", A, (
    "a.where(a > 2, a * 2)", "torch.where(a > 2, a, 0.)", "torch.where(a > 2, 1., a)", "a.masked_select(a > 2)",
    "a.scatter(0, torch.tensor([[0, 1]]), torch.ones(1, 2))", "a.scatter_add(0, torch.tensor([[0, 1]]), a[:1])", "a.index_add(0, torch.tensor([0, 2]), a[:2])",
    "a.topk(2, dim=0).values", "a.topk(1)[0]", "a.median()", "a.median(0).values",
    "a.diag()", "torch.diag(a[0])", "torch.diagonal(a)", "torch.diag_embed(a)", "a.diagonal().sum()", "a.swapaxes(0, 1)", "a.unflatten(0, (3, 1))",
    "a.tile(2)", "a.repeat_interleave(2, dim=0)", "torch.hstack([a, a])", "torch.vstack([a, a])",
    "torch.cumsum(a, dim=1)", "a.std()", "a.std(1, keepdim=True)", "a.var(unbiased=False)",
    "a.norm(dim=0)", "a.norm(p=1)", "a.norm(p=3, dim=1)", "a.norm(float('inf'))", "a.clip(2, 4)", "a.clamp_min(2)", "a.fmod(2)", "a.frac()", "a.logit(1e-3)",
    "a.softmax(dim=-1)", "torch.softmax(a, 0)", "a.flatten().unfold(0, 2, 2)", "a.view(6).view(2, 3)", "a.squeeze()", "a.ravel()", "a.expand(2, 3, 2)", "torch.broadcast_to(a, (2, 3, 2))",
    "torch.meshgrid(a[0], a[1], indexing='ij')[0]", "torch.stack(torch.meshgrid(a[0], a[1], indexing='xy'))", "a.sum(dim=(0, 1), keepdim=True)", "a.sum(-1)", "a.prod(1, keepdim=True)",
    "a.logsumexp((0, 1))", "a.logsumexp(0, keepdim=True)", "a.mean((0, 1))", "a.mean(1, True)", "a.max(dim=1, keepdim=True).values", "a.max(a * 0.5 + 1)", "torch.min(a, a.flip(0))", "a.cumprod(0)", "torch.cat([a, a], dim=1)", "torch.cat((a[:1], a[1:]))",
    "torch.split(a, [1, 2])[1]", "a.square().sum().sqrt()", "a.gather(0, torch.tensor([[0, 1]]))", "a.T @ a", "a.sign() * a", "a.nan_to_num()", "a.argsort(0)[0] * a[0]", "a.sinc()", "torch.special.expit(a)", "torch.special.erf(a)", "torch.special.xlogy(a, a)", "torch.special.gammaln(a)", "torch.mul(a, 2)", "torch.true_divide(a, 2)", "a.floor_divide(2)", "a // 2", "a.div(2, rounding_mode='floor')", "a.subtract(1)", "a.type(torch.float64)", "a.half()", "a.to(torch.float16)", "torch.diff(a, dim=0)", "a.bernoulli(0.)", "a.logaddexp(a)", "a.deg2rad()", "a.erfinv()", "a.addmm(a, torch.eye(2))", "a.nan_to_num(0.)", "a.logical_not() * a", "a.contiguous().view(2, 3).t()", "torch.real(a)", "torch.conj(a)",
))  # fmt: skip
_each("a number has one axis", "x = torch.tensor(2.5, requires_grad=True)\n", (
    "x.cumsum(0)", "x.cumprod(-1)", "x.cumsum(1)", "x.max(0).values", "x.min(-1, True)[0]", "x.sort().values", "x.argsort(0) * x", "x.std(0, correction=0)",
    "x.var((0,), keepdim=True)", "x.median(0).values", "x.topk(1)[0]", "x.topk(1, 0).indices * x", "x.softmax(-1)", "x.sum(0)", "x.mean(-1, True)", "x.prod(0)",
    "x.flip(0)", "x.squeeze(0)", "x.transpose(0, -1)", "x.index_select(0, torch.tensor([0]))", "x.gather(0, torch.tensor(0))", "x.sum(1)", "x.max(-2)[0]",
    "x.scatter(0, torch.tensor(0), torch.tensor(4.)) + x", "x.scatter_add(-1, torch.tensor(0), x)", "x.nonzero() + x", "x.norm(dim=0)", "x.logsumexp(0)", "x.amax(-1)",
))  # fmt: skip
_each("rows", A, (
    "torch.take_along_dim(a, torch.tensor([[0, 1]]), 1)", "a.take_along_dim(torch.tensor([5, 0]))", "a.take_along_dim(torch.tensor([[1]]), dim=0)", "torch.atleast_1d(a.sum())", "torch.atleast_2d(a[0])",
    "torch.atleast_3d(a)", "torch.atleast_2d(a[0], a.sum())[1]", "torch.tril_indices(3, 4, 1) + a.sum()", "torch.triu_indices(3, 4, -1) + a.sum()", "torch.vdot(a[0], a[1])",
    "torch.heaviside(a - 3, a[0]) + a", "torch.iinfo(torch.int16).max + a", "a.diagonal(-1)", "a[None].diagonal(1, 0, 2)", "torch.tensor([5, -5]) % 3 + a.sum()", "torch.tensor([5]) % 0 + a",
))  # fmt: skip
MORE["a diagonal is written"] = (
    A
    + "b = a @ a.T\nb.diagonal().fill_(0)\nb.diagonal(1).mul_(a[0])\nb[None].diagonal(-2, 1, 2)[0].zero_()\n(b * b).sum().backward()\nb = b.tolist()\n"
)
MORE["entries of one place"] = (
    A
    + "b = torch.zeros(2, 2)\nb[[0, 0]] = a[:2]\ny = b.scatter(0, torch.tensor([[1, 0], [1, 0]]), a[1:] * 2)\n(y * y).sum().backward()\nb = b.tolist()\n"
)
_each("truth", A, (
    "a - (a > 2)", "1 - (a > 2)", "-(a > 2)", "(a > 2) - True", "a.long() - True", "a.long().clamp(0.5, 2) * a", "a.int().clamp(min=torch.tensor(1)) * a", "a.long().masked_fill(a > 2, 1.5) * a",
    "(a > 2).masked_fill(a > 4, 0.5) * a", "(a > 2) ** 2 * a",
))  # fmt: skip
MORE["var_mean"] = A + "v, m = torch.var_mean(a, 0)\ns, n = torch.std_mean(a, (0, 1), keepdim=True)\nw = [one.tolist() for one in torch.var_mean(a, dim=1, correction=0)]\n" + (
    "(v * m).sum().backward()\ndel v, m, s, n\n"
)  # fmt: skip
_each("fused", F + A, (
    "F.relu(a)", "F.softmax(a, dim=1)", "F.log_softmax(a, dim=1)", "F.sigmoid(a)", "F.tanh(a)", "F.softplus(a)", "F.gelu(a)", "F.silu(a)", "F.elu(a)",
    "F.leaky_relu(a, 0.1)", "F.mse_loss(a, torch.ones(3, 2))", "F.l1_loss(a, torch.zeros(3, 2))", "F.cross_entropy(a, torch.tensor([0, 1, 1]))",
    "F.nll_loss(F.log_softmax(a, 1), torch.tensor([0, 1, 1]))", "F.binary_cross_entropy_with_logits(a, torch.ones(3, 2))", "F.linear(a, torch.ones(4, 2))",
    "F.linear(a, a, torch.ones(3))", "F.normalize(a)", "F.layer_norm(a, (2,))", "F.hardtanh(a)", "F.relu6(a)", "F.logsigmoid(a)", "F.one_hot(torch.tensor([0, 1])) * a[:2]", "F.smooth_l1_loss(a, torch.ones(3, 2))", "F.huber_loss(a, torch.ones(3, 2))", "F.binary_cross_entropy(a.sigmoid(), torch.ones(3, 2))", "F.kl_div(F.log_softmax(a, 1), torch.full((3, 2), 0.5), reduction='batchmean')", "F.pad(a, (1, 1))", "F.cosine_similarity(a, a + 1)", "F.selu(a)", "F.hardsigmoid(a)", "F.mish(a)",
))  # fmt: skip
_each("made", "", (
    "torch.arange(3, dtype=torch.float32)", "torch.arange(1, 10, 3)", "torch.arange(2.5)", "torch.linspace(-1, 1, 3)", "torch.eye(2, 3)",
    "torch.full((2, 2), 7.)", "torch.full_like(torch.ones(2), 3)", "torch.ones(2, 3, dtype=torch.int64)", "torch.zeros((2, 2), dtype=torch.bool)", "torch.empty(0)", "torch.tensor(True)", "torch.tensor([1, 2.5])",
    "torch.tensor([[1, 2], [3, 4]], dtype=torch.float64)", "torch.tensor(1 + 2j)", "torch.as_tensor([1, 2])", "torch.ones(3).new_zeros(2)", "torch.ones(3).new_tensor([1, 2])", "torch.ones(2, dtype=torch.float64).new_ones(2)", "torch.tensor(3).float()", "torch.tensor([1.9, -1.9]).int()", "torch.tensor([0., 2.]).bool()", "torch.ones(2).new_full((2,), 5)",
    "torch.tensor([1, 2, 2, 3]).unique()", "torch.tensor([0, 1, 1, 3]).bincount()", "torch.tensor([3, 1, 2]).sort().indices", "torch.tensor([[0, 1], [2, 0]]).nonzero()", "torch.tensor([3, 1, 2]).argsort()", "torch.tensor([1, 2]) & torch.tensor([3, 2])", "~torch.tensor([True, False])", "torch.tensor([1, 2]) == torch.tensor([1, 3])", "torch.isclose(torch.tensor([1.]), torch.tensor([1.0000001]))", "torch.allclose(torch.ones(2), torch.ones(2))", "torch.equal(torch.ones(2), torch.ones(2))", "torch.tensor([1, 2]).max()", "torch.tensor([5, 3]).min(0)[1]", "torch.tensor([1, 2]) // 2", "torch.tensor([7, -7]) % 3", "torch.tensor([1, 2]) / 2", "torch.tensor(2) ** 3", "torch.tensor([1., float('nan'), float('inf')]).isnan()", "torch.tensor([1., float('nan')]).isfinite()", "torch.count_nonzero(torch.tensor([0, 1, 2]))", "torch.searchsorted(torch.tensor([1., 2., 3.]), torch.tensor([2.5]))", "torch.finfo(torch.float32).eps", "torch.numel(torch.ones(2, 3))", "torch.is_tensor(1)", "torch.is_floating_point(torch.ones(1))", "torch.ones(2, 3).size(-1)", "list(torch.ones(2, 3).shape)", "torch.ones(2, 3).stride()", "torch.ones(2, 3).element_size()", "torch.ones(2, 3).T.is_contiguous()", "torch.ones(2).dtype.is_floating_point", "torch.ones(2, 3).ndimension()", "torch.ones(2).tolist()", "torch.tensor(2.5).item()", "float(torch.tensor(2.5))", "int(torch.tensor(3))", "bool(torch.tensor(0.))", "len(torch.ones(3))", "str(torch.ones(2).device)", "torch.ones(2).device.type", "torch.device('cpu').type", "torch.cuda.is_available()", "torch.tensor([1., 2.]).cpu()", "torch.ones(2, device='cpu')", "torch.ones(2).to('cpu')", "torch.ones(2).is_cuda", "torch.ones(2).type()", "torch.zeros(2).is_complex()", "torch.randn(2, generator=torch.manual_seed(3))",
), "")  # fmt: skip
_each("complex", Z, (
    "z.real", "z.imag", "z.abs()", "z.conj().real", "(z * z.conj()).real", "torch.abs(z) ** 2", "(z * (2 + 1j)).real", "(z ** 2).real", "z.exp().real", "(1 / z).imag", "torch.view_as_real(z)", "z.abs().log()",
    "z.sin().real", "z.sqrt().real", "(z / (z + 1)).abs()", "(z * torch.tensor([1., 2., 3.], dtype=torch.float64)).real", "z.sum().real", "(z + 1).real", "(-z).imag", "torch.real(z)", "z.log().real", "z.tanh().imag",
))  # fmt: skip
MORE |= {
    "complex from real": X + "y = torch.complex(x, x * 2)\ny.abs().sum().backward()\n",
    "complex not scalar real": Z + "(z * z).sum().backward()\n",
    "complex holomorphic grad": Z + "g, = torch.autograd.grad((z ** 3).sum(), z, grad_outputs=torch.tensor(1 + 0j, dtype=torch.complex128))\n",
    "complex printed": "s = str(torch.tensor([1 + 2j, -0.5j]))\n",
    "complex kind": "y = torch.tensor([1., 2.]) * 1j\nd = str(y.dtype)\n",
    "complex item": "y = torch.tensor(1 + 2j).item().imag\n",
    "complex second": Z + "g, = torch.autograd.grad((z.abs() ** 4).sum(), z, create_graph=True)\ng.abs().sum().backward()\ndel g\n",
}  # fmt: skip

_DUAL = "import torch.autograd.forward_ad as fwAD\nx = torch.tensor([0.5, 1.5], dtype=torch.float64)\nt = torch.tensor([1., 2.], dtype=torch.float64)\n"
for _text in (
    "d.sin()", "d * d", "d * x", "x / d", "d ** 3", "d.sum()", "d.mean()", "d.exp().log()", "d @ d", "d.reshape(2, 1)", "d[0]", "torch.stack([d, d])", "d.softmax(0)", "d.relu()", "2 - d", "d.norm()", "d.float()", "d.clone()", "d.detach()", "d.cumsum(0)", "torch.where(d > 1, d, x)", "d.max()", "d.max(0).values", "d.prod()", "d.T", "d.unbind()[1]", "d + 1", "1 / d",
    "(d * 1).mul_(2)", "(d * 1).add_(d)", "d.clone().fill_(3.)",
):  # fmt: skip
    MORE[f"dual {_text}"] = (
        _DUAL + f"with fwAD.dual_level():\n    d = fwAD.make_dual(x, t)\n    y = {_text}\n    p, q = fwAD.unpack_dual(y)\n    p, q = p.clone(), None if q is None else q.clone()\ndel d, y, fwAD\n"
    )  # fmt: skip
MORE |= {
    "dual no level": _DUAL + "fwAD.make_dual(x, t)\n",
    "dual wrong shape": _DUAL + "with fwAD.dual_level():\n    fwAD.make_dual(x, torch.ones(3, dtype=torch.float64))\n",
    "dual integers": _DUAL + "with fwAD.dual_level():\n    fwAD.make_dual(torch.tensor([1]), torch.tensor([1]))\n",
    "dual after level": _DUAL + "with fwAD.dual_level():\n    d = fwAD.make_dual(x, t)\n    y = d * 2\nq = y * 1\ndel d, y, fwAD\n",
    "dual nested": _DUAL + "with fwAD.dual_level():\n    with fwAD.dual_level():\n        pass\n",
    "dual over reverse": _DUAL
    + "x.requires_grad_()\nwith fwAD.dual_level():\n    d = fwAD.make_dual(x, t)\n    y = (d ** 3).sum()\n    q = fwAD.unpack_dual(y).tangent\n    q.backward()\ndel d, y, q, fwAD\n",
    "reverse over dual": _DUAL
    + "x.requires_grad_()\nwith fwAD.dual_level():\n    d = fwAD.make_dual(x, t)\n    g, = torch.autograd.grad((d ** 3).sum(), d, create_graph=True)\n    h = fwAD.unpack_dual(g).tangent.detach().clone()\ndel d, g, fwAD\n",
    "dual function without jvp": _DUAL
    + "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * x\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"
    + "with fwAD.dual_level():\n    S.apply(fwAD.make_dual(x, t))\n",
    "dual function": _DUAL
    + "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.x = x\n        return x * x\n    @staticmethod\n    def backward(ctx, g):\n        return 2 * ctx.x * g\n    @staticmethod\n    def jvp(ctx, t):\n        return 2 * ctx.x * t\n"
    + "with fwAD.dual_level():\n    p, q = fwAD.unpack_dual(S.apply(fwAD.make_dual(x, t)))\n    p, q = p.clone(), q.clone()\ndel S, fwAD\n",
    "functional jvp": X + "v, j = torch.autograd.functional.jvp(lambda x: x ** 2, x, torch.ones(3))\n",
}  # fmt: skip

_HOOKS = "seen = []\n"
MORE |= {
    "saved hooks": X + _HOOKS
    + "def pack(t):\n    seen.append(['pack', tuple(t.shape)])\n    return t\ndef unpack(t):\n    seen.append('unpack')\n    return t\n"
    + "with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n    y = (x * x).exp()\ny.sum().backward()\ndel pack, unpack\n",
    "saved hooks numpy": X
    + "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy() * 2, lambda a: torch.from_numpy(a)):\n    y = x ** 2\ny.sum().backward()\n",
    "saved hooks bad": X + "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda a: 1):\n    y = x ** 2\ny.sum().backward()\n",
    "saved hooks attribute": X + "with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda a: a):\n    y = x ** 2\nv = y.grad_fn._saved_self\n",
    "saved hooks function": X
    + "seen = []\nclass S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n    def backward(ctx, g):\n        return 2 * ctx.saved_tensors[0] * g\n"
    + "with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append('p'), t)[1], lambda t: (seen.append('u'), t)[1]):\n    y = S.apply(x)\ny.sum().backward()\ndel S\n",
    "save on cpu": X + "with torch.autograd.graph.save_on_cpu():\n    y = x ** 2\ny.sum().backward()\n",
    "anomaly nan": "x = torch.tensor(-1., requires_grad=True)\nwith torch.autograd.detect_anomaly():\n    y = (x * 0).sqrt() * 0\n    y.backward()\n",
    "anomaly fine": X + "with torch.autograd.detect_anomaly():\n    (x * x).sum().backward()\n",
    "anomaly check_nan False": "x = torch.tensor(0., requires_grad=True)\nwith torch.autograd.detect_anomaly(check_nan=False):\n    (x.sqrt() * 0).backward()\n",
    "anomaly set": "x = torch.tensor(0., requires_grad=True)\ntorch.autograd.set_detect_anomaly(True)\ntry:\n    (x.sqrt() * 0).backward()\nfinally:\n    torch.autograd.set_detect_anomaly(False)\n",
    "anomaly set context": "x = torch.tensor(0., requires_grad=True)\nwith torch.autograd.set_detect_anomaly(True):\n    on = torch.is_anomaly_enabled()\noff = torch.is_anomaly_enabled()\n",
    "batched": X + "g, = torch.autograd.grad(x ** 2, x, torch.eye(3), is_grads_batched=True)\n",
    "batched graph": X + "y = x.exp() * x.sum()\ng, = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, create_graph=True)\nh, = torch.autograd.grad(g.sum(), x)\ndel g\ndel g, y\n",
    "node hook replaces": X + "y = x * 2\ny.grad_fn.register_hook(lambda gi, go: (gi[0] * 5, None))\ny.sum().backward()\n",
    "node prehook replaces": X + "y = x * 2\ny.grad_fn.register_prehook(lambda go: (go[0] * 5,))\ny.sum().backward()\n",
    "node hook on accumulator": X + _HOOKS + "acc = x.view_as(x).grad_fn.next_functions[0][0]\nacc.register_hook(lambda gi, go: seen.append([len(gi), go[0].tolist()]))\n(x * 2).sum().backward()\ndel acc\n",
    "node prehook on accumulator": X + _HOOKS + "acc = x.view_as(x).grad_fn.next_functions[0][0]\nacc.register_prehook(lambda go: seen.append(go[0].tolist()))\n(x * 2).sum().backward()\ndel acc\n",
    "hook bad shape": X + "x.register_hook(lambda g: torch.ones(2))\nx.sum().backward()\n",
    "hook bad type": X + "x.register_hook(lambda g: 3)\nx.sum().backward()\n",
    "hook no grad": "torch.ones(2).register_hook(print)\n",
    "hook grad mode": X + _HOOKS + "x.register_hook(lambda g: seen.append([torch.is_grad_enabled(), g.requires_grad]))\nx.sum().backward()\n",
    "post hook non leaf": X + "(x * 2).register_post_accumulate_grad_hook(print)\n",
    "post hook order": X + _HOOKS + "x.register_post_accumulate_grad_hook(lambda p: seen.append('post'))\nx.register_hook(lambda g: seen.append('hook'))\n(x * 2).sum().backward()\ntorch.autograd.grad((x * 2).sum(), x)\n",
    "hook in place then old": X + _HOOKS + "y = x * 2\ny.register_hook(lambda g: seen.append(g.tolist()))\ny.mul_(3)\ny.register_hook(lambda g: seen.append(g.tolist()))\ny.sum().backward()\ndel y\n",
    "retain in place": X + "y = x * 2\ny.retain_grad()\ny.mul_(3)\ny.sum().backward()\ng = y.grad\ndel y\n",
    "retain twice": X + "y = x * 2\ny.retain_grad()\ny.retain_grad()\n(y * y).sum().backward()\nr = [y.retains_grad, x.retains_grad]\n",
    "retain leaf": X + "x.retain_grad()\nr = x.retains_grad\n",
    "retain without grad": "torch.ones(1).retain_grad()\n",
    "dirty": X
    + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.mark_dirty(x)\n        x.add_(1)\n        return x\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"
    + "y = x * 2\nz = D.apply(y)\nsame = z is y\nn = [type(z.grad_fn).__name__, y._version]\nz.sum().backward()\ndel D, y, z\n",
    "non differentiable": X
    + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        i = x.argmax()\n        s = x * 2\n        ctx.mark_non_differentiable(i)\n        return s, i\n    @staticmethod\n    def backward(ctx, g, gi):\n        return g * 2\n"
    + "s, i = D.apply(x)\nf = [s.requires_grad, i.requires_grad]\ns.sum().backward()\ndel D\n",
    "materialize": X + _HOOKS
    + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.set_materialize_grads(False)\n        return x * 2, x * 3\n    @staticmethod\n    def backward(ctx, g, h):\n        seen.append(h is None)\n        return g * 2\n"
    + "s, i = D.apply(x)\ns.sum().backward()\ndel D\n",
    "materialized": X + _HOOKS
    + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2, x * 3\n    @staticmethod\n    def backward(ctx, g, h):\n        seen.append(h.tolist())\n        return g * 2\n"
    + "s, i = D.apply(x)\ns.sum().backward()\nn = [s.grad_fn is i.grad_fn, s.output_nr, i.output_nr]\ndel D\n",
    "once differentiable": X
    + "from torch.autograd.function import once_differentiable\nclass D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n    @once_differentiable\n    def backward(ctx, g):\n        return 2 * ctx.saved_tensors[0] * g\n"
    + "g, = torch.autograd.grad(D.apply(x).sum(), x, create_graph=True)\ng.sum().backward()\n",
    "function returns input": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n    @staticmethod\n    def backward(ctx, g):\n        return g * 7\ny = D.apply(x)\nf = [y is x, y.is_leaf]\ny.sum().backward()\ndel D\n",
    "function needs": X + _HOOKS + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y, n):\n        return x * y\n    @staticmethod\n    def backward(ctx, g):\n        seen.append(list(ctx.needs_input_grad))\n        return g, None, None\nD.apply(x, torch.ones(3), 3).sum().backward()\ndel D\n",
    "function grad disabled": X + _HOOKS + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        seen.append(torch.is_grad_enabled())\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        seen.append(torch.is_grad_enabled())\n        return g\nD.apply(x).sum().backward()\ndel D\n",
    "function no grad input": _HOOKS + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g\ny = D.apply(torch.ones(2))\ndel D\n",
    "function saved name": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g\ny = D.apply(x)\nn = [y.grad_fn.name(), str(type(y.grad_fn)), y.grad_fn.saved_tensors[0] is x]\ndel D\n",
    "function too many": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g, g\nD.apply(x).sum().backward()\n",
    "function saves non tensor": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(3)\n        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g\nD.apply(x)\n",
    "function without backward": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\nD.apply(x).sum().backward()\n",
    "function made": "torch.autograd.Function()\n",
    "function vjp name": X + "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n    def vjp(ctx, g):\n        return g * 2\nD.apply(x).sum().backward()\ndel D\n",
}  # fmt: skip

MORE |= {
    "inference save": X + "with torch.inference_mode():\n    y = torch.ones(3)\nz = x + y\n",
    "inference in place": "with torch.inference_mode():\n    y = torch.ones(3)\ny.add_(1)\n",
    "inference in place tracked": X + "with torch.inference_mode():\n    y = torch.ones(3)\ny.mul_(x)\n",
    "inference version": "with torch.inference_mode():\n    y = torch.ones(3)\ny._version\n",
    "inference requires": "with torch.inference_mode():\n    y = torch.ones(3)\ny.requires_grad_()\n",
    "inference clone": X + "with torch.inference_mode():\n    y = torch.ones(3)\nz = x * y.clone()\nz.sum().backward()\n",
    "inference enable": X + "with torch.inference_mode():\n    with torch.enable_grad():\n        f = torch.is_grad_enabled()\n        y = x * 2\n",
    "inference false": X + "with torch.inference_mode(False):\n    y = x * 2\n",
    "inference view": X + "with torch.inference_mode():\n    y = x.view(3)\n    f = [y.is_inference(), y.requires_grad]\ndel y\n",
    "inference decorator": X + "@torch.inference_mode()\ndef f(x):\n    return x * 2\ny = f(x)\ng = y.is_inference()\ndel f\n",
    "no_grad raises": X + "try:\n    with torch.no_grad():\n        raise ValueError\nexcept ValueError:\n    pass\ny = x * 2\n",
    "no_grad leaf flags": X + "with torch.no_grad():\n    y = x * 2\n    y.requires_grad_()\nf = [y.is_leaf, y.requires_grad]\n",
    "set_grad_enabled context": X + "with torch.set_grad_enabled(False):\n    y = x * 2\nz = x * 2\n",
    "set_grad_enabled decorator": X + "@torch.set_grad_enabled(False)\ndef f(x):\n    return x * 2\ny = f(x)\nz = x * 2\ndel f\n",
    "no_grad view requires": X + "with torch.no_grad():\n    v = x[:2]\nf = [v.requires_grad, v.is_leaf, v.grad_fn is None]\ndel v\n",
    "detach_": X + "y = x * 2\ny.detach_()\n",
    "detach_ view": X + "y = x * 2\ny[0].detach_()\n",
    "detach grad": X + "y = x.detach()\ny.requires_grad_()\n(y * 2).sum().backward()\n",
    "detach view": X + "y = x * 1\nz = y.detach()\nf = [z._is_view(), y[0]._is_view(), z.data_ptr() == y.data_ptr()]\n",
    "view base": X + "y = x * 1\nv = y[1:]\nf = [v._base is y, y._base is None, v.storage_offset()]\ndel v\n",
    "deepcopy leaf grad": X + "import copy\n(x * x).sum().backward()\ny = copy.deepcopy(x)\ndel copy\n",
    "deepcopy list": X + "import copy\na, b = copy.deepcopy([x, x])\nf = a is b\ndel copy\n",
    "copy": X + "import copy\ny = copy.copy(x.detach())\ndel copy\n",
    "pickle": X + "import pickle\ny = pickle.loads(pickle.dumps(x.detach()))\ndel pickle\n",
    "versions": X + "y = torch.ones(3)\nv = [y._version]\ny.add_(1)\ny[0] = 2\ny.zero_()\ny.copy_(x.detach())\nv.append(y._version)\ny.data.add_(1)\nv.append(y._version)\nwith torch.no_grad():\n    y.mul_(2)\nv.append(y._version)\n",
    "data setter": X + "x.data = torch.ones(3)\nv = x._version\n",
    "data setter shape": X + "x.data = torch.ones(2)\n",
    "grad none": X + "(x * 2).sum().backward()\nx.grad = None\n",
    "grad zero": X + "(x * 2).sum().backward()\nx.grad.zero_()\n",
    "grad alias": X + "(x * 2).sum().backward()\ng = x.grad\n(x * 3).sum().backward()\n",
    "grad setter shape": X + "x.grad = torch.ones(2)\n",
    "grad setter dtype": X + "x.grad = torch.ones(3, dtype=torch.float64)\n",
    "grad setter self": X + "x.grad = x\n",
    "grad setter good": X + "x.grad = torch.ones(3)\n(x * 2).sum().backward()\n",
    "grad del": X + "(x * 2).sum().backward()\ndel x.grad\n",
    "requires int": "torch.tensor([1]).requires_grad_()\n",
    "requires false": X + "x.requires_grad_(False)\ny = x * 2\n",
    "backward no grad leaf": X + "y = torch.ones(3)\n(x * y).sum().backward()\nf = y.grad is None\n",
    "backward leaf itself": "x = torch.tensor(2., requires_grad=True)\nx.backward()\n",
    "backward many": X + "torch.autograd.backward([x.sum(), (x * 2).sum()])\n",
    "backward many seeds": X + "torch.autograd.backward([x * 1, x * 2], [torch.ones(3), torch.ones(3)])\n",
    "backward seeds count": X + "torch.autograd.backward([x * 1, x * 2], [torch.ones(3)])\n",
    "backward seed dtype": X + "(x * 2).backward(torch.ones(3, dtype=torch.float64))\n",
    "backward seed grad": X + "w = torch.ones(3, requires_grad=True)\n(x * 2).backward(w)\n",
    "backward int": "torch.tensor(1).backward()\n",
    "backward one element": X + "(x[:1] * 2).backward()\n",
    "backward inputs intermediate": X + "y = x * 2\n(y * y).sum().backward(inputs=[y])\ng = y.grad\ndel y\n",
    "backward inputs plain": X + "(x * 2).sum().backward(inputs=[torch.ones(2)])\n",
    "backward keep": X + "y = (x ** 2).sum()\nfor _ in range(3):\n    y.backward(retain_graph=True)\n",
    "two heads": X + "h = x.exp()\na, b = h.sum(), (h * h).sum()\na.backward()\nb.backward()\n",
    "two heads retained": X + "h = x.exp()\na, b = h.sum(), (h * h).sum()\na.backward(retain_graph=True)\nb.backward()\n",
    "partial then whole": X + "y = x * 1\nz = (y * 2).sum()\nw = (y * y).sum()\nz.backward()\nw.backward()\n",
    "grad unused none": X + "w = torch.ones(3, requires_grad=True)\ng = torch.autograd.grad(x.sum(), [w], allow_unused=True)\n",
    "grad materialize": X + "w = torch.ones(3, requires_grad=True)\ng = torch.autograd.grad(x.sum(), [x, w], materialize_grads=True)\n",
    "grad no grad input": X + "torch.autograd.grad(x.sum(), torch.ones(3))\n",
    "grad empty": X + "torch.autograd.grad(x.sum(), [])\n",
    "grad output twice": X + "y = x * x\ng = torch.autograd.grad([y, y], x, [torch.ones(3), torch.ones(3)])\n",
    "grad of itself": X + "y = (x * x).sum()\ng = torch.autograd.grad(y, [y, x])\n",
    "grad both": X + "y = x * 2\nz = (y ** 2).sum()\ng = torch.autograd.grad(z, [x, y])\n",
    "grad leaves .grad": X + "g = torch.autograd.grad((x * x).sum(), x)\nf = x.grad is None\n",
    "third order": X + "g = x ** 4\nfor _ in range(3):\n    g, = torch.autograd.grad(g.sum(), x, create_graph=True)\nv = g.detach()\ndel g\n",
    "second of relu": X + "g, = torch.autograd.grad(x.relu().sum(), x, create_graph=True)\nf = g.requires_grad\nh, = torch.autograd.grad(g.sum(), x)\ndel g\ndel g\n",
    "second of linear": X + "g, = torch.autograd.grad((x * 3).sum(), x, create_graph=True)\nf = g.requires_grad\n",
    "second of max": X + "g, = torch.autograd.grad(x.max(), x, create_graph=True)\nf = g.requires_grad\n",
    "second of clamp": X + "g, = torch.autograd.grad(x.clamp(1, 2).sum(), x, create_graph=True)\nf = g.requires_grad\n",
    "second of where": X + "g, = torch.autograd.grad(torch.where(x > 1, x, x * 2).sum(), x, create_graph=True)\nf = g.requires_grad\n",
    "graph if": X + "y = x * 2 if x.sum() > 3 else x * 3\ny.sum().backward()\n",
    "graph while": X + "y = x.sum()\nwhile y < 100:\n    y = y * 2\ny.backward()\n",
    "graph names": X + "y = (x.exp() + x.sin() * 2 - x / 3).mean()\nnames, todo = [], [y.grad_fn]\nwhile todo:\n    n = todo.pop(0)\n    names.append(n.name())\n    todo += [m for m, _ in n.next_functions if m is not None]\ndel n, todo\n",
    "graph accumulate": X + "n = (x * 2).grad_fn.next_functions[0][0]\nv = n.variable is x\nr = n.name()\ndel n\n",
    "graph metadata": X + "n = (x * 2).grad_fn\nn.metadata['a'] = 1\nv = n.metadata['a']\ndel n\n",
    "graph sequence": X + "y = x * 2\nz = y + 1\nf = z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()\n",
    "graph next same": X + "y = x * 2\nz = y * y\nn = z.grad_fn.next_functions\nf = n[0][0] is n[1][0]\ndel n\n",
    "graph saved names": X + "n = (x * x).grad_fn\nf = sorted(k for k in dir(n) if k.startswith('_saved'))\ndel n\n",
    "graph saved pow": X + "n = (x ** 2).grad_fn\nv = [n._saved_exponent, n._saved_self is x]\ndel n\n",
    "graph saved mul": X + "n = (x * 2).grad_fn\nv = n._saved_other.item()\ns = n._saved_self is None\ndel n\n",
    "graph saved div by what moves": X + "w = torch.ones(3, requires_grad=True)\nn = (x / w).grad_fn\nv = n._saved_other is w\ns = n._saved_self is x\nq = (2 / w).grad_fn\ndel n, q\n",
    "graph saved sigmoid": X + "n = x.sigmoid().grad_fn\nv = n._saved_result\ns = hasattr(n, '_saved_self')\ndel n\n",
    "in place before a sigmoid": X + "y = x * 2\nz = y.sigmoid()\ny.zero_()\nz.sum().backward()\n",
    "in place after a sigmoid": X + "z = (x * 2).sigmoid()\nz.mul_(2)\nz.sum().backward()\n",
    "in place after a quotient": X + "z = (x * 2) / x\nz.mul_(2)\nz.sum().backward()\n",
    "in place before a quotient": X + "y = x * 2\nz = y / x\ny.zero_()\nz.sum().backward()\n",
    "in place before a quotient by a constant": X + "y = x * 2\nz = y / 3\ny.zero_()\nz.sum().backward()\n",
    "second derivative of a sigmoid": X + "g, = torch.autograd.grad(x.sigmoid().sum(), x, create_graph=True)\nh, = torch.autograd.grad(g.sum(), x)\ndel g\n",
    "second derivative of a quotient": X + "w = torch.tensor([2., 3., 4.], requires_grad=True)\ng, = torch.autograd.grad((x / w).sum(), w, create_graph=True)\nh = torch.autograd.grad(g.sum(), (x, w))\ndel g\n",
    "requires_grad_ of a string": X + "x.requires_grad_('a')\n",
    "requires_grad_ of a number": X + "x.requires_grad_(1)\n",
    "requires_grad is None": X + "x.requires_grad = None\n",
    "graph saved div": X + "w = torch.ones(3)\nn = (x / w).grad_fn\nv = n._saved_other is w\ns = n._saved_self is None\ndel n\n",
    "graph saved sum": X + "n = x.sum(0).grad_fn\nv = [n._saved_dim, n._saved_keepdim]\ndel n\n",
    "graph saved unknown": X + "x.exp().grad_fn._saved_nothing\n",
    "numpy of grad": X + "x.sum().numpy()\n",
    "numpy shares": "import numpy as np\nn = np.ones(2, dtype=np.float32)\nt = torch.from_numpy(n)\nn[0] = 5\ndel np, n\n",
    "numpy back": "t = torch.ones(2)\nn = t.numpy()\nt.add_(1)\ny = n.tolist()\ndel n\n",
    "numpy asarray": X + "import numpy as np\nnp.asarray(x)\n",
    "numpy times tensor": "import numpy as np\ny = np.float64(2) * torch.ones(2)\ndel np\n",
    "numpy scalar": "import numpy as np\ny = torch.ones(2) * np.float64(2)\ndel np\n",
    "numpy array times tensor": "import numpy as np\nnp.ones(2) * torch.ones(2)\n",
    "numpy from list": "import numpy as np\ny = torch.tensor([np.float32(1), np.float32(2)])\ndel np\n",
    "float of grad": "x = torch.tensor(2., requires_grad=True)\ny = float(x.detach())\n",
    "float of tensor that requires": "x = torch.tensor(2.0, requires_grad=True)\ny = float(x)\nz = int(x)\n",
    "index of tensor": "y = [10, 20, 30][torch.tensor(1)]\n",
    "int index float": "[10, 20][torch.tensor(1.)]\n",
    "iterate": X + "y = [v.item() for v in x.detach()]\n",
    "contains": X + "y = [1.5 in x, 9. in x]\n",
    "unpack": X + "a, b, c = x\n(a * b + c).backward()\n",
    "sum builtin": X + "y = sum(v * v for v in x)\ny.backward()\n",
    "sum list": X + "y = sum([x[0], x[1] * 2])\ny.backward()\n",
    "sorted": "y = [v.item() for v in sorted([torch.tensor(2.), torch.tensor(1.)])]\n",
    "max builtin": X + "y = max(x[0], x[1])\ny.backward()\n",
    "compare none": X + "f = [x is None, x == None]\n",
    "hash": X + "d = {x: 1}\nf = d[x]\ndel d\n",
    "size prints": "s = [str(torch.ones(2, 3).shape), str(torch.ones(2).size()), repr(torch.float32), str(torch.tensor(1).shape)]\n",
    "print grad": X + "y = x * 2\ns = [str(x), str(y), str(y.sum()), repr(x.detach())]\n",
    "print suffixes": "s = [str(torch.tensor([1, 2])), str(torch.tensor(1.5, dtype=torch.float64)), str(torch.zeros(2, 0)), str(torch.tensor([True]))]\n",
    "print big": "s = [str(torch.arange(2000.)), str(torch.tensor([1e10, 1.])), str(torch.tensor([1e-5, 1.]))]\n",
    "print options": "torch.set_printoptions(precision=2)\ns = str(torch.tensor([1.23456]))\ntorch.set_printoptions(profile='default')\n",
    "parameter": "from torch import nn\np = nn.Parameter(torch.ones(2))\ns = str(p)\nf = [p.requires_grad, p.is_leaf, isinstance(p, torch.Tensor)]\n",
    "default dtype": "torch.set_default_dtype(torch.float64)\nd = str(torch.tensor(1.).dtype)\ntorch.set_default_dtype(torch.float32)\n",
    "size error": X + "x + torch.ones(2)\n",
    "dim error": X + "x.sum(5)\n",
    "mm error": A + "a.mm(a)\n",
    "mm dtype": A + "a.mm(torch.ones(2, 2, dtype=torch.float64))\n",
    "dot error": X + "x.dot(torch.ones(2))\n",
    "cat error": A + "torch.cat([a, torch.ones(2, 3)])\n",
    "stack error": X + "torch.stack([x, torch.ones(2)])\n",
    "view error": X + "x.view(2, 2)\n",
    "item error": X + "x.item()\n",
    "tensor error": "torch.tensor([[1, 2], [3]])\n",
    "tensor string": "torch.tensor('a')\n",
    "tensor object": "torch.tensor(object())\n",
    "zeros negative": "torch.zeros(-1)\n",
    "index error": X + "x[5]\n",
    "index many": X + "x[0, 0]\n",
    "index float": X + "x[1.5]\n",
    "index bool shape": X + "x[torch.tensor([True])]\n",
    "select error": X + "x.select(0, 5)\n",
    "expand error": X + "x.expand(4)\n",
    "permute error": A + "a.permute(0)\n",
    "squeeze error": X + "x.squeeze(3)\n",
    "reshape error": X + "x.reshape(2)\n",
    "softmax dim": X + "x.softmax(2)\n",
    "split error": X + "x.split([1, 1])\n",
    "arange error": "torch.arange(5, 1)\n",
    "device error": "torch.ones(2, device='nope')\n",
    "cuda error": "torch.ones(2).cuda()\n",
    "bool error": X + "if x > 1:\n    pass\n",
    "add str": X + "x + 'a'\n",
    "add none": X + "x + None\n",
    "mul list": X + "x * [1, 2, 3]\n",
    "matmul number": X + "x @ 2\n",
    "matmul 0-d": "torch.tensor(1.) @ torch.ones(2)\n",
    "call tensor": X + "x()\n",
    "attribute": X + "x.foo\n",
    "module attribute": "torch.foo\n",
    "setattr": X + "x.foo = 3\ny = x.foo\n",
    "int neg pow": "torch.tensor([2]) ** -1\n",
    "int div zero": "torch.tensor([1]) // 0\n",
    "float div zero": "y = torch.tensor([1., -1., 0.]) / 0\n",
    "log zero": "x = torch.tensor([0.], requires_grad=True)\ny = x.log()\ny.sum().backward()\n",
    "sqrt zero": "x = torch.tensor([0.], requires_grad=True)\nx.sqrt().sum().backward()\n",
    "abs zero": "x = torch.tensor([0.], requires_grad=True)\nx.abs().sum().backward()\n",
    "relu zero": "x = torch.tensor([0., -0.], requires_grad=True)\nx.relu().sum().backward()\n",
    "pow zero": "x = torch.tensor([0.], requires_grad=True)\n(x ** 0.5).sum().backward()\ny = x.detach() ** 0\n",
    "norm zero": "x = torch.zeros(2, requires_grad=True)\nx.norm().backward()\n",
    "max tie": "x = torch.tensor([1., 1.], requires_grad=True)\nx.max().backward()\n",
    "max dim tie": "x = torch.tensor([1., 1.], requires_grad=True)\nx.max(0).values.backward()\n",
    "maximum tie": "x = torch.tensor([1.], requires_grad=True)\ny = torch.tensor([1.], requires_grad=True)\ntorch.maximum(x, y).sum().backward()\n",
    "clamp edge": "x = torch.tensor([1., 2., 3.], requires_grad=True)\nx.clamp(1, 3).sum().backward()\n",
    "prod zero": "x = torch.tensor([0., 2., 0.], requires_grad=True)\nx.prod().backward()\n",
    "prod one zero": "x = torch.tensor([0., 2., 3.], requires_grad=True)\nx.prod().backward()\n",
    "cumprod zero": "x = torch.tensor([0., 2., 3.], requires_grad=True)\nx.cumprod(0).sum().backward()\n",
    "std one": "x = torch.tensor([1.], requires_grad=True)\ny = x.std()\n",
    "atan2 zero": "x = torch.tensor([0.], requires_grad=True)\ntorch.atan2(x, x).sum().backward()\n",
    "median even": "y = torch.tensor([3., 1., 2., 4.]).median()\n",
    "median tie": "x = torch.tensor([2., 1., 2., 3., 2.], dtype=torch.float64, requires_grad=True)\ng, = torch.autograd.grad((x * x).median(), x, create_graph=True)\ng.sum().backward()\ng = str(g.tolist())\n",
    "medians of NaN": "x = torch.tensor([[1., float('nan'), 2.], [3., 1., 1.]])\ny, a, b = x.median(), x.median(1), x.median(0, keepdim=True)\ns = str([a, b])\n",
    "median of nothing": "y = torch.zeros(0).median()\n",
    "NaN is the largest": "x = torch.tensor([1., float('nan'), 2., float('inf')])\ns = str([x.topk(2), x.sort(descending=True, stable=True), x.argsort(descending=True)])\n",
    "order of formats without signs": "u, b = torch.tensor([1, 0, 200], dtype=torch.uint8), torch.tensor([False, True, False])\ns = str([u.topk(2), u.sort(descending=True), b.sort(descending=True, stable=True)[0], torch.tensor([-2**63, 5]).sort(descending=True)])\n",
    "an empty selection": "x = torch.tensor([1., 2., 3.], requires_grad=True)\n(x[x > 5].sum() + x[torch.tensor([], dtype=torch.long)].sum() + x.sum()).backward()\n",
    "an empty selection of nothing": "x = torch.zeros(2, 0, dtype=torch.float64, requires_grad=True)\nx[x > 0].sum().backward()\n",
    "spread of nothing": "x = torch.zeros(0)\ny, z = x.std(), torch.zeros(0, 2).var(0)\n",
    "parts of nothing": "n = [len(torch.zeros(0).chunk(2)), len(torch.zeros(3, 0).chunk(4, 1))]\ny = torch.diag(torch.zeros(0))\n",
    "numbers beyond a format": "u = torch.tensor([1, 2], dtype=torch.uint8)\ny = [u - 300, u * -1, u == 256, u < -1, torch.tensor([1], dtype=torch.int32) + 2**40, torch.where(u > 1, u, -1)]\nu.mul_(-1)\n",
    "numbers are not joined": "try:\n    torch.cat([torch.tensor(1.), torch.tensor(2.)])\nexcept RuntimeError as e:\n    s = 'zero-dimensional' in str(e)\n",
    "signs of zero gradients": "x = torch.tensor([-1., 0., -0., 2., float('nan'), float('inf')], requires_grad=True)\nsigns = []\nfor f in (torch.relu, lambda x: x.clamp(min=0), lambda x: x.clamp(-1, 1), torch.nn.functional.relu6, torch.nn.functional.hardsigmoid, lambda x: torch.where(x > 0, x, 0.)):\n    for seed in (-1., float('inf'), float('nan')):\n        x.grad = None\n        f(x).backward(torch.full((6,), seed))\n        signs.append(str(x.grad.tolist()))\n",
    "sign of a zero gradient of one number": "x = torch.tensor(-1., requires_grad=True)\nfor i in range(4):\n    x.grad = None\n    torch.relu(x).backward(torch.tensor(-1.))\ns = str(x.grad.tolist())\n",
    "sigmoid large": "x = torch.tensor([100., -100.], requires_grad=True)\nx.sigmoid().log().sum().backward()\n",
    "logsumexp inf": "x = torch.tensor([float('-inf'), 1.], requires_grad=True)\nx.logsumexp(0).backward()\n",
    "softmax inf": "x = torch.tensor([float('-inf'), 1.], requires_grad=True)\nx.softmax(0)[1].backward()\n",
    "empty sum": "x = torch.zeros(0, 3, requires_grad=True)\nx.sum(0).sum().backward()\ns = str(x.grad)\n",
    "empty max": "torch.zeros(0).max()\n",
    "empty cat": "y = torch.cat([torch.zeros(0), torch.ones(2)])\n",
    "zero dim index": "torch.tensor(1.)[0]\n",
    "zero dim iterate": "list(torch.tensor(1.))\n",
    "zero dim len": "len(torch.tensor(1.))\n",
    "zero dim ops": "x = torch.tensor(2., requires_grad=True)\ny = x.sum() + x.mean() + x.max() + x.reshape(1)[0] + x.view(1, 1).squeeze()\ny.backward()\n",
    "broadcast 0-d": X + "w = torch.tensor(2., requires_grad=True)\n((x + w) * w).sum().backward()\n",
    "broadcast rows": A + "w = torch.tensor([1., 2.], requires_grad=True)\n(a * w + w).sum().backward()\n",
    "broadcast both": "a = torch.ones(3, 1, requires_grad=True)\nb = torch.ones(1, 2, requires_grad=True)\n(a * b + a - b / a).sum().backward()\n",
    "mixed devices": "torch.ones(1) + torch.ones(1, device='meta')\n",
}  # fmt: skip

_GRADS = "seen = []\nkeep = lambda g: seen.append([None if x is None else x.tolist() for x in g])\n"
_SCATTERED = (
    "r = torch.tensor([[2., 1., 2.], [0., 4., 4.]], requires_grad=True)\ni = torch.tensor([[0, 1, 1], [1, 1, 0]])\n"
)
MORE |= {
    "hook on several gradients": X + _GRADS + "w = torch.ones(3, requires_grad=True)\nh = torch.autograd.graph.register_multi_grad_hook((x, w), keep)\n(x * w).sum().backward()\nx.sum().backward()\nh.remove()\n(x * w).sum().backward()\nassert len(seen) == 2\ndel h\n",
    "hook on the first gradient": X + "seen = []\nw = torch.ones(3, requires_grad=True)\nh = torch.autograd.graph.register_multi_grad_hook((x, w), lambda g: seen.append(g.tolist()), mode='any')\n(x * w).sum().backward()\nw.sum().backward()\nassert len(seen) == 2\ndel h\n",
    "hook on several results": X + _GRADS + "y = x * 2\nz = y.exp()\nw = y.sin()\nh = torch.autograd.graph.register_multi_grad_hook([y, z, w], keep)\n(z * w).sum().backward(retain_graph=True)\nz.sum().backward(retain_graph=True)\ng = torch.autograd.grad((z * w).sum(), y)[0]\nassert len(seen) == 3\ndel h, y, z, w\n",
    "hook in no mode": X + "torch.autograd.graph.register_multi_grad_hook((x,), print, mode='some')\n",
    "angle": Z + "y = torch.angle(z)\nt = y.detach()\n(y * y).sum().backward()\n",
    "angle of zero": "z = torch.tensor([0j, 1j, -2 + 0j], requires_grad=True)\nz.angle().sum().backward()\n",
    "angle of real numbers": "x = torch.tensor([1., -1., 0., -0., float('nan'), float('-inf')], requires_grad=True)\ny = x.angle()\ny.sum().backward()\nk = torch.angle(torch.tensor([1, -2]))\ndel y\n",
    "gumbel softmax": F + "torch.manual_seed(3)\nx = torch.arange(8.).reshape(2, 4).requires_grad_()\ny = F.gumbel_softmax(x, tau=0.7)\n(y * x.detach()).sum().backward()\n",
    "gumbel softmax, hard": F + "torch.manual_seed(4)\nx = torch.ones(3, 4, requires_grad=True)\ny = F.gumbel_softmax(x, 0.5, True, dim=0)\n(y * torch.arange(4.)).sum().backward()\n",
    "exponential": "torch.manual_seed(5)\nx = torch.empty(20).exponential_()\ny = torch.empty(3, 2, dtype=torch.float64).t().exponential_(lambd=2.5)\nz = torch.rand(1)\n",
    "scatter_reduce in place": "x = torch.zeros(3).scatter_reduce_(0, torch.tensor([0, 2, 2]), torch.tensor([5., -2., 3.]), 'amax')\n",
    "scatter_reduce of whole numbers": "y = torch.ones(3, dtype=torch.int64).scatter_reduce(0, torch.tensor([0, 1, 1, 0]), torch.tensor([5, -2, 4, 7]), 'mean')\n",
    "scatter_reduce of another dtype": "torch.zeros(3).scatter_reduce(0, torch.tensor([0]), torch.ones(1).double(), 'sum')\n",
    "mm of sizes that do not fit": "torch.ones(2, 3).mm(torch.ones(2, 3))\n",
}  # fmt: skip
for _how in ("sum", "mean", "amax", "amin"):
    for _self in (True, False):
        MORE[f"scatter_reduce {_how} {_self}"] = (
            A.replace("3., 4.", "2., 4.")
            + _SCATTERED
            + f"y = a.T.clone().scatter_reduce(1, i, r, reduce='{_how}', include_self={_self})\n(y * a.detach().T).sum().backward()\n"
        )

_CHANGED = (
    "y.add_(1)", "y.sub_(x)", "y.mul_(x)", "y.div_(2)", "y.pow_(2)", "y.exp_()", "y.log_()", "y.sqrt_()", "y.sin_()", "y.cos_()", "y.tanh_()", "y.sigmoid_()", "y.relu_()", "y.neg_()", "y.abs_()", "y.clamp_(1, 2)", "y.clamp_(min=1)", "y.zero_()", "y.fill_(2.)", "y.copy_(x * 3)", "y.masked_fill_(y > 1, 0.)", "y.round_()", "y.reciprocal_()", "y.square_()", "y.addcmul_(x, x)", "y.addcdiv_(x, x)", "y.lerp_(x, 0.5)", "y.index_add_(0, torch.tensor([0]), x[:1])", "y.scatter_(0, torch.tensor([0]), 5.)", "y.clip_(0, 1)", "y.floor_()", "y.sign_()", "y.tril_()", "y.cumsum_(0)", "y.normal_()", "y.uniform_()", "y.random_()", "y.erf_()", "y.fmod_(2)", "y.remainder_(2)", "y.rsqrt_()", "y.log1p_()", "y.expm1_()", "y.tan_()", "y.trunc_()", "y.ceil_()", "y.scatter_add_(0, torch.tensor([0]), x[:1])", "y.fill_diagonal_(0)", "y.atan_()", "y.leaky_relu_()", "y.logit_()", "y.requires_grad_()", "y.add_(x, alpha=2)",
)  # fmt: skip
for _text in _CHANGED:
    MORE[f"in place {_text}"] = X + f"y = x * 2\n{_text}\nn = None if y.grad_fn is None else y.grad_fn.name()\nv = y._version\n" + (
        "" if any(w in _text for w in ("normal", "uniform", "random", "exponential")) else "y.sum().backward()\n"
    ) + "del y\n"  # fmt: skip
