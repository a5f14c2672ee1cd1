#!/usr/bin/env python3
"""Print what PyTorch prints of its allocator's counters, for made-up counters.

usage: scripts/make-memory-text.py WHEEL... DIR

Takes torch/cuda/memory.py out of each wheel (of any platform: no compiled code is
loaded) and lets its own memory_summary() format counters that a seed makes.
For each version DIR gets summary-V-N.txt (full and abbreviated in turn), and once
stats-N.txt with the same counters as a dictionary, pprint, JSON and plain lines.
truth.json holds the counters. Used for internal/format/memtext/testdata.
"""
import collections
import importlib.machinery
import json
import os
import pprint
import random
import sys
import types
import zipfile

SCALES = [900, 700 << 10, 40 << 20, 6 << 30, 70 << 30, 3 << 40]


def counters(n):
    r = random.Random(n)
    top = SCALES[n % len(SCALES)]
    stats = {}

    def put(metric, pool, current, peak):
        freed = r.randrange(0, 40 * (peak + 1))
        stats[f"{metric}.{pool}.current"] = current
        stats[f"{metric}.{pool}.peak"] = peak
        stats[f"{metric}.{pool}.allocated"] = current + freed
        stats[f"{metric}.{pool}.freed"] = freed

    requested = r.randrange(top // 2, top)
    allocated = requested + r.randrange(0, top // 50 + 1)
    active = allocated + r.randrange(0, top // 50 + 1)
    inactive = r.randrange(0, top // 3)
    reserved = active + inactive + r.randrange(0, top // 9 + 1)
    for metric, v in [("requested_bytes", requested), ("allocated_bytes", allocated), ("active_bytes", active),
                      ("inactive_split_bytes", inactive), ("reserved_bytes", reserved)]:
        peak = v + r.randrange(0, v + 1)
        small, small_peak = v // 97, peak // 89
        put(metric, "all", v, peak)
        put(metric, "large_pool", v - small, peak - small_peak)
        put(metric, "small_pool", small, small_peak)
    for metric in ["allocation", "active", "segment", "inactive_split"]:
        v = r.randrange(0, 5000)
        put(metric, "all", v, 2 * v)
        put(metric, "large_pool", v // 3, v)
        put(metric, "small_pool", v - v // 3, v)
    for metric in ["oversize_allocations", "oversize_segments"]:
        stats.update({f"{metric}.{k}": 0 for k in ["current", "peak", "allocated", "freed"]})
    stats.update(num_alloc_retries=r.randrange(0, 20), num_ooms=r.randrange(0, 4), max_split_size=-1)
    return collections.OrderedDict(sorted(stats.items()))


class Stub(types.ModuleType):
    """A module of torch that has whatever is asked for: only names are taken from it when memory.py is loaded."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return {
            "_dummy_type": lambda name: type(name, (), {}),
            "_get_device_index": lambda device, optional=False: device,
            "_C": Stub("torch._C") if name == "_C" else None,
        }.get(name, object)


class Stubs:
    """Finds every module of torch: a Stub."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


def memory_module(wheel):
    with zipfile.ZipFile(wheel) as z:
        source = z.read("torch/cuda/memory.py").decode()
    for name in [n for n in sys.modules if n.split(".")[0] == "torch"]:
        del sys.modules[name]
    module = types.ModuleType("torch.cuda.memory")
    module.__package__ = "torch.cuda"
    exec(compile(source, "memory.py", "exec"), module.__dict__)
    return module


def main():
    sys.meta_path.insert(0, Stubs())
    *wheels, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    write = lambda name, text: open(os.path.join(out, name), "w").write(text)
    truth = {}
    for n in range(len(SCALES)):
        stats = counters(n)
        truth[n] = {k: v for k, v in stats.items() if ".all." in k and "bytes" in k or k.startswith("num_")}
        forms = [repr(dict(stats)), repr(stats), pprint.pformat(dict(stats)), json.dumps(stats, indent=2), "".join(f"{k}: {v}\n" for k, v in stats.items())]
        if n < len(forms):
            write(f"stats-{n}.txt", forms[n].rstrip("\n") + "\n")
        for wheel in wheels:
            version = os.path.basename(wheel).split("-")[1].split("+")[0]
            module = memory_module(wheel)
            module.memory_stats = lambda device=None: stats
            write(f"summary-{version}-{n}.txt", module.memory_summary(device=n, abbreviated=n % 2 == 1))
    write("truth.json", json.dumps(truth, indent=1) + "\n")


main()
