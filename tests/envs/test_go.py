"""Go against a slow program of its rules, exact counts, other programs, and known faults of these."""

import dataclasses
import functools
import itertools
import os
import shutil
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx.go
import pyspiel
import pytest

import envs
from envs import bitboard, groups
from envs.superko import AT_ONCE
from tests.envs import playing

SUICIDE = {"suicide": True}
SITUATIONAL = {"superko": "situational"}


@pytest.mark.parametrize(
    "env",
    [
        envs.Go(2),
        envs.Go(5, suicide=True, history=3),
        *(
            pytest.param(envs.Go(size, **options), marks=pytest.mark.slow)
            for size, options in [
                (1, {}),
                (5, SITUATIONAL),
                (5, SUICIDE | SITUATIONAL),
                (9, {}),
                (13, {"max_plies": 200}),
            ]
        ),
    ],
    ids=repr,
)
@pytest.mark.slow  # the default's is in test_base.py
def test_contract(env: envs.Go) -> None:
    envs.check_env(env, num_games=16)


# --- The rules, slowly


@dataclasses.dataclass
class Slow:
    """The rules as they are written, over dicts and sets; points are numbers, stones are players."""

    size: int
    suicide: bool
    situational: bool
    board: dict[int, int] = dataclasses.field(default_factory=dict)
    to_play: int = 0
    seen: set[Any] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.seen.add(self.situation(self.board, self.to_play))

    def situation(self, board: dict[int, int], to_play: int) -> Any:
        return frozenset(board.items()), to_play if self.situational else None

    def around(self, point: int) -> list[int]:
        r, c = divmod(point, self.size)
        near = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
        return [r * self.size + c for r, c in near if 0 <= r < self.size and 0 <= c < self.size]

    def group(self, board: dict[int, int], point: int) -> tuple[set[int], set[int | None]]:
        """All points of one colour, or empty, joined with `point`, and what lies around them."""
        group, border, todo = {point}, set(), [point]
        while todo:
            for near in self.around(todo.pop()):
                if board.get(near) != board.get(point):
                    border.add(board.get(near))
                elif near not in group:
                    group.add(near)
                    todo.append(near)
        return group, border

    def after(self, point: int) -> dict[int, int] | None:
        """The board after a stone on `point`; None if the rules forbid it there."""
        if point in self.board:
            return None
        board = self.board | {point: self.to_play}
        for near in [*self.around(point), point]:
            own = board.get(near) == self.to_play
            if near in board and None not in self.group(board, near)[1] and (not own or near == point):
                if own and not self.suicide:
                    return None
                board = {p: player for p, player in board.items() if p not in self.group(board, near)[0]}
        return None if self.situation(board, 1 - self.to_play) in self.seen else board

    def legal(self) -> list[int]:
        return [point for point in range(self.size**2) if self.after(point) is not None] + [self.size**2]

    def play(self, action: int) -> None:
        board = self.board if action == self.size**2 else self.after(action)
        assert board is not None
        self.board, self.to_play = board, 1 - self.to_play
        self.seen.add(self.situation(self.board, self.to_play))

    def score(self) -> list[int]:
        areas = [0, 0]
        for point in range(self.size**2):
            owners = {self.board[point]} if point in self.board else self.group(self.board, point)[1]
            for player in (0, 1):
                areas[player] += owners == {player}
        return areas


@pytest.mark.parametrize(
    ("size", "options", "games"),
    [
        (2, SUICIDE | SITUATIONAL, 40),
        (3, SUICIDE, 30),
        (4, {}, 20),
        *(
            pytest.param(size, suicide | superko, 60, marks=pytest.mark.slow)
            for size, suicide, superko in itertools.product((2, 3, 4), ({}, SUICIDE), ({}, SITUATIONAL))
        ),
    ],
)
def test_every_ply_is_that_of_the_slow_rules(size: int, options: dict[str, Any], games: int) -> None:
    """Whole legal sets, boards, scores and results; games are long, so that most of what repeats is far back."""
    env = envs.Go(size, komi=0.5, max_plies=12 * size**2, **options)
    states, masks, moves = _stubborn_moves(env, games, seed=size)
    stones = np.asarray(jax.vmap(jax.vmap(env.points.planes))(states.board[:, :, 0])).reshape(
        len(states.plies), games, 2, -1
    )
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(env.area_score)))(states))
    hashes = np.asarray(jax.jit(jax.vmap(jax.vmap(env.hash)))(states))
    hash_of: dict[Any, tuple[int, ...]] = {}
    repeats = 0
    for row in range(games):
        slow = Slow(size, env.suicide, env.superko == "situational")
        for ply in range(env.limit + 1):
            board = {point: player for player, point in np.argwhere(stones[ply, row])}
            assert (board, states.to_play[ply, row]) == (slow.board, slow.to_play)
            assert scores[ply, row].tolist() == slow.score()
            key = frozenset(board.items()), slow.to_play
            assert hash_of.setdefault(key, tuple(hashes[ply, row])) == tuple(hashes[ply, row])
            if states.terminated[ply, row]:
                black, white = slow.score()
                assert moves[ply - 2 : ply, row].tolist() == [size**2] * 2
                assert states.rewards[ply, row].tolist() == ([1, -1] if black > white + 0.5 else [-1, 1])
                break
            assert not states.rewards[ply, row].any()
            if states.truncated[ply, row]:
                break
            assert np.flatnonzero(masks[ply, row]).tolist() == slow.legal()
            free = dataclasses.replace(slow, seen=set()).legal()
            repeats += len(free) - masks[ply, row].sum()
            slow.play(int(moves[ply, row]))
    assert len(set(hash_of.values())) == len(hash_of)
    assert repeats > games


def _stubborn_moves(env: envs.Go, games: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """As `playing.random_moves`, but of two legal passes nine are not played while there is another move."""

    def ply(states: Any, key: jax.Array) -> tuple[Any, Any]:
        masks = jax.vmap(env.legal_action_mask)(states)
        moves = playing.draw(masks, key, shy=0.9 * (np.arange(env.num_actions) == env.size**2))
        return jax.vmap(env.step)(states, moves), (states, masks, moves)

    @jax.jit
    def play(key: jax.Array) -> Any:
        start = jax.vmap(env.init)(jax.random.split(key, games))
        return jax.lax.scan(ply, start, jax.random.split(key, env.limit + 1))[1]

    return jax.device_get(play(jax.random.key(seed)))


@pytest.mark.parametrize(("size", "positions"), [(1, 1), (2, 57), (3, 12_675)])
def test_c167_fillings_whose_groups_have_liberties(size: int, positions: int) -> None:
    points = groups.Points(size)

    @jax.jit
    @jax.vmap
    def is_legal(stones: jax.Array) -> jax.Array:
        (black, white), _ = points.survey(*(tuple(words) for words in stones))
        return ~bitboard.is_any(bitboard.union(black, white))

    fillings = np.array(list(itertools.product(range(3), repeat=size**2)))
    stones = np.stack([fillings == 1, fillings == 2], axis=1)[:, :, None]
    boards = np.where(stones, points.bits[:, :-1], np.uint32(0)).sum(axis=-1, dtype=np.uint32)
    assert is_legal(boards).sum() == positions


# --- Cases that others got wrong


def gtp_names(size: int) -> dict[str, int]:
    """The actions of points as programs call them: rows from below, no letter i."""
    return {
        f"{letter}{size - row}": row * size + column
        for row in range(size)
        for column, letter in enumerate("ABCDEFGHJKLMNOPQRST"[:size])
    }


def gtp(env: envs.Go, *names: str) -> list[int]:
    points = gtp_names(env.size) | {"pass": env.size**2}
    return [points[name] for name in names]


def allows(env: envs.Go, state: Any, name: str) -> bool:
    action = gtp(env, name)[0]
    allowed = bool(_program(env, "legal_action_mask")(state)[action])
    after = _program(env, "step")(state, action)
    assert allowed == (not after.terminated)
    return allowed


def go_on(env: envs.Go, state: Any, *names: str) -> Any:
    for action in gtp(env, *names):
        state = _program(env, "step")(state, action)
    return state


@functools.cache
def _program(env: envs.Go, name: str) -> Any:
    return jax.jit(getattr(env, name))


def test_c154_a_ko_is_forbidden_at_once_and_not_for_ever() -> None:
    env = envs.Go(5)
    state = envs.from_text(env, ".XO..\n XO.O.\n .XO..\n .....\n .....\n X to play")
    state = go_on(env, state, "C4")
    assert not np.asarray(env.observe(state))[1, 1, :2].any()
    assert not allows(env, state, "B4")
    assert allows(env, go_on(env, state, "E1", "A1"), "B4")


@pytest.mark.parametrize("superko", ["positional", "situational"])
@pytest.mark.parametrize(
    ("moves", "last"),
    [("A1 A2 B2 pass B1 A2 B2 B1 pass B2", "A1"), ("B1 A1 B2 A2 B1 B2", "B1")],
)
def test_c155_no_board_comes_again_however_long_ago_it_was(moves: str, last: str, superko: Any) -> None:
    env = envs.Go(2, superko=superko, max_plies=20)
    state = playing.play(env, gtp(env, *moves.split()))
    assert not state.terminated and not allows(env, state, last)


def test_c156_who_is_to_move_matters_to_situational_superko_alone() -> None:
    for superko, allowed in (("positional", False), ("situational", True)):
        env = envs.Go(2, superko=superko)  # type: ignore[arg-type]
        state = playing.play(env, gtp(env, "A2", "B2", "B1", "pass", "A1", "B2"))
        assert allows(env, state, "A2") == allowed


SINGLE = ".....\n .....\n .....\n O....\n .O...\n X to play"
PAIR = ".....\n .....\n O....\n XO...\n .O...\n X to play"


@pytest.mark.parametrize(("text", "stones"), [(SINGLE, 2), (PAIR, 3)])
def test_c157_suicide_is_one_rule_for_one_stone_and_many(text: str, stones: int) -> None:
    for suicide, superko in itertools.product((False, True), ("positional", "situational")):
        env = envs.Go(5, suicide=suicide, superko=superko)  # type: ignore[arg-type]
        state = envs.from_text(env, text)
        # A single stone's suicide leaves the board as it was, so under positional superko that forbids it.
        expected = suicide and (stones == 3 or superko == "situational")
        assert allows(env, state, "A1") == expected
        if expected:
            seen = np.asarray(env.observe(go_on(env, state, "A1")))
            assert seen[..., :2].sum(axis=(0, 1)).tolist() == [stones, 0]


@pytest.mark.parametrize("options", [{}, SUICIDE, SITUATIONAL, SUICIDE | SITUATIONAL])
def test_c157_a_stone_that_takes_is_no_suicide(options: dict[str, Any]) -> None:
    env = envs.Go(2, **options)
    state = envs.from_text(env, "OO\n O.\n X to play")
    assert allows(env, state, "B1")
    assert np.asarray(env.observe(go_on(env, state, "B1")))[..., :2].sum(axis=(0, 1)).tolist() == [0, 1]


def test_c161_komi_is_whites_of_any_sign_and_each_games_own() -> None:
    rewards = {7.5: [-1, 1], 0: [0, 0], -2.5: [1, -1], 7: [-1, 1]}
    games = {komi: envs.Go(2, komi=komi) for komi in rewards}
    passed = {komi: playing.history(env, [4, 4]) for komi, env in games.items()}
    assert {komi: states.rewards[-1].tolist() for komi, states in passed.items()} == rewards
    # Black has the whole board with one stone.
    assert [playing.play(envs.Go(2, komi=komi), [0, 4, 4]).rewards[0] for komi in (3.5, 4, 1e300, 10**400)] == [
        1,
        0,
        -1,
        -1,
    ]


def test_c163_two_passes_in_a_row_and_no_others_end_the_game() -> None:
    env = envs.Go(5)
    assert playing.history(env, [25, 0, 25, 25]).terminated.tolist() == [False] * 4 + [True]
    assert playing.history(env, [25, 25]).terminated.tolist() == [False, False, True]
    assert not playing.history(env, [25, 0, 25, 1]).terminated.any()


def test_c165_boards_older_than_the_game_are_empty_planes() -> None:
    env = envs.Go(5, history=4)
    states = playing.history(env, [12, 7, 25, 0])
    seen = np.asarray(jax.vmap(env.observe)(states))
    assert seen.shape == (5, 5, 5, 9)
    assert seen[:, 0, 0, 8].tolist() == [1, 0, 1, 0, 1] and (seen[..., 8] == seen[:, :1, :1, 8]).all()
    assert not seen[0, ..., :8].any()
    # A stone of Black's own on 12 is the other's when White is to move; 7 is White's; the third move is a pass.
    for ply, boards in {
        1: [[[], [12]]],
        2: [[[12], [7]], [[12], []]],
        3: [[[7], [12]], [[7], [12]], [[], [12]]],
        4: [[[12], [0, 7]], [[12], [7]], [[12], [7]], [[12], []]],
    }.items():
        planes = seen[ply, ..., :8].reshape(25, 4, 2)
        found = [[np.flatnonzero(planes[:, k, side]).tolist() for side in (0, 1)] for k in range(4)]
        assert found == boards + [[[], []]] * (4 - len(boards))
    over = playing.play(env, [12, 25])
    _, fresh = envs.auto_reset(env, over, jnp.int32(25), jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, fresh, env.init())


def test_c118_the_pass_stays_where_it_is_and_all_planes_turn_alike() -> None:
    env = envs.Go(5, history=2)
    policy = np.zeros(26)
    policy[[25, 1]] = 0.5
    turned = [symmetry.policy(policy) for symmetry in env.symmetries]
    assert all(one[25] == 0.5 and one.sum() == 1 for one in turned)
    cells = {divmod(int(np.argmax(one[:25])), 5) for one in turned}
    assert cells == {(0, 1), (1, 4), (4, 3), (3, 0), (0, 3), (3, 4), (4, 1), (1, 0)}
    np.testing.assert_array_equal(env.symmetries[3].policy(jnp.asarray(policy)), turned[3])
    for symmetry, one in zip(env.symmetries, turned, strict=True):
        seen = symmetry.observation(np.broadcast_to(policy[:25].reshape(5, 5, 1), (5, 5, 5)))
        assert (seen == one[:25].reshape(5, 5, 1)).all()


def test_c072_a_board_full_of_black_counts_361() -> None:
    env = envs.Go(19)
    planes = np.zeros((19, 19, 2), bool)
    planes[..., 0] = True
    planes[9, 9] = False
    assert env.area_score(env.arrange(planes, 0)).tolist() == [361, 0]
    planes[9, 9, 0] = True
    with pytest.raises(ValueError, match="no liberty"):
        env.arrange(planes, 0)


# --- The rest of what is promised


def test_the_length_limit_cuts_a_game_short_and_scores_nothing() -> None:
    env = envs.Go(3, max_plies=4)
    cut, decided = playing.play(env, [4, 9, 0, 8]), playing.play(env, [4, 0, 9, 9])
    assert cut.truncated and not cut.terminated and not cut.rewards.any()
    assert decided.terminated and not decided.truncated
    assert [envs.Go(size).limit for size in (2, 9, 19)] == [8, 162, 722]


def test_a_state_is_small_but_for_the_boards_not_to_come_again() -> None:
    state: Any
    for env, boards in ((envs.Go(9), 24), (envs.Go(9, history=8), 192), (envs.Go(19), 152)):
        state = env.init()
        hashes = 8 * -(-(env.limit + 1) // AT_ONCE) * AT_ONCE
        assert (state.board.nbytes, state.hashes.nbytes) == (boards, hashes)
        assert sum(x.nbytes for x in jax.tree.leaves(state)) == boards + hashes + 19


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "`size` is 0"),
        ({"size": 20}, "`size` is 20"),
        ({"size": 9.0}, "`size` is 9.0"),
        ({"komi": 0.25}, "`komi` is 0.25"),
        ({"komi": float("nan")}, "`komi` is nan"),
        ({"komi": float("inf")}, "`komi` is inf"),
        ({"komi": "7"}, "`komi` is '7'"),
        ({"suicide": 1}, "`suicide` is 1"),
        ({"superko": "simple"}, "`superko` is 'simple'"),
        ({"history": 0}, "`history` is 0"),
        ({"max_plies": 0}, "`max_plies` is 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.Go(**options)


def test_names_and_drawings() -> None:
    env: Any = envs.make("go(size=9, komi=6.5)")
    assert [envs.move_name(env, action) for action in (0, 8, 72, 81)] == ["a1", "i1", "a9", "pass"]
    state = playing.play(env, [0, 1, 40, 9, 50])
    text = envs.to_text(env, state)
    # Black's corner stone was taken: the counts would say that it is Black's turn.
    assert text.splitlines()[1:3] == ["1 . O . . . . . . .", "2 O . . . . . . . ."]
    again = envs.from_text(env, text)
    np.testing.assert_array_equal(again.board, state.board)
    assert again.to_play == state.to_play == 1
    np.testing.assert_array_equal(env.hash(again), env.hash(state))


# --- Other programs


def _open_spiel(size: int) -> Any:
    return pyspiel.load_game(f"go(board_size={size},komi=7.5)")


@pytest.mark.parametrize(
    ("size", "games"),
    [(5, 30), (9, 4), *(pytest.param(size, 620, marks=pytest.mark.slow) for size in range(5, 10))],
)
def test_open_spiel_agrees_at_every_ply(size: int, games: int) -> None:
    """OpenSpiel leaves moves that repeat a board in its legal set, but then ends the game 0:0."""
    env = envs.Go(size)
    states, masks, moves = playing.random_moves(env, games, env.limit, seed=size)
    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(env.area_score)))(states))
    plies = 0
    for row in range(games):
        other = _open_spiel(size).new_initial_state()
        for ply in range(env.limit + 1):
            over = states.terminated[ply, row] | states.truncated[ply, row]
            assert other.is_terminal() == over
            if over:
                black, white = scores[ply, row]
                assert other.returns() == ([1, -1] if black > white + 7.5 else [-1, 1])
                assert states.rewards[ply, row].tolist() == ([0, 0] if states.truncated[ply, row] else other.returns())
                break
            assert other.current_player() == states.to_play[ply, row]
            ours, theirs = set(np.flatnonzero(masks[ply, row]).tolist()), set(other.legal_actions())
            assert ours <= theirs
            for action in theirs - ours:
                repeated = other.child(action)
                assert repeated.is_terminal() and repeated.returns() == [0, 0]
            other.apply_action(int(moves[ply, row]))
            plies += 1
    print(f"{plies} plies")


@pytest.mark.slow
@pytest.mark.parametrize(("size", "games"), [(5, 100), (9, 1400)])
def test_pgx_agrees_at_every_ply(size: int, games: int) -> None:
    """pgx leaves moves that repeat a board in its mask, but then the mover loses; the length limit it scores."""
    env, other = envs.Go(size, history=8), pgx.go.Go(size=size)
    program = jax.numpy_rank_promotion("allow")(playing.pgx_program(other))
    for seed in range(0, games, 100):
        states, masks, moves = playing.random_moves(env, min(games, 100), env.limit, seed=seed)
        theirs = jax.device_get(program(moves))
        live = ~(states.terminated | states.truncated)
        np.testing.assert_array_equal(live, ~theirs.terminated)
        np.testing.assert_array_equal(states.to_play ^ theirs.current_player[0], theirs.current_player)
        rewards = np.where(theirs.current_player[0][:, None] == 0, theirs.rewards, theirs.rewards[..., ::-1])
        np.testing.assert_array_equal(states.rewards, np.where(states.truncated[..., None], 0, rewards))
        seen = np.asarray(jax.jit(jax.vmap(jax.vmap(env.observe)))(states))
        np.testing.assert_array_equal(seen[live][..., :16], theirs.observation[live][..., :16])
        np.testing.assert_array_equal(seen[live][..., 16], ~theirs.observation[live][..., 16])
        assert not (masks[live] & ~theirs.legal_action_mask[live]).any()
        extra = np.argwhere(live[..., None] & theirs.legal_action_mask & ~masks)
        before = jax.tree.map(lambda x: x[tuple(extra[:, :2].T)], theirs)  # noqa: B023
        after = _pgx_steps(other, before, extra[:, 2].astype(np.int32))
        assert after.terminated.all()
        assert (np.take_along_axis(after.rewards, before.current_player[:, None], axis=1) == -1).all()


def _pgx_steps(env: Any, states: Any, actions: np.ndarray) -> Any:
    with jax.numpy_rank_promotion("allow"):
        return jax.device_get(jax.jit(jax.vmap(env.step))(states, actions))


@pytest.mark.slow  # needs the program `gnugo`, which nothing else in the project does
@pytest.mark.parametrize(("size", "games"), [(5, 20), (9, 10), (13, 2)])
def test_gnu_go_agrees_at_every_ply(size: int, games: int) -> None:
    """GNU Go forbids suicide and the simple ko: what it allows beyond our moves repeats an earlier board."""
    env = envs.Go(size)
    states, masks, moves = playing.random_moves(env, games, env.limit, seed=size)
    names = {action: name for name, action in gtp_names(size).items()} | {size**2: "pass"}
    with GnuGo(size) as other:
        for row in range(games):
            other.ask("clear_board")
            slow = Slow(size, False, False)
            for ply in range(env.limit):
                if not masks[ply, row].any():
                    break
                colour = ("black", "white")[states.to_play[ply, row]]
                theirs = {gtp_names(size)[name] for name in other.ask(f"all_legal {colour}").split()}
                ours = set(np.flatnonzero(masks[ply, row][:-1]).tolist())
                assert ours <= theirs
                free = dataclasses.replace(slow, seen=set())
                assert all(slow.after(action) is None and free.after(action) for action in theirs - ours)
                slow.play(int(moves[ply, row]))
                other.ask(f"play {colour} {names[int(moves[ply, row])]}")


class GnuGo:
    """The program as a child process that speaks GTP."""

    def __init__(self, size: int) -> None:
        program = shutil.which("gnugo", path=os.environ["PATH"] + ":/usr/games")
        assert program, "`gnugo` is not installed: it is Debian's package of that name."
        arguments = [program, "--mode", "gtp", "--level", "0"]
        self.child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(f"boardsize {size}")

    def ask(self, command: str) -> str:
        assert self.child.stdin and self.child.stdout
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        answer = "".join(iter(self.child.stdout.readline, "\n"))
        assert answer.startswith("="), answer
        return answer[1:]

    def __enter__(self) -> "GnuGo":
        return self

    def __exit__(self, *_: object) -> None:
        self.child.communicate("quit\n")
