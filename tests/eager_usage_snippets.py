"""What training scripts write around their tensors: imports, switches, loaders, files, hooks. Each snippet states its results.

`test_eager_usage.py` runs them under gradcli.eager, `test_eager_against_torch.py` under PyTorch too: an assertion that
PyTorch does not keep fails there.
"""

IMPORTS = {
    "torch.distributions": "from torch.distributions import Normal, kl_divergence\nfrom torch.distributions.normal import Normal as N\nassert N is Normal\n",
    "torch.testing": "import torch.testing\nfrom torch.testing import assert_close\nassert_close(torch.ones(1), torch.ones(1))\n",
    "torch.utils.data.*": "from torch.utils.data.dataset import Dataset, random_split\nfrom torch.utils.data.dataloader import DataLoader, default_collate\nfrom torch.utils.data.sampler import SubsetRandomSampler\nimport torch.utils.data.dataset\nassert torch.utils.data.dataset.Dataset is Dataset is torch.utils.data.Dataset\n",
    "torch.nn.utils.rnn": "from torch.nn.utils.rnn import pad_sequence\nassert torch.nn.utils.rnn.pad_sequence is pad_sequence\ny = pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True, padding_value=7)\nz = pad_sequence([torch.ones(2, 1), torch.ones(1, 1)])\nw = pad_sequence([torch.ones(2), torch.ones(3)], padding_side='left')\nassert y.tolist() == [[1, 1, 7], [1, 1, 1]]\n",
    "torch.nn.modules.*": "from torch.nn.modules.loss import _Loss, CrossEntropyLoss\nfrom torch.nn.modules.batchnorm import _BatchNorm\nfrom torch.nn.modules.conv import _ConvNd\nfrom torch.nn.modules.utils import _pair\nfrom torch.nn.modules.module import Module\nassert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2)\nassert isinstance(torch.nn.BatchNorm3d(2), _BatchNorm) and isinstance(torch.nn.MSELoss(), _Loss) and isinstance(torch.nn.Conv2d(1, 1, 1), _ConvNd)\n",
    "torch.optim.*": "from torch.optim.optimizer import Optimizer\nfrom torch.optim.lr_scheduler import _LRScheduler, LRScheduler\nfrom torch.optim.adam import Adam\nfrom torch.optim.sgd import SGD\nfrom torch.autograd.variable import Variable\nfrom torch.nn.utils.clip_grad import clip_grad_norm_\nassert issubclass(_LRScheduler, LRScheduler) and issubclass(Adam, Optimizer)\n",
    "torch.backends.cudnn": "import torch.backends.cudnn as cudnn\nfrom torch.backends import cudnn as again\ncudnn.benchmark = True\nassert torch.backends.cudnn.benchmark and again is cudnn\ncudnn.benchmark = False\ncudnn.deterministic = False\nwith cudnn.flags(enabled=False):\n    pass\nassert not cudnn.is_available() and cudnn.version() is None\n",
    "torch.cuda.amp": "from torch.cuda.amp import GradScaler, autocast\nimport torch.cuda\nassert not torch.cuda.is_available()\n",
    "modules with the names of functions": "from torch.autograd.gradcheck import GradcheckError\nimport torch.autograd.gradcheck\nimport torch.utils.checkpoint\nimport torch.nn.functional\nx = torch.ones(2, dtype=torch.float64, requires_grad=True)\nassert torch.autograd.gradcheck(torch.sin, x) and issubclass(GradcheckError, RuntimeError)\n",
}  # fmt: skip

SWITCHES = {
    "backends": "torch.backends.cuda.matmul.allow_tf32 = True\nassert torch.backends.cuda.matmul.allow_tf32\ntorch.backends.cuda.matmul.allow_tf32 = False\ntorch.backends.cudnn.allow_tf32 = True\nassert not torch.backends.mps.is_available() and not torch.backends.mps.is_built() and not torch.backends.cuda.is_built()\n",
    "accelerator": "assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0 and torch.accelerator.current_accelerator() is None\nassert not torch.mps.is_available() if hasattr(torch.mps, 'is_available') else True\nassert not torch.xpu.is_available() and torch.version.cuda is None\n",
    "settings": "torch.set_float32_matmul_precision('high')\nassert torch.get_float32_matmul_precision() == 'high'\ntorch.set_float32_matmul_precision('highest')\ntorch.set_num_threads(1)\nassert torch.get_num_threads() == 1\ntorch.use_deterministic_algorithms(True)\nassert torch.are_deterministic_algorithms_enabled()\ntorch.use_deterministic_algorithms(False)\n",
    "an unknown precision": "torch.set_float32_matmul_precision('low')\nassert torch.get_float32_matmul_precision() == 'highest'\n",
    "no threads": "torch.set_num_threads(0)\n",
    "default device": "torch.set_default_device('cpu')\nassert torch.get_default_device() == torch.device('cpu')\ntorch.set_default_device(None)\nwith torch.device('cpu') as d:\n    x = torch.ones(1)\nassert x.device == d\n",
    "unknown default device": "torch.set_default_device('nowhere')\n",
    "generators": "g = torch.Generator(device='cpu').manual_seed(3)\nx = torch.rand(1, generator=g)\nassert torch.Generator('cpu').initial_seed() == 67280421310721 and torch.Generator(torch.device('cpu')).device == torch.device('cpu')\n",
    "generator of an unknown device": "torch.Generator(device='nowhere')\n",
    "autocast of a GPU that is not there": "with torch.autocast(device_type='cuda', dtype=torch.float16):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\nassert y.dtype == torch.float32\n",
    "autocast that is off": "with torch.autocast('cpu', enabled=False):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\n    assert not torch.is_autocast_enabled('cpu')\n@torch.autocast('cpu', enabled=False)\ndef f(x):\n    return x * 2\nz = f(torch.ones(1))\n",
    "autocast of an unknown device": "torch.autocast('nowhere')\n",
    "autocast to float32": "with torch.autocast('cpu', dtype=torch.float32):\n    y = torch.ones(2, 2) @ torch.ones(2, 2)\n",
    "the deprecated names of amp": "scaler = torch.cuda.amp.GradScaler()\nw = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\nwith torch.cuda.amp.autocast():\n    loss = (w * w).sum()\nscaler.scale(loss).backward()\nscaler.unscale_(opt)\nscaler.step(opt)\nscaler.update()\nassert scaler.get_scale() == 1.0 and not scaler.is_enabled() and scaler.state_dict() == {} and w.tolist() != [1.0]\ndel scaler, opt\n",
    "a scaler that is off": "scaler = torch.amp.GradScaler('cuda', enabled=False)\nx = torch.ones(1)\nassert scaler.scale(x) is x\nscaler.load_state_dict({})\ndel scaler\n",
    "a scaler": "scaler = torch.amp.GradScaler('cpu')\nw = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.25)\nseen = []\nfor i in range(3):\n    opt.zero_grad()\n    loss = (w * w).sum() * (float('inf') if i == 1 else 1)\n    scaler.scale(loss).backward()\n    seen.append(w.grad.item())\n    scaler.step(opt)\n    scaler.update()\n    seen += [w.item(), scaler.get_scale()]\nassert seen == [131072.0, 0.5, 65536.0, float('inf'), 0.5, 32768.0, 32768.0, 0.25, 32768.0]\nassert scaler.state_dict() == {'scale': 32768.0, 'growth_factor': 2.0, 'backoff_factor': 0.5, 'growth_interval': 2000, '_growth_tracker': 1}\ndel scaler, opt\n",
    "scaled back twice": "scaler = torch.amp.GradScaler('cpu')\nw = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.25)\nscaler.scale((w * w).sum()).backward()\nscaler.unscale_(opt)\nassert w.grad.tolist() == [2.0]\nscaler.unscale_(opt)\n",
    "two scaled steps": "scaler = torch.amp.GradScaler('cpu')\nw = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.25)\nscaler.scale((w * w).sum()).backward()\nscaler.step(opt)\nscaler.step(opt)\n",
    "a step without a scaled loss": "torch.amp.GradScaler('cpu').step(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.25))\n",
    "an update without a scaled loss": "torch.amp.GradScaler('cpu').update()\n",
    "bfloat16": "kinds = {'bfloat16': torch.bfloat16, 'float16': torch.float16}\nassert str(torch.bfloat16) == 'torch.bfloat16' and torch.bfloat16.is_floating_point and torch.bfloat16.itemsize == 2\nassert torch.get_autocast_dtype('cpu') == torch.bfloat16\n",
}  # fmt: skip

_FROM = "from torch.utils.data import BatchSampler, ChainDataset, ConcatDataset, DataLoader, IterableDataset, RandomSampler, SequentialSampler, SubsetRandomSampler, TensorDataset, WeightedRandomSampler\n"
_SET = _FROM + "ds = TensorDataset(torch.arange(10.0))\ntorch.manual_seed(0)\n"
LOADERS = {
    "samplers": _SET + "a, b, c = list(RandomSampler(ds)), list(SubsetRandomSampler([3, 5, 7])), list(WeightedRandomSampler([0.1, 0.9, 0.3], 5))\nd, e = list(RandomSampler(ds, replacement=True, num_samples=40)), list(RandomSampler(ds, num_samples=13))\nf = list(BatchSampler(SequentialSampler(ds), 4, True))\nassert a == [6, 9, 0, 7, 3, 5, 4, 2, 1, 8] and f == [[0, 1, 2, 3], [4, 5, 6, 7]]\n",
    "loaders with samplers": _SET + "a = [b for b, in DataLoader(ds, 4, sampler=SubsetRandomSampler([1, 2, 3, 4, 5]))]\nb = [b for b, in DataLoader(ds, batch_sampler=BatchSampler(RandomSampler(ds), 4, False))]\nassert len(a) == 2 and len(b) == 3\nnames = [type(DataLoader(ds, shuffle=s).sampler).__name__ for s in (False, True)]\nassert names == ['SequentialSampler', 'RandomSampler']\n",
    "pinned": _SET + "d = DataLoader(ds, batch_size=4, shuffle=True, pin_memory=True)\na = [b for b, in d]\nassert d.pin_memory and d.num_workers == 0 and d.prefetch_factor is None and not d.persistent_workers\n",
    "joined data sets": _SET + "c = ConcatDataset([ds, ds])\nassert len(c) == len(ds + ds) == 20\nx, y = c[12], c[-1]\n",
    "joined streams": _FROM + "class I(IterableDataset):\n    def __iter__(self):\n        return iter(range(5))\na = list(ChainDataset([I(), I()]))\nb = [b for b in DataLoader(I(), batch_size=2, drop_last=True)]\nassert a == [0, 1, 2, 3, 4] * 2 and len(b) == 2 and torch.utils.data.get_worker_info() is None\n",
    "prefetching without workers": _SET + "DataLoader(ds, prefetch_factor=2)\n",
    "persistent without workers": _SET + "DataLoader(ds, persistent_workers=True)\n",
    "an option that is none": _SET + "DataLoader(ds, nonsense=True)\n",
    "a stream with an order": _FROM + "class I(IterableDataset):\n    def __iter__(self):\n        return iter(range(5))\nDataLoader(I(), shuffle=True)\n",
}  # fmt: skip

USAGE = {
    f"{kind}: {name}": text
    for kind, table in (("import", IMPORTS), ("switch", SWITCHES), ("loader", LOADERS))
    for name, text in table.items()
}
