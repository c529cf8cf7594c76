"""Runs an engine on a case in this process's forks, and says which requirements fail."""

import importlib
import json
import pathlib
import subprocess
import tempfile

from shardproof import command
from shardproof.torch.run import command as run


def found(engine, case, stops=None, first_step=None):
    """Requirements with findings, those that follow from others too; without budgets that are a SHOULD, some of which
    published engines exceed.

    stops: a fault's file; the run need not end well, unless that file raised. Where ranks issue
    different operations a rank may be told so in any line, those of the fault too.
    first_step: only findings of this step and later ones.
    AssertionError: the run did not end well, or was not judged.
    """
    for name in run._BEFORE_FORKING:
        importlib.import_module(name)
    from shardproof.torch.run import server

    with tempfile.TemporaryDirectory() as folder:
        traces, report = pathlib.Path(folder) / "traces", pathlib.Path(folder) / "report"
        why = server.run_case(engine, case, traces / case, patience=6.0 if stops else 20.0)
        told = "the ranks issue different operations" in why
        if why and (stops is None or (stops in why and not told)):
            raise AssertionError(f"{case}: {why}")
        subprocess.run(
            [command.find(None), "check", f"trace:{traces / case}", f"--report={report}"],
            capture_output=True,
            check=False,
        )
        rows = [json.loads(line) for line in (report / "report.jsonl").read_text().splitlines()]
    (judged,) = [row for row in rows if "case" in row]
    if judged["status"] not in ("pass", "fail"):
        raise AssertionError(f"{case} was not judged: {judged}")
    return {
        finding["requirement"]
        for finding in judged.get("findings", ())
        if (first_step is None or finding.get("step", -1) >= first_step)
        and finding["requirement"] not in ("BU-02", "BU-06", "BU-07")
    }
