"""Records of one node, written by hand, for tests of rules without a search."""

import jax.numpy as jnp
import numpy as np

from jaxmcts.tree import Node


def make_node(prior, visits, q, *, value=0.0, raw_value=0.0, legal=None, rule_state=()) -> Node:
    """Build a record by hand; `prior` is given over the legal edges and 0 elsewhere."""
    prior = jnp.asarray(prior, jnp.float32)
    visits = jnp.asarray(visits, jnp.int32)
    legal = jnp.ones_like(prior, dtype=bool) if legal is None else jnp.asarray(legal)
    return Node(
        prior=prior,
        prior_logits=jnp.where(legal, jnp.log(jnp.where(legal, prior, 1)), -jnp.inf),
        visits=visits,
        q=jnp.asarray(q, jnp.float32),
        legal_action_mask=legal,
        total_visits=1 + jnp.sum(visits),
        value=jnp.float32(value),
        raw_value=jnp.float32(raw_value),
        depth=jnp.int32(0),
        rule_state=rule_state,
    )


PRIOR = [0.50, 0.25, 0.15, 0.10]
F1 = make_node(PRIOR, [10, 4, 1, 0], [0.4, 0.6, -0.5, 0.0], value=0.38125, raw_value=0.2)
FRESH = make_node(PRIOR, [0, 0, 0, 0], [0.0] * 4, value=0.2, raw_value=0.2)  # F1 before its first visit


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=0)
