"""Small programs over `torch.func`, `torch.utils.checkpoint` and `torch.autograd.graph`, by name."""

from __future__ import annotations

DATA = """
fn, F = torch.func, torch.nn.functional
s, v, w = torch.tensor(2.0), torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 2.0, -0.3])
M = torch.tensor([[0.1, 0.2, 0.3], [-0.4, 0.5, 1.6]])
K = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]])
L = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
E = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
torch.manual_seed(2)
lin = torch.nn.Linear(3, 1)
state = {k: q.detach() for k, q in lin.named_parameters()}
"""

_CALLS = [
    "fn.grad(torch.sin)(s)",
    "fn.grad(fn.grad(lambda x:x**3))(s)",
    "fn.grad(lambda a,b:(a*b).sum(),argnums=(0,1))(v,w)",
    "fn.grad_and_value(lambda a:(a*a).sum())(v)",
    "fn.grad(lambda a:((a*a).sum(),a*2),has_aux=True)(v)",
    "fn.grad(lambda d:(d['a']*d['b']).sum())({'a':v,'b':w})",
    "fn.vjp(lambda a,b:(a*b,a+b),v,w)[1]((v,w))",
    "fn.vjp(torch.sin,v)[0]",
    "fn.jvp(lambda a,b:a*b,(v,w),(w,v))",
    "fn.jvp(torch.sin,(v,),(w,))",
    "fn.jacrev(lambda a:a*a.sum())(v)",
    "fn.jacfwd(lambda a:a*a.sum())(v)",
    "fn.jacrev(lambda a,b:(a*b.sum(),b),argnums=(0,1))(v,w)",
    "fn.jacfwd(lambda a,b:(a*b.sum(),b),argnums=(0,1))(v,w)",
    "fn.hessian(lambda a:(a**3).sum()*a[0])(v)",
    "fn.hessian(lambda a,b:(a*b).sum()**2,argnums=(0,1))(v,w)",
    "fn.jacrev(fn.jacrev(lambda a:(a**3).sum()))(v)",
    "fn.jacfwd(fn.jacfwd(lambda a:(a**3).sum()))(v)",
    "fn.vmap(torch.dot)(M,M)",
    "fn.vmap(lambda a,b:a*b+v[0],in_dims=(0,None))(M,w)",
    "fn.vmap(lambda a:a.sum(),in_dims=1)(M)",
    "fn.vmap(lambda a:a*2,out_dims=1)(M)",
    "fn.vmap(lambda a:(a.sum(),a))(M)",
    "fn.vmap(lambda d:d['x']*d['y'],in_dims=({'x':0,'y':None},))({'x':M,'y':w})",
    "fn.vmap(fn.grad(lambda a:(a**3).sum()))(M)",
    "fn.vmap(fn.grad(lambda p,a:((p*a).sum())**2),in_dims=(None,0))(w,M)",
    "fn.vmap(fn.hessian(lambda a:(a**3).sum()*a[0]))(M)",
    "fn.vmap(fn.jacrev(lambda a:a*a.sum()))(M)",
    "fn.vmap(fn.jacfwd(lambda a:a*a.sum()))(M)",
    "fn.vmap(lambda a:fn.jvp(torch.sin,(a,),(a,))[1])(M)",
    "fn.vmap(lambda a:fn.vjp(torch.sin,a)[1](a)[0])(M)",
    "fn.vmap(fn.vmap(lambda a:a*a))(M)",
    "fn.vmap(lambda a:fn.vmap(lambda b:a.sum()*b)(a))(M)",
    "fn.vmap(lambda r:fn.vmap(lambda c:(r*c).sum())(M))(M)",
    "fn.grad(lambda m:fn.vmap(lambda a:(a**2).sum())(m).sum())(M)",
    "fn.jacrev(lambda m:fn.vmap(lambda a:(a**2).sum())(m))(M)",
    "fn.hessian(lambda m:fn.vmap(lambda a:(a**3).sum())(m).sum())(v[None])",
    "fn.vmap(lambda a:torch.where(a>0,a,-a).softmax(0))(M)",
    "fn.vmap(lambda a:a.norm()+torch.cat([a,a*2]).sum())(M)",
    "fn.vmap(lambda a:a.item())(M[:,0])",
    "fn.vmap(lambda a:a if a>0 else -a)(M[:,0])",
    "fn.vmap(lambda a:a+torch.rand(3))(M)",
    "fn.vmap(lambda a,b:a+b)(M,v[:2])",
    "fn.vmap(lambda a:a)(3)",
    "fn.vmap(lambda a:a,in_dims=5)(M)",
    "fn.vmap(lambda a:3)(M)",
    "fn.vmap(lambda a:a,in_dims=None)(M)",
    "fn.vmap(lambda a: v)(M)",
    "fn.vmap(lambda a: F.cross_entropy(a[None],torch.tensor([1])))(M)",
    "fn.vmap(lambda a,c: F.cross_entropy(a[None],c[None]))(M,torch.tensor([0,2]))",
    "fn.vmap(fn.grad(lambda a,c: F.cross_entropy(a[None],c[None])))(M,torch.tensor([0,2]))",
    "fn.vmap(lambda a: F.mse_loss(a,w))(M)",
    "fn.vmap(lambda a: (a@K).relu())(M)",
    "fn.vmap(lambda a: F.layer_norm(a,(3,)))(M)",
    "fn.grad(lambda a:a)(v)",
    "fn.grad(lambda a:a.sum())(torch.tensor([1,2]))",
    "fn.jvp(torch.sin,(v,),(w[:2],))",
    "fn.vjp(torch.sin,v)[1](w[:2])",
    "fn.jvp(torch.sin,v,w)",
    "fn.grad(lambda a:a.sum().item())(v)",
    "fn.grad(lambda a:[a.sum().backward(),a.sum()][1])(v)",
    "fn.grad(lambda a:(a.detach()*a).sum())(v)",
    "fn.grad(lambda a,b:(a*b).sum())(v,v)",
    "fn.grad(lambda a:(a*L).sum())(v).requires_grad",
    "fn.grad(lambda a:(a*a*L).sum())(v).sum().backward()",
    "fn.vmap(lambda a:(a*L).sum())(M).sum().backward()",
    "fn.vmap(fn.grad(lambda a:(a*a*L).sum()))(M).sum().backward()",
    "fn.vmap(lambda a:(a*a*L).exp().sum())(M).pow(2).sum().backward()",
    "torch.vmap(lambda a:a*2)(M)",
    "torch.no_grad()(lambda: fn.grad(lambda a:(a*a).sum())(v))()",
    "fn.grad(lambda a: (lambda: torch.no_grad()(lambda: (a*a).sum())())())(v)",
    "fn.functional_call(lin,{'weight':w[None],'bias':v[:1]},(v,))",
    "fn.grad(lambda p: fn.functional_call(lin,p,(v,)).sum())(state)",
    "fn.vmap(fn.grad(lambda p,a: fn.functional_call(lin,p,(a,)).pow(2).sum()),in_dims=(None,0))(state,M)",
    "fn.vmap(lambda a: a.clone().mul_(2))(M)",
    "fn.vmap(lambda a: torch.stack([a[0],a[1]*a[2]]))(M)",
    "fn.vmap(lambda a: a.view(3,1).expand(3,2).sum(1)+a.reshape(-1)[[0,1,0]])(M)",
    "fn.vmap(lambda a: a.to(torch.float64)*2)(M)",
    "fn.vmap(lambda a: (a>0).sum())(M)",
    "fn.vmap(lambda a: a.unbind()[0])(M)",
    "fn.vmap(lambda a: a.max())(M)",
    "fn.vmap(lambda a: a.prod()+a.cumsum(0).sum()+a.var())(M)",
    "fn.vmap(lambda a: a.logsumexp(0)-a.mean(), in_dims=-1)(M)",
    "fn.vmap(lambda i: E[i])(torch.tensor([0,2]))",
    "fn.vmap(lambda i: F.embedding(i,E))(torch.tensor([0,2]))",
    "fn.vmap(lambda a:a*2,out_dims=7)(M)",
    "fn.vmap(lambda a:a*2,chunk_size=1)(M)",
    "fn.jacrev(lambda a: a.sum()*2)(s)",
    "fn.jacfwd(lambda a: torch.zeros(2))(v)",
    "fn.vmap(lambda x, y: x + y, in_dims=(0, 1))(M, M.T.contiguous())",
]
_AFTER = "\nif isinstance(y, dict):\n    y = sorted(y.items())\n"
TRANSFORMS = {call: DATA + (call if call.endswith("backward()") else f"y = {call}{_AFTER}") + "\n" for call in _CALLS}

CHECKPOINTS = {
    "not reentrant": """
torch.manual_seed(0)
lin=torch.nn.Linear(3,3); x=torch.randn(2,3,requires_grad=True)
y=ck.checkpoint(lambda t: torch.nn.functional.dropout(lin(t).tanh(),.5).exp(),x,use_reentrant=False)
n=y.grad_fn.name()
y.sum().backward(); g=x.grad; gw=lin.weight.grad
""",
    "nothing requires grad": """
y=ck.checkpoint(lambda t:t*2,torch.ones(2),use_reentrant=False); r=y.requires_grad
""",
    "keyword arguments": """
x=torch.ones(2,requires_grad=True); y=ck.checkpoint(lambda t,k=1:t*t*k,x,use_reentrant=False,k=3); y.sum().backward(); g=x.grad
""",
    "runs of the function": """
c=[0]
def f(t):
    c[0]+=1
    return (t*t).sin()
x=torch.tensor([1.,2.],requires_grad=True)
y=ck.checkpoint(f,x,use_reentrant=False)
a=c[0]
y.sum().backward(retain_graph=True); b=c[0]
y.sum().backward(); d=c[0]; g=x.grad
""",
    "different the second time": """
c=[0]
def f(t):
    c[0]+=1
    return t.sin().exp() if c[0]==1 else t*1
x=torch.tensor([1.,2.],requires_grad=True)
y=ck.checkpoint(f,x,use_reentrant=False); y.sum().backward()
""",
    "twice differentiated": """
x=torch.tensor(.7,requires_grad=True)
y=ck.checkpoint(lambda t:(t*t).sin(),x,use_reentrant=False)
g,=torch.autograd.grad(y,x,create_graph=True)
h,=torch.autograd.grad(g,x)
g=g.item()
""",
    "hooks on what is saved": """
log=[]
x=torch.tensor([1.,2.],requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t:(log.append('p'),t)[1], lambda t:(log.append('u'),t)[1]):
    y=x.exp()*x
n=list(log); y.sum().backward(); m=list(log); g=x.grad
""",
    "saved on the processor": """
x=torch.tensor([1.,2.],requires_grad=True)
with torch.autograd.graph.save_on_cpu(): y=(x*x*x).sum()
y.backward(); g=x.grad
""",
}
_USE = "ck = torch.utils.checkpoint\n"
CHECKPOINTS = {name: _USE + text.lstrip() for name, text in CHECKPOINTS.items()}

_PRODUCTS = [
    "A.jvp(lambda a:a*a,x,y)",
    "A.jvp(g,(x,y),(y,x))",
    "A.jvp(f,x,x)",
    "A.jvp(lambda a:a*a,x)",
    "A.jvp(f,x)",
    "A.jvp(lambda a:a[0],x[:1])",
    "A.vjp(f,x)",
    "A.vjp(lambda a:a*a,x)",
    "A.vjp(lambda a:a*a,x,y)",
    "A.vjp(lambda a:(a*a,a),x,(y,x))",
    "A.hvp(f,x)",
    "A.hvp(f,x,y)",
    "A.hvp(h,(x,y),(y,x))",
    "A.vhp(h,(x,y),(y,x))",
    "A.vhp(f,x,y[:1])",
    "A.hessian(h,(x,y))",
    "A.jacobian(g,(x,y))",
    "A.jacobian(lambda a:torch.zeros(2),x)",
    "A.jacobian(lambda a:torch.zeros(2),x,strict=True)",
    "A.hessian(lambda a:a.sum(),x)",
    "A.hessian(lambda a:a.sum(),x,strict=True)",
    "A.vjp(lambda a:torch.ones(1)*3,x,torch.ones(1),strict=True)",
    "A.jvp(lambda a:torch.ones(2),x,x)",
    "A.jvp(lambda a:torch.ones(2),x,x,strict=True)",
    "A.jacobian(g,(x,y),vectorize=True)",
    "A.jacobian(lambda a:3,x)",
    "A.jacobian(f,3)",
    "A.hessian(lambda a:a*a,x)",
    "A.hessian(lambda a:(a.sum(),),x)",
    "A.jvp(lambda a:a*a,x,y,create_graph=True)[1].requires_grad",
    "A.jacobian(lambda a:a**3,x.clone().requires_grad_(),create_graph=True).requires_grad",
    "A.hvp(f,x,y,create_graph=True)",
    "A.hvp(lambda a:a.sum(),x,y)",
    "A.hvp(lambda a:a.sum(),x,y,strict=True)",
    "A.vhp(lambda a:a.sum(),x,y)",
    "A.jacobian(g,(x,y),strategy='forward-mode')",
    "A.jvp(g,(x,y),(y,))",
]
_POINTS = """
A = torch.autograd.functional
x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
def f(a): return (a * a).sum()
def g(a, b): return a * b
def h(a, b): return (a * a * b).sum()
"""
PRODUCTS = {call: _POINTS + f"r = {call}\n" for call in _PRODUCTS}

_LOADING = """
import torch.utils.data as data
torch.manual_seed(0)
class Pairs(data.Dataset):
    def __len__(self): return 5
    def __getitem__(self, i): return torch.ones(2) * i, i, {"k": float(i)}
whole = data.TensorDataset(torch.arange(10.0).view(5, 2), torch.arange(5))
"""
_READ = "\nnext_numbers = torch.rand(2)\ndel data, whole\n"
LOADING = {
    name: _LOADING + text + _READ
    for name, text in {
        "in order": "r = list(data.DataLoader(whole, batch_size=2))\nn = [len(whole), len(data.DataLoader(whole, batch_size=2))]",
        "shuffled": "loader = data.DataLoader(whole, batch_size=2, shuffle=True)\nr = [list(loader), list(loader)]\ndel loader",
        "own generator": "r = list(data.DataLoader(whole, 2, True, generator=torch.Generator().manual_seed(3), drop_last=True))",
        "collated": "r = [(a, b, c['k']) for a, b, c in data.DataLoader(Pairs(), batch_size=3)]",
        "plain lists": "r = [list(data.DataLoader([1, 2, 3])), list(data.DataLoader([1.5, 2, 3], batch_size=2))]",
        "split": "a, b = data.random_split(range(6), [4, 2])\nr = [list(a), list(b)]\nc = [len(p) for p in data.random_split(range(10), [0.5, 0.3, 0.2])]\ndel a, b",
        "split of another size": "data.random_split(range(6), [4, 3])",
        "no such size": "data.DataLoader(whole, batch_size=0)",
    }.items()
}
