"""Checks repaired copies of SwanLab runs with SwanLab's own reader of its logs.

    python swanlab.py SOURCE COPY

SOURCE and COPY are run folders, folders of run folders, or log files of version 2. Exit status 1 and words where the
copy is not what it should be. Needs swanlab (0.10); nothing is sent anywhere: the copy is read with the reader that
swanlab sync uses, as far as that goes before a server is asked.
"""

import collections, glob, math, os, sys

# This script's own name is that of the package.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

from swanlab.proto.swanlab.record.v1.record_pb2 import Record
from swanlab.proto.swanlab.grpc.core.v1.sync_pb2 import DeliverSyncStartRequest
from swanlab.proto.swanlab.run.v1.run_pb2 import RunState
from swanlab.proto.swanlab.settings.core.v1.core_pb2 import CoreSettings
from swanlab.sdk.internal.core_python.sync import CoreSyncPython
from swanlab.sdk.internal.core_python.store import DataStoreReader

MARKER = "inquest/failed_segment"


def logs(path):
    if os.path.isfile(path):
        return [path]
    return sorted(glob.glob(path + "/**/run-*.swanlab", recursive=True), key=os.path.dirname)


class Run:
    def __init__(self, path):
        self.points, self.columns, self.types = collections.Counter(), set(), collections.Counter()
        self.start = self.finish = None
        self.order = []
        reader = DataStoreReader()
        reader.open(path)
        for data in reader:
            record = Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            self.types[kind] += 1
            if not self.order:
                self.first = kind
            self.order.append(kind)
            if kind == "start":
                self.start = record.start
            elif kind == "finish" and self.finish is None:
                self.finish = record.finish
            elif kind == "column":
                self.columns.add(record.column.column_key)
            elif kind == "scalar":
                self.points[(record.scalar.key, record.scalar.step, repr(record.scalar.value.number))] += 1
        reader.close()

    def finite(self):
        return collections.Counter({p: n for p, n in self.points.items() if math.isfinite(float(p[2])) and p[0] != MARKER})


def main(source, copy):
    wrong, values = [], 0
    was, now = logs(source), logs(copy)
    if not was or len(was) != len(now):
        print(f"{len(was)} logs in the source, {len(now)} in the copy")
        return 1
    for a, b in zip(was, now):
        s, c = Run(a), Run(b)
        values += sum(c.points.values())
        say = lambda text: wrong.append(f"{b}: {text}")
        bad = [p for p in c.points if not math.isfinite(float(p[2]))]
        if bad:
            say(f"{len(bad)} values are not finite, the first {bad[0]}")
        before, after = s.finite(), c.finite()
        if before - after or (after - before and s.finish is not None):
            say(f"finite values differ: lost {list((before - after).items())[:3]}, new {list((after - before).items())[:3]}")
        if c.first != "start":
            say("the first record is no start record, which swanlab sync asks for")
            continue
        answer = CoreSyncPython().deliver_sync_start(DeliverSyncStartRequest(core_settings=CoreSettings(run_id="check", run_dir=os.path.dirname(os.path.abspath(b)))))
        if not answer.success:
            say(f"swanlab sync refuses it: {answer.message}")
        if c.start.id == s.start.id:
            say("the id is the one of the source")
        if os.path.basename(b) != f"run-{c.start.id}.swanlab":
            say(f"the file is not called after the id {c.start.id}")
        if c.finish is None or c.finish.state == RunState.RUN_STATE_RUNNING:
            say("no end is on record")
        if any(not math.isfinite(float(p[2])) for p in s.points):
            if MARKER not in c.columns:
                say("no column of the marker")
            if not any(p[0] == MARKER and float(p[2]) == 1 for p in c.points):
                say("no mark of the failed segment")
            if "inquest:repaired" not in c.start.tags:
                say(f"no tag: {list(c.start.tags)}")
            if "inquest" not in c.start.description.lower() and "finite" not in c.start.description.lower():
                say(f"no note: {c.start.description!r}")
        for p, n in c.points.items():
            if p[0] == MARKER:
                if n > 1:
                    say(f"step {p[1]} is marked {n} times, and SwanLab keeps one")
    for w in wrong:
        print(w)
    if not wrong:
        print(f"swanlab reads the copies: {len(now)} runs, {values} values, all finite")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
