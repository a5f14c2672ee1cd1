"""Writes the folders beside this file again: python3 make.py.

Each folder is a small job whose ranks run a program of collectives until nothing moves any more, and
then dump what a flight recorder would hold (PyTorch 2.8, format 2.9). The program, the fault and the
rules of the machine below say who is to blame; `truth` states it, and the test reads it from
truth.json. The machine: a processor enqueues calls in order and goes on, unless it has to wait for the device;
the device runs one call after the other; a collective is done once all members have it at the head of
their queue, with the same operation and size.
"""
import json
import os
import pickle
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))


class Call:
    def __init__(self, group, op, size=(4,), peer=None, dtype="Float"):
        self.group, self.op, self.size, self.peer, self.dtype = group, op, list(size), peer, dtype
        self.done = False

    @property
    def p2p(self):
        return self.peer is not None


SYNC = "sync"


def run(groups, programs, never=(), hung=()):
    """Runs the programs; never = {rank: number of calls before it stops}, hung = {rank: number of the call
    in which its device stops, though the others get its part}."""
    never, hung = dict(never), dict(hung)
    queue = {r: [] for r in programs}
    head = {r: 0 for r in programs}
    at = {r: 0 for r in programs}
    count = {}
    clock = [0]
    moved = True
    while moved:
        moved = False
        for r, program in programs.items():
            while at[r] < len(program):
                step = program[at[r]]
                if step == SYNC:
                    if head[r] < len(queue[r]):
                        break
                elif len(queue[r]) >= never.get(r, 1 << 30):
                    break
                else:
                    key = (r, step.group, step.p2p)
                    count[key] = count.get(key, 0) + 1
                    step.seq = count[key]
                    step.other = count.get((r, step.group, not step.p2p), 0)
                    clock[0] += 1
                    step.time = clock[0]
                    queue[r].append(step)
                at[r] += 1
                moved = True
        for r in programs:
            if head[r] >= len(queue[r]) or r in hung and head[r] >= hung[r] and queue[r][head[r]].__dict__.get("given"):
                continue
            c = queue[r][head[r]]
            members = groups[c.group][1] if not c.p2p else [r, groups[c.group][1][c.peer]]
            heads = [queue[m][head[m]] if m in queue and head[m] < len(queue[m]) else None for m in members]
            if any(h is None or h.group != c.group or h.p2p != c.p2p for h in heads):
                continue
            if any(h.__dict__.get("given") for h in heads):
                continue
            if not c.p2p and any((h.op, h.size, h.seq) != (c.op, c.size, c.seq) for h in heads):
                continue
            if c.p2p and (heads[1].op == c.op or groups[c.group][1][heads[1].peer] != r):
                continue
            for m, h in zip(members, heads):
                if m in hung and head[m] == hung[m]:
                    h.given = True
                    continue
                h.done = True
                head[m] += 1
            moved = True
    return queue


FRAMES = [
    {"name": "all_reduce", "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2825},
    {"name": "train_step", "filename": "/app/train.py", "line": 118},
    {"name": "<module>", "filename": "/app/train.py", "line": 201},
]


def dump(r, groups, queue, active, frames, status=True):
    mine = [g for g in sorted(groups, key=int) if r in groups[g][1]]
    ids = {g: 3 * i for i, g in enumerate(mine)}  # an ordinal of the process, with gaps
    config, state, entries = {}, {}, []
    for g in mine:
        desc, members = groups[g]
        calls = [c for c in queue if c.group == g]
        if not calls:
            continue
        config[g] = {"name": g, "desc": desc, "ranks": "[%s]" % ", ".join(map(str, members))}
        done = [c for c in calls if c.done]
        state[str(ids[g])] = {"last_enqueued_collective": calls[-1].seq, "last_started_collective": -1, "last_completed_collective": done[-1].seq if done else -1}
    for i, c in enumerate(queue):
        if active and c.done:
            continue
        desc, members = groups[c.group]
        name = c.op
        if c.p2p:
            me = members.index(r)
            name = "send %d->%d" % (me, c.peer) if c.op == "send" else "recv %d<-%d" % (me, c.peer)
        created = 1800000000_000000000 + c.time * 1_000_000 + r * 1000
        e = {
            "record_id": i, "pg_id": ids[c.group], "process_group": (c.group, desc),
            "collective_seq_id": c.other if c.p2p else c.seq, "p2p_seq_id": c.seq if c.p2p else 0, "op_id": i + 1,
            "profiling_name": "nccl:" + name, "time_created_ns": created,
            "input_sizes": [c.size], "input_dtypes": [c.dtype], "output_sizes": [c.size], "output_dtypes": [c.dtype],
            "state": "completed" if c.done else "scheduled",
            "time_discovered_started_ns": None, "time_discovered_completed_ns": created + 500_000 if c.done else None,
            "retired": c.done, "timeout_ms": 600000, "is_p2p": c.p2p,
        }
        if frames:
            e["frames"] = FRAMES
        if hasattr(c, "ms"):
            e["duration_ms"] = c.ms
        entries.append(e)
    out = {"version": "2.9", "pg_config": config, "nccl_version": "2.27.3"}
    if status:
        out["pg_status"] = state
    out["entries"] = entries
    return out


def write(name, truth, groups, programs, active=False, frames=False, leave_out=(), cut=(), status=True, **faults):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    queues = run(groups, programs, **faults)
    for r, queue in queues.items():
        if r in leave_out:
            continue
        data = pickle.dumps(dump(r, groups, queue, active, frames, status), protocol=2)
        if r in cut:
            data = data[: len(data) * 2 // 3]
        with open(os.path.join(folder, "_dump_%d" % r), "wb") as f:
            f.write(data)
    with open(os.path.join(folder, "truth.json"), "w") as f:
        json.dump(truth, f, indent=1, sort_keys=True)
        f.write("\n")


def world(n):
    return {"0": ("default_pg", list(range(n)))}


def same(n, calls):
    """The same program on all of n ranks; calls is called for each, so that none is shared."""
    return {r: calls() for r in range(n)}


def steps(n, op="all_reduce", group="0", sync=True):
    def calls():
        out = []
        for _ in range(n):
            out.append(Call(group, op))
            if sync:
                out.append(SYNC)
        return out
    return calls


write("never", {"ranks": [2], "group": "0", "seq": 5, "op": "all_reduce", "missing": [2], "says": "never enqueued"},
      world(4), same(4, steps(8)), never={2: 4}, frames=True)

write("never_active", {"ranks": [2], "group": "0", "seq": 5, "op": "all_reduce", "missing": [2], "says": "never enqueued"},
      world(4), same(4, steps(8)), never={2: 4}, active=True)

write("stuck", {"ranks": [1], "group": "0", "seq": 4, "op": "all_reduce", "behind": [1], "says": "did not complete"},
      world(4), same(4, steps(8, sync=False)), hung={1: 3})

p = same(4, steps(8))
p[3][8] = Call("0", "all_reduce", (8,))
write("size", {"ranks": [3], "group": "0", "seq": 5, "op": "all_reduce", "mismatched": [3], "cause": "collective-not-called-by-all"}, world(4), p)

p = same(4, steps(8))
p[0].insert(6, Call("0", "broadcast"))  # rank 0 has one call more
write("extra_call", {"ranks": [0], "group": "0", "seq": 4, "op": "all_reduce", "mismatched": [0], "cause": "collective-not-called-by-all"}, world(4), p)

p = {0: steps(2)() + [Call("7", "send", peer=1), SYNC, Call("0", "all_reduce"), SYNC],
     1: steps(2)() + [Call("7", "recv", peer=0), SYNC, Call("7", "recv", peer=0), SYNC]}
p[0][4:4] = [Call("7", "send", peer=1), SYNC]
write("send_without_receive", {"ranks": [1], "group": "7", "op": "send", "missing": [1], "says": "never enqueued the receive"},
      {"0": ("default_pg", [0, 1]), "7": ("PIPELINE", [0, 1])}, p, never={1: 3})

groups = {"0": ("default_pg", [0, 1, 2, 3]), "1": ("TENSOR", [0, 1]), "2": ("TENSOR", [2, 3]), "3": ("DATA", [0, 2]), "4": ("DATA", [1, 3])}


def parallel(r):
    out = [Call("0", "barrier"), SYNC]
    for _ in range(3):
        for g in ("1", "2", "3", "4"):
            if r in groups[g][1]:
                out += [Call(g, "all_reduce"), SYNC]
    return out


# Rank 3 stops before its second tensor-parallel call; 2 waits there for 3, 0 in the
# data-parallel group for 2, 1 in its own for 3.
write("chain", {"ranks": [3], "group": "2", "seq": 2, "op": "all_reduce", "missing": [3], "says": "never enqueued"},
      groups, {r: parallel(r) for r in range(4)}, never={3: 3})
write("chain_active", {"ranks": [3], "group": "2", "seq": 2, "op": "all_reduce", "missing": [3], "says": "never enqueued"},
      groups, {r: parallel(r) for r in range(4)}, never={3: 3}, active=True)

# Rank 3 left no dump: those that wait for it are not accused instead.
write("chain_without_dump", {"ranks": [], "open": True, "unknown": [3]},
      groups, {r: parallel(r) for r in range(4)}, never={3: 3}, leave_out=[3])

write("finished", {"ranks": []}, groups, {r: parallel(r) for r in range(4)})

write("without_dump", {"ranks": [], "open": True, "unknown": [2]}, world(4), same(4, steps(8)), never={2: 4}, leave_out=[2])

# Two groups in different order on two ranks: each waits for the other.
circle = {"0": ("default_pg", [0, 1, 2]), "5": ("A", [0, 1]), "6": ("B", [0, 1])}
a, b = lambda: [Call("5", "all_reduce"), SYNC], lambda: [Call("6", "all_reduce"), SYNC]
write("circle", {"ranks": [], "open": True}, circle,
      {0: steps(1)() + a() + b() + steps(1)(), 1: steps(1)() + b() + a() + steps(1)(), 2: steps(2)()})

# The dump of a rank that waits is cut: what it shows no longer is not held against it.
write("cut", {"ranks": [2], "group": "0", "seq": 5, "op": "all_reduce", "missing": [2], "says": "never enqueued"},
      world(4), same(4, steps(8)), never={2: 4}, cut=[1], status=False)
write("cut_culprit", {"ranks": [], "open": True}, world(4), same(4, steps(8)), never={2: 4}, cut=[2], status=False)

# Rank 2 came 40 s late to the third call, and stopped before the fifth.
p = same(4, steps(8))
for r in range(4):
    for i, c in enumerate(x for x in p[r] if x != SYNC):
        c.ms = 0.75 if r == 2 else 40000.5 if i == 2 else 1.25
write("straggler", {"ranks": [2], "group": "0", "seq": 5, "op": "all_reduce", "missing": [2], "says": "never enqueued", "note": "Rank 2 was slow, not missing: the others waited 40.0 s at least for it in all_reduce, sequence number 3, of default_pg (group 0)"},
      world(4), p, never={2: 4})
p = same(4, steps(3))
for r in range(4):
    for i, c in enumerate(x for x in p[r] if x != SYNC):
        c.ms = 0.75 if r == 1 else 9000.0 if i == 1 else 1.25
write("slow_only", {"ranks": [], "note": "Rank 1 was slow, not missing: the others waited 9.0 s"}, world(4), p)

# All came, and the network let nobody through.
p = same(4, steps(3))
for r in range(4):
    p[r].append(Call("0", "all_reduce", (4,)))
write("nobody_through", {"ranks": [], "open": True}, {"0": ("default_pg", [0, 1, 2, 3]), "9": ("UNUSED", [0])}, p, hung={r: 3 for r in range(4)})
