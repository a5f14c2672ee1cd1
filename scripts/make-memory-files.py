#!/usr/bin/env python3
"""Write the memory files that PyTorch's own code makes without a GPU.

usage: scripts/make-memory-files.py DIR

Needs torch (any build), numpy and matplotlib. DIR gets

  timeline.json.gz, timeline.raw.json.gz, timeline.html
      torch.profiler's export_memory_timeline of a small training on the CPU; the last is a picture, and
      smaller than the method makes it
  profile.pickle.gz, profile.html.gz
      torch.cuda._memory_viz's profile_plot of the same, a snapshot made of a profile, and its page
  trace_plot.html, segment_plot.html, filtered.html
      its trace_plot (the last: without what was freed) and segment_plot of snapshot.pickle, if DIR has one
  truth.json
      what the files hold: entries, and the most bytes at once, by this script's own sums

Times and addresses differ from run to run. Used for internal/reader/memsnap/testdata/torch.
"""
import gzip
import json
import os
import pickle
import sys
import warnings

import torch
from torch.cuda import _memory_viz
from torch.profiler import ProfilerActivity, profile

warnings.simplefilter("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 256), torch.nn.Linear(256, 8)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def train(steps):
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.AdamW(net.parameters())
    kept = []
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True) as p:
        for step in range(steps):
            x, y = torch.randn(32, 64), torch.randint(8, (32,))
            loss = torch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            kept.append(loss * torch.ones(1000))
            p.step()
    return p


def timeline_truth(name, data):
    """What a file of either layout of export_memory_timeline holds."""
    if name.endswith(".raw.json.gz"):
        total, peak = 0, 0
        for _, _, size, _ in data:
            total += size
            peak = max(peak, total)
        return {"entries": len(data), "peak": peak, "end": total}
    times, sizes = data
    return {"entries": len(times), "peak": max(map(sum, sizes)), "end": sum(sizes[-1])}


def snapshot_truth(s):
    events = [len(t) for t in s.get("device_traces", [])]
    return {
        "events": events,
        "segments": len(s["segments"]),
        "blocks": sum(len(seg["blocks"]) for seg in s["segments"]),
        "reserved": sum(seg["total_size"] for seg in s["segments"]),
        "active": sum(b["size"] for seg in s["segments"] for b in seg["blocks"] if b["state"] != "inactive"),
    }


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    path = lambda name: os.path.join(out, name)
    truth = {"torch": torch.__version__}
    p = train(2)
    for name in ["timeline.json.gz", "timeline.raw.json.gz"]:
        p.export_memory_timeline(path(name), device="cpu")
        with gzip.open(path(name), "rt") as f:
            truth[name] = timeline_truth(name, json.load(f))
    p.mem_tl.export_memory_timeline_html(path("timeline.html"), "cpu", figsize=(2, 1))

    def page(name, html):
        with (gzip.open if name.endswith("gz") else open)(path(name), "wt") as f:
            f.write(html)

    with gzip.open(path("profile.pickle.gz"), "wb") as f:
        pickle.dump(_memory_viz._profile_to_snapshot(p), f)
    with gzip.open(path("profile.pickle.gz"), "rb") as f:
        truth["profile"] = snapshot_truth(pickle.load(f))
    page("profile.html.gz", _memory_viz.profile_plot(p))
    if os.path.exists(path("snapshot.pickle")):
        with open(path("snapshot.pickle"), "rb") as f:
            data = f.read()
        truth["snapshot"] = snapshot_truth(pickle.loads(data))
        page("trace_plot.html", _memory_viz.trace_plot(pickle.loads(data)))
        page("segment_plot.html", _memory_viz.segment_plot(pickle.loads(data)))
        try:
            filtered = pickle.loads(data)
            page("filtered.html", _memory_viz.trace_plot(filtered, filter_freed=True))
            truth["filtered"] = snapshot_truth(filtered)
        except TypeError:
            pass  # before 2.4 there was no such option
    with open(path("truth.json"), "w") as f:
        json.dump(truth, f, indent=1)
        f.write("\n")


main()
