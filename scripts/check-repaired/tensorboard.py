#!/usr/bin/env python3
"""Has TensorBoard read a log folder and its repaired copy, and compares: tensorboard.py SOURCE COPY

No value of the copy may be non-finite, every finite one of the source must be there with its step
and time, and each run that lost one must show the marker series and the note, to both of
TensorBoard's accumulators. Exits with 1 and says what is wrong. Needs tensorboard.
"""
import collections, json, logging, math, os, sys

# This script's own name is that of the package.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

logging.disable(logging.WARNING)  # what the loaders say of damaged records

from tensorboard.backend.event_processing import event_accumulator, event_file_loader, plugin_event_accumulator
from tensorboard.util import tensor_util

NOTE = "inquest/note"


def number(value, plugin):
    """The scalar that a Value is, None if it is none or cannot be decoded."""
    if value.WhichOneof("value") == "simple_value":
        return value.simple_value
    if value.WhichOneof("value") != "tensor" or plugin not in ("", "scalars") or value.tensor.dtype == 7:
        return None
    try:
        array = tensor_util.make_ndarray(value.tensor)
    except TypeError:  # bfloat16, float8 and uint64, which TensorBoard alone cannot decode
        return None
    return float(array.reshape(-1)[0]) if array.size == 1 else None


def of_plugin(accumulator, plugin):
    try:
        return accumulator.PluginTagToContent(plugin)
    except KeyError:
        return {}


def runs(root):
    found = {}
    for d, _, names in os.walk(root):
        files = sorted(n for n in names if "tfevents" in n)
        if files:
            found[os.path.relpath(d, root)] = [os.path.join(d, n) for n in files]
    if os.path.isfile(root):
        found["."] = [root]
    return found


def points(files):
    """All scalars of a run, as the loader of TensorBoard's server has them: {tag: Counter}."""
    all_points = collections.defaultdict(collections.Counter)
    for name in files:
        plugins = {}
        for event in event_file_loader.LegacyEventFileLoader(name).Load():
            for value in event.summary.value:
                if value.HasField("metadata"):
                    plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name)
                x = number(value, plugins.get(value.tag, ""))
                if x is not None:
                    all_points[value.tag][event.step, event.wall_time, x if math.isfinite(x) else str(x)] += 1
    return all_points


def finite(counter):
    return collections.Counter({k: n for k, n in counter.items() if not isinstance(k[2], str)})


def check(source, copy):
    with open(os.path.join(copy, "inquest-repair.json")) as f:
        manifest = json.load(f)
    policy, marker = manifest["policy"], manifest["marker_series"]
    exact = not (policy["dedupe"] or policy["drop_suspect"] or policy["nonfinite"] != "drop")
    was, now = runs(source), runs(copy)
    if not now:
        yield "the copy has no event files"
    for run in was.keys() - now.keys():
        yield "run %s is missing" % run
    for run, files in now.items():
        have = points(files)
        for tag, counter in have.items():
            if bad := sum(counter.values()) - sum(finite(counter).values()):
                yield "run %s: %s has %d values that are not finite" % (run, tag, bad)
        if run not in was:
            yield "run %s is not in the source" % run
            continue
        failed = False
        for tag, counter in points(was[run]).items():
            failed = failed or counter != finite(counter)
            lost = finite(counter) - have[tag]
            if exact and lost:
                yield "run %s: %s has lost %d values, the first at step %d" % (run, tag, sum(lost.values()), min(lost)[0])
            if tag == marker:
                yield "run %s: the source has a series %s" % (run, marker)
        folder = os.path.dirname(files[0])
        legacy = event_accumulator.EventAccumulator(folder, size_guidance=dict.fromkeys(event_accumulator.DEFAULT_SIZE_GUIDANCE, 0))
        legacy.Reload()
        for tag in legacy.Tags()["scalars"]:
            if not all(math.isfinite(e.value) for e in legacy.Scalars(tag)):
                yield "run %s: EventAccumulator shows values of %s that are not finite" % (run, tag)
        if not failed:
            continue
        if marker not in legacy.Tags()["scalars"] or not any(e.value == 1 for e in legacy.Scalars(marker)):
            yield "run %s: EventAccumulator does not show the marker" % run
        server = plugin_event_accumulator.EventAccumulator(folder, tensor_size_guidance={"scalars": 0, "text": 0, "tensors": 0})
        server.Reload()
        if marker not in of_plugin(server, "scalars"):
            yield "run %s: the server's accumulator does not show the marker" % run
        if NOTE not in of_plugin(server, "text") or b"inquest" not in b"".join(tensor_util.make_ndarray(e.tensor_proto).reshape(-1)[0] for e in server.Tensors(NOTE)):
            yield "run %s: the server's accumulator does not show the note" % run
        for tag in have:
            if finite(have[tag]) and tag not in server.Tags()["tensors"]:
                yield "run %s: the server's accumulator has no series %s" % (run, tag)
            if tag not in of_plugin(server, "scalars") and tag in server.Tags()["tensors"]:
                yield "run %s: %s is no scalar to the server's accumulator" % (run, tag)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wrong = list(check(*sys.argv[1:]))
    if wrong:
        sys.exit("\n".join(wrong[:20]))
    print("TensorBoard reads the copy: %d runs, every value finite, none lost, marker and note visible" % len(runs(sys.argv[2])))


main()
