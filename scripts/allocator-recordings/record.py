"""Record what PyTorch's caching allocator does with the requests of workloads.py.

    python record.py OUT [NAME ...]          the recordings, with the truth beside them
    python record.py --mixed OUT FIRST LAST  chance ones, for a comparison that is not kept

Runs over standin.c (see README.md). Every run is a process of its own, so that each begins
with an empty allocator and the settings of its environment.
"""
import contextlib
import ctypes
import gzip
import json
import os
import pickle
import re
import sys
import traceback

import torch

import workloads

MIB = 1 << 20


class Ended(Exception):
    """The program that is repeated ended here."""


class Machine:
    """What a workload asks with."""

    def __init__(self, limit=None, expected=()):
        self.skips_failures = False
        self.requests = 0
        self.failed = []  # numbers of the requests that failed
        self.limit = limit  # the program that is repeated made so many
        self.expected = set(expected)  # and these failed
        self.standin = ctypes.CDLL("libcuda.so.1")
        self.kept = ()

    def empty(self, nbytes):
        if self.requests == self.limit:
            raise Ended
        n = self.requests
        self.requests += 1
        try:
            t = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            self.failed.append(n)
            if self.limit is not None or not self.skips_failures:
                raise
            return None
        # Where the repeated program did not get it, nothing says how long it would have kept it.
        return None if n in self.expected else t

    def keep(self, *things):
        """Holds things until the snapshot was taken, as a program that goes on would."""
        self.kept = things

    def tick(self):
        self.standin.standin_tick(ctypes.c_uint64(1))

    def empty_cache(self):
        torch.cuda.empty_cache()

    def stream(self):
        return torch.cuda.Stream()

    def on(self, stream):
        return torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext()

    def used_on(self, t, stream):
        if t is not None:
            t.record_stream(stream if stream is not None else torch.cuda.default_stream())

    def pool(self):
        return torch.cuda.MemPool()

    def within(self, pool):
        return torch.cuda.use_mem_pool(pool) if pool is not None else contextlib.nullcontext()

    def capture(self, body, share=None):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=share[0].pool() if share else None):
            kept = body()
        return graph, kept

    @contextlib.contextmanager
    def step(self, i):
        with torch.profiler.record_function(f"ProfilerStep#{i}"):
            yield
        self.tick()

    def region(self, name):
        return torch.profiler.record_function(name)


def run(job, out, limit=None, expected=()):
    """Runs job in this process; what came of it."""
    lib = ctypes.CDLL("libcuda.so.1")
    # Others have what of the device is not the room of the job.
    device = job.get("device", job["room"])
    lib.standin_device(ctypes.c_uint64(device), ctypes.c_uint64(device - job["room"]))
    lib.standin_lag(ctypes.c_uint64(job.get("lag", 0)))
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = job.get("conf", "")
    torch.cuda.init()
    if job.get("fraction"):
        torch.cuda.set_per_process_memory_fraction(job["fraction"])
    m = Machine(limit, expected)
    before = torch.cuda.memory_reserved()
    assert before == 0 or limit is not None, before
    if out:
        torch.cuda.memory._record_memory_history(max_entries=job.get("entries", 1 << 40), context=job.get("context", "all"), stacks="python")
    args = dict(job.get("args", {}))
    try:
        getattr(workloads, job["workload"])(m, **args)
    except Ended:
        return outcome(m, job)
    except torch.cuda.OutOfMemoryError:
        # As a program would that writes its snapshot here: what it held is still there.
        return outcome(m, job, out, traceback.format_exc())
    return outcome(m, job, out)


def outcome(m, job, out=None, log=""):
    stats = torch.cuda.memory_stats()
    result = {
        "conf": job.get("conf", ""),
        "requests": m.requests,
        "failed": m.failed,
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "ooms": stats["num_ooms"],
    }
    if out:
        s = torch.cuda.memory._snapshot()
        said = s.get("allocator_settings", {}).get("PYTORCH_CUDA_ALLOC_CONF")
        assert said is None or said == job.get("conf", "") , (said, job)
        shorten(s)
        with open(out + ".pickle.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
            pickle.dump(s, f)
        result["summary"] = torch.cuda.memory_summary()
        result["log"] = short(log)
    return result


def apart(*args):
    """Runs in a process of its own."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(r)
            got = run(*args)
            with os.fdopen(w, "w") as f:
                json.dump(got, f)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    _, status = os.waitpid(pid, 0)
    if status or not text:
        raise RuntimeError(f"{args}: ended with {status}")
    return json.loads(text)


def short(path):
    """Without where things lie on the machine that records."""
    for place, name in ((os.path.dirname(os.path.abspath(__file__)), "recordings"), (os.path.dirname(os.path.dirname(torch.__file__)), "site-packages")):
        path = path.replace(place, name)
    return path


def shorten(snapshot):
    """Does that to the files of all frames. Frames are shared, so each is met often."""
    stacks = [e.get("frames", ()) for t in snapshot["device_traces"] for e in t]
    for s in snapshot["segments"]:
        stacks += [s.get("frames", ())] + [b.get("frames", ()) for b in s["blocks"]]
    for frame in {id(f): f for stack in stacks for f in stack}.values():
        frame["filename"] = short(frame["filename"])


def overlay(conf, change):
    """The settings of conf with those of change in their place."""
    pairs = re.findall(r"(\w+):(\[[^]]*\]|[^,]+)", conf + "," + change)
    return ",".join(f"{k}:{v}" for k, v in dict(pairs).items())


def room(job):
    """What the allocator may have in all."""
    return min(job["room"], int(job["fraction"] * job.get("device", job["room"]))) if job.get("fraction") else job["room"]


def record(name, job, out):
    base = os.path.join(out, name)
    got = apart(job, base)
    log, summary = got.pop("log"), got.pop("summary")
    truth = {"torch": torch.__version__, "job": job, "allowed": room(job), "recorded": got, "what_if": []}
    for change in job.get("what_if", ()):
        other = dict(job, **change)
        other["conf"] = overlay(job.get("conf", ""), change.get("conf", ""))
        truth["what_if"].append({"change": change, "allowed": room(other), **apart(other, None, got["requests"], got["failed"])})
    with open(base + ".json", "w") as f:
        json.dump(truth, f, indent=1, sort_keys=True)
        f.write("\n")
    if log:
        with open(base + ".log", "w") as f:
            f.write(log + summary)
    size = os.path.getsize(base + ".pickle.gz")
    print(f"{name}: {got['requests']} requests, {len(got['failed'])} failed, {size} bytes; " + ", ".join(("avoided" if not w["failed"] else "not avoided") for w in truth["what_if"]), flush=True)


EXPANDABLE = {"conf": "expandable_segments:True"}
OFF = {"conf": "expandable_segments:False"}
SPLIT = {"conf": "max_split_size_mb:32"}
ROUND = {"conf": "roundup_power2_divisions:4"}
GC = "garbage_collection_threshold:0.6"


JOBS = {
    "steady": dict(workload="steady", room=1024 * MIB, what_if=[EXPANDABLE, SPLIT, {"room": 256 * MIB}, {"room": 160 * MIB}]),
    "outputs-kept": dict(workload="outputs_kept", room=512 * MIB, what_if=[EXPANDABLE, SPLIT, ROUND]),
    "lengths": dict(workload="lengths", room=238 * MIB, what_if=[EXPANDABLE, SPLIT, ROUND, {"room": 600 * MIB}]),
    "lengths-expandable": dict(workload="lengths", room=200 * MIB, device=8192 * MIB, conf=EXPANDABLE["conf"], what_if=[OFF, {"room": 640 * MIB}]),
    "lengths-ring": dict(workload="lengths", room=240 * MIB, entries=300, what_if=[EXPANDABLE, SPLIT]),
    "pinned": dict(workload="pinned", room=720 * MIB, what_if=[EXPANDABLE, SPLIT, ROUND, {"room": 900 * MIB}]),
    "holes": dict(workload="holes", room=640 * MIB, what_if=[EXPANDABLE, SPLIT, ROUND]),
    "holes-expandable": dict(workload="holes", room=640 * MIB, device=8192 * MIB, conf=EXPANDABLE["conf"], what_if=[OFF]),
    "evaluation": dict(workload="evaluation", room=1024 * MIB, what_if=[EXPANDABLE, {"room": 300 * MIB}]),
    "evaluation-expandable": dict(workload="evaluation", room=1024 * MIB, device=8192 * MIB, conf=EXPANDABLE["conf"], what_if=[OFF, {"room": 300 * MIB}]),
    "side-streams": dict(workload="side_streams", room=120 * MIB, lag=1, what_if=[EXPANDABLE, SPLIT]),
    "side-streams-expandable": dict(workload="side_streams", room=1024 * MIB, lag=2, device=8192 * MIB, conf=EXPANDABLE["conf"], what_if=[OFF, {"room": 200 * MIB}]),
    "graphs": dict(workload="private_pools", room=420 * MIB, what_if=[EXPANDABLE, SPLIT, {"room": 320 * MIB}]),
    "pool": dict(workload="pool_for_use", room=1024 * MIB, what_if=[SPLIT, {"room": 200 * MIB}]),
    "max-split": dict(workload="lengths", room=240 * MIB, conf="max_split_size_mb:32", what_if=[{"conf": "max_split_size_mb:256"}]),
    "roundup": dict(workload="lengths", room=240 * MIB, conf="roundup_power2_divisions:[4:2,32:8,>:4]", what_if=[{"conf": "roundup_power2_divisions:1"}, EXPANDABLE]),
    "collected": dict(workload="lengths", room=512 * MIB, fraction=0.75, conf=GC, what_if=[EXPANDABLE]),
    "fraction": dict(workload="lengths", room=512 * MIB, fraction=0.375, what_if=[EXPANDABLE, SPLIT]),
    "skipped": dict(workload="skipped_batches", room=200 * MIB, what_if=[EXPANDABLE, SPLIT, {"room": 400 * MIB}]),
    "skipped-expandable": dict(workload="skipped_batches", room=200 * MIB, device=8192 * MIB, conf=EXPANDABLE["conf"], what_if=[OFF, {"room": 400 * MIB}]),
    "mixed": dict(workload="mixed", args={"seed": 5}, room=500 * MIB, what_if=[EXPANDABLE, SPLIT, ROUND]),
}

CONFS = ["", EXPANDABLE["conf"], "max_split_size_mb:32", "roundup_power2_divisions:4", "expandable_segments:True,roundup_power2_divisions:[2:8,64:2,>:1]", "max_split_size_mb:21,roundup_power2_divisions:8"]


def chance(seed):
    import random
    r = random.Random(seed)
    job = dict(workload="mixed", room=r.choice([200, 300, 450, 700, 2000]) * MIB, device=8192 * MIB, conf=r.choice(CONFS), lag=r.choice([0, 1, 3]))
    job["args"] = dict(seed=seed, streams=r.choice([0, 0, 1, 3]), pools=r.choice([0, 0, 0, 2]) if hasattr(torch.cuda, "use_mem_pool") else 0, count=r.choice([100, 300, 800]), top=r.choice([8, 30, 60]))
    if r.random() < 0.15:
        job["fraction"] = 0.8 * job["room"] / job["device"]
        if r.random() < 0.7:
            job["conf"] = (job["conf"] + "," if job["conf"] else "") + GC
    others = [c for c in CONFS if c != job["conf"] and c]
    job["what_if"] = [{"conf": c} for c in r.sample(others, 2)] + [{"room": r.choice([150, 260, 400, 900]) * MIB}]
    return job


def main(args):
    if args and args[0] == "--mixed":
        os.makedirs(args[1], exist_ok=True)
        for seed in range(int(args[2]), int(args[3])):
            record(f"mixed-{seed}", chance(seed), args[1])
        return
    os.makedirs(args[0], exist_ok=True)
    for name in args[1:] or [n for n in JOBS if n != "pool" or hasattr(torch.cuda, "use_mem_pool")]:
        record(name, JOBS[name], args[0])


if __name__ == "__main__":
    main(sys.argv[1:])
