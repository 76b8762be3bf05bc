"""`python -m tests.bench [SECTION ...] [--quick] [--name NAME]`: measure, print tables, keep a JSON file.

Performance is reported and never asserted: the exit code is 0 whatever the numbers are.
"""

import argparse
import importlib
import time

from tests.bench import report
from tests.bench.duel import Row

SECTIONS = {
    "speed": "simulations per second against mctx and C++",
    "mctx_names": "a program written for mctx by mctx and by jaxmcts.mctx",
    "rules": "each rule and backup against PUCT evaluated the same way",
    "grid": "small and large sizes against mctx and C++",
    "growth": "time per simulation as the budget grows",
    "overhead": "a search with a network against its evaluations alone",
    "moves": "moves per second of search, game and network against mctx with pgx",
    "compilation": "first call of each policy",
    "footprint": "memory of a large search",
    "extra_axes": "a caller's own vmap",
    "games": "steps per second of the games against pgx",
}


def main() -> None:
    """Run the sections asked for, all by default."""
    lines = [f"  {name:12} {text}" for name, text in SECTIONS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure the search.\n\nsections:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    parser.add_argument("--name", default="latest", help="of the files in tests/bench/results")
    arguments = parser.parse_args()
    for name in arguments.sections:
        if name not in SECTIONS:
            parser.error(f"unknown section {name!r}: known are {', '.join(SECTIONS)}")

    print(", ".join(f"{key} {value}" for key, value in report.machine().items()))
    results = {}
    for name in arguments.sections or SECTIONS:
        results[name] = run_section(name, arguments.quick)
    print(f"\n{report.save(results, arguments.name)}")


def run_section(name: str, quick: bool) -> list[Row]:
    """Run one section, print its table and how long it took."""
    section = importlib.import_module(f"tests.bench.{name}")
    start = time.perf_counter()
    rows: list[Row] = section.run(quick)
    print(f"\n{name}: {SECTIONS[name]} ({time.perf_counter() - start:.0f} s)\n{report.table(rows)}", flush=True)
    return rows


if __name__ == "__main__":
    main()
