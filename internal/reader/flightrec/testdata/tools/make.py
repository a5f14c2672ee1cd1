"""Writes the made files of the folder above again: python3 make.py."""
import json
import os
import pickle

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BASE = 1800000000_000000000
FRAMES = [
    {"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2825},
    {"name": "sync_gradients", "filename": "/app/step.py", "line": 57},
    {"name": "<module>", "filename": "/app/train.py", "line": 201},
]


def entry(i, pg, seq, op, state, p2p=False, size=(4, 8), frames=True, other=0):
    e = {
        "record_id": i, "pg_id": pg[0], "process_group": (pg[1], pg[2]), "collective_seq_id": other if p2p else seq, "p2p_seq_id": seq if p2p else 0,
        "op_id": i, "profiling_name": "nccl:" + op, "time_created_ns": BASE + i * 1_000_000,
        "input_sizes": [list(size)], "input_dtypes": ["BFloat16"], "output_sizes": [list(size)], "output_dtypes": ["BFloat16"], "state": state,
        "time_discovered_started_ns": BASE + i * 1_000_000 + 100 if state != "scheduled" else None,
        "time_discovered_completed_ns": BASE + i * 1_000_000 + 900 if state == "completed" else None,
        "retired": state == "completed", "timeout_ms": 600000, "is_p2p": p2p,
    }
    if state == "completed":
        e["duration_ms"] = 0.75
    if frames:
        e["frames"] = FRAMES
    return e


WORLD, PIPE = (0, "0", "default_pg"), (3, "4", "PIPELINE")


def top(entries, **more):
    out = {
        "version": "2.9",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}, "4": {"name": "4", "desc": "PIPELINE", "ranks": "[0, 2]"}},
        "nccl_version": "2.27.3",
        "pg_status": {
            "0": {"last_enqueued_collective": 12, "last_started_collective": 12, "last_completed_collective": 11},
            "3": {"last_enqueued_collective": 6, "last_started_collective": 5, "last_completed_collective": 5},
        },
        "entries": entries,
    }
    out.update(more)
    return out


def put(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


def pickled(name, value, protocol=2):
    data = pickle.dumps(value, protocol=protocol)
    put(name, data)
    return data


ring = [entry(i, WORLD, i, "all_reduce", "completed") for i in range(1, 12)]
ring += [entry(12, PIPE, 5, "recv 1<-0", "completed", p2p=True), entry(13, PIPE, 6, "send 1->0", "scheduled", p2p=True), entry(14, WORLD, 12, "all_reduce", "started")]
whole = pickled("_dump_2", top(ring))
pickled("nccl_trace_rank_0.pickle", top(ring[-2:], pg_config={"0": {"name": "0", "desc": "default_pg", "ranks": ""}}), protocol=5)
put("cut_2", whole[: len(whole) // 2])

# The JSON form: keys in order, text for the numbers of pg_status, 0 for unknown times.
j = top([entry(13, PIPE, 6, "send 1->0", "scheduled", p2p=True, frames=False), entry(14, WORLD, 12, "all_reduce", "scheduled", frames=False)])
for s in j["pg_status"].values():
    for k in s:
        s[k] = str(s[k])
for e in j["entries"]:
    for k in ("time_discovered_started_ns", "time_discovered_completed_ns"):
        e[k] = e[k] or 0
text = json.dumps(j, sort_keys=True, separators=(",", ":"))
put("trace_rank_2.json", text.encode())
put("cut_rank_2.json", text[: len(text) * 2 // 3].encode())
put("bom_rank_2.json", b"\xef\xbb\xbf" + json.dumps(j, indent=1).replace("\n", "\r\n").encode())

# 1.x: one number for both sorts of work, no descriptions, no settings of groups.
old = []
for i in range(3):
    e = entry(i, WORLD, i + 1, "all_reduce", "completed" if i < 2 else "scheduled", frames=False)
    for k in ("collective_seq_id", "p2p_seq_id", "is_p2p", "process_group"):
        del e[k]
    e["seq_id"] = i + 1
    old.append(e)
pickled("v1_rank_1", {"version": "1.5", "entries": old})
pickled("list_rank_1", old)

# Hostile: control sequences, wrong types, absurd numbers.
bad = entry(1, (0, "\x1b[2J0;\n", "d\x00esc" * 100), 3, "all\x1b_reduce;1 2", "sched\nuled", size=range(200))
odd = entry(2, WORLD, 4, "send 0->99999999999999999999", "scheduled", p2p=True)
odd["frames"] = [7, {"name": 3}, {"filename": "/x" * 400, "name": "f", "line": "no"}]
pickled("hostile_rank_0", {
    "version": 2, "pg_config": {"0": {"name": 1, "desc": None, "ranks": "[0, 0, -1]"}, 5: "x", "9": {"ranks": "[0, 1, 99999999999]"}},
    "pg_status": {"0": [], "x": {}, "1": {"last_enqueued_collective": "many"}},
    "entries": [bad, odd, 5, None, {}, {"process_group": ()}, entry(3, WORLD, "no", "barrier", "scheduled")],
})

# What would call when Python loads it, behind a readable beginning.
good = pickle.dumps(top(ring[-2:]), protocol=2)
put("refused_rank_2", good[:-1] + b"cos\nsystem\nX\x04\x00\x00\x00trueR.")
