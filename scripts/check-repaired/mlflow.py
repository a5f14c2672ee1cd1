#!/usr/bin/env python3
"""Has MLflow's client read a store and its repaired copy, and compares: mlflow.py SOURCE COPY

Each is a database, a folder with databases, a file store (mlruns) or a folder with one. No value of the copy
may be non-finite or stand for an infinity where one was taken out, every finite one of the source must be
there with its step and time, and each run that lost one must show the marker, the tags and the note, and no
longer be on record as running. Exits with 1 and says what is wrong. Needs mlflow; databases are copied aside
first, because opening one can change it.
"""
import collections, glob, json, math, os, re, shutil, sys, tempfile

# This script's own name is that of the package.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import logging

logging.disable(logging.WARNING)

from mlflow.entities import ViewType
from mlflow.tracking import MlflowClient

MARKER = "inquest/failed_segment"
CLAMP = sys.float_info.max


def stores(path, scratch):
    """The tracking addresses of what lies at a path."""
    names = [path] if os.path.isfile(path) else sorted(glob.glob(glob.escape(path) + "/**/*.db", recursive=True))
    for i, name in enumerate(names):
        to = os.path.join(scratch, str(i))
        os.makedirs(to)
        for end in ("", "-wal", "-journal"):
            if os.path.exists(name + end):
                shutil.copy(name + end, os.path.join(to, "store.db" + end))
        yield "sqlite:///" + os.path.join(to, "store.db"), None
    if os.path.isdir(path):
        roots = {os.path.dirname(os.path.dirname(os.path.dirname(m))) for m in glob.glob(glob.escape(path) + "/**/meta.yaml", recursive=True) if re.search(r"/[0-9a-f]{32}/meta\.yaml$", m)}
        for root in sorted(roots or {os.path.dirname(os.path.dirname(path))} if not names else roots):
            # The client of a file store makes what is missing, so it gets a copy as well.
            to = os.path.join(scratch, "files%d" % len(os.listdir(scratch)))
            shutil.copytree(root, to, ignore=shutil.ignore_patterns("artifacts"))
            yield "file:" + to, to


def torn(root, run, key):
    """The lines of a metric that MLflow refuses, read by hand."""
    for name in glob.glob(os.path.join(root, "*", run, "metrics", key)):
        for line in open(name, "rb"):
            try:
                fields = line.decode().split()
                if line.endswith(b"\n") and len(fields) in (2, 3):
                    yield int(fields[0]), float(fields[1]), int(fields[2]) if len(fields) > 2 else 0
            except ValueError:
                pass


def read(path, scratch):
    """Runs by id: (run, points by series as a multiset of (step, time, value))."""
    runs = {}
    for uri, root in stores(path, scratch):
        client = MlflowClient(tracking_uri=uri)
        ids = [e.experiment_id for e in client.search_experiments(view_type=ViewType.ALL)]
        keys = collections.defaultdict(set)
        if root:
            for name in glob.glob(os.path.join(glob.escape(root), "*", "*", "metrics", "**"), recursive=True):
                if os.path.isfile(name):
                    run, key = re.search(r"/([0-9a-f]{32})/metrics/(.*)$", name.replace(os.sep, "/")).groups() if re.search(r"/[0-9a-f]{32}/metrics/", name) else (None, None)
                    keys[run].add(key)
        token = None
        found = []
        if root:
            found = [client.get_run(run) if not (keys[run] and bad(client, run)) else plain(root, run) for run in sorted(r for e in ids for r in os.listdir(os.path.join(root, e)) if re.fullmatch("[0-9a-f]{32}", r))]
        else:
            while True:
                page = client.search_runs(ids, run_view_type=ViewType.ALL, max_results=1000, page_token=token)
                found += page
                token = page.token
                if not token:
                    break
        for run in found:
            points = {}
            for key in set(run.data.metrics) | keys[run.info.run_id]:
                try:
                    history = [(m.timestamp, m.value, m.step) for m in client.get_metric_history(run.info.run_id, key)]
                except Exception:
                    if not root:
                        raise
                    history = list(torn(root, run.info.run_id, key))
                points[key] = collections.Counter((step, time, repr(float(value))) for time, value, step in history)
            runs[run.info.run_id] = run, points
    return runs


def bad(client, run):
    try:
        client.get_run(run)
        return False
    except Exception:
        return True


class plain:
    """A run that MLflow's client refuses because of a torn line."""

    def __init__(self, root, run):
        (folder,) = glob.glob(os.path.join(root, "*", run))
        meta = dict(line.rstrip().split(": ", 1) for line in open(os.path.join(folder, "meta.yaml")) if ": " in line)
        tags = {name: open(os.path.join(folder, "tags", name)).read() for name in os.listdir(os.path.join(folder, "tags"))} if os.path.isdir(os.path.join(folder, "tags")) else {}
        self.info = collections.namedtuple("info", "run_id status end_time")(run, {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}.get(meta["status"]), meta["end_time"])
        self.data = collections.namedtuple("data", "metrics params tags")({}, {}, tags)


def main(source, copy):
    wrong = []
    scratch = tempfile.mkdtemp()
    try:
        for side in ("source", "copy"):
            os.makedirs(os.path.join(scratch, side))
        before = read(source, os.path.join(scratch, "source"))
        after = read(copy, os.path.join(scratch, "copy"))
    finally:
        shutil.rmtree(scratch)
    if not after:
        wrong.append("the copy has no runs")
    kept = lost = 0
    for id, (run, points) in sorted(after.items()):
        if id not in before:
            wrong.append(f"run {id} is not in the source")
            continue
        was, old = before[id]
        say = lambda text: wrong.append(f"run {id}: {text}")
        affected = 0
        for key, had in old.items():
            has = points.get(key, collections.Counter())
            for (step, time, value), n in had.items():
                v = float(value)
                if not math.isfinite(v):
                    affected += n
                elif has[step, time, value] < n:
                    if abs(v) == CLAMP:
                        affected += n
                    else:
                        say(f"{key} lacks {value} at step {step}")
                else:
                    kept += n
        lost += affected
        for key, has in points.items():
            for step, time, value in has:
                v = float(value)
                if not math.isfinite(v):
                    say(f"{key} is {value} at step {step}")
            if key not in old and key != MARKER:
                say(f"{key} is new")
        shown = dict(run.data.metrics)
        for key, value in shown.items():
            if not math.isfinite(value):
                say(f"the latest value of {key} is {value}")
            rest = [(step, time, float(v)) for step, time, v in points.get(key, ())]
            if rest and max(rest)[2] != value:
                say(f"the latest value of {key} is {value}, not {max(rest)[2]}")
        for key, value in was.data.params.items():
            if run.data.params.get(key) != value and not isinstance(was, plain):
                say(f"param {key} is {run.data.params.get(key)!r}, was {value!r}")
        if not affected:
            continue
        if not any(float(v) == 1 for _, _, v in points.get(MARKER, ())):
            say("the marker series is not there")
        tags = run.data.tags
        if tags.get("inquest.repaired") != "true":
            say("the tag inquest.repaired is not there")
        try:
            json.loads(tags.get("inquest.failed_segment", ""))
        except ValueError:
            say("the tag inquest.failed_segment is no JSON")
        note, first = tags.get("mlflow.note.content", ""), was.data.tags.get("mlflow.note.content", "")
        if "Repaired copy" not in note or not note.startswith(first):
            say("the description does not hold the note behind what it was")
        if was.info.status == "RUNNING" and run.info.status not in ("FAILED", "KILLED"):
            say(f"its status is {run.info.status}")
        if was.info.status == "RUNNING" and not run.info.end_time:
            say("it has no time of an end")
    for text in wrong:
        print(text)
    if wrong:
        return 1
    print(f"{len(after)} runs, {kept} values kept, {lost} taken out: all is right")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
