#!/usr/bin/env python3
"""Makes memory snapshots: the small ones of testdata, and random ones of every form.

  make.py testdata DIR   the files of testdata (README.md there)
  make.py random DIR     what TestGenerated compares with dump.py
  make.py shared FILE [ENTRIES]    a large one for scripts/bench: stacks and functions are shared, as PyTorch does
  make.py unshared FILE [ENTRIES]  the same with every function a dict of its own
"""
import base64, copy, gzip, io, json, os, pickle, pickletools, random, struct, sys


def cpp(value):
    """A pickle as torch/csrc/jit/serialization/pickler.cpp writes it: protocol 2 without frames, strings in
    the memo, containers in it only where they are shared and behind their content, no batches."""
    out, strings, shared, count = bytearray(b"\x80\x02"), {}, {}, [0]
    uses, keep = {}, []

    def use(v):
        if isinstance(v, (dict, list)):
            uses[id(v)] = uses.get(id(v), 0) + 1
            if uses[id(v)] > 1:
                return
            for x in v.values() if isinstance(v, dict) else v:
                use(x)
        elif isinstance(v, tuple):
            for x in v:
                use(x)

    use(value)

    def put():
        n = count[0]
        count[0] += 1
        out.extend(b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n))
        return n

    def get(n):
        out.extend(b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n))

    def write(v):
        if isinstance(v, str):
            if v in strings:
                return get(strings[v])
            b = v.encode("utf-8", "surrogatepass")
            out.extend(b"X" + struct.pack("<I", len(b)) + b)
            strings[v] = put()
        elif v is None:
            out.extend(b"N")
        elif isinstance(v, bool):
            out.extend(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            if 0 <= v < 256:
                out.extend(b"K" + bytes([v]))
            elif -(2**31) <= v < 2**31:
                out.extend(b"J" + struct.pack("<i", v))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<q", v if v < 2**63 else v - 2**64))
        elif isinstance(v, float):
            out.extend(b"G" + struct.pack(">d", v))
        elif isinstance(v, tuple):
            if len(v) == 2 and builders[0] and all(type(x) is int for x in v):
                if "builder" in shared:
                    get(shared["builder"])
                else:
                    out.extend(b"ctorch.jit._pickle\nbuild_intlist\n")
                    shared["builder"] = put()
                out.extend(b"(](")
                for x in v:
                    write(x)
                out.extend(b"etR")
                return
            out.extend(b"(" if len(v) > 3 else b"")
            for x in v:
                write(x)
            out.extend({0: b")", 1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(v), b"t"))
        else:
            if id(v) in shared:
                return get(shared[id(v)])
            if isinstance(v, dict):
                out.extend(b"}(")
                for k, x in v.items():
                    write(k)
                    write(x)
                out.extend(b"u")
            else:
                out.extend(b"](")
                for x in v:
                    write(x)
                out.extend(b"e")
            if uses[id(v)] > 1:
                shared[id(v)] = put()
                keep.append(v)

    builders = [random.Random(len(repr(value)[:1000])).random() < 0.5]
    write(value)
    return bytes(out + b".")


class Maker:
    def __init__(self, seed, **o):
        self.r = random.Random(seed)
        self.o = o
        r = self.r
        names = ["forward", "backward", "step", "<module>", "at::native::empty_cuda(c10::ArrayRef<long>)", "h\u00e4\u4f60", "", "x" * 300]
        self.frames = [{"name": r.choice(names) + (str(i) if i % 3 else ""), "filename": r.choice(["train.py", "/opt/lib/torch/nn/modules/module.py", "??"]), "line": r.randrange(5000)} for i in range(o.get("frames", 40))]
        if o.get("odd"):
            self.frames += [{"line": 7.0, "filename": None, "name": "none"}, {"name": "only"}, {"fx_node_op": "call", "name": "fx", "filename": "f.py", "line": 2**40, "fx_node_info": {"a": [1]}}]
        self.stacks = [[r.choice(self.frames) for _ in range(r.choice([0, 1, 2, 5, 30]))] for _ in range(o.get("stacks", 30))]
        if o.get("deep"):
            self.stacks.append([r.choice(self.frames) for _ in range(2345)])

    def stack(self):
        s = self.r.choice(self.stacks)
        how = self.r.random()
        if how < 0.6:
            return s
        return list(s) if how < 0.8 or len(s) > 99 else copy.deepcopy(s)

    def num(self, n):
        if not self.o.get("odd"):
            return n
        return self.r.choice([n, n, n, float(n), None, True, 2**70, -(2**70), 2**63 + n, -n, 0.5])

    def mixed(self, d):
        if not self.o.get("odd"):
            return d
        items = list(d.items())
        self.r.shuffle(items)
        if self.r.random() < 0.2:
            items.insert(self.r.randrange(len(items) + 1), ("unknown" + str(self.r.randrange(9)), self.r.choice([None, [1, {"a": 2}], {"size": 5}, (1, 2, 3), "text"])))
        if self.r.random() < 0.1:
            items.pop(self.r.randrange(len(items)))
        return dict(items)

    def segment(self, device, address):
        r, v = self.r, self.o["version"]
        blocks, at = [], address
        for _ in range(r.choice([0, 1, 2, 7])):
            size = 512 * r.randrange(1, 9999)
            b = {"size": size, "state": r.choice(["active_allocated", "inactive", "active_pending_free", "active_awaiting_free"])}
            if v >= (2, 0):
                b["requested_size"] = self.num(size - r.randrange(512))
            if v >= (2, 1):
                b = {"address": at, **b, "frames": self.stack()}
            elif v >= (1, 12) and (b["state"] != "inactive" or r.random() < 0.5):
                b["history"] = [{"addr": at, "real_size": size - 5, **({"frames": self.stack()} if r.random() < 0.7 else {})} for _ in range(r.randrange(1, 3))]
            blocks.append(self.mixed(b) if v >= (2, 1) else b)
            at += size
        s = {"device": device, "address": address, "total_size": at - address, "allocated_size": self.num(sum(b.get("size") or 0 for b in blocks)), "active_size": 5, "segment_type": r.choice(["small", "large"])}
        if v >= (1, 12):
            s["stream"] = r.choice([0, 0, 94123456789012, 2**63 + 5])
        if v >= (2, 0):
            s["requested_size"] = self.num(77)
        if v >= (2, 1):
            s["segment_pool_id"] = r.choice([(0, 0), (1, 0), [0, 2], (0, 0)])
            s["is_expandable"] = r.random() < 0.5
            s["frames"] = self.stack()
        s["blocks"] = blocks
        if self.o.get("odd") and v >= (2, 1):
            items = list(s.items())
            r.shuffle(items)
            s = dict(items)
        return s

    def event(self):
        r, v = self.r, self.o["version"]
        a = r.choice(["alloc", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "user_defined", "annotate", "free"])
        e = {"action": a, "device_free" if a == "oom" else "addr": r.randrange(2**48), "size": self.num(r.randrange(2**r.choice([8, 20, 40]))), "stream": r.choice([0, 0, 94123456789012])}
        if v >= (2, 1):
            e["time_us"] = self.num(1_700_000_000_000_000 + r.randrange(10**9))
        if v >= (2, 6):
            e["compile_context"] = r.choice(["N/A", "N/A", "Torch-Compiled Region: 0/0"])
        if v >= (2, 8):
            e["user_metadata"] = r.choice(["", "step 5"])
            e["pool_id"] = r.choice([(0, 0), (0, 7)])
        if r.random() < 0.1:
            e["category"] = r.choice(["parameter", "gradient", None])
        if a != "snapshot" and r.random() < 0.9:
            e["frames"] = self.stack()
        return self.mixed(e)

    def snapshot(self):
        r, v, o = self.r, self.o["version"], self.o
        segments = [self.segment(d, (i + 1) << 25) for d in range(o.get("devices", 2)) for i in range(r.choice([0, 1, 5, o.get("segments", 5)]))]
        if o.get("odd"):
            r.shuffle(segments)
        if v < (2, 0):
            return segments
        traces = [[self.event() for _ in range(r.choice([0, 1, o.get("events", 50)]))] for _ in range(o.get("devices", 2))]
        if o.get("odd") and traces[0]:
            traces[0].extend(r.choice(traces[0]) for _ in range(5))  # the same object again
            traces.append(traces[0])
            traces.append(traces[-2][:3])
        top = {"segments": segments, "device_traces": traces}
        if v >= (2, 1):
            top["allocator_settings"] = self.mixed({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1, "garbage_collection_threshold": 0.8, "expandable_segments": True, "pinned_num_register_threads": 1,
                "roundup_power2_divisions": {str(2**i): i for i in range(16)}, "trace_alloc_overflowed": False, "trace_alloc_max_entries": 10**6})
        if v >= (2, 6):
            top["external_annotations"] = [{"name": "ProfilerStep#%d" % i, "stage": r.choice(["START", "END"]), "device": r.randrange(2), "time_us": 10**15 + i} for i in range(r.choice([0, 1, 9]))]
        if o.get("odd"):
            top["host_segments"] = [{"address": 5, "size": 7, "allocated": True}]
            items = list(top.items())
            r.shuffle(items)
            top = dict(items)
        return top


def single(value):
    """Protocol 0's way to fill containers, one item after the other, in the opcodes of protocol 2."""
    f = io.BytesIO()

    class Slow(pickle._Pickler):
        def _batch_appends(self, items, *more):
            for x in items:
                self.save(x)
                self.write(pickle.APPEND)

        def _batch_setitems(self, items, *more):
            for k, v in items:
                self.save(k)
                self.save(v)
                self.write(pickle.SETITEM)

    Slow(f, 2).dump(value)
    return f.getvalue()


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def randoms(to):
    for seed, versions in enumerate([((1, 12), (2, 0), (2, 8)), ((1, 4), (1, 12), (2, 0), (2, 1), (2, 8)), ((2, 1), (2, 8)), ((2, 8),)]):
        for version in versions:
            for odd in (False, True):
                o = {"version": version, "odd": odd, "events": 30 if seed else 2100, "devices": 1 + seed % 3, "segments": 5 if seed else 1100, "deep": seed == 0}
                snap = Maker(seed * 100 + version[1], **o).snapshot()
                base = os.path.join(to, "%d_%d.%d_%s" % (seed, *version, "odd" if odd else "plain"))
                for p in (2, 3, 4, 5) if seed else (4,):
                    write(base + ".p%d" % p, pickle.dumps(snap, p))
                try:
                    write(base + ".cpp", cpp(Maker(seed * 100 + version[1], **o).snapshot()))
                except struct.error:
                    pass  # numbers beyond 64 bits: that writer has none
                if seed == 1:
                    write(base + ".single", single(snap))
                    write(base + ".gz", gzip.compress(pickle.dumps(snap), mtime=0))
                    write(base + ".optimized", pickletools.optimize(pickle.dumps(snap, 4)) + b"\0\0\0")
    wide = Maker(7, version=(2, 8), events=3).snapshot()
    for t in wide["device_traces"]:
        for e in t:
            old = dict(e)
            e.clear()
            items = list(old.items()) + [("key%d" % i, i) for i in range(2100)]
            random.Random(5).shuffle(items)
            e.update(items)
    write(os.path.join(to, "wide.pickle"), pickle.dumps(wide))


def story():
    """One device, with a failure: two segments, six entries, two functions."""
    f = {"name": "forward", "filename": "train.py", "line": 12}
    g = {"name": "<module>", "filename": "train.py", "line": 40}
    first, second = [f, g], [g]
    base, t = 0x7F0000000000, 1_700_000_000_000_000

    def entry(action, addr, size, i, frames):
        e = {"action": action, "device_free" if action == "oom" else "addr": addr, "size": size, "stream": 0, "time_us": t + 1000 * i, "compile_context": "N/A", "user_metadata": ""}
        if frames is not None:
            e["frames"] = frames
        return e

    def block(addr, size, asked, state, frames):
        return {"address": addr, "size": size, "requested_size": asked, "state": state, "frames": frames}

    def segment(addr, size, used, kind, frames, blocks):
        return {"device": 0, "address": addr, "total_size": size, "allocated_size": used, "active_size": used, "requested_size": used - 12, "stream": 0, "segment_type": kind, "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames, "blocks": blocks}

    big = base + (1 << 21)
    return {
        "segments": [
            segment(base, 2 << 20, 1024, "small", second, [block(base, 1024, 1012, "active_allocated", second), block(base + 1024, (2 << 20) - 1024, 0, "inactive", [])]),
            segment(big, 20 << 20, 12 << 20, "large", first, [block(big, 12 << 20, (12 << 20) - 12, "active_allocated", first), block(big + (12 << 20), 8 << 20, 0, "inactive", [])]),
        ],
        "device_traces": [[
            entry("segment_alloc", base, 2 << 20, 0, second), entry("alloc", base, 1012, 1, second),
            entry("segment_alloc", big, 20 << 20, 2, first), entry("alloc", big, (12 << 20) - 12, 3, first),
            entry("oom", 3 << 20, 30 << 20, 4, first), entry("snapshot", 0, 12583936, 5, None)], []],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False, "roundup_power2_divisions": {str(2**i): 0 for i in range(16)}},
        "external_annotations": [{"name": "ProfilerStep#1", "stage": "START", "device": 0, "time_us": t}],
    }


def page(*snapshots):
    def one(s):
        b = pickle.dumps(s, 4)
        return {"name": "snapshot.pickle", "base64": base64.b64encode(b + b"\0" * (3 - len(b) % 3)).decode()}

    return ('<!DOCTYPE html>\n<html>\n<body>\n<script type="module">\nimport {add_local_files} from "https://example.invalid/MemoryViz.js"\nconst local_files = '
            + json.dumps([one(s) for s in snapshots]) + "\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n</html>\n").encode()


def testdata(to):
    whole = pickle.dumps(story(), 4)

    class Evil:
        def __reduce__(self):
            return os.system, ("echo never",)

    evil = story()
    evil["device_traces"][0].insert(4, Evil())
    old = Maker(5, version=(1, 12), devices=1).snapshot()
    hostile = story()
    hostile["device_traces"][0][4]["frames"] = [{"name": "\x1b[31mred\n" + "n" * 2000, "filename": "\ud800\0/etc", "line": -5}]
    hostile["segments"][0].update(device=2**40)
    hostile["segments"][1].update(total_size=-1, address=-1)
    for name, data in {
        "snapshot_rank3.pickle": whole, "cpp.pickle": cpp(story()), "old.pkl": pickle.dumps(old, 2), "cut.pickle": whole[: len(whole) - 380], "refused.pickle": pickle.dumps(evil, 4),
        "hostile.pickle": pickle.dumps(hostile, 4), "page.html": page(story(), {"segments": [], "device_traces": []}),
        "timeline_memory.json": json.dumps([[100, 250, 400], [[0, 512, 0, 0, 0, 0, 0, 0, 0], [0, 512, 1024, 0, 0, 4096, 0, 0, 7], [0, 512, 1024, 0, 0, 0, 0, 0, 0]]]).encode(),
        "timeline_raw_memory.json": json.dumps([[-1, 1, 512, 0], [100_000, 2, 4096, 4], [100_500, 3, -512, 0], [100_500, 3, 512, 1], [300_000, 4, -4096, 4]]).encode(),
    }.items():
        write(os.path.join(to, name), data)


def large(to, entries, share):
    r = random.Random(7)
    fresh = lambda s: (s + " ")[:-1]  # a string object of its own, as PyTorch makes them
    frames = [{"name": fresh("function_%d" % (i % 900)), "filename": fresh("/opt/lib/python3.11/site-packages/torch/nn/modules/file_%d.py" % (i % 40)), "line": i} for i in range(2000)]
    stacks = []
    for _ in range(4000):
        base = r.choice(stacks)[: r.randrange(10, 30)] if stacks and r.random() < 0.7 else []
        stacks.append(base + [frames[min(int(r.expovariate(1 / 400)), 1999)] for _ in range(r.randint(30, 60) - len(base))])

    def stack():
        s = stacks[min(int(r.expovariate(1 / 1000)), 3999)]
        return list(s) if share else [{"name": fresh(f["name"]), "filename": fresh(f["filename"]), "line": f["line"]} for f in s]

    segments, address = [], 0x7F0000000000
    for _ in range(entries // 250):
        blocks, at = [], address
        for _ in range(25):
            size = 512 * r.randrange(1, 9999)
            blocks.append({"address": at, "size": size, "requested_size": size - 5, "state": "active_allocated", "frames": stack()})
            at += size
        n = at - address
        segments.append({"device": 0, "address": address, "total_size": n, "allocated_size": n, "active_size": n, "requested_size": n, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": stack(), "blocks": blocks})
        address = at + (2 << 20)
    trace, live, t = [], [], 1_700_000_000_000_000
    for _ in range(entries):
        t += r.randrange(1, 900)
        if r.random() < 0.5 or not live:
            e = (0x7F0000000000 + 512 * r.randrange(10**8), 512 * r.randrange(1, 10**5), stack())
            live.append(e)
            action = "alloc"
        else:
            e, action = live.pop(r.randrange(max(0, len(live) - 500), len(live))), "free_completed"
        trace.append({"action": action, "addr": e[0], "size": e[1], "stream": 0, "time_us": t, "compile_context": "N/A", "user_metadata": "", "frames": e[2]})
    with open(to, "wb") as f:
        pickle.dump({"segments": segments, "device_traces": [trace], "allocator_settings": {}, "external_annotations": []}, f, 4)


if __name__ == "__main__":
    what, to, *more = sys.argv[1:]
    if what in ("shared", "unshared"):
        large(to, int(more[0]) if more else 1_000_000, what == "shared")
    else:
        {"random": randoms, "testdata": testdata}[what](to)
