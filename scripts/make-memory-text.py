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


def memory_module(wheel):
    with zipfile.ZipFile(wheel) as z:
        source = z.read("torch/cuda/memory.py").decode()
    package = types.ModuleType("torch")
    names = ["torch._C", "torch._utils", "torch.types", "torch.cuda", "torch.cuda._memory_viz"]
    modules = {"torch": package} | {n: types.ModuleType(n) for n in names}
    for n in names:
        parent, _, leaf = n.rpartition(".")
        setattr(modules[parent], leaf, modules[n])
    package.device = package.Tensor = object
    package.types.Device = object
    package._utils._dummy_type = lambda name: type(name, (), {})
    cuda = package.cuda
    cuda.__path__ = []
    package.__path__ = []
    for n in ["_get_amdsmi_device_index", "_get_nvml_device_index", "_lazy_init", "is_initialized"]:
        setattr(cuda, n, None)
    cuda._get_device_index = lambda device, optional=False: device
    cuda._memory_viz.memory = cuda._memory_viz.segments = None
    sys.modules.update(modules)
    module = types.ModuleType("torch.cuda.memory")
    module.__package__ = "torch.cuda"
    exec(compile(source, "memory.py", "exec"), module.__dict__)
    return module


def main():
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
