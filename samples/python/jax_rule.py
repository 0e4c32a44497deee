"""JAX: a `custom_vjp`, right and wrong. Needs JAX.

$ gradcli check --python samples/python/jax_rule.py:log1pexp --at "x=[-1.5,0.2,2]"
PROVED
$ gradcli check --python samples/python/jax_rule.py:wrong_log1pexp --at "x=[-1.5,0.2,2]"
DISAGREES exactly
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


@jax.custom_vjp
def log1pexp(x):
    """log(1 + exp(x)), with a slope that does not overflow."""
    return jnp.logaddexp(0.0, x)


@jax.custom_vjp
def wrong_log1pexp(x):
    """The same value; wrong slope."""
    return jnp.logaddexp(0.0, x)


log1pexp.defvjp(lambda x: (log1pexp(x), x), lambda x, ct: (ct * jax.nn.sigmoid(x),))
wrong_log1pexp.defvjp(lambda x: (wrong_log1pexp(x), x), lambda x, ct: (ct * jax.nn.sigmoid(-x),))
