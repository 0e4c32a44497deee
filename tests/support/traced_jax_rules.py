"""Hand-written rules of JAX as people write them, each with a right rule and one with a typical mistake."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


class Case(NamedTuple):
    """A right rule, a wrong one, and the arguments."""

    name: str
    right: Any
    mistake: Any
    at: tuple[Any, ...]


V = (0.5, -1.25, 2.0)
W = (1.0, 2.0, 0.5)
X = ((0.5, -1.25, 2.0), (1.5, 0.75, -0.5))
M = ((2.0, 0.5, 0.25), (-0.75, 1.5, -0.5), (0.125, 0.5, 3.0))


def with_vjp(f: Any, bwd: Any) -> Any:
    """A custom_vjp that saves its arguments; bwd(g, *args) gives what is sent back."""
    made = jax.custom_vjp(lambda *xs: f(*xs))
    made.defvjp(lambda *xs: (f(*xs), xs), lambda xs, g: bwd(g, *xs))
    return made


def with_jvp(f: Any, push: Any) -> Any:
    """A custom_jvp; push(xs, ts) gives the tangent."""
    made = jax.custom_jvp(lambda *xs: f(*xs))
    made.defjvp(lambda xs, ts: (f(*xs), push(xs, ts)))
    return made


def _distances(c: Any) -> Any:
    return ((jnp.array(X)[:, None] - c[None]) ** 2).sum(-1)


def _nearest(c: Any) -> Any:
    return _distances(c).argmin(1)


def _nearest_back(g: Any, c: Any) -> Any:
    labels = _nearest(c)
    return (jnp.zeros_like(c).at[labels].add(2 * g * (c[labels] - jnp.array(X))),)


def _columns_back(g: Any, c: Any) -> Any:
    labels = c[:2].argmax(1)
    return (jnp.zeros_like(c).at[:, labels].add(2 * g * c[:, labels]),)


def _solve_back(g: Any, a: Any, b: Any) -> Any:
    sent = jnp.linalg.solve(a.T, g)
    return -jnp.outer(sent, jnp.linalg.solve(a, b)), sent


def _max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")


def vjp(name: str, f: Any, right: Any, mistake: Any, *at: Any) -> Case:
    return Case(name, with_vjp(f, right), with_vjp(f, mistake), at)


def jvp(name: str, f: Any, right: Any, mistake: Any, *at: Any) -> Case:
    return Case(name, with_jvp(f, right), with_jvp(f, mistake), at)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def _layer_norm_back(g: Any, x: Any, w: Any, b: Any, whole: bool = True) -> Any:
    r = lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    h, u = (x - x.mean(-1, keepdims=True)) * r, g * w
    sent = r * (u - h * (u * h).mean(-1, keepdims=True) - (u.mean(-1, keepdims=True) if whole else 0))
    return sent, (g * h).sum(0), g.sum(0)


def _nondiff(right: bool) -> Any:
    @partial(jax.custom_vjp, nondiff_argnums=(1,))
    def power(x: Any, n: Any) -> Any:
        return x**n

    power.defvjp(lambda x, n: (x**n, x), lambda n, x, g: ((n if right else 1) * g * x ** (n - 1),))
    return lambda x: power(x, 3)


def _zeros(right: bool) -> Any:
    f = jax.custom_jvp(lambda x, y: jnp.sin(x) * y)

    def rule(xs: Any, ts: Any) -> Any:
        (x, y), (tx, ty) = xs, ts
        zero = jax.custom_derivatives.SymbolicZero
        sent = jnp.zeros_like(x)
        sent += 0 if isinstance(tx, zero) else (jnp.cos(x) if right else -jnp.cos(x)) * y * tx
        sent += 0 if isinstance(ty, zero) else jnp.sin(x) * ty
        return jnp.sin(x) * y, sent

    f.defjvp(rule, symbolic_zeros=True)
    return f


def _tree(right: bool) -> Any:
    def inner(p: Any) -> Any:
        return {"a": p["w"] * p["x"], "b": p["x"].sum()}

    f = jax.custom_vjp(inner)
    f.defvjp(
        lambda p: (inner(p), p), lambda p, g: ({"w": g["a"] * p["x"], "x": g["a"] * p["w"] + (g["b"] if right else 0)},)
    )
    return lambda x, w: f({"x": x, "w": w})


def _saved_norm(g: Any, x: Any, cube: bool) -> Any:
    n = jnp.sqrt(x @ x)
    return (g / n - x * (x @ g) / (n**3 if cube else n**2),)


def _scan_sum(x: Any) -> Any:
    return lax.scan(lambda c, v: (c * 0.5 + v, c * 0.5 + v), 0.0, x)[1]


def _scaled(power: int) -> Any:
    """A float that is no argument of the derivative."""
    f = partial(jax.custom_vjp, nondiff_argnums=(1,))(lambda x, eps: x * lax.rsqrt(jnp.square(x).sum() + eps))

    def bwd(eps: Any, x: Any, g: Any) -> Any:
        r = lax.rsqrt(jnp.square(x).sum() + eps)
        return (g * r - x * r ** (2 + power) * (g * x).sum() * (1 if power == 1 else r),)

    f.defvjp(lambda x, eps: (f(x, eps), x), bwd)
    return f


def _top_back(g: Any, x: Any) -> Any:
    places = lax.top_k(x, 2)[1]
    return (g[..., None] * jax.nn.one_hot(places, x.shape[-1], dtype=x.dtype).sum(-2),)


def _sort_back(g: Any, x: Any) -> Any:
    return (jax.nn.one_hot(jnp.argsort(x), 3, dtype=x.dtype).T @ (g * jnp.arange(3.0)),)


CASES = [
    vjp("log1pexp", lambda x: jnp.log1p(jnp.exp(x)), lambda g, x: (g * (1 - 1 / (1 + jnp.exp(x))),), lambda g, x: (g / (1 + jnp.exp(x)),), 0.7),
    vjp("unit_vector", lambda x: x / jnp.sqrt(x @ x), lambda g, x: _saved_norm(g, x, True), lambda g, x: _saved_norm(g, x, False), V),
    vjp("layer_norm", _layer_norm, _layer_norm_back, partial(_layer_norm_back, whole=False), X, W, V),
    vjp("matmul", lambda a, b: a @ b, lambda g, a, b: (g @ b.T, a.T @ g), lambda g, a, b: (g @ b, a.T @ g), X, M),
    vjp("softmax", jax.nn.softmax, lambda g, x: ((lambda s: s * (g - (g * s).sum(-1, keepdims=True)))(jax.nn.softmax(x)),), lambda g, x: (g * jax.nn.softmax(x),), X),
    vjp("logsumexp", lambda x: jax.nn.logsumexp(x), lambda g, x: (g * jax.nn.softmax(x),), lambda g, x: (g * jnp.exp(x),), V),
    vjp("gelu", lambda x: jax.nn.gelu(x, approximate=False), lambda g, x: (g * (jax.scipy.stats.norm.cdf(x) + x * jax.scipy.stats.norm.pdf(x)),),
        lambda g, x: (g * jax.scipy.stats.norm.cdf(x),), V),
    vjp("clip", lambda x: jnp.clip(x, -1, 1), lambda g, x: (jnp.where((x > -1) & (x < 1), g, 0),), lambda g, x: (g,), V),
    vjp("where_sqrt", lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0), lambda g, x: (jnp.where(x > 0, g / (2 * jnp.sqrt(jnp.where(x > 0, x, 1))), 0),),
        lambda g, x: (jnp.where(x > 0, g / jnp.sqrt(jnp.where(x > 0, x, 1)), 0),), V),
    vjp("cumsum", jnp.cumsum, lambda g, x: (jnp.cumsum(g[::-1])[::-1],), lambda g, x: (jnp.cumsum(g),), V),
    vjp("index", lambda x: x[jnp.array([0, 2, 0])] * x[1], lambda g, x: (jnp.zeros(3).at[jnp.array([0, 2, 0])].add(g * x[1]).at[1].add((g * x[jnp.array([0, 2, 0])]).sum()),),
        lambda g, x: (jnp.zeros(3).at[jnp.array([0, 2, 0])].set(g * x[1]).at[1].add((g * x[jnp.array([0, 2, 0])]).sum()),), V),
    vjp("einsum", lambda a, b: jnp.einsum("ij,kj->ik", a, b), lambda g, a, b: (jnp.einsum("ik,kj->ij", g, b), jnp.einsum("ik,ij->kj", g, a)),
        lambda g, a, b: (jnp.einsum("ik,kj->ij", g, b), 2 * jnp.einsum("ik,ij->kj", g, a)), X, M),
    vjp("logdet", lambda a: jnp.log(jnp.linalg.det(a)), lambda g, a: (g * jnp.linalg.inv(a).T,), lambda g, a: (g * jnp.linalg.inv(a),), M),
    vjp("jit_inside", jax.jit(lambda x: jnp.tanh(x) * x), jax.jit(lambda g, x: (g * (jnp.tanh(x) + x * (1 - jnp.tanh(x) ** 2)),)), jax.jit(lambda g, x: (g * jnp.tanh(x),)), V),
    vjp("scan", _scan_sum, lambda g, x: (lax.scan(lambda c, v: (c * 0.5 + v, c * 0.5 + v), 0.0, g, reverse=True)[1],),
        lambda g, x: (lax.scan(lambda c, v: (c * 0.5 + v, c * 0.5 + v), 0.0, g)[1],), V),
    vjp("max", lambda x: x.max(), lambda g, x: (g * (x == x.max()),), lambda g, x: (g * jnp.ones(3),), V),
    vjp("huber", lambda x: jnp.where(jnp.abs(x) < 1, x * x / 2, jnp.abs(x) - 0.5).sum(), lambda g, x: (g * jnp.clip(x, -1, 1),), lambda g, x: (g * x,), V),
    vjp("silu", jax.nn.silu, lambda g, x: (g * jax.nn.sigmoid(x) * (1 + x * (1 - jax.nn.sigmoid(x))),), lambda g, x: (g * jax.nn.sigmoid(x),), V),
    vjp("logit", lambda p: jnp.log(p / (1 - p)), lambda g, p: (g / (p * (1 - p)),), lambda g, p: (g / p,), 0.3),
    vjp("concatenate", lambda x, y: jnp.concatenate([x * 2, y[::-1]]), lambda g, x, y: (2 * g[:3], g[3:][::-1]), lambda g, x, y: (2 * g[:3], g[3:]), V, W),
    jvp("cube_jvp", lambda x: x**3, lambda xs, ts: 3 * xs[0] ** 2 * ts[0], lambda xs, ts: 3 * xs[0] * ts[0], V),
    jvp("product_jvp", lambda x, y: x * jnp.exp(y), lambda xs, ts: ts[0] * jnp.exp(xs[1]) + xs[0] * jnp.exp(xs[1]) * ts[1], lambda xs, ts: ts[0] * jnp.exp(xs[1]), V, W),
    jvp("norm_jvp", lambda x: jnp.sqrt((x * x).sum()), lambda xs, ts: (xs[0] * ts[0]).sum() / jnp.sqrt((xs[0] * xs[0]).sum()), lambda xs, ts: (xs[0] * ts[0]).sum() / (xs[0] * xs[0]).sum(), V),
    Case("nondiff_argnums", _nondiff(True), _nondiff(False), (V,)),
    Case("symbolic_zeros", _zeros(True), _zeros(False), (V, W)),
    Case("pytrees", _tree(True), _tree(False), (V, W)),
    Case("option", _scaled(1), _scaled(2), (X, 1e-6)),
    vjp("top_k", lambda x: lax.top_k(x, 2)[0].sum(-1), _top_back, lambda g, x: (_top_back(g, x)[0] / 2,), X),
    vjp("sort", lambda x: jnp.sort(x) * jnp.arange(3.0), _sort_back, lambda g, x: (g * jnp.arange(3.0),), V),
    Case("vmapped", jax.vmap(with_vjp(lambda x: jnp.sin(x) * x, lambda g, x: (g * (jnp.sin(x) + x * jnp.cos(x)),))), jax.vmap(with_vjp(lambda x: jnp.sin(x) * x, lambda g, x: (g * jnp.sin(x),))), (V,)),
    vjp("inverse", jnp.linalg.inv, lambda g, a: (-jnp.linalg.inv(a).T @ g @ jnp.linalg.inv(a).T,), lambda g, a: (-jnp.linalg.inv(a) @ g @ jnp.linalg.inv(a),), M),
    vjp("solve", jnp.linalg.solve, _solve_back, lambda g, a, b: (_solve_back(g, a.T, b)[0], _solve_back(g, a, b)[1]), M, V),
    vjp("slogdet", lambda a: jnp.linalg.slogdet(a)[1], lambda g, a: (g * jnp.linalg.inv(a).T,), lambda g, a: (g * jnp.linalg.inv(a),), M),
    vjp("cond", lambda x: lax.cond(x[0] > 0, lambda x: x * x, lambda x: 2 * x, x), lambda g, x: (jnp.where(x[0] > 0, 2 * x, 2) * g,), lambda g, x: (jnp.where(x[0] > 0, x, 2) * g,), V),
    vjp("while", lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * c[1]), (0, x))[1], lambda g, x: (4 * x**3 * g,), lambda g, x: (4 * x**2 * g,), V),
    vjp("max_pool", _max_pool, lambda g, x: jax.vjp(_max_pool, x)[1](g), lambda g, x: (jnp.repeat(g, 2),), (0.5, -1.25, 2.0, 0.75)),
    vjp("mean_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID") / 2, lambda g, x: ((jnp.pad(g, (0, 1)) + jnp.pad(g, (1, 0))) / 2,), lambda g, x: (jnp.pad(g, (0, 1)) + jnp.pad(g, (1, 0)),), V),
    vjp("nearest_rows", lambda c: ((jnp.array(X) - c[_nearest(c)]) ** 2).sum(), _nearest_back, lambda g, c: (_nearest_back(g, c)[0] / 2,), M),
    vjp("distances_to_the_nearest", lambda c: _distances(c)[jnp.arange(2), _nearest(c)].sum(), _nearest_back, lambda g, c: (-_nearest_back(g, c)[0],), M),
    vjp("taken_along", lambda c: jnp.take_along_axis(_distances(c), _nearest(c)[:, None], 1).sum(), _nearest_back, lambda g, c: (-_nearest_back(g, c)[0],), M),
    vjp("columns", lambda c: c[:, c[:2].argmax(1)] ** 2, _columns_back, lambda g, c: (_columns_back(g, c)[0] / 2,), M),
    vjp("remainder", lax.rem, lambda g, x, y: (g, -g * jnp.trunc(x / y)), lambda g, x, y: (g, -g * jnp.floor(x / y)), (0.5, -2.25, 2.25), W),
]  # fmt: skip
