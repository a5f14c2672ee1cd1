"""JAX with jax_debug_nans: the first NaN raises where it is made."""
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def loss_fn(w, x, y):
    p = jnp.dot(x, w)
    return jnp.mean((jnp.log(p) - y) ** 2)


@jax.jit
def update(w, x, y):
    loss, g = jax.value_and_grad(loss_fn)(w, x, y)
    return w - 0.3 * g, loss


key = jax.random.PRNGKey(0)
w = jnp.ones(4)
for step in range(50):
    key, k = jax.random.split(key)
    x = jax.random.uniform(k, (8, 4)) + 0.1
    w, loss = update(w, x, -jnp.ones(8))
    print(f"step={step} loss={float(loss):.4f}", flush=True)
