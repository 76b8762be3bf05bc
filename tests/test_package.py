"""What is shipped: a wheel that holds `jaxmcts` alone and needs nothing but JAX and NumPy."""

import os
import re
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import grimp
import pytest

from tests.test_readme import Block, python_blocks

ROOT = Path(__file__).parent.parent
ALLOWED = {"jax", "numpy"}


def run(*arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run a command away from the checkout's Python path; fail with its output."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    command = [str(argument) for argument in arguments]
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    return python


def library_example() -> Block:
    """Return the README's first Python block that needs the library alone."""
    blocks = [b for b in python_blocks() if not re.search(r"^\s*(from|import) (envs|train)\b", b.text, re.MULTILINE)]
    assert blocks, "README.md has no Python block that imports neither envs nor train"
    return blocks[0]


def test_wheel_contents(wheel: Path) -> None:
    run(sys.executable, "-m", "check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel)


def test_wheel_holds_the_library_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"jaxmcts"}
    assert "jaxmcts/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_installed_library_runs_the_readme(installed: Path, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(library_example().text)
    run(installed, "-W", "error", script, cwd=tmp_path)


def test_installed_library_comes_alone(installed: Path, tmp_path: Path) -> None:
    code = """
        import importlib.util as util
        unwanted = ["envs", "train", "tests", "flax", "optax", "orbax", "rich", "tyro", "mctx", "pgx"]
        print([name for name in unwanted if util.find_spec(name) is not None])
    """
    assert run(installed, "-c", textwrap.dedent(code), cwd=tmp_path).strip() == "[]"


@pytest.mark.parametrize("package", ["jaxmcts", "envs"])
def test_import_touches_no_device(package: str) -> None:
    code = f"""
        import {package}
        from jax._src import xla_bridge
        print(xla_bridge.backends_are_initialized())
    """
    assert run(sys.executable, "-c", textwrap.dedent(code)).strip() == "False"


@pytest.mark.parametrize("package", ["jaxmcts", "envs"])
def test_few_dependencies(package: str) -> None:
    graph = grimp.build_graph(package, include_external_packages=True)
    imported = {imported for name in graph.modules for imported in graph.find_modules_directly_imported_by(name)}
    outside = {name.split(".")[0] for name in imported} - sys.stdlib_module_names - {package}
    pgx_adapter = {"pgx"} if package == "envs" else set()
    assert outside <= ALLOWED | pgx_adapter
