import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from train import config
from train.config import Config
from train.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid_and_survive_json(name: str) -> None:
    preset = PRESETS[name]()
    again = config.from_json(json.loads(json.dumps(config.to_json(preset))))
    assert dataclasses.asdict(again) == dataclasses.asdict(preset)  # configs are equal wherever their runs are kept
    assert f"python -m train{'' if name == 'connect_four' else ' ' + name}`" in str(PRESETS[name].__doc__)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("games", 0, "at least 1"),
        ("seed", -1, "0 or more"),
        ("learning_rate", 0.0, "finite number above 0"),
        ("learning_rate", math.nan, "finite number above 0"),
        ("learning_rate", math.inf, "finite number above 0"),
        ("weight_decay", -1e-4, "0 or more"),
        ("td_lambda", 1.5, "from 0 to 1"),
        ("minutes", 0.0, "above 0"),
        ("minutes", math.nan, "above 0"),
        ("match_games", 7, "even"),
        ("name", " ", "not empty"),
        ("name", "a/b", "one folder"),
        ("replay", 8191, "`games` * `steps` = 8192"),
        ("warmup_updates", 5120, "fewer than `iterations` * `updates` = 5120"),
        ("full_search_share", 0.0, "above 0, 1 at most"),
        ("average_decay", 1.0, "below 1"),
        ("search", "uct", "'gumbel' or 'alphazero'"),
        ("network", "transformer", "'convolutions' or 'mlp'"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(field: str, value: Any, expected: str) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        Config(**{field: value})
    assert f"`{field}` is {value!r}" in str(error.value)
    assert expected in str(error.value)


def test_every_field_has_a_comment_that_says_what_it_is() -> None:
    lines = Path(config.__file__).read_text().splitlines()
    for field in dataclasses.fields(Config):
        line = next(line for line in lines if line.startswith(f"    {field.name}: "))
        assert "  # " in line, field.name


def test_a_config_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['width'\]"):
        config.from_json(config.to_json(Config()) | {"width": 3})
