"""Checks a repaired copy of a Trackio project with Trackio's own reader.

    python trackio.py SOURCE COPY

SOURCE and COPY are folders that hold <project>.db, or such files. Exit status 1 and words where the copy is
not what it should be. Needs trackio (0.24 or later); nothing is sent anywhere. Both are copied to a folder of their
own first, because Trackio writes to what it opens.
"""

import collections, math, os, shutil, sqlite3, sys, tempfile

MARKER = "inquest/failed_segment"
TITLE = "inquest: non-finite segment"


def stage(path, to):
    os.makedirs(to)
    folder, names = (path, os.listdir(path)) if os.path.isdir(path) else (os.path.dirname(path) or ".", [os.path.basename(path) + s for s in ("", "-wal", "-journal")])
    for name in names:
        if os.path.isfile(os.path.join(folder, name)) and not name.endswith((".parquet", "-shm", ".lock")):
            shutil.copy(os.path.join(folder, name), os.path.join(to, name))


def without_alerts(folder):
    """Whether a version of Trackio that knows no alerts wrote the databases."""
    for name in os.listdir(folder):
        if name.endswith(".db"):
            with sqlite3.connect(os.path.join(folder, name)) as c:
                if c.execute("SELECT count(*) FROM sqlite_master WHERE name = 'alerts'").fetchone()[0] == 0:
                    return True
    return False


def read(folder, out):
    """The values of all runs by project, run and key; runs in a child of this process, as TRACKIO_DIR is read once."""
    import json, subprocess

    code = """
import json, math, sys
from trackio.sqlite_storage import SQLiteStorage as S
all = {}
S.migrate_all_projects() if hasattr(S, "migrate_all_projects") else None
for project in S.get_projects():
    for rec in S.get_run_records(project):
        run, rid = rec.get("name") or rec.get("run_name"), rec.get("id") or rec.get("run_id")
        rows = S.get_logs(project, run, run_id=rid) + S.get_system_logs(project, run, run_id=rid)
        points = []
        for row in rows:
            for k, v in row.items():
                if k in ("step", "timestamp") or isinstance(v, bool) or not isinstance(v, (int, float)):
                    continue
                points.append([k, row.get("step"), repr(float(v))])
        alerts = [[a.get("title"), a.get("level"), a.get("step")] for a in S.get_alerts(project, run)]
        all[project + "/" + run] = {"points": points, "alerts": alerts, "config": S.get_run_config(project, run, run_id=rid) or {}}
json.dump(all, open(sys.argv[1], "w"))
"""
    env = dict(os.environ, TRACKIO_DIR=folder, HF_HUB_OFFLINE="1")
    subprocess.run([sys.executable, "-c", code, out], env=env, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return json.load(open(out))


def main(source, copy):
    wrong = []
    with tempfile.TemporaryDirectory() as d:
        stage(source, d + "/source")
        stage(copy, d + "/copy")
        old = without_alerts(d + "/source")
        was, now = read(d + "/source", d + "/source.json"), read(d + "/copy", d + "/copy.json")
    if not was:
        wrong.append("Trackio finds no run in the source")
    finite = lambda v: math.isfinite(float(v))
    for name, run in was.items():
        if name not in now:
            wrong.append(f"run {name} is not in the copy")
            continue
        kept = now[name]["points"]
        bad = [p for p in kept if not finite(p[2])]
        if bad:
            wrong.append(f"{name}: {len(bad)} values of the copy are not finite, the first {bad[0]}")
        count = lambda points: collections.Counter(tuple(p) for p in points if p[0] != MARKER and finite(p[2]))
        before, after = count(run["points"]), count(kept)
        if before != after:
            wrong.append(f"{name}: finite values differ: lost {list((before - after).items())[:3]}, new {list((after - before).items())[:3]}")
        if any(not finite(p[2]) for p in run["points"]):
            marks = [p for p in kept if p[0] == MARKER and float(p[2]) == 1]
            if not marks:
                wrong.append(f"{name}: no mark of the failed segment")
            if not old and not any(a[0] == TITLE and a[1] == "error" for a in now[name]["alerts"]):
                wrong.append(f"{name}: no alert: {now[name]['alerts']}")
            if "inquest" not in now[name]["config"]:
                wrong.append(f"{name}: the configuration does not name the repair")
    for w in wrong:
        print(w)
    if not wrong:
        print(f"trackio reads the copy: {len(was)} runs, {sum(len(r['points']) for r in now.values())} values, all finite")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
