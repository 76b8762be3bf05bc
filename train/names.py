"""What players are called, in the metrics of a run and on the command line."""

RANDOM = "random"  # any legal move
_UCT = "uct:"
_AGENT = "agent@"


def uct(num_rollouts: int) -> str:
    """Name UCT with so many rollouts a move."""
    return f"{_UCT}{num_rollouts}"


def agent(iteration: int) -> str:
    """Name a run's agent of an iteration."""
    return f"{_AGENT}{iteration}"


def is_uct(name: str) -> bool:
    """Tell whether that is UCT, the yardstick."""
    return name.startswith(_UCT)


def rollouts(name: str) -> str:
    """Give what stands for the number of rollouts in the name of a UCT."""
    return name.removeprefix(_UCT)


def is_agent(name: str) -> bool:
    """Tell whether that is an agent of the run."""
    return name.startswith(_AGENT)


def spell_out(name: str) -> str:
    """Say in words who that is; a name of another kind stays as it is."""
    if is_uct(name):
        return f"UCT with {rollouts(name)} rollouts a move"
    if is_agent(name):
        return f"agent of iteration {name.removeprefix(_AGENT)}"
    return "random moves" if name == RANDOM else name
