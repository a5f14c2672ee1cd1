#!/usr/bin/env python3
"""Compares what inquest reads of each tracker with what the training loop logged.

    check.py INQUEST DIR

DIR was made by train.py, killed once and resumed. For every tracker the steps and
values that `inquest tracker show --format csv` prints must be those of DIR/truth.jsonl to the
format's precision, and the first step that is not finite the same. What a killed writer had not
yet put on disk may be missing at the end of the first start, and where a format does not keep
such values, or lost some, the report must say what it cannot show. Exits 1 with one line for each difference.
"""

import csv
import glob
import io
import json
import math
import os
import struct
import subprocess
import sys

KEYS = ("loss", "grad_norm", "learning_rate")


def float32(v):
    try:
        return struct.unpack("<f", struct.pack("<f", v))[0]
    except OverflowError:
        return math.inf if v > 0 else -math.inf


def zeroed(v):
    return 0.0 if not math.isfinite(v) else v


def clamped(v):
    return math.copysign(1.7976931348623157e308, v) if math.isinf(v) else v


def exact(v):
    return v


# For each tracker: the paths below DIR, what its format makes of a value, how it names a
# series, and whether a resume keeps the steps written twice.
TRACKERS = {
    "tensorboard": (["tensorboard"], float32, "{}", "all"),
    "tensorboardx": (["tensorboardx"], float32, "{}", "all"),
    "wandb": (["wandb"], exact, "{}", "all"),
    "mlflow": (["mlflow.db"], clamped, "{}", "all"),
    "mlflow-files": (["mlruns"], exact, "{}", "all"),
    "trackio": (["trackio"], exact, "{}", "all"),
    "lightning": (["lightning_logs"], exact, "{}", "all"),
    "swanlab": (["swanlog"], exact, "{}", "all"),
    "dvclive": (["dvclive"], exact, "{}", "all"),
    "clearml": (["clearml/offline/*[0-9a-f]"], zeroed, "{0}/{0}", "all"),
    "comet": (["comet"], exact, "{}", "all"),
    "trainer_state": (["trainer/trainer_state.json"], exact, "{}", "later"),
    "jsonl": (["run1.jsonl"], exact, "{}", "all"),
}

# Those whose files cannot hold what is not finite: the report has to say so.
LOSSY = {"clearml", "mlflow"}

# Those that hold rows back, so that a killed run misses its last ones.
BUFFERED = {"swanlab", "wandb", "comet", "clearml"}


def same(a, b):
    return a == b or math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-12)


def points(inquest, paths):
    out = subprocess.run([inquest, "tracker", "show", "--format", "csv", *paths], capture_output=True, text=True)
    got = {}
    for r in csv.DictReader(io.StringIO(out.stdout)):
        got.setdefault(r["series"], []).append((int(r["step"]) if r["step"] else None, float(r["value"].replace("Infinity", "inf"))))
    return got, out.stderr


def main():
    inquest, root = sys.argv[1:]
    rows = [json.loads(l) for l in open(os.path.join(root, "truth.jsonl"))]
    missing = {}
    for name in glob.glob(os.path.join(root, "missing-*.json")):
        missing.update(json.load(open(name)))
    later = {}
    for r in rows:
        later[r["step"]] = r
    wrong, read, gone = [], [], {}
    for tracker, (paths, form, name, keeps) in TRACKERS.items():
        if tracker in missing:
            print(f"{tracker}: not written: {missing[tracker]}")
            continue
        where = [p for pattern in paths for p in sorted(glob.glob(os.path.join(root, pattern)))]
        if not where:
            continue
        got, err = points(inquest, where)
        expected = rows if keeps == "all" else sorted(later.values(), key=lambda r: r["step"])
        if keeps == "later":
            first = min(s for s, _ in got.get("loss", [(0, 0)]))
            expected = [r for r in expected if r["step"] >= first]
        before = len(wrong)
        for key in KEYS:
            want = [(r["step"], form(r[key])) for r in expected]
            have = got.get(name.format(key), [])
            lost = len(want) - len(have)
            killed = [i for i, r in enumerate(expected) if r["segment"] == 0]
            if tracker in BUFFERED and 0 < lost <= len(killed) and os.path.exists(os.path.join(root, "killed")):
                want = [w for i, w in enumerate(want) if i not in killed[-lost:]]
                gone[tracker] = lost
            if len(have) != len(want):
                wrong.append(f"{tracker} {key}: {len(have)} points instead of {len(want)} {err.strip()[:200]}")
                continue
            # Stores without an order of their own give the points by step.
            if sorted(s for s, _ in have) != sorted(s for s, _ in want):
                wrong.append(f"{tracker} {key}: other steps than were logged")
                continue
            order = lambda p: (p[0], str(p[1]))
            for (s, a), (_, b) in zip(sorted(have, key=order), sorted(want, key=order)):
                if not same(a, b):
                    wrong.append(f"{tracker} {key} step {s}: {a} instead of {b}")
                    break
        shown = json.loads(subprocess.run([inquest, "tracker", "show", "--format", "json", *where], capture_output=True, text=True).stdout)
        bad = [s["first_nonfinite"]["at"]["step"] for r in shown["runs"] for s in r["series"] if s["name"] == name.format("loss") and s["first_nonfinite"]]
        truth = next(r["step"] for r in expected if not math.isfinite(r["loss"]))
        if form is zeroed:
            if not any(r["cannot_show"] for r in shown["runs"]):
                wrong.append(f"{tracker}: does not say that it cannot show NaN")
        elif not bad or min(bad) != truth:
            wrong.append(f"{tracker}: first non-finite loss at {bad} instead of {truth}")
        if (tracker in LOSSY or tracker in gone) and not all(r["cannot_show"] for r in shown["runs"]):
            wrong.append(f"{tracker}: a format that loses values without a word about it")
        if len(wrong) == before:
            read.append(tracker)
    print(f"{len(read)} trackers read as they were written: {', '.join(read)}")
    for tracker, lost in gone.items():
        print(f"{tracker}: the last {lost} of {len([r for r in rows if r['segment'] == 0])} steps before the kill are not on disk")
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
