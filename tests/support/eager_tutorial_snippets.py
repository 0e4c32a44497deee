"""Programs in the manner of tutorials on automatic differentiation, in our own words, by name.

Each is what a reader would paste: a small network by hand, a custom function, a penalty on gradients, a meta-learner.
What is left in variables, warned about and raised is compared with PyTorch's.
"""

from __future__ import annotations

BLOBS = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(11)
X = torch.randn(12, 2)
Y = (X[:, 0] * X[:, 1] > 0).long()
"""

TUTORIALS: dict[str, str] = {
    "scalar neuron": """
import torch
x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
w1, w2 = torch.tensor(-3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
b = torch.tensor(6.8813735870195432, requires_grad=True)
n = x1 * w1 + x2 * w2 + b
o = torch.tanh(n)
o.backward()
grads = [p.grad.item() for p in (x1, x2, w1, w2, b)]
""",
    "value class against tensors": """
import torch
class Value:
    def __init__(self, data, parents=(), back=lambda g: ()):
        self.data, self.grad, self.parents, self.back = data, 0.0, parents, back
    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda g: (g, g))
    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))
    def backward(self):
        order, seen = [], set()
        def visit(v):
            if v not in seen:
                seen.add(v)
                for p in v.parents:
                    visit(p)
                order.append(v)
        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            for p, g in zip(v.parents, v.back(v.grad)):
                p.grad += g
a, b = Value(-4.0), Value(2.0)
c = a * b + b * b * b
c.backward()
ta, tb = torch.tensor(-4.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
tc = ta * tb + tb * tb * tb
tc.backward()
same = (a.grad == ta.grad.item(), b.grad == tb.grad.item(), c.data == tc.item())
del a, b, c
""",
    "linear regression by hand": """
import torch
torch.manual_seed(0)
x = torch.linspace(-1, 1, 20)
y = 3 * x + 0.5 + 0.1 * torch.randn(20)
w, b = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
for step in range(30):
    loss = ((w * x + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
        b -= 0.5 * b.grad
        w.grad.zero_()
        b.grad = None
""",
    "two layers without modules": """
import torch
torch.manual_seed(1)
x, y = torch.randn(8, 5), torch.randn(8, 2)
w1 = torch.randn(5, 6, requires_grad=True)
w2 = torch.randn(6, 2, requires_grad=True)
for t in range(3):
    pred = x.mm(w1).clamp(min=0).mm(w2)
    loss = (pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (w1, w2):
            p -= 1e-3 * p.grad
            p.grad.zero_()
print_me = loss.item()
""",
    "logistic regression": BLOBS
    + """
w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
losses = []
for i in range(10):
    p = torch.sigmoid(X @ w + b)
    loss = -(Y * p.log() + (1 - Y) * (1 - p).log()).mean()
    w.grad = b.grad = None
    loss.backward()
    w.data -= 0.3 * w.grad
    b.data.sub_(0.3 * b.grad)
    losses.append(round(loss.item(), 4))
""",
    "hinge loss and weight decay": BLOBS
    + """
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
t = 2 * Y - 1
scores = model(X).squeeze(1)
data_loss = (1 - t * scores).relu().mean()
reg_loss = 1e-3 * sum((p * p).sum() for p in model.parameters())
total = data_loss + reg_loss
total.backward()
accuracy = ((scores > 0) == (t > 0)).float().mean()
norms = [p.grad.norm() for p in model.parameters()]
""",
    "polynomial with a custom function": """
import torch
class Legendre3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input ** 3 - 3 * input)
    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input ** 2 - 1)
x = torch.linspace(-3, 3, 40)
y = torch.sin(x)
a, b, c, d = [torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3)]
for t in range(20):
    pred = a + b * Legendre3.apply(c + d * x)
    loss = (pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
""",
    "function with two outputs": """
import torch
class SinCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c
    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        return gs * c - gc * s
x = torch.tensor([0.1, 0.7], requires_grad=True)
s, c = SinCos.apply(x)
g1, = torch.autograd.grad(s.sum(), x, retain_graph=True)
g2, = torch.autograd.grad((s * c).sum(), x)
""",
    "function that clips gradients": """
import torch
class ClipGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.limit, ctx.limit), None
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = ClipGrad.apply(x, 4.0)
(y ** 3).sum().backward()
""",
    "gradient reversal": """
import torch
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None
f = torch.tensor([0.5, -1.0], requires_grad=True)
task = (f * 2).sum()
domain = (Reverse.apply(f, 0.1) ** 2).sum()
(task + domain).backward()
""",
    "straight-through quantiser": """
import torch
def quantise(x, levels=4):
    q = torch.round(x * levels) / levels
    return x + (q - x).detach()
w = torch.tensor([0.13, 0.66, -0.4], requires_grad=True)
loss = (quantise(w) - torch.tensor([0.0, 1.0, -0.5])).pow(2).sum()
loss.backward()
""",
    "hook that prints": """
import torch
seen = []
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
y.register_hook(lambda g: seen.append(('y', g.tolist())))
z = y ** 2
z.register_hook(lambda g: seen.append(('z', g.tolist())))
x.register_hook(lambda g: g * 0.5)
z.mean().backward()
""",
    "hooks that clamp exploding gradients": """
import torch
h = torch.ones(3, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
w.register_hook(lambda g: torch.clamp(g, -100, 100))
for i in range(6):
    h = h * w
h.sum().backward()
norm = w.grad
""",
    "activations by forward hooks": BLOBS
    + """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
kept = {}
def keep(name):
    def hook(module, args, output):
        output.retain_grad()
        kept[name] = output
    return hook
for name, layer in net.named_children():
    layer.register_forward_hook(keep(name))
F.cross_entropy(net(X), Y).backward()
shapes = [(k, tuple(v.grad.shape), v.grad_fn.name()) for k, v in kept.items()]
means = [v.grad.abs().mean() for v in kept.values()]
""",
    "saliency map": """
import torch
torch.manual_seed(3)
image = torch.rand(1, 1, 6, 6, requires_grad=True)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 3))
scores = net(image)
best = scores.max(1)[1]
scores[0, best.item()].backward()
saliency, where = image.grad.abs().max(dim=1)
""",
    "adversarial example": BLOBS
    + """
net = nn.Linear(2, 2)
x = X.clone().requires_grad_(True)
loss = F.cross_entropy(net(x), Y)
loss.backward()
adversary = (x + 0.25 * x.grad.sign()).detach()
after = F.cross_entropy(net(adversary), Y)
worse = bool(after > loss)
""",
    "projected gradient descent": """
import torch
x = torch.tensor([2.0, -3.0], requires_grad=True)
for i in range(5):
    loss = ((x - torch.tensor([1.0, 1.0])) ** 2).sum()
    g, = torch.autograd.grad(loss, x)
    with torch.no_grad():
        x -= 0.3 * g
        x.clamp_(-0.8, 0.8)
""",
    "meta learning, one inner step": """
import torch
theta = torch.tensor([0.5, -0.3], requires_grad=True)
def task_loss(params, target):
    return ((params - target) ** 2).sum() + params.prod()
outer = 0
for target in (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])):
    inner = task_loss(theta, target)
    g, = torch.autograd.grad(inner, theta, create_graph=True)
    adapted = theta - 0.1 * g
    outer = outer + task_loss(adapted, target + 0.1)
outer.backward()
value = outer.item()
del outer, inner, g, adapted  # names of the nodes of a derivative are our rules'
""",
    "meta learning, first order": """
import torch
theta = torch.tensor([0.5, -0.3], requires_grad=True)
loss = (theta ** 3).sum()
g, = torch.autograd.grad(loss, theta)
adapted = theta - 0.1 * g
after = (adapted ** 2).sum()
after.backward()
flag = g.requires_grad
""",
    "meta learning through modules": """
import torch
from torch.func import functional_call
torch.manual_seed(2)
net = torch.nn.Sequential(torch.nn.Linear(1, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
params = dict(net.named_parameters())
x = torch.linspace(-1, 1, 6).unsqueeze(1)
y = x ** 2
loss = ((functional_call(net, params, (x,)) - y) ** 2).mean()
grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}
outer = ((functional_call(net, fast, (x,)) - y) ** 2).mean()
outer.backward()
first = net[0].weight.grad
value = outer.item()
del params, fast, grads, outer  # as above
""",
    "gradient penalty": """
import torch
torch.manual_seed(4)
critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Softplus(), torch.nn.Linear(4, 1))
real, fake = torch.randn(3, 2), torch.randn(3, 2)
eps = torch.rand(3, 1)
mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
score = critic(mix)
g = torch.autograd.grad(outputs=score, inputs=mix, grad_outputs=torch.ones_like(score), create_graph=True, retain_graph=True)[0]
penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
loss.backward()
grads = [p.grad for p in critic.parameters()]
del g, penalty, loss, score
""",
    "implicit differentiation of a fixed point": """
import torch
a = torch.tensor(0.7, requires_grad=True)
with torch.no_grad():
    z = torch.tensor(1.0)
    for _ in range(60):
        z = torch.cos(a * z)
z = z.requires_grad_(True)
f = torch.cos(a * z)
dz, da = torch.autograd.grad(f, (z, a))
implicit = da / (1 - dz)
""",
    "implicit function as a Function": """
import torch
class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, c):
        x = torch.ones_like(c)
        for _ in range(20):
            x = x - (x ** 3 + x - c) / (3 * x ** 2 + 1)
        ctx.save_for_backward(x)
        return x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g / (3 * x ** 2 + 1)
c = torch.tensor([1.0, 2.0, 10.0], dtype=torch.float64, requires_grad=True)
x = Root.apply(c)
x.sum().backward()
residual = (x ** 3 + x - c).abs().max() < 1e-12
ok = torch.autograd.gradcheck(Root.apply, (c,))
""",
    "checkpointed stack": """
import torch
from torch.utils.checkpoint import checkpoint
torch.manual_seed(5)
layers = [torch.nn.Linear(3, 3) for _ in range(3)]
def block(i):
    return lambda x: torch.tanh(layers[i](x))
x = torch.randn(2, 3, requires_grad=True)
h = x
for i in range(3):
    h = checkpoint(block(i), h, use_reentrant=False)
h.sum().backward()
g = layers[0].weight.grad
del layers
""",
    "jacobian of a network": """
import torch
from torch.autograd.functional import jacobian
torch.manual_seed(6)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
x = torch.randn(3)
J = jacobian(net, x)
rows = []
y_in = x.clone().requires_grad_(True)
y = net(y_in)
for i in range(2):
    g, = torch.autograd.grad(y[i], y_in, retain_graph=True)
    rows.append(g)
same = torch.allclose(J, torch.stack(rows), atol=1e-6)
del rows, g
""",
    "jacobians of a batch by vmap": """
import torch
from torch.func import jacrev, vmap
torch.manual_seed(6)
W = torch.randn(2, 3)
f = lambda x: torch.tanh(W @ x)
X = torch.randn(4, 3)
J = vmap(jacrev(f))(X)
trace = J.pow(2).sum(dim=(1, 2))
del f
""",
    "per-sample gradients": """
import torch
from torch.func import grad, vmap, functional_call
torch.manual_seed(7)
net = torch.nn.Linear(3, 1)
params = {k: v.detach() for k, v in net.named_parameters()}
def loss(p, x, y):
    return ((functional_call(net, p, (x.unsqueeze(0),)).squeeze() - y) ** 2)
X, Y = torch.randn(5, 3), torch.randn(5)
each = vmap(grad(loss), in_dims=(None, 0, 0))(params, X, Y)
w, b = each['weight'], each['bias']
net.zero_grad()
((net(X).squeeze() - Y) ** 2).sum().backward()
same = torch.allclose(w.sum(0), net.weight.grad, atol=1e-5)
""",
    "hessian times vector, Pearlmutter": """
import torch
def f(w):
    return (w ** 4).sum() + (w[0] * w[1] * w[2]) ** 2
w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
v = torch.tensor([1.0, 0.0, -1.0])
g, = torch.autograd.grad(f(w), w, create_graph=True)
hv, = torch.autograd.grad(g @ v, w)
H = torch.autograd.functional.hessian(f, w.detach())
same = torch.allclose(H @ v, hv)
del g
""",
    "conjugate gradient with products": """
import torch
A = torch.tensor([[3.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 2.0]])
b = torch.tensor([1.0, 2.0, 3.0])
x0 = torch.zeros(3, requires_grad=True)
g, = torch.autograd.grad(0.5 * x0 @ A @ x0 - b @ x0, x0, create_graph=True)
def hvp(v):
    return torch.autograd.grad(g, x0, v, retain_graph=True)[0]
step, r = torch.zeros(3), -g.detach()
p, rr = r.clone(), r @ r
for _ in range(3):
    Ap = hvp(p)
    alpha = rr / (p @ Ap)
    step = step + alpha * p
    r = r - alpha * Ap
    new = r @ r
    p, rr = r + new / rr * p, new
close = torch.allclose(A @ step, b, atol=1e-4)
del g, r, rr, new, p, Ap, alpha, step
""",
    "natural gradient of a softmax policy": """
import torch
theta = torch.tensor([0.2, -0.1, 0.4], requires_grad=True)
logp = torch.log_softmax(theta, 0)
p = logp.exp().detach()
fisher = torch.zeros(3, 3)
for i in range(3):
    g, = torch.autograd.grad(logp[i], theta, retain_graph=True)
    fisher += p[i] * torch.outer(g, g)
loss = -logp[1]
grad, = torch.autograd.grad(loss, theta)
natural = torch.linalg.solve(fisher + 0.1 * torch.eye(3), grad)
""",
    "newton in two dimensions": """
import torch
def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
x = torch.tensor([-1.0, 1.0], dtype=torch.float64)
for _ in range(4):
    g = torch.func.grad(rosenbrock)(x)
    H = torch.func.hessian(rosenbrock)(x)
    x = x - torch.linalg.solve(H, g)
value = rosenbrock(x)
""",
    "residual of a differential equation": """
import torch
torch.manual_seed(8)
net = torch.nn.Sequential(torch.nn.Linear(1, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
t = torch.linspace(0, 1, 5).unsqueeze(1).requires_grad_(True)
u = net(t)
du, = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)
ddu, = torch.autograd.grad(du, t, torch.ones_like(du), create_graph=True)
loss = ((ddu + u) ** 2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
loss.backward()
grads = [p.grad for p in net.parameters()]
del u, du, ddu, loss
""",
    "heat equation residual": """
import torch
x = torch.rand(4, 2, generator=torch.manual_seed(9)).requires_grad_(True)
a = torch.tensor(0.3, requires_grad=True)
u = torch.exp(-a * x[:, 1]) * torch.sin(x[:, 0])
g, = torch.autograd.grad(u.sum(), x, create_graph=True)
u_t = g[:, 1]
u_xx = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)[0][:, 0]
loss = (u_t - u_xx).pow(2).mean()
loss.backward()
da = a.grad
del g, u, u_t, u_xx, loss, x
""",
    "divergence and curl": """
import torch
p = torch.tensor([0.3, -0.5, 0.8], requires_grad=True)
field = torch.stack([p[1] * p[2], p[0] ** 2, p.prod()])
J = torch.stack([torch.autograd.grad(field[i], p, retain_graph=True)[0] for i in range(3)])
div = J.trace()
curl = torch.stack([J[2, 1] - J[1, 2], J[0, 2] - J[2, 0], J[1, 0] - J[0, 1]])
""",
    "accumulating over micro-batches": BLOBS
    + """
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt.zero_grad()
for x, y in zip(X.split(4), Y.split(4)):
    (F.cross_entropy(net(x), y) / 3).backward()
whole = [p.grad.clone() for p in net.parameters()]
opt.zero_grad(set_to_none=False)
F.cross_entropy(net(X), Y).backward()
close = [torch.allclose(a, p.grad, atol=1e-6) for a, p in zip(whole, net.parameters())]
opt.step()
after = [p.detach().clone() for p in net.parameters()]
""",
    "moving average of weights": """
import torch, copy
torch.manual_seed(10)
net = torch.nn.Linear(2, 1)
ema = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for i in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2) * i).pow(2).sum().backward()
    opt.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), net.parameters()):
            e.mul_(0.9).add_(p, alpha=0.1)
        for e, p in zip(ema.parameters(), net.parameters()):
            e.lerp_(p, 0.01)
weights = [p.detach() for p in ema.parameters()]
""",
    "clipping by norm in a loop": BLOBS
    + """
net = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
norms = []
for i in range(5):
    opt.zero_grad()
    loss = F.cross_entropy(net(X) * 50, Y)
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0))
    opt.step()
last = loss.item()
del loss
""",
    "data loader by hand": BLOBS
    + """
order = torch.randperm(len(X))
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
history = []
for epoch in range(2):
    for start in range(0, len(X), 5):
        rows = order[start:start + 5]
        xb, yb = X[rows], Y[rows]
        loss = F.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(float(loss.detach()))
del loss, rows, xb, yb
""",
    "loader and dataset": BLOBS
    + """
from torch.utils.data import TensorDataset, DataLoader
loader = DataLoader(TensorDataset(X, Y), batch_size=5, shuffle=True)
seen = [(len(xb), yb.tolist()) for xb, yb in loader]
del loader
""",
    "schedule of learning rates": """
import torch
p = torch.nn.Parameter(torch.tensor([1.0]))
opt = torch.optim.SGD([p], lr=1.0)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
rates = []
for i in range(5):
    opt.zero_grad()
    (p ** 2).sum().backward()
    opt.step()
    rates.append(sched.get_last_lr()[0])
    sched.step()
""",
    "optimiser of one's own": """
import torch
class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                v = self.state[p].setdefault('v', torch.zeros_like(p))
                v.mul_(group['beta']).add_(p.grad)
                p.add_(v, alpha=-group['lr'])
w = torch.tensor([1.0, -2.0], requires_grad=True)
opt = Momentum([w])
for i in range(4):
    opt.zero_grad()
    (w ** 2).sum().backward()
    opt.step()
""",
    "policy gradient": """
import torch
torch.manual_seed(12)
logits = torch.zeros(3, requires_grad=True)
reward = torch.tensor([1.0, 0.0, 2.0])
actions = torch.tensor([0, 2, 1, 2, 2])
logp = torch.log_softmax(logits, dim=0)[actions]
advantage = reward[actions] - reward[actions].mean()
loss = -(logp * advantage).mean()
loss.backward()
""",
    "reparametrised sample": """
import torch
torch.manual_seed(13)
mu = torch.tensor([0.1, -0.2], requires_grad=True)
log_var = torch.zeros(2, requires_grad=True)
eps = torch.randn(2)
z = mu + eps * torch.exp(0.5 * log_var)
kl = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp())
loss = (z ** 2).sum() + kl
loss.backward()
""",
    "recurrent cell unrolled": """
import torch
torch.manual_seed(14)
Wx, Wh = torch.randn(2, 3) * 0.5, torch.randn(3, 3) * 0.5
Wx.requires_grad_(), Wh.requires_grad_()
h = torch.zeros(1, 3)
states = []
for x in torch.randn(4, 1, 2):
    h = torch.tanh(x @ Wx + h @ Wh)
    states.append(h)
loss = torch.cat(states).pow(2).mean()
loss.backward()
del states, h, loss, x
""",
    "truncated back-propagation": """
import torch
w = torch.tensor(0.9, requires_grad=True)
h = torch.tensor(1.0)
grads = []
for t in range(6):
    h = torch.tanh(w * h + 0.1)
    if t % 2 == 1:
        h.backward()
        grads.append(w.grad.item())
        w.grad = None
        h = h.detach()
""",
    "small convolutional network": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 3)
        self.conv2 = nn.Conv2d(3, 4, 2)
        self.fc = nn.Linear(16, 3)
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        x = F.avg_pool2d(x, 2, 1)
        x = torch.flatten(x, 1)
        return self.fc(x)
net = Net()
text = repr(net)
out = net(torch.randn(2, 1, 10, 10)[:, :, :10, :10])
""",
    "small convolutional network trained": """
import torch
from torch import nn
torch.manual_seed(17)
net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(3, 1, 4, 4), torch.tensor([0, 1, 1])
losses = []
for i in range(4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
kernel = net[0].weight.detach()
means = net[1].running_mean
del loss
""",
    "attention by hand": """
import torch, math
torch.manual_seed(18)
x = torch.randn(1, 4, 6)
Wq, Wk, Wv = [torch.randn(6, 6).div(6).requires_grad_() for _ in range(3)]
q, k, v = x @ Wq, x @ Wk, x @ Wv
scores = q @ k.transpose(-2, -1) / math.sqrt(6)
mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), diagonal=1)
weights = scores.masked_fill(mask, float('-inf')).softmax(dim=-1)
out = weights @ v
out.mean().backward()
""",
    "embedding and bag of words": """
import torch
torch.manual_seed(19)
table = torch.nn.Embedding(7, 3, padding_idx=0)
words = torch.tensor([[1, 2, 0], [3, 1, 1]])
mean = table(words).mean(dim=1)
mean.pow(2).sum().backward()
g = table.weight.grad
""",
    "dropout in training and evaluation": """
import torch
torch.manual_seed(20)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
x = torch.ones(2, 3)
a = net(x)
net.eval()
b, c = net(x), net(x)
same = torch.equal(b, c)
a.sum().backward()
g = net[0].weight.grad
""",
    "weight tying": """
import torch
torch.manual_seed(21)
enc = torch.nn.Linear(4, 2, bias=False)
x = torch.randn(3, 4)
code = enc(x)
rec = torch.nn.functional.linear(code, enc.weight.t())
((rec - x) ** 2).mean().backward()
g = enc.weight.grad
""",
    "freezing a layer": """
import torch
torch.manual_seed(22)
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
for p in net[0].parameters():
    p.requires_grad = False
out = net(torch.ones(1, 2)).sum()
out.backward()
grads = [p.grad is None for p in net.parameters()]
trainable = sum(p.numel() for p in net.parameters() if p.requires_grad)
""",
    "two losses, one graph": """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x ** 2
a, b = h.sum(), h.prod()
a.backward(retain_graph=True)
first = x.grad.clone()
b.backward()
second = x.grad.clone()
try:
    a.backward()
except RuntimeError as error:
    again = type(error).__name__
""",
    "detached target": """
import torch
torch.manual_seed(23)
q = torch.randn(4, requires_grad=True)
reward, gamma = 1.0, 0.9
target = (reward + gamma * q.max()).detach()
loss = torch.nn.functional.smooth_l1_loss(q[1], target)
loss.backward()
""",
    "soft and hard maxima": """
import torch
x = torch.tensor([[1.0, 3.0, 3.0], [0.5, -1.0, 0.2]], requires_grad=True)
hard, where = x.max(dim=1)
soft = torch.logsumexp(x, dim=1)
top = x.topk(2, dim=1)
(hard.sum() + soft.sum() + top.values.sum() + x.amax()).backward()
kinds = (type(top.indices).__name__, where.tolist())
""",
    "sorting and ranks": """
import torch
x = torch.tensor([0.3, -1.0, 2.0, 0.1], requires_grad=True)
s, order = torch.sort(x, descending=True)
(s * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
m = x.median()
m.backward()
""",
    "cholesky of a covariance": """
import torch
A = torch.tensor([[2.0, 0.3], [0.3, 1.0]], requires_grad=True)
L = torch.linalg.cholesky(A)
logdet = 2 * L.diagonal().log().sum()
logdet.backward()
inverse = torch.linalg.inv(A.detach())
close = torch.allclose(torch.tril(A.grad) + torch.tril(A.grad, -1).T, inverse, atol=1e-5)
""",
    "gaussian likelihood": """
import torch
torch.manual_seed(24)
data = torch.randn(10) * 2 + 3
mu = torch.tensor(0.0, requires_grad=True)
log_s = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.Adam([mu, log_s], lr=0.1)
for _ in range(5):
    opt.zero_grad()
    nll = (0.5 * ((data - mu) / log_s.exp()) ** 2 + log_s).mean()
    nll.backward()
    opt.step()
""",
    "eigenvalue sensitivity": """
import torch
A = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
w, V = torch.linalg.eigh(A)
w[0].backward()
v = V.detach()[:, 0]
close = torch.allclose(A.grad, torch.outer(v, v), atol=1e-5)
del V
""",
    "forward and reverse agree": """
import torch
from torch.func import jacfwd, jacrev, jvp, vjp
f = lambda x: torch.stack([x[0] * x[1], x.sin().sum(), (x ** 2).prod()])
x = torch.tensor([0.5, 1.5])
a, b = jacfwd(f)(x), jacrev(f)(x)
y, t = jvp(f, (x,), (torch.tensor([1.0, -1.0]),))
z, pull = vjp(f, x)
g, = pull(torch.ones(3))
close = (torch.allclose(a, b), torch.allclose(t, a @ torch.tensor([1.0, -1.0])))
del f, pull
""",
    "dual numbers": """
import torch
import torch.autograd.forward_ad as fwAD
primal, tangent = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 2.0])
with fwAD.dual_level():
    d = fwAD.make_dual(primal, tangent)
    out = (d.exp() * d).sum()
    value, slope = fwAD.unpack_dual(out)
del d, out
""",
    "walking the graph": """
import torch
x = torch.ones(2, requires_grad=True)
y = ((x * 2 + 1) ** 2).mean()
names = []
def walk(fn, depth=0):
    if fn is None:
        return
    names.append((depth, type(fn).__name__))
    for parent, _ in fn.next_functions:
        walk(parent, depth + 1)
walk(y.grad_fn)
leaf = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0].next_functions[0][0].variable is x
""",
    "saved tensors are seen": """
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
z = y.pow(3)
a = y.grad_fn._saved_result
b = z.grad_fn._saved_self
e = z.grad_fn._saved_exponent
same = b is y
z.sum().backward()
try:
    y.grad_fn._saved_result
except RuntimeError as error:
    gone = type(error).__name__
""",
    "packing saved tensors": """
import torch
kept = []
def pack(t):
    kept.append(tuple(t.shape))
    return t.detach().double()
def unpack(t):
    return t.float()
x = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = (x.sin() * x).sum()
y.backward()
""",
    "checking a rule": """
import torch
from torch.autograd import gradcheck, gradgradcheck
x = torch.tensor([0.3, 0.9], dtype=torch.double, requires_grad=True)
a = gradcheck(lambda t: (t.sin() * t).sum(), (x,))
b = gradgradcheck(lambda t: t ** 3, (x,))
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
c = gradcheck(Wrong.apply, (x,), raise_exception=False)
gradcheck(Wrong.apply, (x,))
""",
    "nan hunt": """
import torch
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), torch.zeros(2))
y.sum().backward()
first = x.grad.clone()
x.grad = None
safe = torch.where(x > 0, x, torch.ones(2))
y = torch.where(x > 0, safe.sqrt(), torch.zeros(2))
y.sum().backward()
""",
    "anomaly mode": """
import torch
x = torch.tensor([-1.0, 4.0], requires_grad=True)
with torch.autograd.detect_anomaly():
    y = (x.sqrt() * 0).sum()
    y.backward()
""",
    "leaf changed in place": """
import torch
w = torch.ones(2, requires_grad=True)
w += 1
""",
    "changed after saving": """
import torch
a = torch.ones(2, requires_grad=True)
b = a.exp()
b.mul_(2)
b.sum().backward()
""",
    "no graph to walk": """
import torch
with torch.no_grad():
    y = torch.ones(2, requires_grad=True) * 2
y.sum().backward()
""",
    "vector needs a seed": """
import torch
x = torch.ones(3, requires_grad=True)
(x * 2).backward()
""",
    "numpy of a moving tensor": """
import torch
x = torch.ones(3, requires_grad=True)
x.numpy()
""",
    "wrong number of gradients": """
import torch
class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b
    @staticmethod
    def backward(ctx, g):
        return g
a = torch.ones(1, requires_grad=True)
Two.apply(a, a).backward()
""",
    "double backward of a once-only rule": """
import torch
from torch.autograd.function import once_differentiable
class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
x = torch.tensor(3.0, requires_grad=True)
y = Once.apply(x)
g, = torch.autograd.grad(y, x, create_graph=True)
flag = g.requires_grad
g.backward()
""",
    "shapes are summed away": """
import torch
a = torch.ones(3, 1, requires_grad=True)
b = torch.ones(4, requires_grad=True)
c = a * b + 2
c.sum().backward()
shapes = (tuple(a.grad.shape), tuple(b.grad.shape))
""",
    "gather and scatter": """
import torch
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
i = torch.tensor([[2], [0]])
picked = x.gather(1, i)
spread = torch.zeros(2, 3).scatter_add(1, i, picked * 2)
summed = torch.zeros(2).index_add(0, torch.tensor([0, 0]), picked.squeeze(1))
(spread.sum() + summed.pow(2).sum()).backward()
""",
    "einsum": """
import torch
torch.manual_seed(25)
a, b = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
c = torch.einsum('ij,jk->ik', a, b)
d = torch.einsum('ij,ij->i', a, a)
(c.sum() + d.sum()).backward()
""",
    "complex step": """
import torch
z = torch.tensor([1.0 + 2.0j, 0.5 - 1.0j], requires_grad=True)
loss = (z * z.conj()).real.sum()
loss.backward()
""",
    "sum of squares in three orders": """
import torch
x = torch.tensor(1.5, requires_grad=True)
y = x ** 4
g1, = torch.autograd.grad(y, x, create_graph=True)
g2, = torch.autograd.grad(g1, x, create_graph=True)
g3, = torch.autograd.grad(g2, x)
values = [g1.item(), g2.item(), g3.item()]
del g1, g2
""",
    "style transfer gram matrix": """
import torch
torch.manual_seed(26)
image = torch.rand(1, 3, 4, 4, requires_grad=True)
features = torch.nn.functional.conv2d(image, torch.randn(2, 3, 3, 3), padding=1)
flat = features.view(2, -1)
gram = flat @ flat.t() / flat.numel()
style = (gram - torch.eye(2)).pow(2).mean()
tv = (image[..., 1:] - image[..., :-1]).abs().mean()
(style + 0.1 * tv).backward()
""",
    "triplet loss": """
import torch
torch.manual_seed(27)
anchor = torch.randn(4, 3, requires_grad=True)
positive, negative = torch.randn(4, 3), torch.randn(4, 3)
loss = torch.nn.functional.triplet_margin_loss(anchor, positive, negative, margin=0.5)
loss.backward()
""",
    "group norm and residual": """
import torch
torch.manual_seed(28)
block = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, padding=1, bias=False), torch.nn.GroupNorm(2, 4), torch.nn.SiLU())
x = torch.randn(1, 4, 5, 5, requires_grad=True)
y = x + block(x)
y.mean().backward()
g = block[1].weight.grad
""",
    "random choices": """
import torch
torch.manual_seed(42)
single, double = torch.bernoulli(torch.full((5,), 0.4)), torch.bernoulli(torch.full((5,), 0.4, dtype=torch.float64))
one = torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 1)
several = torch.multinomial(torch.tensor([[0.1, 0.2, 0.7], [5.0, 1.0, 1.0]]), 2)
again = torch.multinomial(torch.tensor([[1.0, 2.0, 7.0], [5.0, 1.0, 1.0]]), 6, replacement=True)
generator = torch.Generator().manual_seed(3)
own = torch.multinomial(torch.tensor([1.0, 1.0, 2.0, 4.0]), 4, replacement=True, generator=generator)
state = torch.get_rng_state()
left = torch.rand(3)
torch.set_rng_state(state)
right = torch.rand(3)
del generator, state
""",
    "weights that cannot be drawn by": """
import torch
raised = []
for weights, count, again in (
    ([0.0, 0.0], 1, False), ([1.0, -1.0], 1, False), ([1.0, float("nan")], 1, True), ([1.0, 1.0], 3, False), ([1.0], 0, True)
):
    try:
        torch.multinomial(torch.tensor(weights), count, again)
    except Exception as problem:
        raised.append(type(problem).__name__)
""",
    "bigrams": """
import torch
import torch.nn.functional as F
words = ["emma", "olivia", "ava"]
letters = {letter: i + 1 for i, letter in enumerate(sorted(set("".join(words))))} | {".": 0}
pairs = [(a, b) for word in words for a, b in zip("." + word, word + ".")]
xs = torch.tensor([letters[a] for a, _ in pairs])
ys = torch.tensor([letters[b] for _, b in pairs])
N = torch.zeros((len(letters), len(letters)), dtype=torch.int32)
for a, b in zip(xs, ys):
    N[a, b] += 1
P = (N + 1).float()
P /= P.sum(1, keepdim=True)
g = torch.Generator().manual_seed(2147483647)
W = torch.randn(N.shape, generator=g, requires_grad=True)
for k in range(3):
    logits = F.one_hot(xs, num_classes=len(letters)).float() @ W
    probs = logits.exp() / logits.exp().sum(1, keepdims=True)
    loss = -probs[torch.arange(len(ys)), ys].log().mean() + 0.01 * (W**2).mean()
    W.grad = None
    loss.backward()
    W.data += -10 * W.grad
drawn = torch.multinomial(P[0], num_samples=4, replacement=True, generator=g)
del g, loss, probs, logits
""",
    "penalty with only_inputs": """
import torch
from torch import nn, autograd
torch.manual_seed(0)
D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
real, fake = torch.randn(4, 2), torch.randn(4, 2)
alpha = torch.rand(4, 1)
mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
scores = D(mixed)
grads = autograd.grad(
    outputs=scores, inputs=mixed, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True,
    only_inputs=True,
)[0]
penalty = ((grads.norm(2, dim=1) - 1) ** 2).mean()
(D(fake).mean() - D(real).mean() + 10 * penalty).backward()
found = [None if p.grad is None else p.grad for p in D.parameters()]
del scores, grads, penalty, mixed
""",
    "grad by position": """
import torch
x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
first = torch.autograd.grad(x * x, (x, y), None, True, False, True, True)
batched = torch.autograd.grad(x * y, (x,), torch.tensor([1.0, 2.0]), None, False, True, None, True)
zeros = torch.autograd.grad(x * x, (x, y), None, None, False, True, True, False, True)
raised = []
try:
    torch.autograd.grad(x * x, (x, y), None, True, False, True)
except Exception as problem:
    raised.append(type(problem).__name__)
""",
    "formats of reductions": """
import torch
x = torch.tensor([[1.5, 2.5], [3.5, -1.0]], requires_grad=True)
n = torch.tensor([1, 2, 3])
found = [
    x.sum(dtype=torch.float64), torch.sum(x, 0, dtype=torch.float64), x.mean(dtype=torch.float64),
    n.sum(dtype=torch.float32), n.float().mean(), n.to(torch.int32).sum(), torch.mean(n, dtype=torch.float32),
    n.cumsum(0, dtype=torch.float32), n.prod(dtype=torch.float64), n.cumprod(0, dtype=torch.int32),
    x.softmax(-1, torch.float64), torch.softmax(x, 0, dtype=torch.float64), x.log_softmax(1, dtype=torch.float64),
    x.sum(axis=1, keepdims=True, dtype=torch.float64),
]
kinds = [str(one.dtype) for one in found]
nodes = [type(one.grad_fn).__name__ for one in found if one.requires_grad]
(found[0] + found[2] + (found[10] * 2).sum() + found[12].sum()).backward()
gradient = x.grad
del found
""",
    "formats by Python's types": """
import torch
a, b, c = torch.zeros(2, dtype=int), torch.tensor([1, 2], dtype=float), torch.ones(2, dtype=bool)
d, e, f = torch.tensor([1.7, -2.5]).to(int), torch.arange(3, dtype=float), torch.ones_like(a, dtype=float)
g, h = torch.tensor([1.7]).type(torch.LongTensor), torch.tensor([1]).type("torch.DoubleTensor")
i = torch.full((2,), 3, dtype=float)
raised = []
for wrong in (lambda: a.mean(), lambda: torch.full((2,), "a"), lambda: torch.tensor(2).type("torch.NoTensor")):
    try:
        wrong()
    except Exception as problem:
        raised.append(type(problem).__name__)
""",
    "whole numbers to powers": """
import torch
a, b, c, d = torch.tensor(2) ** -1.0, torch.tensor([2, 3]) ** 2.0, 5 ** torch.tensor([2, 0]), torch.tensor(2) ** 3
e, f = 2.0 ** torch.tensor([2, -1]), torch.pow(2, torch.tensor([1.5, 2.0]))
kinds = [str(x.dtype) for x in (a, b, c, d, e, f)]
raised = []
for wrong in (lambda: torch.tensor(2) ** -1, lambda: 2 ** torch.tensor([-1])):
    try:
        wrong()
    except Exception as problem:
        raised.append(type(problem).__name__)
""",
    "batches of names": """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
class Rows(Dataset):
    def __init__(self, n):
        self.x = torch.arange(n, dtype=torch.float32).reshape(-1, 1)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return {"x": self.x[i], "name": f"row {i}", "pair": (i, 2.5 * i)}
torch.manual_seed(0)
batches = [(b["x"], b["name"], b["pair"]) for b in DataLoader(Rows(5), batch_size=2, shuffle=True)]
mixed = next(iter(DataLoader([(1, 2.5, "s"), (3, 4.5, "t")], batch_size=2)))
one, other = random_split(TensorDataset(torch.eye(4)), [3, 1], generator=torch.Generator().manual_seed(1))
kept = [list(one.indices), list(other.indices)]
del one, other
""",
    "Functions misused": """
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
x = torch.ones(2, requires_grad=True)
raised = []
for wrong in (lambda: Double()(x), lambda: Double.apply(x).sum().backward(), lambda: torch.linalg.inv(torch.zeros(2, 2))):
    try:
        wrong()
    except Exception as problem:
        raised.append(type(problem).__name__)
""",
    "meta-learning with a learned step": """
import torch
lr = torch.tensor(0.1, requires_grad=True)
w = torch.tensor([1.0, 2.0])
seen = []
for _ in range(3):
    fast = w.clone().requires_grad_()
    (g,) = torch.autograd.grad(((fast - 3) ** 2).sum(), fast, create_graph=True)
    lr.grad = None
    ((fast - lr * g - 3) ** 2).sum().backward()
    seen.append((lr.grad.clone(), fast.grad.clone()))
    with torch.no_grad():
        lr -= 0.001 * lr.grad
del fast, g
""",
    "an averaged copy of a model": """
import copy
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(model)
for p in average.parameters():
    p.requires_grad_(False)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
for i in range(3):
    loss = model(torch.randn(6, 3)).pow(2).sum()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    with torch.no_grad():
        for kept, p in zip(average.parameters(), model.parameters()):
            kept.mul_(0.9).add_(p, alpha=0.1)
        for kept, b in zip(average.buffers(), model.buffers()):
            kept.copy_(b)
state = [(name, value) for name, value in average.state_dict().items()]
del model, average, opt, loss, p, kept, b
""",
}
