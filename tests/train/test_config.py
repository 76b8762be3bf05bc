import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
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
        ("replay", 2**31, "at most 2147483646"),
        ("td_steps", -1, "0 or more"),
        ("opening_plies", 2**31 - 1, "at most 2147483646"),
        ("seed", -1, "0 or more"),
        ("seed", 2**32, "below 4294967296"),
        ("learning_rate", 0.0, "at least 1e-06"),
        ("learning_rate", 1e-46, "at least 1e-06"),
        ("learning_rate", math.inf, "finite in 32 bits"),
        ("learning_rate", 1e39, "finite in 32 bits"),
        ("weight_decay", -1e-4, "0 or more"),
        ("td_lambda", 1.5, "from 0 to 1"),
        ("minutes", 0.0, "above 0"),
        ("minutes", math.nan, "above 0"),
        ("match_games", 7, "even"),
        ("name", " ", "not empty"),
        ("name", "a/b", "one folder"),
        ("name", "a\\b", "one folder"),
        ("name", "..", "one folder"),
        ("name", "best@5", "without `@` and `:`"),
        ("name", "best:200", "without `@` and `:`"),
        ("name", "two\nlines", "can be printed"),
        ("runs", "a\0b", "can be printed"),
        ("runs", "--runs", "no - in front"),
        ("replay", 8191, "`games` * `steps` = 8192"),
        ("warmup_updates", 4320, "fewer than `iterations` * `updates` = 4320"),
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


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Config)])
def test_a_value_of_another_type_is_refused_in_every_field(field: str) -> None:
    default = getattr(Config(), field)
    others = {bool: [1, "True"], int: [True, 16.0, "3"], float: [True, 10**400, "3"], str: [3, b"3"]}[type(default)]
    for value in [None, [default], *others]:
        with pytest.raises(ValueError, match=rf"`{field}` is .* \({type(value).__name__}\), expected"):
            Config(**{field: value})


def test_numbers_become_those_of_python() -> None:
    settings = Config(batch=np.int64(3), learning_rate=1, td_lambda=np.float32(0.5))
    assert settings == Config(batch=3, learning_rate=1.0, td_lambda=0.5)
    assert [type(x) for x in (settings.batch, settings.learning_rate, settings.td_lambda)] == [int, float, float]


def test_seeds_that_are_allowed_differ() -> None:
    """`jax.random.key` takes larger ones too, but gives the keys of these again."""
    keys = [tuple(jax.random.key_data(jax.random.key(seed)).tolist()) for seed in (0, 1, 2**31, 2**32 - 1, 2**32)]
    assert len(set(keys[:-1])) == 4 and keys[-1] == keys[0]


def test_every_field_has_a_comment_that_says_what_it_is() -> None:
    lines = Path(config.__file__).read_text().splitlines()
    for field in dataclasses.fields(Config):
        line = next(line for line in lines if line.startswith(f"    {field.name}: "))
        assert "  # " in line, field.name


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda fields: fields | {"width": 3}, r"unknown fields \['width'\]"),
        (
            lambda fields: {name: value for name, value in fields.items() if name != "seed"},
            r"lacks the fields \['seed'\]",
        ),
        (lambda fields: {}, "lacks the fields"),
        (lambda fields: list(fields), "is list in JSON"),
        (lambda fields: None, "is NoneType in JSON"),
        (lambda fields: fields | {"batch": "16"}, r"`batch` is '16' \(str\), expected int"),
        (lambda fields: fields | {"minutes": "5"}, r"`minutes` is '5' \(str\), expected float"),
    ],
)
def test_a_config_of_another_version_is_refused(changed: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.from_json(changed(config.to_json(Config())))
