"""What a report calls things: games and lengths of time."""


def game_name(game: str) -> str:
    name, bracket, options = game.partition("(")
    return name.replace("_", " ").strip().title() + (f" ({options}" if bracket else "")


def duration(minutes: float) -> str:
    seconds = round(60 * minutes)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02} min"
