"""An agent as one file that plays without this project: search, network and rules in one program.

The file is what `jax.export` makes of the agent's search, its parameters inside as constants. Whoever has JAX and
`flatbuffers` can use it; no `jaxmcts`, no Flax, no game:

    exported = jax.export.deserialize(bytearray(pathlib.Path("agent.bin").read_bytes()))
    state = {"board": ..., "to_play": ..., "terminated": ..., "truncated": ..., "rewards": ...}  # arrays [B, ...]
    out = exported.call(state, jax.random.key_data(jax.random.key(0)))
    out["action"], out["action_weights"], out["value"]  # [B] int32, [B, A], [B] in the view of the player to move

`exported.in_tree` and `exported.in_avals` tell the names, shapes and types of a state. `B` is any batch size, and
`jax.jit(exported.call)` keeps what was compiled for each. Make one with `python -m train.export RUN FILE`.
Nothing here imports JAX before an agent is exported.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

    from train.agent import Agent

PLATFORMS = ("cpu", "cuda", "tpu")


def export_agent(agent: "Agent", path: str | Path, *, platforms: Sequence[str] = PLATFORMS) -> Path:
    """Write an agent to one file, for any batch size and for each of `platforms`; returns its path.

    What goes in and comes out are plain dicts of arrays, see the module's text; a state has an entry for each of
    its arrays. JAX promises to read the file for six months of its own releases.
    Raises `ModuleNotFoundError` without the `flatbuffers` package.
    """
    import jax
    from jax import export

    batch_size = export.symbolic_shape("batch")
    one = jax.eval_shape(agent.env.init, jax.random.key(0))
    paths, structure = jax.tree_util.tree_flatten_with_path(one)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    state = {
        name: jax.ShapeDtypeStruct((*batch_size, *leaf.shape), leaf.dtype) for name, (_, leaf) in zip(names, paths)
    }

    def play(state: dict[str, "jax.Array"], key_data: "jax.Array") -> dict[str, Any]:
        leaves = [state[name] for name in names]
        action, output = agent(jax.tree.unflatten(structure, leaves), jax.random.wrap_key_data(key_data))
        return {"action": action, "action_weights": output.action_weights, "value": output.value}

    key_data = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    exported = export.export(jax.jit(play), platforms=tuple(platforms))(state, key_data)
    path = Path(path)
    path.write_bytes(exported.serialize())
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the agent of a run to one file that plays with JAX and `flatbuffers` alone."""
    parser = argparse.ArgumentParser(prog="python -m train.export", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    parser.add_argument("file", help="where to write, such as agent.bin")
    parser.add_argument("--iteration", type=int, help="of the agent (the newest)")
    parser.add_argument("--num-simulations", type=int, help="a move (those of the run's agent)")
    parser.add_argument("--platforms", nargs="+", choices=PLATFORMS, default=PLATFORMS, help="(all of them)")
    given = parser.parse_args(arguments)

    from train.agent import load_agent
    from train.checkpoint import CheckpointError

    try:
        agent = load_agent(given.run, iteration=given.iteration, num_simulations=given.num_simulations)
        path = export_agent(agent, given.file, platforms=given.platforms)
    except (ValueError, OSError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, iteration {agent.iteration} of {given.run}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
