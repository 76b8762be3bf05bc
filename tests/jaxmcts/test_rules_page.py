"""The page on rules tells the truth: what it names exists, what exists is named, and its example runs."""

import doctest
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import jaxmcts
from jaxmcts import amaf, backup, qvalue, readout, root, rules, uncertainty
from tests import worlds
from tests.jaxmcts.searching import params_of
from tests.test_readme import fenced_blocks

PAGE = (Path(jaxmcts.__file__).parent / "rules" / "README.md").read_text()
NAMES = set(re.findall(r"`([a-z0-9_]+(?:\.[a-z0-9_]+)*)(?:\([^`]*\))?`", PAGE))


def public(module: ModuleType) -> dict[str, object]:
    """Return a module's own public functions."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def rules_of(module: ModuleType) -> set[str]:
    """Return the functions of a module that choose an action."""
    return {
        name
        for name in public(module)
        if re.search(r"\b(best|pick)\(|\.categorical\(", inspect.getsource(vars(module)[name]))
    }


MODULES = {name: value for name, value in vars(rules).items() if inspect.ismodule(value)}
MODULES |= {"amaf": amaf, "uncertainty": uncertainty}


def test_every_rule_is_on_the_page():
    named = {name.split(".")[-1] for name in NAMES}
    for name, module in MODULES.items() - {("gumbel", rules.gumbel), ("sampled", rules.sampled)}:
        assert rules_of(module) <= named, f"README.md does not name {rules_of(module) - named} of {name}"


def test_every_gate_backup_and_first_play_urgency_is_on_the_page():
    wanted = {name for module in (backup, amaf, uncertainty) for name in vars(module) if name.endswith("_backup")}
    wanted |= {name for name in public(qvalue) if name.startswith("fpu_")}
    assert wanted <= {name.split(".")[-1] for name in NAMES}


def test_every_name_on_the_page_exists():
    spaces = {**MODULES, "readout": readout, "root": root, "jaxmcts": jaxmcts}
    for name in NAMES:
        space, *rest = name.split(".")
        if rest and space in spaces and rest[0] != "py":
            assert hasattr(spaces[space], rest[0]), name


def test_the_example_runs():
    (block,) = [block for block in fenced_blocks(PAGE) if block.info == "python"]
    world = worlds.random_world(np.random.default_rng(0))
    space: dict[str, Any] = {
        "params": params_of(world), "key": jax.random.key(0), "state": worlds.roots(1), "model": worlds.MODEL
    }  # fmt: skip
    exec(compile(block.text, "README.md", "exec"), space)
    assert int(space["tree"].visits[0, 0].sum()) == 100


def test_the_tables_are_what_the_rules_give():
    """Every `pycon` block is a doctest; they go on one from another."""
    blocks = [block.text for block in fenced_blocks(PAGE) if block.info == "pycon"]
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", None, None)
    assert len(session.examples) > 12
    lines: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=lines.append)
    assert outcome.failed == 0, "".join(lines)
