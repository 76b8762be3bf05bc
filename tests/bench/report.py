"""What a benchmark leaves behind: tables on the screen, a JSON file and a picture."""

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

from tests.bench.duel import CONTESTANTS, Row

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Describe where and when this runs."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [x for x in info.read_text().splitlines() if x.startswith("model name")] if info.exists() else []
    return names[0].split(":")[1].strip() if names else platform.processor()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True).stdout.strip()


def table(rows: list[Row]) -> str:
    """Lay out rows as text; a column is a key of any row."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns] + [[_cell(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def save(sections: dict[str, list[Row]], name: str) -> Path:
    """Write `results/NAME.json` and, if the speed section ran, `results/NAME.png`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "sections": sections}, indent=1) + "\n")
    if sections.get("speed"):
        plot(sections["speed"], path.with_suffix(".png"))
    return path


def plot(rows: list[Row], path: Path) -> None:
    """Draw the simulations per second of every contestant at every size."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.6 * len(rows) + 1.5), layout="constrained")
    for i, name in enumerate(CONTESTANTS):
        places = [place + 0.2 * (i - 1.5) for place in range(len(rows))]
        bars = axes.barh(places, [row[f"{name} /s"] for row in rows], height=0.18, label=name)
        if name == "jaxmcts":
            axes.bar_label(bars, [f"{row['jaxmcts / mctx']:g} x mctx" for row in rows], padding=3, fontsize=8)
    axes.set_yticks(range(len(rows)), [row["cell"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("simulations per second; batch x actions x simulations; C++ on one thread")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)
