"""Writes the databases of this folder, with Trackio 0.43 and with sqlite3. No network is used."""
import json, os, shutil, sqlite3, subprocess, sys, tempfile

TRAIN = """
import os, sys
os.environ["TRACKIO_DIR"] = sys.argv[1]
import trackio
trackio.init(project="toy", name="nan-run", config={"lr": 1e-3, "batch_size": 32, "model": {"hidden": 64}}, resume="allow")
first = sys.argv[2] == "first"
for i in range(0, 12) if first else range(6, 10):
    loss = 1 / (i + 1) if i < 8 or not first else float("nan")
    norm = 2.0 + i if i < 7 or not first else (float("inf") if i == 7 else float("nan"))
    trackio.log({"train/loss": loss, "grad_norm": norm, "lr": 1e-3 * (12 - i)}, step=i)
    if i == 7:
        trackio.log_system({"gpu/0/allocated_memory": 20.0 + i, "gpu/0/memory_usage": 0.5, "fan": float("nan")})
if first:
    trackio.alert(title="watch out", text="the loss is odd", level=trackio.AlertLevel.WARN)
trackio.finish()
"""

OLD = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_name));
CREATE TABLE system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, metrics TEXT NOT NULL);
CREATE INDEX idx_metrics_run_step ON metrics(run_name, step);
"""


def rows(c, run, first, last, day):
    for i in range(first, last):
        loss = 1 / (i + 1) if i < 8 else "NaN"
        c.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?,?,?,?)",
                  (f"2025-09-{day:02d}T10:00:{i:02d}.500000+00:00", run, i, json.dumps({"loss": loss, "note": "x", "hist": {"_type": "trackio.histogram"}})))


def main():
    with tempfile.TemporaryDirectory() as d:
        env = dict(os.environ, HOME=d, HF_HUB_OFFLINE="1")
        for part in ("first", "again"):
            subprocess.run([sys.executable, "-c", TRAIN, d + "/t", part], env=env, capture_output=True, check=True)
        shutil.copy(d + "/t/toy.db", "real/toy.db")
        for name, log in (("old.db", False), ("wal/toy.db", True)):
            for suffix in ("", "-wal"):
                if os.path.exists(name + suffix):
                    os.remove(name + suffix)
            db = d + "/old.db"
            if os.path.exists(db):
                os.remove(db)
            c = sqlite3.connect(db)
            if log:
                c.execute("PRAGMA journal_mode=WAL")
            c.executescript(OLD)
            c.execute("INSERT INTO configs (run_name, config, created_at) VALUES (?,?,?)", ("a", json.dumps({"lr": 0.1}), "2025-09-01T10:00:00+00:00"))
            rows(c, "a", 0, 10, 1)
            c.commit()
            if log:
                c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                rows(c, "a", 10, 14, 1)
            else:
                rows(c, "b", 0, 6, 2)
            c.commit()
            shutil.copy(db, name)
            if log:
                shutil.copy(db + "-wal", name + "-wal")
            c.close()


main()
