"""GitHub and GitLab, as far as the gate needs them: they run the commands of its files, keep artifacts, and have comments."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

import yaml

# gh for the test: runs and artifacts are folders, comments a file. FAKE names the folder.
GH = r'''#!/usr/bin/env python3
import json, os, pathlib, shutil, sys
fake, arguments = pathlib.Path(os.environ["FAKE"]), sys.argv[1:]
option = lambda name: arguments[arguments.index(name) + 1]
comments = fake / "comments.json"
told = json.loads(comments.read_text()) if comments.exists() else []
if arguments[:2] == ["run", "list"]:
    assert option("--branch") == "main" and option("--event") == "push" and option("--workflow") == "their workflow"
    print("\n".join(sorted((run.name for run in (fake / "runs").iterdir() if (run / "main").exists()), key=int, reverse=True)))
elif arguments[:2] == ["run", "download"]:
    artifact = fake / "runs" / arguments[2] / option("--name")
    if not artifact.is_dir():
        sys.exit(1)
    shutil.copytree(artifact, option("--dir"), dirs_exist_ok=True)
elif "--method" not in arguments:
    number = next(int(a.split("/")[-2]) for a in arguments if a.startswith("repos/"))
    print("\n".join(str(c["id"]) for c in told if c["on"] == number and c["body"].startswith("<!-- shardproof -->")))
else:
    if os.environ["GH_TOKEN"] != "writes":
        sys.exit("HTTP 403: Resource not accessible by integration")
    path = next(a for a in arguments if a.startswith("repos/"))
    body = pathlib.Path(option("--field").removeprefix("body=@")).read_text()
    if option("--method") == "PATCH":
        next(c for c in told if c["id"] == int(path.split("/")[-1]))["body"] = body
    else:
        told.append({"id": 100 + len(told), "on": int(path.split("/")[-2]), "body": body})
    comments.write_text(json.dumps(told))
'''

# curl for the test: what is none of GitLab's it leaves to the real one.
CURL = r'''#!/usr/bin/env python3
import json, os, pathlib, shutil, sys
fake, arguments = pathlib.Path(os.environ["FAKE"]), sys.argv[1:]
option = lambda name: arguments[arguments.index(name) + 1]
url = next(a for a in arguments if "://" in a)
comments = fake / "comments.json"
told = json.loads(comments.read_text()) if comments.exists() else []
if url.startswith("file://"):
    sys.stdout.buffer.write(pathlib.Path(url.removeprefix("file://")).read_bytes())
elif "/jobs/artifacts/main/download?job=shardproof-verdict" in url:
    assert option("--header") == "JOB-TOKEN: job"
    if not (fake / "kept").is_dir():
        sys.exit("curl: (22) 404")
    made = shutil.make_archive(str(fake / "reports"), "zip", fake / "kept")
    shutil.copy(made, option("--output"))
else:
    assert option("--header") == "PRIVATE-TOKEN: project"
    number = int(url.split("merge_requests/")[1].split("/")[0])
    if "--request" not in arguments:
        print(json.dumps([c for c in told if c["on"] == number]))
        sys.exit()
    body = pathlib.Path(option("--form").removeprefix("body=<")).read_text()
    if option("--request") == "PUT":
        next(c for c in told if c["id"] == int(url.split("/")[-1]))["body"] = body
    else:
        told.append({"id": 100 + len(told), "on": number, "body": body})
    comments.write_text(json.dumps(told))
'''


def _program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Host:
    """log: what the commands of the last push printed."""

    def __init__(self, place):
        self.place, self.log = place, ""
        (place / "runs").mkdir()
        _program(place / "bin/gh", GH)
        _program(place / "bin/curl", CURL)

    def sh(self, command, folder, variables, shell=("bash", "-e", "-o", "pipefail", "-c")):
        environment = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
        environment |= {"PATH": f"{self.place / 'bin'}:{os.environ['PATH']}", "FAKE": str(self.place)} | variables
        run = subprocess.run([*shell, command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=300, check=False)
        self.log += f"$ {command}\n{run.stdout}"
        return run.returncode == 0

    def comments(self):
        """{number of the request: bodies}."""
        file, found = self.place / "comments.json", {}
        for comment in json.loads(file.read_text()) if file.exists() else []:
            found.setdefault(comment["on"], []).append(comment["body"])
        return found


class Github(Host):
    """lose: an artifact that is not kept. read_only: the token may not write."""

    def __init__(self, workflow, archive, place, inputs):
        super().__init__(place)
        self.workflow = yaml.safe_load(workflow.read_text())
        # YAML 1.1 takes "on" for true.
        declared = self.workflow[True]["workflow_call"]["inputs"]
        assert set(inputs) <= set(declared)
        assert all(name in inputs for name, each in declared.items() if each.get("required"))
        self.inputs = {name: each.get("default") for name, each in declared.items()} | inputs
        self.archive, self.lose, self.read_only = archive, None, False
        # The suite's repository: its two commands of the workflow, without the half hour.
        _program(place / "bin/bazel", f'[[ "$*" == "build //:dist" ]] && mkdir -p bazel-bin/conformance/dist &&\n'
                 f"cp {archive} bazel-bin/conformance/dist/shardproof.tar.gz\n")
        _program(place / "suite/ci/setup", "true\n")

    def push(self, files, request):
        self.log = ""
        self.run = self.place / "runs" / str(1 + len(list((self.place / "runs").iterdir())))
        self.run.mkdir()
        if request is None:
            (self.run / "main").touch()
        self.files = files
        self.context = {"inputs": self.inputs, "needs": {}, "github": {
            "token": "reads" if self.read_only else "writes",
            "event": {"repository": {"default_branch": "main"}, "pull_request": {"number": request}}}}
        for name, job in self.workflow["jobs"].items():
            needs = job.get("needs", [])
            good = all(self.context["needs"][each]["result"] == "success" for each in ([needs] if isinstance(needs, str) else needs))
            if not self._true(job["if"]) if "if" in job else not good:
                self.context["needs"][name] = {"result": "skipped", "outputs": {}}
                continue
            self._job(name, job)
        return all(job["result"] == "success" for job in self.context["needs"].values())

    def kept(self, path):
        return (self.run / "shardproof-reports" / path).read_text()

    def _job(self, name, job):
        results, outputs = [], {}
        for values in self._matrix(job):
            context = self.context | {"matrix": values, "steps": {}}
            folder = self.run / f"work-{name}-{len(results)}"
            folder.mkdir()
            results.append(self._steps(job, folder, context))
            outputs = {key: self._fill(value, context) for key, value in job.get("outputs", {}).items()}
        self.context["needs"][name] = {"result": "success" if all(results) else "failure", "outputs": outputs}

    def _matrix(self, job):
        if "strategy" not in job:
            return [{}]
        assert job["strategy"]["fail-fast"] is False
        ((key, values),) = job["strategy"]["matrix"].items()
        return [{key: value} for value in self._value(values[3:-2].strip(), self.context)]

    def _steps(self, job, folder, context):
        good = True
        for step in job["steps"]:
            runs = self._true(step["if"], context) and (good or "always()" in step["if"]) if "if" in step else good
            if not runs:
                continue
            if "uses" in step:
                done = self._uses(step["uses"], {key: self._fill(value, context) for key, value in step.get("with", {}).items()}, folder)
            else:
                done = self._run(step, job, folder, context)
            good = good and (done or step.get("continue-on-error", False))
        return good

    def _run(self, step, job, folder, context):
        assert "${{" not in step["run"], "text of others in a command: " + step["run"]
        variables = {key: self._fill(value, context) for key, value in (job.get("env", {}) | step.get("env", {})).items()}
        output = folder / "GITHUB_OUTPUT"
        output.touch()
        variables |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_WORKFLOW": "their workflow",
                      "GITHUB_REPOSITORY": "them/engine"}
        done = self.sh(step["run"], folder, variables)
        if "id" in step:
            pairs = (line.partition("=") for line in output.read_text().splitlines())
            context["steps"][step["id"]] = {"outputs": {key: value for key, _, value in pairs}}
        return done

    def _uses(self, action, given, folder):
        name = action.partition("@")[0]
        if name == "actions/checkout" and "repository" in given:
            shutil.copytree(self.place / "suite", folder, dirs_exist_ok=True)
        elif name == "actions/checkout":
            for path, text in self.files.items():
                (folder / path).write_text(text)
        elif name == "actions/upload-artifact":
            return self._upload(given["name"], [folder / path for path in given["path"].split()])
        elif name == "actions/download-artifact":
            for artifact in self.run.glob(given.get("name") or given["pattern"]):
                inside = artifact.name if "pattern" in given else ""
                shutil.copytree(artifact, folder / given.get("path", "") / inside, dirs_exist_ok=True)
        else:
            raise AssertionError(f"this host knows no {action}")
        return True

    def _upload(self, name, paths):
        there = [path for path in paths if path.exists()]
        if not there or name == self.lose:
            return True  # a warning, as if-no-files-found says by default
        for path in there:
            # One folder: its contents. Several paths: below the folder that they share.
            at = self.run / name / ("" if len(paths) == 1 and path.is_dir() else path.name)
            if path.is_dir():
                shutil.copytree(path, at, dirs_exist_ok=True)
            else:
                at.parent.mkdir(exist_ok=True)
                shutil.copy(path, at)
        return True

    def _fill(self, text, context):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda m: str(self._value(m[1], context)), str(text))

    def _value(self, expression, context):
        if expression.startswith("fromJSON("):
            return json.loads(self._value(expression[9:-1], context))
        value = context
        for name in expression.split("."):
            value = value[name]
        return "" if value is None else value

    def _true(self, condition, context=None):
        def one(term):
            if term == "always()":
                return True
            left, equals, right = term.partition(" == ")
            value = self._value(left, context or self.context)
            return value == right.strip("'") if equals else bool(value)
        return all(one(term) for term in condition.split(" && "))


class Gitlab(Host):
    def __init__(self, template, place, variables):
        super().__init__(place)
        self.template, self.variables = yaml.safe_load(template.read_text()), variables

    def push(self, files, request):
        self.log = ""
        self.folder = pathlib.Path(self.place / f"work-{len(list(self.place.glob('work-*')))}")
        self.folder.mkdir()
        for path, text in files.items():
            (self.folder / path).write_text(text)
        default = {key: str(value) for key, value in self.template["variables"].items()}
        told = {"CI_JOB_TOKEN": "job", "CI_PROJECT_ID": "5", "CI_API_V4_URL": "https://gitlab.invalid/api/v4", "CI_DEFAULT_BRANCH": "main",
                "SHARDPROOF_TOKEN": "project", "CI_MERGE_REQUEST_IID": str(request or "")}
        good = True
        for name in ("shardproof-judge", "shardproof-verdict"):
            job = self.template[job_base := self.template[name]["extends"]] | self.template[name]
            assert job_base == ".shardproof" and job["artifacts"]["when"] == "always"
            for node in range(1, job.get("parallel", 1) + 1):
                variables = default | told | self.variables | {"CI_NODE_INDEX": str(node), "CI_NODE_TOTAL": str(job.get("parallel", 1))}
                good = self.sh("\n".join(job["before_script"] + job["script"]), self.folder, variables) and good
        if request is None and good:  # GitLab has the artifacts of pipelines that succeeded
            shutil.rmtree(self.place / "kept", ignore_errors=True)
            for path in self.template["shardproof-verdict"]["artifacts"]["paths"]:
                shutil.copytree(self.folder / path, self.place / "kept" / path)
        return good

    def kept(self, path):
        return (self.folder / path).read_text()
