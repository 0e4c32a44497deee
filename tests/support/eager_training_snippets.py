"""Small training programs over `torch`, by name: both implementations run them, and every variable they leave counts."""

from __future__ import annotations

DATA = """
F, nn = torch.nn.functional, torch.nn
torch.manual_seed(3)
x = torch.tensor([[0.0, 3.0, -3.0, 0.7], [0.5, -0.5, 1.0, -1.0], [6.0, 25.0, -2.2, 0.1]], requires_grad=True)
t = torch.tensor([[0.1, 0.9, 0.4, 0.2], [0.6, 0.3, 0.8, 0.5], [0.7, 0.05, 0.35, 1.0]])
u = torch.tensor([[0.3, 0.2, 0.4, 0.6], [0.45, 0.9, 0.1, 0.2], [0.8, 0.4, 0.7, 0.3]], requires_grad=True)
p = torch.tensor([[0.35, 0.25, 0.45, 0.65], [0.55, 0.85, 0.15, 0.3], [0.75, 0.5, 0.6, 0.2]], requires_grad=True)
w = torch.tensor([0.5, 1.5, 2.0, 0.25], requires_grad=True)
weight = torch.tensor([0.5, 1.5, 2.0, 0.25])
c, ignoring = torch.tensor([0, 3, 1]), torch.tensor([0, -100, 1])
cube = torch.tensor([[[0.1, 0.2, -0.3], [0.4, -0.5, 0.6], [0.7, 0.8, 0.9], [-1.0, 1.1, 1.2]]] * 2, requires_grad=True)
c_cube = torch.tensor([[0, 1, 2], [3, 3, 0]])
table = torch.tensor([[0.1, 0.2, 0.3, 0.4], [1.0, -1.0, 0.5, 0.25], [0.3, 0.6, 0.9, -0.7], [2.0, 0.1, 0.2, 0.3]], requires_grad=True)
"""
END = "\nif y.requires_grad and y.grad_fn is not None:\n    (y * torch.linspace(1, 2, y.numel()).reshape(y.shape)).sum().backward()\n"

_NAMES = (
    "relu relu6 leaky_relu tanh sigmoid gelu silu softplus elu selu celu mish hardtanh hardsigmoid hardswish softsign "
    "tanhshrink logsigmoid softshrink hardshrink glu"
)
_CALLS = [f"F.{name}(x)" for name in _NAMES.split()] + [
    "F.threshold(x, 0.1, 20.0)",
    "F.softmax(x, 1)",
    "F.softmax(x)",
    "F.log_softmax(x, 0)",
    "F.log_softmax(x, 0, dtype=torch.float64)",
    "F.softmin(x, 1)",
    "F.gelu(x, approximate='tanh')",
    "F.gelu(x, approximate='other')",
    "F.elu(x, 2.0)",
    "F.leaky_relu(x, 0.3)",
    "F.celu(x, 2.0)",
    "F.softplus(x, 2.0, 1.0)",
    "F.hardtanh(x, -0.5, 1.0)",
    "F.hardtanh(x, 1.0, -1.0)",
    "F.prelu(x, w[:1])",
    "F.prelu(x, w)",
    "F.prelu(x, w[:2])",
    "F.layer_norm(x, (4,))",
    "F.layer_norm(x, (4,), w, w)",
    "F.layer_norm(x, (3, 4))",
    "F.layer_norm(x, (3,))",
    "F.batch_norm(x, None, None, w, w, True)",
    "F.batch_norm(x, weight * 0.1, weight + 1, w, w, False)",
    "F.batch_norm(cube, None, None, w, w, True)",
    "F.batch_norm(x[:1], None, None, training=True)",
    "F.linear(x, table, w)",
    "F.linear(x, table)",
    "F.linear(x[0], table, w)",
    "F.linear(x[0], table)",
    "F.linear(x.view(1, 3, 4), table, w)",
    "F.linear(x.view(1, 3, 4), table)",
    "F.linear(cube.mT, table, w)",
    "F.linear(cube.mT, table)",
    "F.linear(x.mT, table, w)",
    "F.embedding(c, table)",
    "F.embedding(c_cube, table, padding_idx=3)",
    "F.embedding(c + 3, table)",
    "F.embedding(t, table)",
    "F.cosine_similarity(x, t)",
    "F.pad(x, (1, 1))",
    "F.pad(x, (1, 0, 0, 2), value=3.0)",
    "F.pad(x, (-1, 2), value=-1.0)",
    "F.pad(x, (0, 0))",
    "F.pad(x, (1,))",
    "F.pad(x, (1, 1, 1, 1, 1, 1))",
    "F.pad(x, (-3, -2))",
    "F.pad(x, (1, 1), mode='other')",
    "F.one_hot(c, 5)",
    "F.one_hot(c)",
    "F.one_hot(c, 2)",
    "F.dropout(x, 0.3)",
    "F.dropout(x, 1.0)",
    "F.dropout(x, 0.0)",
    "F.dropout(x, 0.3, False)",
    "F.dropout(x, 1.5)",
    "F.relu(x * 1, inplace=True)",
    "F.elu(x * 1, inplace=True)",
    "F.dropout(x * 1, 0.5, inplace=True)",
    "F.kl_div(x, t, reduction='batchmean')",
    "F.mse_loss(x, t[:, :1])",
    "F.mse_loss(x, t, reduction='some')",
    "F.nll_loss(x, torch.tensor([-100, -100, -100]))",
    "F.nll_loss(x, c + 3)",
    "F.nll_loss(x, t)",
    "F.nll_loss(x, c[:2])",
    "F.cross_entropy(x, c, label_smoothing=2.0)",
    "F.smooth_l1_loss(x, t, beta=0.0)",
    "F.binary_cross_entropy(x, t)",
    "F.binary_cross_entropy(p, t[:2])",
    "F.binary_cross_entropy(p, t, w)",
]
_REDUCED = [
    "F.mse_loss(x, t{})",
    "F.mse_loss(x, u{})",
    "F.l1_loss(x, u{})",
    "F.smooth_l1_loss(x, u{})",
    "F.smooth_l1_loss(x, t{}, beta=0.3)",
    "F.huber_loss(x, u{}, delta=0.4)",
    "F.kl_div(x, t{})",
    "F.kl_div(x, u{})",
    "F.kl_div(x, u{}, log_target=True)",
    "F.binary_cross_entropy(p, t{})",
    "F.binary_cross_entropy(p, u{})",
    "F.binary_cross_entropy(p, t, weight{})",
    "F.binary_cross_entropy_with_logits(x, t{})",
    "F.binary_cross_entropy_with_logits(x, u{})",
    "F.binary_cross_entropy_with_logits(x, t, weight{}, pos_weight=weight * 2)",
    "F.nll_loss(x, c{})",
    "F.nll_loss(x, ignoring, weight{})",
    "F.nll_loss(x, ignoring{})",
    "F.nll_loss(x[0], c[0]{})",
    "F.nll_loss(cube, c_cube{})",
    "F.cross_entropy(x, c{})",
    "F.cross_entropy(x, ignoring, weight{})",
    "F.cross_entropy(x, ignoring, weight{}, label_smoothing=0.1)",
    "F.cross_entropy(x, ignoring{}, label_smoothing=0.1)",
    "F.cross_entropy(x, t{})",
    "F.cross_entropy(x, u, weight{})",
    "F.cross_entropy(x, t{}, label_smoothing=0.1)",
    "F.cross_entropy(cube, c_cube{})",
    "F.cross_entropy(x[0], c[0]{})",
]
_CALLS += [call.format(f", reduction={way!r}") for call in _REDUCED for way in ("mean", "sum", "none")]
FUNCTIONAL = {call: DATA + f"y = {call}" + END for call in _CALLS}

_MODULES = [
    "nn.Linear(3, 2)",
    "nn.Linear(3, 2, bias=False, dtype=torch.float64)",
    "nn.Linear(0, 2)",
    "nn.Embedding(5, 3)",
    "nn.Embedding(5, 3, padding_idx=-1)",
    "nn.Embedding(5, 3, padding_idx=7)",
    "nn.Embedding(5, 3, _weight=torch.ones(2, 3))",
    "nn.Embedding.from_pretrained(torch.arange(6.0).view(3, 2))",
    "nn.Embedding.from_pretrained(torch.arange(6.0).view(3, 2), freeze=False, padding_idx=1)",
    "nn.Linear(3, 2).half()",
    "nn.Linear(3, 2).to(torch.complex64)",
    "nn.Linear(3, 2).to('cpu', torch.float64)",
    "nn.Linear(3, 2).to(torch.ones(1, dtype=torch.float64))",
    "nn.Linear(3, 2).to(device='cpu')",
    "nn.Linear(3, 2).to('nowhere')",
    "nn.BatchNorm1d(3).half()",
    "nn.BatchNorm1d(3).double().float()",
    "nn.LayerNorm(4)",
    "nn.LayerNorm((2, 3), elementwise_affine=False)",
    "nn.BatchNorm1d(3)",
    "nn.PReLU()",
    "nn.ReLU(inplace=True)",
    "nn.ReLU6()",
    "nn.LeakyReLU(0.2)",
    "nn.GELU('tanh')",
    "nn.SiLU()",
    "nn.Softplus()",
    "nn.ELU()",
    "nn.SELU()",
    "nn.CELU()",
    "nn.Mish()",
    "nn.Hardtanh()",
    "nn.Hardsigmoid()",
    "nn.Softshrink()",
    "nn.Threshold(0.1, 20)",
    "nn.GLU()",
    "nn.Softmax(dim=1)",
    "nn.Softmax()",
    "nn.LogSoftmax(dim=-1)",
    "nn.Dropout()",
    "nn.Dropout(0.1, inplace=True)",
    "nn.Dropout(1.5)",
    "nn.Flatten()",
    "nn.Unflatten(1, (2, 3))",
    "nn.Identity(1, a=2)",
    "nn.MSELoss()",
    "nn.HuberLoss()",
    "nn.CrossEntropyLoss(torch.ones(3), label_smoothing=0.1)",
    "nn.BCEWithLogitsLoss()",
    "nn.KLDivLoss(reduction='batchmean')",
    "nn.CosineSimilarity()",
    "nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, 3))])",
    "nn.ParameterDict({'a': nn.Parameter(torch.ones(2))})",
    "nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])",
    "nn.ModuleDict({'a': nn.Linear(1, 1)})",
    "nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))",
    "nn.Sequential(nn.ReLU(), nn.Tanh())[:1]",
    "nn.Sequential(nn.ReLU())[1]",
    "nn.Sequential(1)",
]
_STATE = """
options = {key: value for key, value in vars(m).items() if not key.startswith('_') and isinstance(value, (bool, int, float, str, tuple))}
keys = sorted(options)
values = [options[key] for key in keys]
names = [name for name, _ in m.named_parameters()]
buffers = [name for name, _ in m.named_buffers()]
state = [(name, one) for name, one in m.state_dict().items()]
text = repr(m)
again = torch.rand(3)
"""
MODULES = {call: f"nn = torch.nn\ntorch.manual_seed(5)\nm = {call}\n" + _STATE for call in _MODULES}

NET = """
nn = torch.nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.rest = nn.ModuleList([nn.Tanh(), nn.Linear(3, 1)])
        self.register_buffer('scale', torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        x = self.first(x)
        for one in self.rest:
            x = one(x)
        return x * self.scale + self.shift
torch.manual_seed(7)
net = Net()
x = torch.randn(4, 2)
"""
_USES = {
    "forward and backward": "y = net(x)\nloss = (y * y).mean()\nloss.backward()\nps = list(net.parameters())",
    "names": "a = list(dict(net.named_modules()))\nb = list(dict(net.named_children()))\nc = list(dict(net.named_parameters()))\nd = list(dict(net.named_buffers()))",
    "text": "text = repr(net)\nstate = str(net.state_dict())",
    "state goes round": "state = net.state_dict()\nr = repr(net.load_state_dict({k: v + 1 for k, v in state.items()}))\nps = list(net.parameters())\nb = net.scale",
    "state lacks keys": "net.load_state_dict({'q': torch.ones(1)})",
    "state lacks keys, not strict": "r = net.load_state_dict({'q': torch.ones(1)}, strict=False)\na, b = r.missing_keys, r.unexpected_keys",
    "state of other sizes": "s = net.state_dict()\ns['shift'] = torch.ones(5)\nnet.load_state_dict(s, strict=False)",
    "state shares memory": "s = net.state_dict()\ns['shift'].add_(3)\np = net.shift",
    "not a module": "net.add_module('k', 3)",
    "not a parameter": "net.shift = torch.ones(1)",
    "no such attribute": "net.zz",
    "no forward": "nn.Module()(1)",
    "before init": "class Bad(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(1, 1)\nBad()",
    "dotted": "net.register_parameter('a.b', None)",
    "taken": "net.register_buffer('forward', torch.ones(1))",
    "computed parameter": "net.register_parameter('q', nn.Parameter(torch.ones(1)) * 2)",
    "integer parameter": "nn.Parameter(torch.tensor([1]))",
    "train and eval": "net.eval()\na = [m.training for m in net.modules()]\nnet.train()\nb = [m.training for m in net.modules()]",
    "train takes a bool": "net.train('x')",
    "freeze": "net.requires_grad_(False)\na = [p.requires_grad for p in net.parameters()]\ny = net(x)",
    "double": "r = net.double() is net\ny = net(x.double())\np = net.shift\nb = net.scale",
    "to an integer format": "net.to(torch.int64)",
    "zero_grad": "net(x).sum().backward()\na = net.shift.grad\nnet.zero_grad(set_to_none=False)\nb = net.shift.grad\nnet.zero_grad()\nc = net.shift.grad",
    "apply": "seen = []\nr = net.apply(lambda m: seen.append(type(m).__name__)) is net",
    "delete": "del net.shift\na = [n for n, _ in net.named_parameters()]",
    "replace a layer": "net.first = nn.Linear(2, 3, bias=False)\na = [n for n, _ in net.named_parameters()]",
    "get": "m = repr(net.get_submodule('rest.0'))",
    "change a list": "m = nn.ModuleList([nn.Linear(1, 1)])\nm.append(nn.ReLU()).append(nn.Tanh())\nm.extend([nn.Identity(), nn.SiLU()])\nm += [nn.GELU()]\ndel m[1]\nm[0] = nn.Sigmoid()\nm = repr(m)",
    "change a dictionary": "m = nn.ModuleDict({'a': nn.Tanh()})\nm['b'] = nn.ReLU()\nm.update({'c': nn.SiLU()})\ndel m['a']\nhas, names, n = 'b' in m, list(m), len(m)\nkeys, texts = list(m.keys()), [repr(one) for _, one in m.items()] + [repr(one) for one in m.values()]\ndel m",
    "end of a sequence": "m = nn.Sequential(nn.Tanh(), nn.ReLU(), nn.Linear(2, 1))\ndel m[-1]\nm.append(nn.SiLU())\nm = repr(m)",
    "list of parameters": "m = nn.ParameterList([torch.ones(2)])\nm.append(torch.zeros(1))\nn, t = len(m), repr(m)\na, b = m[-1], [p.requires_grad for p in m]\ndel m",
    "get nothing": "net.get_submodule('rest.7')",
    "shared parameters": "net.again = net.first\na = [n for n, _ in net.named_parameters()]\nb = list(net.state_dict())",
    "parameter": "p = nn.Parameter(torch.ones(2))\nt = repr(p)\nq = p * 2\nr = isinstance(p, torch.Tensor)",
    "deepcopy": "import copy\nother = copy.deepcopy(net)\nother.shift.data.add_(1)\na, b = net.shift, other.shift\nc = list(other.parameters())",
    "forward hooks": "h = net.first.register_forward_hook(lambda m, args, out: out * 2)\nh2 = net.first.register_forward_pre_hook(lambda m, args: (args[0] + 1,))\ny = net(x)\nh.remove()\nh2.remove()\nz = net(x)\ndel h, h2",
    "forward hooks with keywords": "class One(nn.Module):\n    def forward(self, x, by=1.0):\n        return x * by\nm = One()\nh = m.register_forward_pre_hook(lambda m, args, kwargs: (args, {'by': kwargs['by'] + 1}), with_kwargs=True)\nh2 = m.register_forward_hook(lambda m, args, kwargs, out: out + kwargs['by'], with_kwargs=True)\ny = m(x, by=3.0)\nh.remove()\nz = m(x, by=3.0)\ndel h, h2, m, One",
    "forward hook beside a backward hook": "log = []\nnet.rest[0].register_full_backward_hook(lambda m, gi, go: log.append(gi[0].tolist()))\nnet.rest[0].register_forward_hook(lambda m, args, out: log.append(args[0].grad_fn.name()))\nnet(x).sum().backward()",
    "remove from a dictionary": "m = nn.ModuleDict({'a': nn.Tanh(), 'b': nn.ReLU()})\nt = repr(m.pop('a')), list(m)\nm.clear()\nn = len(m)\ndel m",
    "full backward hook": "log = []\nnet.rest[0].register_full_backward_hook(lambda m, gi, go: log.append([gi[0].tolist(), go[0].tolist()]))\nnet(x).sum().backward()\ng = net.first.weight.grad",
    "full backward hook of the outputs": "log = []\nnet.register_full_backward_hook(lambda m, gi, go: log.append([gi, go[0].tolist()]))\nnet(x).sum().backward()",
    "full backward hook replaces": "net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))\nx.requires_grad_()\nnet(x).sum().backward()\ng = net.shift.grad",
    "clip by norm": "net(x).sum().backward()\nn = nn.utils.clip_grad_norm_(net.parameters(), 0.5)\nps = list(net.parameters())",
    "clip by other norms": "net(x).sum().backward()\na = nn.utils.clip_grad_norm_(net.parameters(), 1e3, norm_type=1)\nb = nn.utils.clip_grad_norm_(net.parameters(), 1e3, float('inf'))\nc = nn.utils.clip_grad_norm_(net.parameters(), 1e3, 3)",
    "clip nothing": "n = nn.utils.clip_grad_norm_([], 1.0)",
    "clip by value": "net(x).sum().backward()\nnn.utils.clip_grad_value_(net.parameters(), 0.1)\nps = list(net.parameters())",
    "batch norm": "m = nn.BatchNorm1d(2)\ny = m(x)\ny.sum().backward()\na, b, c = m.running_mean, m.running_var, m.num_batches_tracked\nm.eval()\nz = m(x)",
    "dropout": "m = nn.Dropout(0.4)\na = m(x)\nm.eval()\nb = m(x)\nr = b is x",
    "losses": "t = torch.tensor([0, 1, 1, 0])\nx.requires_grad_()\na = nn.CrossEntropyLoss(torch.tensor([1.0, 2.0]), label_smoothing=0.1)(x, t)\nb = nn.NLLLoss(ignore_index=1)(x, t)\nc = nn.MSELoss(reduction='sum')(x, x.detach() + 1)\n(a + b + c).backward()",
    "init": "a = torch.empty(3, 4)\nb = [nn.init.xavier_uniform_(a).clone(), nn.init.xavier_normal_(a, 2.0).clone(), nn.init.kaiming_normal_(a, mode='fan_out', nonlinearity='relu').clone(), nn.init.kaiming_uniform_(a).clone(), nn.init.normal_(a, 1.0, 2.0).clone(), nn.init.constant_(a, 3).clone(), nn.init.eye_(a).clone(), nn.init.ones_(a).clone()]\ng = [nn.init.calculate_gain(n) for n in ('relu', 'tanh', 'linear', 'leaky_relu', 'sigmoid', 'selu')]",
    "init of a vector": "nn.init.xavier_uniform_(torch.ones(3))",
    "init orthogonal": "a = [nn.init.orthogonal_(torch.empty(*shape), gain) for shape, gain in (((3, 5), 1), ((5, 3), 2.0), ((2, 3, 2), 1), ((0, 2), 1), ((4, 4), 0.5))]\nb = nn.init.orthogonal_(nn.Parameter(torch.empty(2, 3, dtype=torch.float64)))\nc = torch.rand(2)",
    "init orthogonal of a vector": "nn.init.orthogonal_(torch.empty(3))",
    "init trunc_normal": "a = [nn.init.trunc_normal_(torch.empty(40), *bounds) for bounds in ((), (0.0, 0.02), (1.0, 2.0, -1.0, 3.0))]\nb = nn.init.trunc_normal_(nn.Parameter(torch.empty(3, 4, dtype=torch.float64)), std=0.02)\nc = torch.rand(2)",
    "half": "r = net.half() is net\ny = net(x.half())\ny.sum().backward()\nformats = [str(p.grad.dtype) for p in net.parameters()]\nb = net.scale",
    "half and singles": "net.half()(x)",
    "formats keep the parameters": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(x).sum().backward()\nw = net.shift\nnet.double()\nr = w is net.shift\ng = str(w.grad.dtype)\no.step()\np = [str(one.dtype) for one in net.parameters()]\ndel w",
}
USES = {name: NET + text + "\n" for name, text in _USES.items()}

_RULES = [
    "SGD(ps, lr=0.1)",
    "SGD(ps, lr=0.1, momentum=0.9)",
    "SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "SGD(ps, lr=0.1, momentum=0.5, dampening=0.1)",
    "SGD(ps, lr=0.001, maximize=True)",
    "Adam(ps, lr=0.05)",
    "Adam(ps, lr=0.05, weight_decay=0.1, amsgrad=True)",
    "AdamW(ps, lr=0.05)",
    "Adagrad(ps, lr=0.1, lr_decay=0.01, weight_decay=0.01)",
    "RMSprop(ps)",
    "RMSprop(ps, momentum=0.9, centered=True)",
    "Adadelta(ps)",
    "Adagrad(ps, lr=0.1, initial_accumulator_value=0.5)",
    "SGD([{'params': ps[:1], 'lr': 0.5}, {'params': ps[1:]}], lr=0.1)",
]
TRAINING = """
nn, optim = torch.nn, torch.optim
torch.manual_seed(1)
m = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()
x, y = torch.randn(16, 3, dtype=torch.float64), torch.randn(16, 2, dtype=torch.float64)
ps = list(m.parameters())
o = optim.{rule}
losses = []
def closure():
    o.zero_grad()
    loss = nn.functional.mse_loss(m(x), y)
    loss.backward()
    return loss
for i in range(50):
    losses.append(float(o.step(closure).detach()))
text = repr(o)
groups = [sorted((name, str(value)) for name, value in one.items()) for one in o.state_dict()['param_groups']]
kept = [[(name, value) for name, value in one.items()] for one in o.state_dict()['state'].values()]
"""
OPTIM = {rule: TRAINING.format(rule=rule) for rule in _RULES}
_SCHEDULES = [
    "StepLR(o, 3, 0.5)",
    "ExponentialLR(o, 0.9)",
    "CosineAnnealingLR(o, 7, 0.01)",
    "LambdaLR(o, lambda e: 0.9**e)",
    "LambdaLR(o, [lambda e: 0.9**e, lambda e: 0.5**e])",
    "LambdaLR(o, 3)",
    "StepLR(3, 2)",
    "StepLR(o, 2, last_epoch=3)",
]
_SCHEDULED = """
optim, S = torch.optim, torch.optim.lr_scheduler
one, two = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
o, q = optim.SGD([one], lr=0.1, momentum=0.9), optim.SGD([two], lr=0.1)
s = S.{call}
rates, momenta = [s.get_last_lr()[0]], []
for i in range(20):
    o.step()
    s.step()
    rates.append(s.get_last_lr()[0])
    momenta.append(o.param_groups[0]['momentum'])
group = str(sorted(o.param_groups[0]))
lr = o.param_groups[0]['lr']
state = s.state_dict()
values = [state[name] for name in ("last_epoch", "_last_lr")]
s.load_state_dict(state)
del state
for i in range(3):
    o.step()
    s.step()
    rates.append(s.get_last_lr()[0])
"""
OPTIM |= {call: _SCHEDULED.format(call=call) for call in _SCHEDULES}
OPTIM["scheduler of one's own"] = """
optim = torch.optim
class Warm(optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer, steps, last_epoch=-1):
        self.steps = steps
        super().__init__(optimizer, last_epoch)
    def get_lr(self):
        return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]
o = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
s = Warm(o, 4)
rates = []
for i in range(6):
    o.step()
    s.step()
    rates += s.get_last_lr()
"""
OPTIM |= {
    f"complex {rule}": f"z = torch.tensor([1 + 2j, -0.5 + 0.25j], dtype=torch.complex128, requires_grad=True)\no = torch.optim.{rule}\nfor i in range(8):\n    o.zero_grad()\n    (z * z.conj() * z.real).real.sum().backward()\n    o.step()\nkept = list(o.state_dict()['state'].get(0, dict()).values())\n"
    for rule in (
        *(
            "SGD([z], lr=0.1, momentum=0.9)",
            "Adam([z], lr=0.1, amsgrad=True)",
            "AdamW([z], lr=0.1)",
            "Adagrad([z], lr=0.1, initial_accumulator_value=0.1)",
        ),
        *(
            "RMSprop([z], centered=True, momentum=0.5)",
            "Adadelta([z])",
        ),
    )
}
_WRONG = [
    "SGD([], lr=0.1)",
    "SGD(p, lr=-1)",
    "SGD(p)",
    "SGD(p, lr=0.1, nesterov=True)",
    "SGD([p[0] * 1], lr=0.1)",
    "SGD(p[0], lr=0.1)",
    "SGD([1], lr=0.1)",
    "SGD({p[0]}, lr=0.1)",
    "SGD([p[0], p[0]], lr=0.1)",
    "SGD([{'params': p[0]}, {'params': p[0]}], lr=0.1)",
    "Adam(p, betas=(1.0, 2.0))",
    "Adam(p, lr=torch.ones(2))",
    "lr_scheduler.StepLR(torch.optim.SGD(p, lr=0.1), 2).step()",
]
OPTIM |= {
    f"build {call}": f"p = [torch.ones(2, requires_grad=True)]\nr = repr(torch.optim.{call})[:40]\n" for call in _WRONG
}
OPTIM["micro-batches"] = (
    NET
    + "o = torch.optim.SGD(net.parameters(), lr=0.1)\n(net(x[:2]).sum() / 4).backward()\n(net(x[2:]).sum() / 4).backward()\na = [p.grad.clone() for p in net.parameters()]\no.zero_grad()\nnet(x).mean().backward()\nb = [p.grad for p in net.parameters()]\no.step()\nps = list(net.parameters())\n"
)
OPTIM["state goes round"] = (
    NET
    + "o = torch.optim.Adam(net.parameters())\nfor i in range(3):\n    o.zero_grad()\n    net(x).sum().backward()\n    o.step()\nq = torch.optim.Adam(net.parameters(), lr=9.0)\nq.load_state_dict(o.state_dict())\nq.step()\nps = list(net.parameters())\nlr = q.param_groups[0]['lr']\n"
)
