"""A program with rules of JAX, some of them wrong: tests/audit/test_audit.py audits it."""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def right(x, y):
    return jnp.sum(jnp.sin(x) * y)


right.defvjp(lambda x, y: (right(x, y), (x, y)), lambda kept, g: (g * jnp.cos(kept[0]) * kept[1], g * jnp.sin(kept[0])))


@jax.custom_vjp
def wrong(x):
    return jnp.sum(x**3)


wrong.defvjp(lambda x: (wrong(x), x), lambda x, g: (2 * g * x**2,))


@jax.custom_jvp
def sine(x):
    return jnp.sin(x)


sine.defjvps(lambda t, ans, x: t * ans)


def scaled(factor):
    @jax.custom_jvp
    def closed(x):
        return factor * jnp.log(x)

    closed.defjvp(lambda primals, tangents: (closed(*primals), tangents[0] / primals[0]))
    return closed


x = jnp.array([0.5, 1.5, 2.5])
print(jax.jit(jax.grad(lambda x: right(x, 2 * x)))(x))
for _ in range(3):
    x = x - 0.01 * jax.jit(jax.grad(wrong))(x)
jax.grad(lambda x: sine(x).sum())(x)
print(jax.vmap(jax.grad(scaled(3.0)))(x))
