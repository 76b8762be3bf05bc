"""Self-play training: `python -m train` makes an agent, `load_agent` brings it back.

Names are looked up when they are first used, so that the command line starts without JAX.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.agent import Agent, load_agent

__all__ = ["Agent", "load_agent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `train` has no attribute {name!r}")
    from train import agent

    return getattr(agent, name)
