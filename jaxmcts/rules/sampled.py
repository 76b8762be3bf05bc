"""Search over a sample of the actions (Hubert et al. 2021, Sampled MuZero): for action sets too large to list.

Draw K actions from a proposal beta, keep those drawn as the legal ones, and correct their prior for how they came to be
there: P(a) = (share of a among the draws / beta(a)) pi(a). To be called by the model's `evaluate`, so that every node
has its own sample.
"""

import jax
import jax.numpy as jnp

from jaxmcts.tree import legal_log_softmax


def sample_counts(key: jax.Array, proposal_logits: jax.Array, num_samples: int) -> jax.Array:
    """Draw `num_samples` actions with repetition; return how often each came, `[A]` int32. -inf is never drawn."""
    drawn = jax.random.categorical(key, proposal_logits, shape=(num_samples,))
    return jnp.zeros(proposal_logits.shape, jnp.int32).at[drawn].add(1)


def sampled_prior_logits(prior_logits: jax.Array, proposal_logits: jax.Array, counts: jax.Array) -> jax.Array:
    """Return the logits `[A]` of the corrected prior, normalised, -inf where nothing was drawn.

    `counts [A]` are the draws from softmax(`proposal_logits`); repeated draws of one action are one edge of more
    weight. Where the proposal is the prior itself, the result is the share of the draws. In logarithms, for the ratio
    overflows.
    """
    drawn = counts > 0
    log_counts = jnp.log(jnp.where(drawn, counts, 1).astype(prior_logits.dtype))
    corrected = jnp.where(drawn, log_counts + prior_logits - proposal_logits, 0)
    return legal_log_softmax(corrected, drawn)
