"""What every test runs under: eight virtual CPU devices, strict ranks, room to compile, and no skipping.

The oracles are part of the test suite, so a missing one is a failure and not a skip.
"""

import importlib.util
import pathlib
from collections.abc import Generator

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")

ORACLES = ("mctx", "pgx", "pyspiel")


def pytest_configure(config: pytest.Config) -> None:
    """Stop at once, with a reason, where an oracle is not installed."""
    del config
    missing = [name for name in ORACLES if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(f"The tests compare against {missing}, not installed here: run `make test`.")


@pytest.fixture(scope="module", autouse=True)
def _room_to_compile() -> Generator[None]:
    """Forget compiled programs before they are too many: Linux ends a process that has 65,530 pieces of memory mapped.

    Every program takes some, and the one that finds no room is a segmentation fault of the compiler.
    """
    yield
    pieces = pathlib.Path("/proc/self/maps")
    if pieces.exists() and pieces.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_skipped(report)
    return report


def _fail_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skips are failures here, so that nothing is left out silently: {report.longrepr}"
