"""Command lines come in as JSON; each runs in a process of its own, and what it cost and touched goes out.

A server that has loaded the package forks for every command line: a process costs milliseconds instead of a start-up.
The child may read the script, the package and the Python installation, and start the process for exact arithmetic; an
audit hook notes everything else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

SECONDS = 20
HERE = Path(__file__).resolve().parents[2]
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "pty.spawn")
ORACLE = "; from gradcli.checks.oracle.oracle_server import main; main()"  # where floats lose their digits, exact numbers are asked for
FORBIDDEN += ("socket.", "pickle.find_class", "os.remove", "os.rename", "os.mkdir", "shutil.")


def is_oracle(arguments: tuple[object, ...]) -> bool:
    """Whether a process is the one for exact arithmetic, and nothing but it."""
    program, words, *_ = arguments
    return program == sys.executable and isinstance(words, list) and len(words) == 5 and words[3].endswith(ORACLE)


def child(job: dict[str, object], readable: tuple[str, ...], cli: object) -> None:
    """Run one command line, with standard streams in files; never returns."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(str(job[name]), flags), number)
    os.chdir(str(job["cwd"]))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # what hangs must not hang the tests
    seen: list[str] = []
    report = os.open(str(job["seen"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            if isinstance(path, (str, bytes)):
                place = os.path.realpath(os.fsdecode(path))
                if place == os.devnull:
                    return
                if writes or not place.startswith((*readable, str(job["cwd"]))):
                    seen.append(f"open {place} {mode}")
        elif event == "subprocess.Popen" and is_oracle(arguments):
            return
        elif event.startswith(FORBIDDEN):
            seen.append(f"{event} {arguments!r}"[:200])

    sys.addaudithook(hook)
    code = 70
    try:
        code = cli.main(list(job["argv"]))  # type: ignore[attr-defined, call-overload]
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os.write(report, "\n".join(seen).encode(errors="replace"))
        os._exit(code)


def main() -> None:
    import numpy  # noqa: F401

    import gradcli.calculator
    import gradcli.lowering.data_files.numpy_files
    import gradcli.lowering.data_files.text_files
    import gradcli.rendering.diagnostic_text  # noqa: F401
    from gradcli.interfaces import cli

    prefixes = (str(HERE / "gradcli"), sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), "/usr/lib", "/lib")
    packages = [place for place in sys.path if place.endswith("-packages")]  # an environment may stand on another one
    readable = tuple(os.path.realpath(place) for place in (*prefixes, *packages))
    for line in sys.stdin:
        job = json.loads(line)
        number = os.fork()
        if number == 0:
            child(job, readable, cli)
        _, status, usage = os.wait4(number, 0)
        answer = {
            "status": os.waitstatus_to_exitcode(status),
            "seconds": usage.ru_utime + usage.ru_stime,
            "megabytes": usage.ru_maxrss / 1024,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
