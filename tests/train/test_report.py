"""The page is read as a browser would: parsed, then looked at as tags and text."""

import dataclasses
import hashlib
import json
import re
import shlex
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.base import is_finished
from tests.train.toys import Pairs
from train import __main__ as cli
from train import charts, config, record, report, showcase
from train.agent import Agent
from train.charts import Line
from train.checkpoint import Manifest
from train.config import Config
from train.network import make_network
from train.presets import connect_four, debug
from train.score import Score

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """The tags and words of a page; tags that are not closed in order are an error."""

    def __init__(self, path: Path):
        super().__init__()
        self.source = path.read_text()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def count(self, tag: str) -> int:
        return Counter(name for name, _ in self.tags)[tag]


def iteration(number: int, **fields: Any) -> dict[str, Any]:
    """A line of `metrics.jsonl`."""
    return {
        "kind": "iteration", "iteration": number, "minutes": 0.25 * number, "positions": 1024 * number,
        "evaluations": 4096 * number, "updates": 160 * number, "games": 8, "game_length": 7.5, "draws": 2,
        "loss": 2.5 / number, "policy_loss": 2.0 / number, "policy_kl": 0.5 / number, "value_loss": 0.5 / number,
        "gradient_norm": 1.0, "update_norm": 0.1, "skipped_updates": 0, "seconds": {"play": 9.0, "learn": 6.0},
    } | fields  # fmt: skip


def match(number: int, wins: int, draws: int, losses: int, **fields: Any) -> dict[str, Any]:
    score = Score(wins=wins, draws=draws, losses=losses)
    low, high = score.interval()
    return {
        "kind": "match", "iteration": number, "minutes": 0.25 * number, "first": f"agent@{number}",
        "second": "uct:4", "wins": wins, "draws": draws, "losses": losses, "score": score.mean,
        "low": low, "high": high, "final": False,
    } | fields  # fmt: skip


LINES = [
    iteration(1),
    match(1, 30, 4, 66),
    iteration(2),
    match(2, 60, 4, 36),
    match(2, 300, 20, 80, final=True),
    match(2, 398, 1, 1, second="random", final=True),
]


def make_run(folder: Path, lines: Any = LINES, settings: Config | None = None, *, finished: bool = False) -> Path:
    """Make the folder of a run with these lines; a line that is text goes in as it is."""
    folder.mkdir()
    contents = {
        "config": config.to_json(settings or debug()),
        "versions": {"jax": "0.10.2"},
        "device": {"kind": "Abacus", "count": 1, "cpus": 2},
    }
    (folder / "config.json").write_text(json.dumps(contents))
    if finished:
        manifest = Manifest(step=2, digest=hashlib.sha256().hexdigest(), notes={"finished": True}, leaves={})
        path = folder / "checkpoints" / "000002" / "manifest.json"
        path.parent.mkdir(parents=True)
        path.write_text(manifest.to_text())
    if lines is not None:
        written = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        (folder / "metrics.jsonl").write_text("\n".join(written))
    return folder


@pytest.fixture(scope="module")
def player() -> Agent:
    """An agent that has learned nothing; its search is compiled once for this file."""
    settings = debug()
    env = envs.make(settings.game)
    return Agent(env=env, config=settings, params=make_network(env, settings).init(jax.random.key(0)), iteration=2)


@pytest.fixture(scope="module")
def game(player: Agent) -> showcase.Game:
    return showcase.play_itself(player, jax.random.key(0))


@pytest.fixture(scope="module")
def page(player: Agent, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of a whole run."""
    folder = make_run(tmp_path_factory.mktemp("runs") / "run", finished=True)
    path = report.write(folder, player)
    assert path == folder / "report.html"
    assert not list(folder.glob("*.part"))
    return Page(path)


def test_it_tells_what_was_trained_how_and_how_well(page: Page, game: showcase.Game) -> None:
    for words in (
        "Tic Tac Toe, learned by self-play",
        "Score against UCT with 4 rollouts a move 77.5 %",
        "95 % interval 73.2 % to 81.3 %, 400 games",
        "Agent of iteration 2 against random moves 400 398 1 1 99.6 %",
        "for 30 s on Abacus, 2 CPU cores",
        "Moves searched in self-play 2,048",
        "Play 18 s 60 % Learn 12 s 40 %",
        "versions: jax 0.10.2",
        "python -m train debug",
        "Move 1: X plays",
        "Move 2: O plays",
        "The end:",
        "First moves",
    ):
        assert words in page.text
    assert "missing" not in {attributes.get("class") for _, attributes in page.tags}
    assert page.count("li") == len(game.plies) + 1
    assert len(page.source) < 1.5e6


def test_the_page_needs_nothing_from_outside(page: Page) -> None:
    assert set(re.findall(r"https?:[^\"' <]*", page.source)) == {"http://www.w3.org/2000/svg"}
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert "@import" not in page.source
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert links == {"config.json", "metrics.jsonl", "checkpoints"}  # what is there, and nothing else


def test_no_table_is_wider_than_a_phone(page: Page) -> None:
    """Where rows have more than three cells or sentences in them, they are cards there, each cell under its head."""
    tables = re.findall(r"<table([^>]*)>(.*?)</table>", page.source, re.DOTALL)
    assert len(tables) == page.count("table")
    for attributes, table in tables:
        heads = [re.sub("<.*?>", "", head) for head in re.findall(r"<th scope=\"col\".*?</th>", table)]
        assert "stacked" in attributes or len(heads) <= 3
        told = re.findall(r'<td[^>]*data-head="([^"]*)"', table)
        if "matches" in attributes:
            assert told == heads[1:-1] * 2  # but for the name of the match and the bar, in both matches
    assert sum("matches" in attributes for attributes, _ in tables) == 1
    assert "overflow-x" not in page.source


def test_it_says_how_to_ask_the_agent(page: Page, player: Agent, game: showcase.Game) -> None:
    (words,) = re.findall(r"<code>python -m train\.ask (.*)</code>", page.source)
    run, *moves = shlex.split(words)
    assert (Path(run) / "report.html").read_text() == page.source
    assert [envs.parse_move(player.env, move) for move in moves] == [ply.action for ply in game.plies[:2]]
    assert all(f"plays {move}" in page.text for move in moves)


def test_pictures_do_not_disturb_each_other(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pointed = re.findall(r"url\(#([^)]*)\)", page.source)
    pointed += [str(attributes["href"])[1:] for tag, attributes in page.tags if tag == "use"]
    assert pointed and set(pointed) <= set(ids)
    assert page.count("style") == 1  # a style sheet inside a picture would rule the whole page


def test_colours_follow_the_reader(page: Page) -> None:
    source = page.source
    assert "prefers-color-scheme: dark" in source and "@media print" in source
    defined = set(re.findall(r"(--[\w-]+):", source))
    assert set(re.findall(r"var\((--[\w-]+)\)", source)) <= defined  # those with a fallback need no definition
    light, dark = (
        set(re.findall(r"(--[\w-]+):", block)) for block in re.findall(r":root \{(.*?)\}", source, re.DOTALL)
    )
    assert light <= dark
    assert not any(colour in source for colour in (charts.INK, charts.RULE, *charts.SERIES))


def test_a_reader_who_cannot_see_it(page: Page) -> None:
    titled = re.findall(r"<svg[^>]*role=\"img\"[^>]*>\s*<title>[^<]+</title>", page.source)
    assert len(titled) == page.count("svg") - 1  # the ground of the boards is drawn by them
    assert page.count("h1") == 1 and page.count("table") == page.count("thead") >= 4
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")


def test_names_are_text_and_not_markup(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    lines = [iteration(1), match(1, 2, 2, 2, second=f"uct:{evil}", final=True)]
    folder = make_run(tmp_path / evil, lines, settings=dataclasses.replace(debug(), name=evil, runs=f"$a$ {evil}"))
    page = Page(report.write(folder, search=False))
    assert page.count("img") == 0
    assert page.text.count(evil) >= 3


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    page = Page(report.write(make_run(tmp_path / "run", lines=None)))
    assert "0 of 2 iterations are done" in page.text
    assert "No match has been played yet" in page.text
    assert "There is no sample game: " in page.text
    assert "Elo 95 %" not in page.text
    assert page.text.count("Nothing to draw yet.") == 6


def test_a_run_that_was_interrupted(tmp_path: Path) -> None:
    lines = [iteration(1, games=0, game_length=None, draws=0), match(1, 30, 4, 66), '{"kind": "iteration", "iter']
    page = Page(report.write(make_run(tmp_path / "run", lines), search=False))
    assert "1 of 2 iterations are done" in page.text
    assert "1 lines of metrics.jsonl cannot be read" in page.text
    assert "Score against UCT with 4 rollouts a move 32.0 %" in page.text and "after iteration 1" in page.text
    assert page.text.count("Nothing to draw yet.") == 2  # no game has ended: no length, no draws


def test_a_run_that_goes_on_says_how(tmp_path: Path) -> None:
    limited = dataclasses.replace(debug(), minutes=0.1)
    for name, settings, finished, told in (
        ("my run", debug(), False, "goes on with python -m train --resume '{}'"),
        ("over", limited, False, "for its time is over; with more by python -m train --resume {} --minutes 2"),
        ("its end", limited, True, "give more with python -m train --resume '{}' --minutes 2"),
    ):
        folder = make_run(tmp_path / name, [iteration(1)], settings, finished=finished)
        assert told.format(folder) in Page(report.write(folder, search=False)).text


def test_damaged_lines_may_leave_players_that_cannot_be_compared(tmp_path: Path) -> None:
    lines = [iteration(1), json.dumps(match(1, 30, 4, 66))[:-9], match(1, 5, 0, 0, second="random", final=True)]
    page = Page(report.write(make_run(tmp_path / "run", lines), search=False))
    assert "1 lines of metrics.jsonl cannot be read" in page.text and "100.0 %" in page.text


def test_lines_of_other_kinds_are_nothing_to_worry_about(tmp_path: Path) -> None:
    run = record.read(make_run(tmp_path / "run", [{"kind": "profile"}, iteration(1)]))
    assert (run.iteration, run.unread, len(run.matches)) == (1, 0, 0)


def test_an_old_report_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run(tmp_path / "run")
    before = report.write(folder, search=False).read_text()
    (folder / "metrics.jsonl").write_text(json.dumps(iteration(1)))

    def broken(*arguments: Any, **options: Any) -> str:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(Path, "write_text", broken)
        report.write(folder, search=False)
    assert (folder / "report.html").read_text() == before
    assert report.write(folder, search=False).read_text() != before


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run")
    assert report.main([str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "report.html")
    assert report.main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere', but it holds no config.json" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        report.main([])


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        (connect_four(), "python -m train connect_four"),
        (dataclasses.replace(debug(), name="other", runs="/tmp"), "python -m train debug"),
        (
            dataclasses.replace(debug(), game="connect_four(rows=5)", mirror=False, learning_rate=0.01, seed=3),
            "python -m train debug --game 'connect_four(rows=5)' --seed 3 --no-mirror --learning-rate 0.01",
        ),
        (dataclasses.replace(connect_four(), minutes=2.5), "python -m train connect_four --minutes 2.5"),
    ],
)
def test_the_command_makes_the_same_config(settings: Config, command: str, tmp_path: Path) -> None:
    assert command in Page(report.write(make_run(tmp_path / "run", settings=settings), search=False)).text
    asked = cli.parse(shlex.split(command)[3:])[1]
    assert isinstance(asked, cli.Command)
    parsed = asked.config
    assert parsed == dataclasses.replace(settings, name=parsed.name, runs=parsed.runs)


def test_fields_that_were_changed_stand_out(tmp_path: Path) -> None:
    page = Page(report.write(make_run(tmp_path / "run", settings=dataclasses.replace(debug(), seed=41)), search=False))
    assert [attributes for tag, attributes in page.tags if tag == "tr" and "class" in attributes] == [
        {"class": "changed"}
    ]
    assert "seed 41 (preset: 0) >= 0, below 2^32; the same seed on the same machine gives the same agent" in page.text
    rows = re.findall(r"<code>(\w+)</code></th>\s*<td>.+?</td>\s*<td>(.*?)</td>", page.source)
    assert [name for name, _ in rows] == [field.name for field in dataclasses.fields(Config)]
    assert all(len(meaning) > 10 for _, meaning in rows)


def test_the_sample_game_is_legal_and_whole(player: Agent, game: showcase.Game) -> None:
    env: Any = player.env
    state, step = env.init(), jax.jit(env.step)
    for ply in game.plies:
        assert not is_finished(state) and env.legal_action_mask(state)[ply.action]
        assert ply.player == int(state.to_play)
        assert -1 <= ply.value <= 1
        assert ply.weights.shape == (env.num_actions,) and ply.weights.sum() == pytest.approx(1)
        assert (ply.weights[~np.asarray(env.legal_action_mask(state))] == 0).all()
        state = step(state, ply.action)
    assert is_finished(state)
    jax.tree.map(np.testing.assert_array_equal, game.end, state)


@dataclasses.dataclass(frozen=True)
class Optimist:
    """Stands in for an agent: the player to move always expects one half."""

    env: Any

    def __call__(self, states: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        del key
        value = jnp.full(states.to_play.shape, 0.5)
        return jnp.zeros(value.shape, jnp.int32), dataclasses.make_dataclass("Output", ["value"])(value)


def test_first_moves_are_judged_for_the_first_player() -> None:
    key = jax.random.key(0)
    np.testing.assert_allclose(showcase.first_moves(Optimist(envs.make("tic_tac_toe")), key), np.full(9, 0.25))
    np.testing.assert_allclose(showcase.first_moves(Optimist(Pairs(length=1)), key), np.ones(2))  # a win at once


def test_pictures_share_what_is_the_same_in_all() -> None:
    drawing = '<title>{0}</title><rect width="{0}"/><path d="M0"/><circle r="{0}"/>'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg">{drawing}</svg>'
    ground, pictures = charts.share_ground([picture.format(number) for number in (1, 2)], "board")
    assert ground.count("<path") == 1 and 'id="board"' in ground
    for number, small in enumerate(pictures, start=1):
        drawn = re.findall(r"<(rect|use|path|circle)", small)
        assert drawn == ["rect", "use", "circle"] and small.count(f'"{number}"') == 2 and f"<title>{number}<" in small


def test_a_chart_without_points_is_empty() -> None:
    line = Line(label="a", x=[1.0], y=[float("nan")])
    assert charts.chart("a", "A chart", [line], x_label="minutes") == ""


def test_a_chart_is_the_same_each_time_and_shows_names_as_they_are() -> None:
    lines = [Line(label="a $x$ & <b>", x=[1, 2], y=[0.5, 2], low=[0, 1], high=[1, 3]), Line(label="c", x=[1], y=[1])]
    first, second = (charts.chart("n", "A <chart>", lines, x_label="$m$") for _ in range(2))
    assert first == second
    assert "a $x$ &amp; &lt;b&gt;" in first and "$m$" in first and "A &lt;chart&gt;" in first
    assert "font-family" not in first and "var(--series-1)" in first and "var(--series-2)" in first


@pytest.mark.parametrize(
    ("minutes", "text"), [(0.0, "0 s"), (0.999, "1 min 00 s"), (4.84, "4 min 50 s"), (125.0, "2 h 05 min")]
)
def test_durations_are_written_for_people(minutes: float, text: str, tmp_path: Path) -> None:
    page = Page(report.write(make_run(tmp_path / "run", [iteration(1, minutes=minutes)]), search=False))
    assert f"Time {text} 1 of 2 iterations" in page.text
