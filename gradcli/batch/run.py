"""The reports on folders of scripts, in the order of the paths whatever the number of workers."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from gradcli.batch.cases import Case
from gradcli.batch.discovery import scripts
from gradcli.batch.supervisor import Task, report_of, supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gradcli.checks.report import Report


def check_paths(
    paths: Iterable[str], options: Mapping[str, Any] | None = None, *, jobs: int | None = None, **more: Any
) -> list[Report]:
    """The reports of all scripts that the paths name or contain, sorted by path.

    The options are those of `checks.check_script`, and `jobs` (default: one worker per processor), `select` and
    `exclude`, patterns as `discovery.scripts` takes them, `progress`, a function of (done, total, label), and
    `cluster`, the address of a Dask scheduler whose workers check in place of local ones.
    """
    told = {**(options or {}), **more}
    cluster = told.pop("cluster", None)
    jobs = told.pop("jobs", None) or jobs or os.cpu_count() or 1
    progress: Callable[..., Any] | None = told.pop("progress", None)
    limits = told.pop("limits", None)
    told["limits"] = None if limits is None else limits.as_dict()
    told["at"] = list(told["at"]) if told.get("at") and not isinstance(told["at"], dict) else told.get("at") or []
    files = scripts(paths, told.pop("select", ()), told.pop("exclude", ()))
    if not files:
        return []
    cases = [Case(path) for path in files]
    tasks = (Task(index, case.path, case.block, case.content()) for index, case in enumerate(cases))
    found: dict[int, Report] = {}
    if cluster is None:
        outcomes = supervise(tasks, told, jobs=jobs)
    else:
        from gradcli.batch.cluster import supervise_on

        outcomes = supervise_on(cluster, tasks, told)
    with closing(outcomes):
        for done in filter(None, outcomes):
            found[done.index] = report_of(done, cases[done.index])
            if progress is not None:
                progress(len(found), len(files), files[done.index])
    return [found[index] for index in range(len(files))]
