#!/usr/bin/env python3
"""Prints what a memory snapshot holds, as snapshot_test.go prints what Decode makes of it.

  dump.py FILE...

Both know the layout (doc.go), and nothing of each other: a difference is a mistake of one. Only the
list builders of torch.jit._pickle are resolved; any other class is an error."""
import gzip, pickle, sys


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        if module == "torch.jit._pickle" and name in ("build_intlist", "build_doublelist", "build_boollist"):
            return lambda x: x
        raise pickle.UnpicklingError(f"{module}.{name}")


def text(s):
    if not isinstance(s, str):
        return "-"
    b = s.encode("utf-8", "surrogatepass")
    return "'" + "".join(chr(c) if 0x21 <= c < 0x7F and c not in b"'%" else "%%%02x" % c for c in b)


def num(v):
    if isinstance(v, float):
        if v != v:
            return 0
        if v in (float("inf"), float("-inf")):
            return 2**63 - 1 if v > 0 else -(2**63)
    if not isinstance(v, (int, float)):
        return 0
    return max(-(2**63), min(2**63 - 1, int(v)))


def addr(v):
    if isinstance(v, int):
        return v % 2**64 if -(2**63) <= v < 2**64 else (2**64 - 1 if v > 0 else 0)
    return num(v) % 2**64


class Dump:
    def __init__(self):
        self.stacks = {(): 0}
        self.frames = {}

    def frame(self, f):
        if id(f) not in self.frames:
            self.frames[id(f)] = tuple("'" if x == "-" else x for x in (text(f.get("name")), text(f.get("filename")), num(f.get("line"))))
        return self.frames[id(f)]

    def stack(self, frames):
        key = tuple(self.frame(f) for f in frames or () if isinstance(f, dict)) if isinstance(frames, (list, tuple)) else ()
        if key not in self.stacks:
            self.stacks[key] = len(self.stacks)
            print("stack", self.stacks[key], " ".join("%s %s %d" % f for f in key))
        return self.stacks[key]

    def pool(self, v):
        if isinstance(v, (list, tuple)) and len(v) == 2:
            return "%d,%d" % (num(v[0]), num(v[1]))
        return "0,0"

    def segments(self, segments):
        for s in sorted(segments, key=lambda s: (num(s.get("device")), addr(s.get("address")))):
            print("segment", num(s.get("device")), addr(s.get("address")), num(s.get("total_size")), num(s.get("allocated_size")), num(s.get("active_size")), num(s.get("requested_size")), addr(s.get("stream")),
                  self.pool(s.get("segment_pool_id")), int(s.get("segment_type") == "small"), int(bool(s.get("is_expandable"))), self.stack(s.get("frames")))
            at = addr(s.get("address"))
            for b in s.get("blocks") or []:
                if b.get("address") is not None:
                    at = addr(b["address"])
                past = (b.get("history") or [{}])[0]
                requested = b["requested_size"] if b.get("requested_size") is not None else past.get("real_size")
                frames = b["frames"] if b.get("frames") is not None else past.get("frames")
                print("block", at, num(b.get("size")), num(requested), {"active_allocated": 1, "active_pending_free": 2, "active_awaiting_free": 2}.get(b.get("state"), 0), self.stack(frames))
                at = (at + num(b.get("size"))) % 2**64

    def traces(self, traces):
        actions = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "user_defined", "free"]
        for d, trace in enumerate(traces):
            print("trace", d, len(trace))
            for e in trace:
                a = e.get("action")
                where = e["device_free"] if e.get("device_free") is not None else e.get("addr")
                context = e.get("compile_context")
                note = [text(e.get("category")), text("" if context == "N/A" else context), text(e.get("user_metadata"))]
                print(a if a in actions else "other", addr(where), num(e.get("size")), num(e.get("time_us")), addr(e.get("stream")), self.pool(e.get("pool_id")), " ".join("'" if n == "-" else n for n in note), self.stack(e.get("frames")))

    def settings(self, s):
        conf = s.get("PYTORCH_CUDA_ALLOC_CONF") or s.get("PYTORCH_ALLOC_CONF") or ""
        r = s.get("roundup_power2_divisions") or {}
        print("settings", text(conf), num(s.get("max_split_size")), repr(float(s.get("garbage_collection_threshold") or 0)), int(bool(s.get("expandable_segments"))), num(s.get("trace_alloc_max_entries")), int(bool(s.get("trace_alloc_overflowed"))), *[num(r.get(str(2**i))) for i in range(16)])

    def top(self, t):
        if isinstance(t, list):
            t = {"segments": t}
        self.segments(t.get("segments") or [])
        self.traces(t.get("device_traces") or [])
        if isinstance(t.get("allocator_settings"), dict):
            self.settings(t["allocator_settings"])
        for a in t.get("external_annotations") or []:
            print("annotation", text(a.get("name")), int(a.get("stage") == "START"), num(a.get("device")), num(a.get("time_us")))
        segments = t.get("segments") or []
        print("totals", len(segments), sum(len(s.get("blocks") or []) for s in segments), sum(map(len, t.get("device_traces") or [])), *[(sum(num(s.get(k)) for s in segments) + 2**63) % 2**64 - 2**63 for k in ("total_size", "allocated_size", "active_size")])


for name in sys.argv[1:]:
    print("file", name.rsplit("/", 1)[-1])
    f = open(name, "rb")
    if f.read(2) == b"\x1f\x8b":
        f = gzip.open(name)
    else:
        f.seek(0)
    Dump().top(Plain(f).load())
    print("end")
