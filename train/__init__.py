"""Self-play training: `python -m train` makes an agent, `load_agent` brings it back.

Names are looked up when they are first used, so that the command line starts without JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.agent import Agent, load_agent
    from train.export import export_agent

__all__ = ["Agent", "export_agent", "load_agent"]

_HOMES = {"Agent": "agent", "export_agent": "export", "load_agent": "agent"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `train` has no attribute {name!r}")
    return getattr(importlib.import_module(f"train.{_HOMES[name]}"), name)
