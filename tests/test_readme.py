"""The README tells the truth: its Python blocks run, its commands exist.

A ```python block runs in a namespace of its own; written as ```python continued it goes on in the one
before. A block without a language right behind it is what it prints. In ```bash blocks every line is a
command, in ```console blocks those behind `$ `.
"""

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


class Block(NamedTuple):
    """One fenced block: the info string behind the fence, the line its text starts in, and the text."""

    info: str
    line: int
    text: str

    def follows(self, other: "Block") -> bool:
        """Tell whether nothing but one empty line lies between the two."""
        return self.line == other.line + other.text.count("\n") + 3


def fenced_blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a markdown text."""
    found = re.finditer(r"^```([^\n]*)\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)
    return [Block(m[1].strip(), markdown[: m.start()].count("\n") + 2, m[2]) for m in found]


def python_blocks() -> list[Block]:
    return [block for block in fenced_blocks(README) if block.info.startswith("python")]


def commands(block: Block) -> list[str]:
    """Return the command lines of a bash or console block."""
    lines = [line.strip() for line in block.text.replace("\\\n", " ").splitlines()]
    if block.info == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if line and not line.startswith("#")]


def check_command(command: str) -> None:
    """Fail unless `command` is one that this checkout knows."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    match words:
        case ["make", *arguments]:
            run(["make", "--dry-run", *arguments])
        case ["bash", script]:
            assert (ROOT / script).is_file()
        case ["python", "-m", "pip", "install", *_] | ["pip", "install", *_]:
            check_install(words)
        case ["python", "-m", *rest]:
            run([sys.executable, "-m", *rest, "--help"])
        case ["python", script, *_]:
            assert (ROOT / script).is_file()
        case ["git", "clone", _] | ["cd", _]:
            pass
        case _:
            pytest.fail(f"`{command}` is in README.md, but {__file__} knows no way to check it.")


def check_install(words: list[str]) -> None:
    """Fail if an extra or a dependency group is named that pyproject.toml does not have."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    extras = [extra for word in words for extra in re.findall(r"^(?:\.|jaxmcts)\[(.*)\]$", word)]
    groups = [after for word, after in itertools.pairwise(words) if word == "--group"]
    for name in extras + groups:
        assert re.search(rf"^{name} = \[", pyproject, flags=re.MULTILINE), f"pyproject.toml has no {name}"


def run(arguments: list[str]) -> None:
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{shlex.join(arguments)}\n{done.stdout}{done.stderr}"


def test_readme_shows_the_library() -> None:
    assert python_blocks(), "README.md has no ```python block"


def test_python_blocks_run_and_print_what_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # they leave runs where they are run
    shown = [block for block in fenced_blocks(README) if not block.info]
    namespace: dict[str, Any] = {}
    for block in python_blocks():
        if "continued" not in block.info.split():
            namespace = {"__name__": "__readme__"}
        # Line numbers in a traceback are those of README.md.
        exec(compile("\n" * (block.line - 1) + block.text, "README.md", "exec"), namespace)
        printed = capsys.readouterr().out
        for output in shown:
            assert not output.follows(block) or printed == output.text


def test_commands_exist() -> None:
    for block in fenced_blocks(README):
        if block.info in ("bash", "console"):
            for command in commands(block):
                check_command(command)


def test_a_wrong_command_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_command("make no-such-target")
    with pytest.raises(AssertionError):
        check_command("pip install jaxmcts[nothing]")
    with pytest.raises(pytest.fail.Exception):
        check_command("frobnicate")


def test_blocks_are_found() -> None:
    example, printed, shell = fenced_blocks("a\n```python\nx\n```\n\n```\n1\n```\n```console\n$ make test\nfine\n```\n")
    assert example == Block("python", 3, "x\n")
    assert printed.follows(example) and not shell.follows(printed)
    assert commands(shell) == ["make test"]
