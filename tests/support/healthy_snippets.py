"""Training programs in which nothing is wrong, as tutorials have them: `gradcli why` is silent about each."""

from __future__ import annotations

HEALTHY = {
    "plain_descent": """\
import torch
w = torch.randn(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(20):
    opt.zero_grad()
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    opt.step()
print(w)
""",
    "multilayer_perceptron_with_adam": """\
import torch
import torch.nn as nn
torch.manual_seed(0)
m = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(m.parameters(), lr=1e-3)
X = torch.randn(64, 10); y = X[:, :1] * 2
for i in range(10):
    loss = nn.functional.mse_loss(m(X), y)
    opt.zero_grad(); loss.backward(); opt.step()
print(loss.item())
""",
    "gradient_accumulation_on_purpose": """\
import torch
# gradient accumulation on purpose
torch.manual_seed(0)
m = torch.nn.Linear(4, 1); opt = torch.optim.SGD(m.parameters(), lr=0.1)
X = torch.randn(32, 4); y = torch.randn(32, 1)
for epoch in range(3):
    opt.zero_grad()
    for xb, yb in zip(X.split(8), y.split(8)):
        loss = ((m(xb) - yb) ** 2).mean() / 4
        loss.backward()
    opt.step()
""",
    "manual_sgd": """\
import torch
# manual sgd
w = torch.zeros(2, requires_grad=True)
for _ in range(5):
    loss = ((w - torch.tensor([1., 2.])) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
print(w)
""",
    "data_update": """\
import torch
w = torch.zeros(2, requires_grad=True)
for _ in range(5):
    loss = ((w - torch.tensor([1., 2.])) ** 2).sum()
    loss.backward()
    w.data -= 0.1 * w.grad.data
    w.grad = None
print(w)
""",
    "gan_detach_on_purpose": """\
import torch
# GAN: detach on purpose
torch.manual_seed(0)
G = torch.nn.Linear(2, 3); D = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LeakyReLU(), torch.nn.Linear(4, 1))
og = torch.optim.Adam(G.parameters()); od = torch.optim.Adam(D.parameters())
bce = torch.nn.BCEWithLogitsLoss()
for i in range(3):
    real = torch.randn(8, 3); z = torch.randn(8, 2)
    od.zero_grad()
    fake = G(z)
    ld = bce(D(real), torch.ones(8, 1)) + bce(D(fake.detach()), torch.zeros(8, 1))
    ld.backward(); od.step()
    og.zero_grad()
    lg = bce(D(fake), torch.ones(8, 1))
    lg.backward(); og.step()
print(ld.item(), lg.item())
""",
    "frozen_backbone": """\
import torch
# frozen backbone
torch.manual_seed(0)
back = torch.nn.Linear(4, 4)
for p in back.parameters(): p.requires_grad = False
head = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    loss = torch.nn.functional.cross_entropy(head(back(torch.randn(5, 4))), torch.tensor([0, 1, 0, 1, 1]))
    loss.backward(); opt.step()
""",
    "evaluation": """\
import torch
# evaluation
torch.manual_seed(0)
m = torch.nn.Linear(3, 2); opt = torch.optim.SGD(m.parameters(), lr=.1)
hist = []
for e in range(4):
    m.train(); opt.zero_grad()
    loss = m(torch.randn(4, 3)).pow(2).mean(); loss.backward(); opt.step()
    hist.append(loss.item())
    m.eval()
    with torch.no_grad():
        val = m(torch.randn(4, 3)).pow(2).mean()
    hist.append(val)
print(hist[-1])
""",
    "target_network_dqn": """\
import torch
# target network (DQN)
torch.manual_seed(0)
q = torch.nn.Linear(3, 2); t = torch.nn.Linear(3, 2); t.load_state_dict(q.state_dict())
opt = torch.optim.SGD(q.parameters(), lr=.1)
for i in range(3):
    s, s2 = torch.randn(5, 3), torch.randn(5, 3)
    with torch.no_grad():
        target = 1 + 0.9 * t(s2).max(1)[0]
    pred = q(s).gather(1, torch.randint(0, 2, (5, 1))).squeeze(1)
    loss = torch.nn.functional.smooth_l1_loss(pred, target)
    opt.zero_grad(); loss.backward(); opt.step()
    for a, b in zip(t.parameters(), q.parameters()): a.data.copy_(0.9 * a.data + 0.1 * b.data)
""",
    "truncated_bptt": """\
import torch
# truncated bptt
torch.manual_seed(0)
cell = torch.nn.Linear(5, 4); opt = torch.optim.SGD(cell.parameters(), lr=.1)
h = torch.zeros(1, 4)
for step in range(6):
    h = h.detach()
    loss = 0
    for t in range(3):
        h = torch.tanh(cell(torch.cat([torch.randn(1, 1), h], 1)))
        loss = loss + h.pow(2).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "second_derivative": """\
import torch
x = torch.tensor(2., requires_grad=True)
y = x ** 3
g, = torch.autograd.grad(y, x, create_graph=True)
g2, = torch.autograd.grad(g, x)
print(g, g2)
""",
    "retained": """\
import torch
x = torch.tensor([1., 2.], requires_grad=True)
h = x * 2
h.retain_grad()
h.sum().backward()
print(x.grad, h.grad)
""",
    "straight_through": """\
import torch
# straight-through
x = torch.tensor([0.3, 1.7], requires_grad=True)
y = x + (x.round() - x).detach()
(y * torch.tensor([1., 3.])).sum().backward()
print(x.grad)
""",
    "embedding_padding_some_rows_get_no_gradi": """\
import torch
# embedding + padding: some rows get no gradient
torch.manual_seed(0)
e = torch.nn.Embedding(10, 3); l = torch.nn.Linear(3, 2)
opt = torch.optim.SGD([*e.parameters(), *l.parameters()], lr=.1)
for i in range(2):
    loss = torch.nn.functional.cross_entropy(l(e(torch.tensor([1, 2, 3]))), torch.tensor([0, 1, 0]))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "relu_with_healthy_dead_fraction": """\
import torch
# relu with healthy dead fraction
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
m(torch.randn(3, 4)).sum().backward()
print([p.grad.norm() for p in m.parameters()])
""",
    "two_losses_retain_once": """\
import torch
# two losses, retain once
torch.manual_seed(0)
enc = torch.nn.Linear(3, 3); a = torch.nn.Linear(3, 1); b = torch.nn.Linear(3, 1)
opt = torch.optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], lr=.1)
for i in range(4):
    z = enc(torch.randn(5, 3))
    la, lb = a(z).pow(2).mean(), b(z).abs().mean()
    opt.zero_grad()
    la.backward(retain_graph=True)
    lb.backward()
    opt.step()
""",
    "jacobian_row_by_row": """\
import torch
# jacobian row by row
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = torch.stack([x.sum(), x.prod(), x.norm()])
rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(3)]
print(torch.stack(rows))
""",
    "jacobian_by_backward": """\
import torch
# jacobian by backward
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x ** 2
J = torch.zeros(3, 3)
for i in range(3):
    x.grad = None
    y[i].backward(retain_graph=True)
    J[i] = x.grad
print(J)
""",
    "lbfgs_closure": """\
import torch
# LBFGS closure
x = torch.zeros(2, requires_grad=True)
opt = torch.optim.LBFGS([x])
def closure():
    opt.zero_grad()
    l = ((x - 3) ** 2).sum()
    l.backward()
    return l
for i in range(3): opt.step(closure)
print(x)
""",
    "adversarial_example_fgsm": """\
import torch
# adversarial example (FGSM)
torch.manual_seed(0)
m = torch.nn.Linear(4, 3)
x = torch.randn(1, 4, requires_grad=True)
loss = torch.nn.functional.cross_entropy(m(x), torch.tensor([1]))
m.zero_grad()
loss.backward()
adv = x + 0.1 * x.grad.sign()
print(adv)
""",
    "deep_dream_optimise_input_with_clamp": """\
import torch
# deep dream: optimise input with clamp
x = torch.zeros(3, requires_grad=True)
opt = torch.optim.Adam([x], lr=.1)
for i in range(30):
    opt.zero_grad()
    loss = ((x - 2) ** 2).sum()
    loss.backward(); opt.step()
    with torch.no_grad(): x.clamp_(0, 1)
print(x)
""",
    "vae_reparametrisation": """\
import torch
# VAE reparametrisation
torch.manual_seed(0)
mu = torch.zeros(2, requires_grad=True); lv = torch.zeros(2, requires_grad=True)
opt = torch.optim.SGD([mu, lv], lr=.1)
for i in range(5):
    z = mu + torch.randn(2) * torch.exp(0.5 * lv)
    loss = (z - 1).pow(2).sum() + 0.5 * (lv.exp() + mu ** 2 - 1 - lv).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "reinforce": """\
import torch
# REINFORCE
torch.manual_seed(0)
pi = torch.nn.Linear(2, 3); opt = torch.optim.Adam(pi.parameters())
for ep in range(3):
    logps, rewards = [], []
    for t in range(4):
        p = torch.softmax(pi(torch.randn(2)), -1)
        a = int(p.detach().argmax())
        logps.append(torch.log(p[a])); rewards.append(1.0)
    loss = -sum(l * r for l, r in zip(logps, rewards))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "converged": """\
import torch
# converged
w = torch.tensor([1., 2.], requires_grad=True)
loss = ((w - torch.tensor([1., 2.])) ** 2).sum()
loss.backward()
""",
    "attention_with_mask": """\
import torch
# attention with mask
torch.manual_seed(0)
q, k, v = [torch.randn(4, 8, requires_grad=True) for _ in range(3)]
mask = torch.tril(torch.ones(4, 4)) == 0
s = (q @ k.T / 8 ** .5).masked_fill(mask, float('-inf'))
out = torch.softmax(s, -1) @ v
out.pow(2).sum().backward()
print(q.grad.norm(), k.grad.norm())
""",
    "early_stopping_with_best_weights": """\
import torch
# early stopping with best weights
import copy
torch.manual_seed(0)
m = torch.nn.Linear(2, 1); opt = torch.optim.SGD(m.parameters(), lr=.05); best, bl = None, 1e9
for e in range(5):
    loss = (m(torch.ones(3, 2)) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if loss.item() < bl: bl, best = loss.item(), copy.deepcopy(m.state_dict())
print(best)
""",
    "momentum_buffers_ema": """\
import torch
# momentum buffers, EMA
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True); ema = w.detach().clone(); v = torch.zeros(3)
for i in range(5):
    l = (w ** 4).sum(); g, = torch.autograd.grad(l, w)
    with torch.no_grad():
        v.mul_(0.9).add_(g); w.sub_(0.01 * v); ema.mul_(0.9).add_(0.1 * w)
print(ema)
""",
    "numeric_check_of_custom_function": """\
import torch
# numeric check of custom function
class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ctx.save_for_backward(x); return x * x
    @staticmethod
    def backward(ctx, g): x, = ctx.saved_tensors; return 2 * x * g
x = torch.randn(3, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(Sq.apply, (x,)))
""",
    "contrastive_siamese_shared_weights_used_": """\
import torch
# contrastive / siamese: shared weights, used twice
torch.manual_seed(0)
f = torch.nn.Linear(3, 2); opt = torch.optim.SGD(f.parameters(), lr=.1)
for i in range(3):
    a, b = f(torch.randn(4, 3)), f(torch.randn(4, 3))
    l = torch.nn.functional.relu(1 - (a - b).norm(dim=1)).mean() + 0.1 * a.norm()
    opt.zero_grad(); l.backward(); opt.step()
""",
    "meta_learning_maml": """\
import torch
# meta-learning (MAML)
w = torch.tensor(1., requires_grad=True); opt = torch.optim.SGD([w], lr=.1)
for i in range(3):
    inner = (w * 2 - 1) ** 2
    g, = torch.autograd.grad(inner, w, create_graph=True)
    fast = w - 0.1 * g
    outer = (fast * 3 - 1) ** 2
    opt.zero_grad(); outer.backward(); opt.step()
""",
    "loss_components_list_summed_then_backwar": """\
import torch
# loss components list, summed then backward
torch.manual_seed(0)
m = torch.nn.Linear(2, 1); opt = torch.optim.SGD(m.parameters(), lr=.1)
for e in range(3):
    losses = []
    for i in range(4):
        losses.append(m(torch.randn(2, 2)).pow(2).mean())
    total = torch.stack(losses).mean()
    opt.zero_grad(); total.backward(); opt.step()
""",
    "class_with_history_of_floats": """\
import torch
# class with history of floats
class Trainer:
    def __init__(self):
        self.w = torch.nn.Parameter(torch.zeros(2)); self.opt = torch.optim.Adam([self.w]); self.log = []
    def step(self):
        self.opt.zero_grad(set_to_none=True)
        l = (self.w - 1).pow(2).sum(); l.backward(); self.opt.step(); self.log.append(l.item())
t = Trainer()
for _ in range(5): t.step()
""",
    "dropout_batchnorm_training": """\
import torch
# dropout/batchnorm training
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(.5), torch.nn.Linear(8, 2))
opt = torch.optim.SGD(m.parameters(), lr=.1)
for i in range(3):
    l = torch.nn.functional.cross_entropy(m(torch.randn(16, 4)), torch.randint(0, 2, (16,)))
    opt.zero_grad(); l.backward(); opt.step()
""",
    "zero_init_of_last_layer_more_than_one_st": """\
import torch
# zero init of last layer, more than one step
torch.manual_seed(0)
a = torch.nn.Linear(3, 3); b = torch.nn.Linear(3, 1); torch.nn.init.zeros_(b.weight)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=.1)
for i in range(4):
    l = (b(torch.tanh(a(torch.ones(2, 3)))) - 1).pow(2).mean()
    opt.zero_grad(); l.backward(); opt.step()
""",
    "grad_clipping": """\
import torch
# grad clipping
torch.manual_seed(0)
m = torch.nn.Linear(3, 1); opt = torch.optim.SGD(m.parameters(), lr=.1)
for i in range(3):
    l = (m(torch.randn(4, 3) * 100)).pow(2).mean()
    opt.zero_grad(); l.backward(); torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0); opt.step()
""",
    "accuracy_uses_argmax_fine": """\
import torch
# accuracy uses argmax, fine
torch.manual_seed(0)
m = torch.nn.Linear(3, 2); opt = torch.optim.SGD(m.parameters(), lr=.1)
correct = 0
for i in range(3):
    out = m(torch.randn(4, 3)); y = torch.randint(0, 2, (4,))
    l = torch.nn.functional.cross_entropy(out, y)
    opt.zero_grad(); l.backward(); opt.step()
    correct += (out.argmax(1) == y).sum().item()
print(correct)
""",
    "sum_of_losses_shown_as_float": """\
import torch
# sum of losses shown as float
torch.manual_seed(0)
m = torch.nn.Linear(3, 1); opt = torch.optim.SGD(m.parameters(), lr=.1); running = 0.0
for i in range(5):
    l = m(torch.randn(2, 3)).pow(2).mean(); opt.zero_grad(); l.backward(); opt.step()
    running += float(l.detach())
print(running / 5)
""",
    "hooks": """\
import torch
# hooks
x = torch.tensor([1., 2.], requires_grad=True); seen = []
h = x * 3; h.register_hook(seen.append); h.pow(2).sum().backward(); print(seen, x.grad)
""",
    "checkpoint": """\
import torch
# checkpoint
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()); x = torch.randn(2, 3, requires_grad=True)
checkpoint(m, x, use_reentrant=False).sum().backward(); print(x.grad.shape)
""",
    "functional_api_only": """\
import torch
# functional API only
from torch.func import grad, vmap
def loss(w, x): return (torch.tanh(w @ x)).sum()
print(vmap(grad(loss), (None, 0))(torch.ones(2, 3), torch.randn(4, 3)).shape)
""",
    "scheduler_dataloader": """\
import torch
# scheduler, dataloader
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
ds = TensorDataset(torch.randn(12, 3), torch.randn(12, 1)); m = torch.nn.Linear(3, 1)
opt = torch.optim.AdamW(m.parameters(), lr=.01); sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)
for e in range(3):
    tot = 0
    for xb, yb in DataLoader(ds, 4, shuffle=True):
        l = torch.nn.functional.l1_loss(m(xb), yb); opt.zero_grad(); l.backward(); opt.step(); tot += l.item()
    sch.step()
""",
    "backward_then_look_at_each_grad_plain_te": """\
import torch
# backward then look at each grad, plain tensor constants
a = torch.tensor(2., requires_grad=True); b = torch.tensor(3.); c = torch.tensor(4., requires_grad=True)
d = a * b + c; d.backward(); print(a.grad, c.grad)
""",
    "vgg_like_tiny_relu_net_with_many_steps_w": """\
import torch
# vgg-like tiny relu net with many steps where some unit dead sometimes
torch.manual_seed(3)
m = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
opt = torch.optim.SGD(m.parameters(), lr=.1)
for i in range(10):
    x = torch.randn(8, 2); l = (m(x) - x[:, :1]).pow(2).mean(); opt.zero_grad(); l.backward(); opt.step()
""",
    "softmax_regression_with_a_huge_saturated": """\
import torch
# softmax regression with a huge, saturated but right class -> gradient tiny
w = torch.tensor([[30., -30.]], requires_grad=True)
l = torch.nn.functional.cross_entropy(w, torch.tensor([0])); l.backward(); print(w.grad)
""",
}
