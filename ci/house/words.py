"""Words that were given up, because each meant two things. The glossary is in .github/CONTRIBUTING.md.

Reads every text file but the change log, which names what was renamed, and this folder."""

import re

# (pattern, what to say instead). Patterns are of the old meaning alone: the 1F1B schedule keeps its name.
RETIRED = [(re.compile(pattern), instead) for pattern, instead in (
    (r"--schedules?\b|\bSCHEDULES=", "--timings N, --timing POLICY: a simulated run has a timing"),
    (r"\bschedule_(?:hash|steps|seed)\b|\bnew_schedule\b|\bScheduleRange\b|\b(?:Split|Compare|Merge|Note)Schedules\b"
     r"|runner/schedules\b|\b(?:another|any|the same) schedule\b(?! node)", "timing: a simulated run has one"),
    (r"\benum class Strategy\b|\bStrategy::k|\b(?:Parse|Gen)Strategy\b|\bStrategyName\b|sim/strategy\b",
     "TimingPolicy (of the simulator) or ShardingStrategy (of parameters)"),
    (r"\brunner/timing/|//conformance/runner/timing\b|\bgpu_timing", "runner/measure, gpu_step_time: a measurement"),
    (r"\b(?:Planned|Pass)Turn\b|\bPlanTurn\b|\bPartName\b|\bstruct Turn\b|\breference::Turn\b|\bschedule::Part\b"
     r"|\bLayerParts\b|\b[Pp]ieces? of the (?:1F1B )?schedule\b|\bpieces of a (?:combined )?step\b",
     "schedule node (ScheduleNode, LayerNode)"),
    (r"\binvariants? E\d|\bE1 to E38\b", "EP-01 to EP-38: E0 to E3 are profiles of devices"),
    (r"\bStageOf\b|\bOnStage\b", "another word: a stage is a pipeline's"),
)]

_TEXT = (".cc", ".c", ".h", ".hpp", ".inc", ".md", ".toml", ".patch", ".sh", ".py", ".bzl", ".yml", ".txt", "BUILD")
_LEFT_OUT = ("ci/house/", ".github/CHANGELOG.md")
# It asks that the old options are usage errors.
_OLD_OPTION = re.compile(r"'not expected: \w+ --schedules?' run ")


def _read(name):
    plain = "." not in name.rsplit("/", 1)[-1] and name.startswith("ci/")  # the commands of ci/
    return (name.endswith(_TEXT) or plain) and not name.startswith(_LEFT_OUT)


def problems(sources):
    """Pairs of key and message: "FILE WORD", where it stands and what to say instead."""
    for name in filter(_read, sources.files):
        for number, line in enumerate(sources.text(name).splitlines(), 1):
            if _OLD_OPTION.search(line):
                continue
            for pattern, instead in RETIRED:
                for found in pattern.finditer(line):
                    yield f"{name} {found[0]}", f'{name}:{number}: "{found[0]}" is given up: {instead}'
