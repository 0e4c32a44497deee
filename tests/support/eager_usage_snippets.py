"""What training scripts write around their tensors: imports, switches, loaders, files, hooks. Each snippet states its results.

`test_usage.py` runs them under gradcli.eager, `test_against_torch.py` under PyTorch too: an assertion that
PyTorch does not keep fails there.
"""

IMPORTS = {
    "torch.testing": "import torch.testing\nfrom torch.testing import assert_close\nassert_close(torch.ones(1), torch.ones(1))\n",
    "torch.utils.data.*": "from torch.utils.data.dataset import Dataset, random_split\nfrom torch.utils.data.dataloader import DataLoader, default_collate\nimport torch.utils.data.dataset\nassert torch.utils.data.dataset.Dataset is Dataset is torch.utils.data.Dataset\n",
    "torch.nn.modules.*": "from torch.nn.modules.loss import _Loss, CrossEntropyLoss\nfrom torch.nn.modules.batchnorm import _BatchNorm\nfrom torch.nn.modules.conv import _ConvNd\nfrom torch.nn.modules.utils import _pair\nfrom torch.nn.modules.module import Module\nassert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)\nassert isinstance(torch.nn.BatchNorm3d(2), _BatchNorm) and isinstance(torch.nn.MSELoss(), _Loss) and isinstance(torch.nn.Conv2d(1, 1, 1), _ConvNd)\n",
    "torch.optim.*": "from torch.optim.optimizer import Optimizer\nfrom torch.optim.lr_scheduler import _LRScheduler, LRScheduler\nfrom torch.optim.adam import Adam\nfrom torch.optim.sgd import SGD\nfrom torch.autograd.variable import Variable\nfrom torch.nn.utils.clip_grad import clip_grad_norm_\nassert issubclass(_LRScheduler, LRScheduler) and issubclass(Adam, Optimizer)\n",
    "modules with the names of functions": "from torch.autograd.gradcheck import GradcheckError\nimport torch.autograd.gradcheck\nimport torch.utils.checkpoint\nimport torch.nn.functional\nx = torch.ones(2, dtype=torch.float64, requires_grad=True)\nassert torch.autograd.gradcheck(torch.sin, x) and issubclass(GradcheckError, RuntimeError)\n",
}  # fmt: skip

SWITCHES = {
    "accelerator": "assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0 and torch.accelerator.current_accelerator() is None\nassert not torch.cuda.is_available() and torch.cuda.device_count() == 0\ntorch.cuda.manual_seed(1)\ntorch.cuda.manual_seed_all(1)\n",
    "default device": "torch.set_default_device('cpu')\ntorch.set_default_device(None)\nwith torch.device('cpu') as d:\n    x = torch.ones(1)\nassert x.device == d\n",
    "unknown default device": "torch.set_default_device('nowhere')\n",
    "generators": "g = torch.Generator(device='cpu').manual_seed(3)\nx = torch.rand(1, generator=g)\nassert torch.Generator('cpu').initial_seed() == 67280421310721 and torch.Generator(torch.device('cpu')).device == torch.device('cpu')\n",
    "the default generator": "torch.manual_seed(3)\nassert torch.default_generator.initial_seed() == 3\nx = torch.rand(2, generator=torch.default_generator)\ntorch.default_generator.manual_seed(3)\ny = torch.rand(2)\nassert torch.equal(x, y)\n",
    "generator of an unknown device": "torch.Generator(device='nowhere')\n",
}  # fmt: skip

_SET = "from torch.utils.data import DataLoader, TensorDataset\nds = TensorDataset(torch.arange(10.0))\ntorch.manual_seed(0)\n"
LOADERS = {
    "pinned": _SET + "d = DataLoader(ds, batch_size=4, shuffle=True, pin_memory=True)\na = [b for b, in d]\nassert d.pin_memory and d.num_workers == 0\n",
    "an option that is none": _SET + "DataLoader(ds, nonsense=True)\n",
}  # fmt: skip

_CLASS = "class F(torch.autograd.Function):\n    @staticmethod\n    def "
_FORWARD_AD = "import torch.autograd.forward_ad as fwAD\n"
_JVP = "        ctx.save_for_forward(x, y)\n        return x * y\n    @staticmethod\n    def jvp(ctx, *given):\n        F.seen = [None if t is None else t.tolist() for t in given]\n        x, y = ctx.saved_for_forward\n        return given[0] * y\nx, y = torch.tensor([2.0]), torch.tensor([3.0])\nwith fwAD.dual_level():\n    d = fwAD.make_dual(x, torch.ones(1))\n"
FUNCTIONS = {
    "a result that is a number, with setup_context": _CLASS + "forward(x, n):\n        return x * n, n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        ctx.n = inputs[1]\n        assert len(output) == 2\n    @staticmethod\n    def backward(ctx, g, gn):\n        assert gn is None\n        return g * ctx.n, None\nx = torch.ones(2, requires_grad=True)\ny, n = F.apply(x, 3)\nname = y.grad_fn.name()\ny.sum().backward()\nassert x.grad.tolist() == [3, 3] and n == 3\n",
    "results that are text and None": _CLASS + "forward(ctx, x, n):\n        y = x * n\n        ctx.save_for_backward(y)\n        return 'text', y, None\n    @staticmethod\n    def backward(ctx, gt, g, gn):\n        assert gt is None and gn is None\n        return g * ctx.saved_tensors[0], None\nx = torch.ones(2, requires_grad=True)\nt, y, n = F.apply(x, 3)\nnr = y.output_nr\ny.sum().backward()\nassert nr == 1 and t == 'text' and n is None and x.grad.tolist() == [3, 3]\n",
    "a result that is a list": _CLASS + "forward(ctx, x):\n        return [x * 2, x * 3]\nx = torch.ones(1, requires_grad=True)\ny = F.apply(x)\nassert not y[0].requires_grad\n",
    "a default, with setup_context": _CLASS + "forward(x, n=2.0):\n        return x * n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        x, ctx.n = inputs\n        assert ctx.needs_input_grad == (True, False)\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.n, None\nx = torch.ones(2, requires_grad=True)\ny, z = F.apply(x), F.apply(x, n=5.0)\n(y + z).sum().backward()\nassert x.grad.tolist() == [7, 7]\n",
    "a default without its gradient": _CLASS + "forward(x, n=2.0):\n        return x * n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n    @staticmethod\n    def backward(ctx, g):\n        return g\nx = torch.ones(2, requires_grad=True)\nF.apply(x).sum().backward()\n",
    "a default, without setup_context": _CLASS + "forward(ctx, x, n=2.0):\n        assert ctx.needs_input_grad == (True,)\n        return x * n\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\nx = torch.ones(2, requires_grad=True)\ny = F.apply(x)\ny.sum().backward()\n",
    "named arguments without setup_context": _CLASS + "forward(ctx, x, n=2.0):\n        return x * n\n    @staticmethod\n    def backward(ctx, g):\n        return g * 7, None\nx = torch.ones(1, requires_grad=True)\ny = F.apply(x, n=3.0)\ny.sum().backward()\nassert y.item() == 3 and x.grad.item() == 7\n",
    "an unknown argument": _CLASS + "forward(x, n=2.0):\n        return x * n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\nF.apply(torch.ones(1), m=3.0)\n",
    "a jvp without a tangent": _FORWARD_AD + _CLASS + "forward(ctx, x, y):\n" + _JVP + "    t = fwAD.unpack_dual(F.apply(d, y)).tangent\nassert t.tolist() == [3] and F.seen == [[1], [0]]\n",
    "a jvp without a tangent that stays None": _FORWARD_AD + _CLASS + "forward(ctx, x, y):\n        ctx.set_materialize_grads(False)\n" + _JVP + "    t = fwAD.unpack_dual(F.apply(d, y)).tangent\nassert F.seen == [[1], None]\n",
    "a jvp of numbers and whole numbers": _FORWARD_AD + _CLASS + "forward(ctx, x, y, n, i):\n" + _JVP + "    t = fwAD.unpack_dual(F.apply(d, y, 3, torch.tensor([1]))).tangent\nassert F.seen == [[1], [0], None, None]\n",
}  # fmt: skip

_HOOK = "m = M()\nseen = []\nh = m.register_full_backward_hook(lambda m, gi, go: seen.append((len(gi), len(go))))\nx = torch.ones(2, requires_grad=True)\nr = m(x)\ndel m, h\n"
_CALL = (
    "from torch.func import functional_call\nm = torch.nn.Sequential(torch.nn.Linear(1, 1))\nones = torch.ones(1, 1)\n"
)
MODULES = {
    "a hook around a named tuple": "from collections import namedtuple\nP = namedtuple('P', 'a b')\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return P(x * 2, x * 3)\n" + _HOOK + "(r.a + r.b).sum().backward()\nassert type(r) is P and seen == [(1, 2)]\n",
    "functional_call with an unknown name": _CALL + "y = functional_call(m, {'0.weight': ones, '0.bias': ones[0], '0.other': ones, 'top': ones}, ones)\nassert y.item() == 2 and not hasattr(m, 'top') and not hasattr(m[0], 'other')\ndel functional_call, m\n",
    "functional_call with an attribute": "class M(torch.nn.Module):\n    def forward(self, x):\n        return x * self.scale\nm = M()\ny = torch.func.functional_call(m, {'scale': torch.ones(1) * 3}, torch.ones(1))\nm.scale = torch.ones(1) * 5\nz = torch.func.functional_call(m, {'scale': torch.ones(1) * 3}, torch.ones(1))\nassert y.item() == 3 and z.item() == 3 and m.scale.item() == 5\ndel m\n",
    "functional_call with an unknown module": _CALL + "functional_call(m, {'1.weight': ones}, ones)\n",
    "functional_call in place of a number": _CALL + "m[0].factor = 3\nfunctional_call(m, {'0.factor': ones}, ones)\n",
    "functional_call that is strict": _CALL + "functional_call(m, {'0.weight': ones, '0.other': ones}, ones, strict=True)\n",
}  # fmt: skip

_A = "a = torch.arange(6.0).reshape(2, 3)\n"
INDICES = {
    "True and False": _A + "y = [a[True], a[False], a[True, 0], a[False, 0], a[0, True], a[None, True], a[:, True], a[..., True], a[True, False], a[torch.tensor(True)], a[torch.tensor(False)]]\nassert [tuple(one.shape) for one in y] == [(1, 2, 3), (0, 2, 3), (1, 3), (0, 3), (1, 3), (1, 1, 2, 3), (2, 1, 3), (2, 3, 1), (0, 2, 3), (1, 2, 3), (0, 2, 3)]\n",
    "True, and back": "a = torch.ones(2, 3, requires_grad=True)\n(a[True] * 2).sum().backward()\nassert a.grad.tolist() == [[2, 2, 2], [2, 2, 2]]\n",
    "True of a number": "a = torch.tensor(3.0)\nb, c, d = a[True], a[False], a[torch.tensor(True)]\na[True] = 5\ne = a.clone()\na[False] = 6\nassert b.tolist() == [3] and c.tolist() == [] and e == a == 5\n",
    "assigned to True": _A + "a[True] = 1.0\nb = a.clone()\na[True] = torch.tensor([1.0, 2.0, 3.0])\nc = a.clone()\na[False] = 9.0\na[0, True] = 7.0\nassert a.tolist() == [[7, 7, 7], [1, 2, 3]]\n",
    "leading ones": "a = torch.zeros(3)\na[:] = torch.ones(1, 3)\na[0:2] = torch.ones(1, 1, 2) * 2\na[1] = torch.ones(1, 1) * 4\nb = torch.zeros(2, 3)\nb[0] = torch.ones(1, 3)\nb[:, 1] = torch.ones(1, 2) * 5\nc = b.clone()\nb[[0, 1]] = torch.ones(1, 2, 3) * 6\nd = b.clone()\nb[b > 2] = torch.ones(1, 1, 1)\nb[0, 0] = torch.ones(1) * 3\nassert a.tolist() == [2, 4, 1] and b.tolist() == [[3, 1, 1], [1, 1, 1]]\n",
    "leading ones, and back": "a, b = torch.zeros(3), torch.zeros(3)\nv = torch.ones(1, 1, 2, requires_grad=True)\na[:2] = v\nb[[0, 2]] = v\n(a + 2 * b).sum().backward()\nassert v.grad.tolist() == [[[3, 3]]]\ndel a, b\n",
    "leading axes that are no ones": "a = torch.zeros(3)\na[:] = torch.ones(2, 3)\n",
    "copy_ drops nothing": "torch.zeros(3).copy_(torch.ones(1, 3))\n",
}  # fmt: skip

_SEED = "torch.manual_seed(0)\n"
DRAWS = {
    "randint": _SEED + "a = torch.randint(96, size=(1,))\nb = [torch.randint(3, 10, (2,)), torch.randint(high=5, size=(2,)), torch.randint(low=1, high=5, size=(2,)), torch.randint(5, (2, 2)), torch.randint(1, high=5, size=(2,)), torch.randint(0, 2, (3,), dtype=torch.bool)]\nassert a.tolist() == [44]\n",
    "randint without a bound": "torch.randint(size=(2,))\n",
    "randint without a size": "torch.randint(5)\n",
    "normal": _SEED + "a = torch.normal(0, 0.01, (2, 1), requires_grad=True)\nb = [torch.normal(0.0, 1.0, size=(3,)), torch.normal(mean=0.0, std=2.0, size=(2, 2), dtype=torch.float64), torch.normal(2, 3, (20,))]\nc = [torch.normal(torch.zeros(3), torch.ones(3)), torch.normal(torch.arange(3.0)), torch.normal(torch.zeros(2), 2.0), torch.normal(1.0, torch.ones(2))]\nassert a.requires_grad and a.is_leaf and a.shape == (2, 1)\n",
    "normal without a size": "torch.normal(0, 1)\n",
    "normal of tensors with a size": "torch.normal(torch.zeros(2), 1.0, (2,))\n",
    "normal of a negative deviation": "torch.normal(0.0, -1.0, (2,))\n",
    "normal of negative deviations": "torch.normal(torch.zeros(2), -torch.ones(2))\n",
    "normal_ of a negative deviation": "torch.zeros(2).normal_(0, -1)\n",
    "uniform_ of an empty range": "torch.zeros(2).uniform_(3, 1)\n",
    "views": _SEED + "x, y = torch.zeros(3, 4).T, torch.zeros(3, 4)[:, ::2]\na, b, d, e = x.uniform_().clone(), x.random_(0, 10).clone(), y.normal_().clone(), y.uniform_().clone()\nf = [torch.zeros(5, 6).T.normal_(), torch.zeros(5, 12)[:, ::2].normal_(), torch.zeros(()).normal_(), torch.zeros(2, 3, 4).permute(2, 0, 1).uniform_()]\nassert abs(a[1, 0].item() - 0.7682) < 1e-4\n",
}  # fmt: skip

USAGE = {
    f"{kind}: {name}": text
    for kind, table in (
        *(("import", IMPORTS), ("switch", SWITCHES), ("loader", LOADERS), ("Function", FUNCTIONS)),
        *(("module", MODULES), ("index", INDICES), ("draw", DRAWS)),
    )
    for name, text in table.items()
}
