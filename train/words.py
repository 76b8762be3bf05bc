"""What a report calls things: games, players, lengths of time."""


def game_name(game: str) -> str:
    name, bracket, options = game.partition("(")
    return name.replace("_", " ").strip().title() + (f" ({options}" if bracket else "")


def player(name: str) -> str:
    """Spell out a player's name in `metrics.jsonl`."""
    kind, _, count = name.partition(" ")
    if kind == "uct":
        return f"UCT with {count} rollouts a move"
    if kind == "agent":
        return f"agent of iteration {count}"
    return "random moves" if name == "random" else name


def duration(minutes: float) -> str:
    seconds = round(60 * minutes)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02} min"
