import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.base import BoardGame
from tests.train import runs
from tests.train.toys import Pairs
from train import agent, arena, lineup, match, players
from train.match import Player
from train.score import Score

TIC_TAC_TOE = envs.make("tic_tac_toe")


def prefers(env: BoardGame, order: list[int]) -> Player:
    """A player that takes the first legal action of a list."""
    rank = np.argsort(order)

    def choose(params: Any, key: jax.Array, state: Any) -> jax.Array:
        mask = jax.vmap(env.legal_action_mask)(state)
        return jnp.argmin(jnp.where(mask, rank, len(order)), axis=1)

    return choose


LOWEST = prefers(TIC_TAC_TOE, list(range(9)))
# Takes the diagonal 2, 4, 6 before the lowest-cell player has a line, from either seat.
DIAGONAL = prefers(TIC_TAC_TOE, [2, 4, 6, 0, 1, 3, 5, 7, 8])
# Stops the top row at once and then fills in what never makes a line for anybody.
HIGHEST = prefers(TIC_TAC_TOE, list(range(8, -1, -1)))


def play(players: tuple[Player, Player], *, plies: int = 0, games: int = 20) -> jax.Array:
    return match.play(players, ((), ()), jax.random.key(0), env=TIC_TAC_TOE, games=games, opening_plies=plies)


def test_wins_are_booked_for_the_winner_from_both_seats() -> None:
    np.testing.assert_array_equal(play((DIAGONAL, LOWEST)), np.ones(20))
    np.testing.assert_array_equal(play((LOWEST, DIAGONAL)), np.zeros(20))


def test_swapping_the_players_swaps_wins_and_losses() -> None:
    scores = play((HIGHEST, LOWEST), plies=4, games=40)
    swapped = play((LOWEST, HIGHEST), plies=4, games=40)
    # The same openings; what was seat 0 of one player is seat 0 of the other in the other half.
    np.testing.assert_array_equal(scores[:20], 1 - swapped[20:])
    np.testing.assert_array_equal(scores[20:], 1 - swapped[:20])
    counted, other = Score.count(scores), Score.count(swapped)
    assert counted.games == other.games == 40
    assert (counted.wins, counted.draws, counted.losses) == (other.losses, other.draws, other.wins)
    assert 0 < counted.wins < 40


def test_a_player_against_itself_is_even_by_pairs() -> None:
    scores = np.asarray(play((LOWEST, LOWEST), plies=4, games=40))
    np.testing.assert_array_equal(scores[:20] + scores[20:], np.ones(20))


def test_movers_who_move_twice_and_games_without_a_result() -> None:
    env = Pairs(length=5)  # movers 0, 1, 1, 0, 0: seat 0 wins
    player = prefers(env, [0, 1])
    play = lambda env: match.play((player, player), ((), ()), jax.random.key(0), env=env, games=4, opening_plies=0)  # noqa: E731
    np.testing.assert_array_equal(play(env), [1, 1, 0, 0])
    np.testing.assert_array_equal(play(Pairs(length=5, limit=3)), [0.5] * 4)


@dataclasses.dataclass(frozen=True)
class Scaled:
    """Tic-tac-toe for half the points."""

    game: BoardGame = TIC_TAC_TOE

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        after = self.game.step(state, action, key)
        return dataclasses.replace(after, rewards=after.rewards / 2)


def test_a_win_is_a_win_whatever_it_earns() -> None:
    key = jax.random.key(0)
    scores = match.play((DIAGONAL, LOWEST), ((), ()), key, env=Scaled(), games=4, opening_plies=0)
    np.testing.assert_array_equal(scores, np.ones(4))


TRACES: list[Any] = []


@dataclasses.dataclass(frozen=True)
class ByParams:
    """Takes the first legal action of the list that its parameters are; notes when it is traced."""

    env: BoardGame

    def __call__(self, params: Any, key: jax.Array, state: Any) -> jax.Array:
        TRACES.append(self)
        mask = jax.vmap(self.env.legal_action_mask)(state)
        return jnp.argmin(jnp.where(mask, jnp.argsort(params), 9), axis=1)


def test_each_player_has_its_own_params_and_a_pair_of_kinds_compiles_once() -> None:
    lowest, diagonal = jnp.arange(9), jnp.array([2, 4, 6, 0, 1, 3, 5, 7, 8])

    def play(*params: Any, others: Player) -> np.ndarray:
        pair = (ByParams(TIC_TAC_TOE), others)
        return np.asarray(match.play(pair, params, jax.random.key(0), env=TIC_TAC_TOE, games=8, opening_plies=0))

    np.testing.assert_array_equal(play(diagonal, lowest, others=ByParams(TIC_TAC_TOE)), np.ones(8))
    np.testing.assert_array_equal(play(diagonal, (), others=LOWEST), np.ones(8))
    traced = len(TRACES)
    np.testing.assert_array_equal(play(lowest, diagonal, others=ByParams(TIC_TAC_TOE)), np.zeros(8))
    np.testing.assert_array_equal(play(lowest, (), others=DIAGONAL), np.zeros(8))  # another kind: traced anew
    assert len(TRACES) > traced > 0
    traced = len(TRACES)
    np.testing.assert_array_equal(play(diagonal, (), others=LOWEST), np.ones(8))
    np.testing.assert_array_equal(play(lowest, lowest, others=ByParams(TIC_TAC_TOE)).sum(), 4)
    assert len(TRACES) == traced


def test_random_moves_are_legal_and_all_of_them_come() -> None:
    states = jax.vmap(TIC_TAC_TOE.init)(jax.random.split(jax.random.key(0), 400))
    states = jax.vmap(TIC_TAC_TOE.step)(states, jnp.full(400, 4))
    actions = players.Random(TIC_TAC_TOE)((), jax.random.key(1), states)
    counts = np.bincount(actions, minlength=9)
    assert counts[4] == 0 and (counts[[0, 1, 2, 3, 5, 6, 7, 8]] > 25).all()


def test_uct_beats_random_moves() -> None:
    pair = (players.Uct(TIC_TAC_TOE, 16), players.Random(TIC_TAC_TOE))
    scores = match.play(pair, ((), ()), jax.random.key(0), env=TIC_TAC_TOE, games=64, opening_plies=0)
    assert Score.count(scores).interval()[0] > 0.7


def test_odd_numbers_of_games_are_refused() -> None:
    with pytest.raises(ValueError, match="`games` is 3, expected an even number"):
        play((LOWEST, LOWEST), games=3)


def test_draws_count_one_half() -> None:
    score = Score(wins=3, draws=2, losses=1)
    assert (score.games, score.mean) == (6, 4 / 6)
    assert Score.count(np.array([1, 0.5, 1, 0, 0.5, 1])) == score


@pytest.mark.parametrize(
    ("score", "low", "high"),
    [
        (Score(wins=60, draws=0, losses=40), 0.502, 0.691),
        (Score(wins=50, draws=20, losses=30), 0.502, 0.691),
        (Score(wins=20, draws=0, losses=0), 0.839, 1.0),
        (Score(wins=0, draws=0, losses=20), 0.0, 0.161),
    ],
)
def test_interval_is_wilsons(score: Score, low: float, high: float) -> None:
    assert score.interval() == pytest.approx((low, high), abs=5e-4)


def test_text_names_all_numbers() -> None:
    text = str(Score(wins=60, draws=0, losses=40))
    assert text == "60.0% (95 % interval 50.2% to 69.1%) over 100 games: 60 won, 0 drawn, 40 lost"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.untrained(tmp_path_factory.mktemp("runs"), iterations=(1, 2))


def test_a_match_from_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert arena.main([f"{folder}@1", str(folder), "--games", "4"]) == 0
    text = capsys.readouterr().out
    assert f"{folder}@1 (iteration 1, 4 simulations a move) against {folder} (iteration 2, 4 simulations" in text
    assert "over 4 games" in text and "Elo difference" in text


def test_a_match_without_agents_names_its_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert arena.main(["random", "random", "--games", "16", "--game", "tic_tac_toe"]) == 0
    assert "random against random: " in capsys.readouterr().out


def test_players_are_named_by_run_iteration_and_budget(folder: Path) -> None:
    env, entrants = lineup.load((f"{folder}@1:2", str(folder), f"{folder}:7", "uct:30", "random"))
    assert env == TIC_TAC_TOE
    config = agent.load_agent(folder).config
    assert [entrant.player for entrant in entrants[:3]] == [
        players.Trained(env, dataclasses.replace(config, agent_num_simulations=budget)) for budget in (2, 4, 7)
    ]
    first, newest, other_budget = (jax.tree.leaves(entrant.params)[0] for entrant in entrants[:3])
    np.testing.assert_array_equal(newest, other_budget)
    assert not np.array_equal(first, newest)
    assert [entrant.player for entrant in entrants[3:]] == [players.Uct(env, 30), players.Random(env)]


def test_what_cannot_be_played_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = runs.untrained(folder.parent, iterations=(1,), game="connect_four", name="other")
    for arguments, message in (
        (("uct:8", "random"), "the game is not known: name it"),
        ((str(folder), str(other)), "plays TicTacToe() but"),
        ((str(folder), "random", "--game", "connect_four"), "choose players of the same game"),
        ((f"{folder}@7", "random"), "`iteration` is 7, but"),
        ((str(folder), "uct:many"), "'uct:many' has no number of rollouts"),
        ((str(folder), f"{folder}:0"), "`agent_num_simulations` is 0"),
        ((str(folder), "nobody"), "'nobody' is not known"),
        ((str(folder.parent), "random"), "holds no config.json"),
        ((str(folder), "random", "--games", "3"), "`match_games` is 3, expected an even number"),
        (("uct:8", "random", "--game", "conect_four"), "known games are connect_four"),
    ):
        assert arena.main(arguments) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("module", ["train.arena", "train.ask", "train.export", "train.report"])
def test_help_answers_without_jax(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "argparse" in imported and not imported & {"jax", "flax", "orbax", "jaxmcts", "envs"}
    assert "usage: python -m train" in done.stdout


def test_a_clean_sweep_may_be_certain_to_the_last_digit() -> None:
    for games in (6, 8, 128, 512):
        assert Score(wins=games, draws=0, losses=0).interval()[1] == 1.0
        assert Score(wins=0, draws=0, losses=games).interval()[0] == 0.0
