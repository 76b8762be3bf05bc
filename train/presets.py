"""Ready-made runs. Each docstring gives the command, the time it takes and the result to expect."""

from collections.abc import Callable

from train.config import Config


def connect_four() -> Config:
    """Connect Four from nothing: `python -m train` or `make train`.

    Takes about 5 minutes on 2 CPU cores. Expected at the end: 80 % or more against UCT with 100 rollouts a move
    (measured with seeds 0, 1, 2: 89, 84 and 88 %; 95 % interval of the worst 81 to 87 %).
    """
    return Config()


def tic_tac_toe() -> Config:
    """Tic-tac-toe: `python -m train tic_tac_toe`.

    Takes about 1 minute on 2 CPU cores. Expected at the end: no move that loses, in any of the 3,888 positions
    that are not lost already, and 55 to 60 % against UCT with 100 rollouts a move (measured with seed 0: 58 %, 95 %
    interval 54 to 62 %); much more is not possible, for most openings are drawn or decided, whoever plays on.
    """
    return Config(
        game="tic_tac_toe",
        name="tic_tac_toe",
        iterations=30,
        steps=16,
        opening_plies=4,
        blocks=3,
        replay=30 * 4096,
        updates=40,
        evaluate_every=10,
        agent_num_simulations=32,
    )


def hex_5x5() -> Config:
    """Hex on 5 x 5: `python -m train hex_5x5`.

    Takes about 10 minutes on 2 CPU cores. Expected at the end: 97 % or more against UCT with 100 rollouts a move
    (measured with seeds 0, 1, 2: 99.6, 99.0 and 99.2 %; 95 % interval of the worst 97.7 to 99.6 %), and of the 25 first
    moves it knows of 21 or 22 who wins.
    """
    return Config(
        game="hex(size=5)",
        name="hex_5x5",
        iterations=60,
        opening_plies=4,
        evaluate_every=12,
        checkpoint_every=6,
        arena_opening_plies=2,
    )


def connect_four_long() -> Config:
    """Connect Four with a wider network and more search: `python -m train connect_four_long`.

    Takes about 30 minutes on 2 CPU cores. Expected at the end: 93 % or more against UCT with 100 rollouts a
    move (measured with seed 0: 96 %, 95 % interval 94 to 97 %).
    """
    return Config(
        name="connect_four_long",
        iterations=90,
        num_simulations=24,
        channels=48,
        replay=45 * 8192,
        evaluate_every=18,
        checkpoint_every=6,
    )


def hex_7x7() -> Config:
    """Hex on 7 x 7: `python -m train hex_7x7`.

    Takes about 12 minutes on 2 CPU cores. Expected at the end: 99 % or more against UCT with 100 rollouts a move
    (measured with seed 0: all of 512 games, 95 % interval 99.3 to 100 %).
    """
    return Config(
        game="hex(size=7)",
        name="hex_7x7",
        iterations=60,
        opening_plies=6,
        evaluate_every=15,
        checkpoint_every=6,
        arena_opening_plies=2,
    )


def debug() -> Config:
    """Every stage once, in seconds: `python -m train debug`.

    Takes about 20 seconds, most of them compilation. It learns nothing: expect a score near chance.
    """
    return Config(
        game="tic_tac_toe",
        name="debug",
        iterations=2,
        games=8,
        steps=4,
        num_simulations=4,
        opening_plies=2,
        channels=8,
        blocks=1,
        replay=64,
        updates=2,
        batch=16,
        evaluate_every=1,
        match_games=8,
        final_matches=2,
        agent_num_simulations=4,
        opponent_num_simulations=4,
    )


PRESETS: dict[str, Callable[[], Config]] = {
    preset.__name__: preset for preset in (connect_four, connect_four_long, tic_tac_toe, hex_5x5, hex_7x7, debug)
}
