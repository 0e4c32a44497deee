"""Lines of the table go in, text for people or Markdown comes out, with what the machine is. It measures nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks import devices
from tests.benchmarks.driver import Row

LIBRARIES = ("numpy", "scipy", "torch", "jax", "autograd", "casadi", "polars", "numba", "cupy")
BEGIN, END = "<!-- results: written by --markdown, never by hand -->", "<!-- end of results -->"


def machine() -> dict[str, Any]:
    """The date, the processor, the memory, and the versions of the libraries that are installed."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "gpu": devices.gpu(),
    }


def processor() -> str:
    """The processor's name for itself, and whether it has wide vectors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    name = next((value.strip() for key, value in found.items() if key.strip() == "model name"), "unknown processor")
    flags = next((value for key, value in found.items() if key.strip() == "flags"), "")
    return name + (", AVX-512" if "avx512f" in flags else "")


def told(about: dict[str, Any]) -> str:
    """The machine in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    where = f"{about['processors']} processors ({about['processor']}), {about['memory']} GiB, {about['system']}"
    card = f", {about['gpu']}" if about["gpu"] else ""
    return f"{about['date']}, {where}{card}, Python {about['python']}, {versions}"


def text(lines: list[Row]) -> str:
    """The table as people read it."""
    wide = max([26, *[len(line["name"]) for line in lines]]) + 2
    shown = [f"{'work':{wide}}{'against':24}{'ours ms':>12}{'theirs ms':>12}{'ratio':>8}{'limit':>8}  met"]
    for line in lines:
        ours, theirs = scaled(line)
        head = f"{line['name']:{wide}}{line['against']:24}{ours:12.5g} {theirs:11.5g}"
        shown.append(f"{head}{line['ratio']:8.3g}{line['limit']:8.3g}  {verdict(line)}")
    return "\n".join(shown)


def scaled(line: Row) -> tuple[float, float]:
    """The two figures in the unit of the line: milliseconds, or as they are."""
    factor = 1.0 if line.get("unit", "ms") != "ms" else 1e3
    return line["ours"] * factor, line["yardstick"] * factor


def verdict(line: Row) -> str:
    """Whether the limit is met."""
    return "yes" if line["ratio"] <= line["limit"] else "NO"


def markdown(lines: list[Row], about: dict[str, Any]) -> str:
    """The table for a README; the row of the graphics card says where none could be had."""
    tiny = "; tiny sizes, which say nothing about speed" if any(line["small"] for line in lines) else ""
    shown = [
        f"{told(about)}. Medians{tiny}.",
        "",
        "| work | against | ours | theirs | ratio | limit | met | rounds | load of others |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for line in lines:
        ours, theirs = scaled(line)
        unit = line.get("unit", "ms")
        load = "" if line.get("load") is None else f"{line['load']:.2f}"
        cells = (line["name"], line["against"], f"{ours:.4g} {unit}", f"{theirs:.4g} {unit}", f"{line['ratio']:.3g}")
        shown.append(f"| {' | '.join(cells)} | {line['limit']:.3g} | {verdict(line)} | {line['rounds']} | {load} |")
    if about["gpu"] is None:
        shown.append("| 12 GPU (CuPy) | torch.compile, jax.jit | - | - | - | - | no GPU could be had | | |")
    met = sum(verdict(line) == "yes" for line in lines)
    return "\n".join([*shown, "", f"{met} of {len(lines)} limits are met."])


def write_markdown(path: Path, made: str) -> None:
    """Put the table between the marks of a file, or into a file of its own."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN in old and END in old:
        before, rest = old.split(BEGIN, 1)
        made = f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END, 1)[1]}"
    else:
        made += "\n"
    path.write_text(made, encoding="utf-8")
