#!/usr/bin/env python3
"""Proves the loop on real trainings: run, boundary, verify, recheck, and what the incident then says.

    prove.py INQUEST WORK [--engine plain|torch] [--device cpu|cuda]

train.py beside it fails for want of memory as a function of its batch, by memory that grows with every
step, and by values that are not finite; each time the failure is recorded and diagnosed, a cure that is
none is refused, and the cure is verified. Everything is compared with what trials without inquest do.
"""

import argparse
import concurrent.futures
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
checks = 0


def hold(what, true, *more):
    """Counts a check; the first that does not hold ends the proof."""
    global checks
    checks += 1
    if not true:
        print("DOES NOT HOLD: " + what)
        for m in more:
            print(m if isinstance(m, str) else json.dumps(m, indent=1)[:6000])
        sys.exit(1)


class Loop:
    """inquest with a store of its own, in a folder of its own."""

    def __init__(self, inquest, work, name, train):
        self.inquest, self.train = inquest, train
        self.dir = os.path.join(work, name)
        self.store = os.path.join(self.dir, "store")
        os.makedirs(self.dir)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "PMI", "RANK", "WORLD_SIZE", "LOCAL_RANK", "XDG_"))}
        self.env["XDG_STATE_HOME"] = os.path.join(self.dir, "state")

    def __call__(self, *words, status=None):
        """inquest WORDS; words of a command are flags of inquest before --store is put to them."""
        began = time.monotonic()
        head, tail = list(words), []
        if "--" in head:
            at = head.index("--")
            head, tail = head[:at], head[at:]
        p = subprocess.run([self.inquest, *head, "--store", self.store, *tail], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if status is not None:
            hold("inquest %s ends with status %s" % (shlex.join(words), status), p.returncode in ([status] if isinstance(status, int) else status),
                 "status %d after %.1f s" % (p.returncode, time.monotonic() - began), p.stdout[-4000:], p.stderr[-4000:])
        return p

    def json(self, *words, status=None):
        at = words.index("--") if "--" in words else len(words)
        p = self(*words[:at], "--format", "json", *words[at:], status=status)
        try:
            return json.loads(p.stdout)
        except ValueError:
            hold("inquest %s prints JSON" % shlex.join(words), False, p.stdout[-2000:], p.stderr[-2000:])

    def fails(self, *options, cause, first, other=()):
        """Runs the training under inquest run, which fails as it does without; returns the incident."""
        command = [*self.train, *options]
        plain = subprocess.run(command, cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, capture_output=True)
        hold("the training fails by itself", plain.returncode == 1, plain.stdout.decode()[-2000:], plain.stderr.decode()[-2000:])
        before = {i["id"] for i in self.json("incident", "list", "--all")["incidents"]}
        p = self("run", "--sample", "0.05", "--", *command, status=plain.returncode)
        hold("its output passes through", p.stdout == plain.stdout.decode() or "rss_mib" in p.stdout or first == "nonfinite", p.stdout, plain.stdout.decode())
        new = [i for i in self.json("incident", "list", "--all")["incidents"] if i["id"] not in before]
        hold("one incident is kept", len(new) == 1, new)
        kept = self.json("incident", "show", new[0]["id"])
        d = kept["diagnosis"]
        hold("the first fault is of %s" % first, d["first_fault"] and d["first_fault"]["class"] == first, d["first_fault"] or "none")
        lead = d["hypotheses"][0]
        hold("the leading cause is %s, at least supported" % cause, lead["cause"] in (cause, *other) and lead["standing"] in ("supported", "established"), [(h["cause"], h["standing"]) for h in d["hypotheses"]])
        hold("its status is open", kept["status"] == "open", kept["status"])
        print("  run: %s; %s (%s), incident %s" % (kept["title"].rstrip("."), lead["cause"], lead["standing"], kept["id"]))
        return kept

    def verify(self, incident, want, *words, check=None):
        """Verifies a cure; want is the status, check the name of the check that must refuse it."""
        v = self.json("verify", *(["--incident", incident] if incident else []), *words, status=want)
        verdict = {0: "verified", 3: "not_verified", 4: "inconclusive"}[want]
        hold("the verdict is " + verdict, v["verification"]["verdict"] == verdict, v["verification"])
        if check:
            refused = [c["name"] for c in v["verification"]["checks"] if c["state"] == "no"]
            hold("it is refused for " + check, check in refused, v["verification"]["checks"])
        print("  verify: %s" % v["verification"]["says"])
        return v


def edge_by_force(train, lo, hi, cwd):
    """The largest value with which the training passes, every one tried, without inquest."""

    def passes(v):
        words = [w.replace("{BATCH}", str(v)) for w in train]
        return subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    # Each has a limit of its own; the one device of a host is had by one at a time.
    with concurrent.futures.ThreadPoolExecutor(1 if "cuda" in train else os.cpu_count()) as pool:
        passed = list(pool.map(passes, range(lo, hi + 1)))
    hold("a larger batch never passes where a smaller one fails", passed == sorted(passed, reverse=True), str(passed))
    return lo + sum(passed) - 1


def boundary(loop, command, lo, hi, want, repeats, incident=""):
    """want is the largest value that passes, lo-1 where none does."""
    r = loop.json("boundary", *(["--incident", incident] if incident else []), "--repeats", str(repeats), "--vary", "BATCH=%d..%d" % (lo, hi), "--", *command, status=0)
    edge = r["boundary"]["edges"][0]
    most = math.ceil(math.log2(hi - lo + 2))
    firsts = [p for p in r["boundary"]["points"] if not p["repeat"]]
    hold("BATCH=%d..%d takes at most %d trials before the repeats" % (lo, hi, most), len(firsts) <= most and edge["trials"] <= most, [p["values"] for p in firsts])
    got = edge["largest"]["value"] if edge["largest"] else lo - 1
    hold("the largest that passes in %d..%d is %d" % (lo, hi, want), got == want, edge)
    low = edge["smallest"]["value"] if edge["smallest"] else hi + 1
    hold("the smallest that fails in %d..%d is %d" % (lo, hi, want + 1), low == want + 1, edge)
    for p in r["boundary"]["points"]:
        ok = int(p["values"]["BATCH"]) <= want
        hold("every trial says what it did", p["result"] == ("passed" if ok else "out_of_memory"), p)
    print("  boundary: %s %d trials before the repeats, of at most %d" % (r["boundary"]["says"], len(firsts), most))
    return r


def memory(loop, o):
    print("memory: a batch that is too large")
    limit = ["--memory-mib", str(o.memory)] if o.memory else []
    short = [*loop.train, *limit, "--steps", "3", *o.sizes, "--batch-size", "{BATCH}"]
    edge = edge_by_force(short, 1, o.hi, loop.dir)
    hold("the edge lies within what is tried", 2 <= edge < o.hi, str(edge))
    print("  by trying all of 1..%d: %d passes, %d does not" % (o.hi, edge, edge + 1))
    now = min(2 * (edge // 2) + 2, o.hi)  # even, and above the edge
    kept = loop.fails(*limit, *o.sizes, *o.long, "--batch-size", str(now), "--grad-accum", "1", cause=o.cause, first=o.first, other=o.also)

    boundary(loop, short, 1, o.hi, edge, 2, kept["id"])
    if o.engine == "plain":  # whose trials take no time to start
        boundary(loop, short, 1, max(edge - 1, 1), max(edge - 1, 1), 1)  # all pass
        boundary(loop, short, edge + 1, edge + 2, edge, 1)  # none passes

    failing = [*loop.train, *limit, *o.sizes, *o.long, "--batch-size", str(now), "--grad-accum", "1"]
    loop.verify(kept["id"], 3, "--runs", "1", "--", *failing, "--seed", "8")
    said = loop.json("incident", "show", kept["id"])
    hold("a change that did not help is to be taken back", said["status"] == "unresolved" and "--seed" in json.dumps(said["not_helped"]), said["status"], said["not_helped"])

    remedy = kept["diagnosis"]["remedy"]
    change = "--batch-size %d --grad-accum 2" % (now // 2)
    hold("the remedy halves the batch in the run's own command and accumulates", change in remedy["command"], remedy)
    hold("the remedy names its test", remedy["test"] == "inquest verify -- " + remedy["command"], remedy)
    v = loop.verify(kept["id"], 0, "--runs", "2", "--", *shlex.split(remedy["command"]))
    for name in ("ended", "past", "slope"):
        hold("check %s holds" % name, any(c["name"] == name and c["state"] == "yes" for c in v["verification"]["checks"]), v["verification"]["checks"])

    kept = loop.json("incident", "show", kept["id"])
    hold("the incident is confirmed", kept["status"] == "confirmed", kept["status"], kept["problems"])
    hold("its fix is the one change", kept["fix"]["single"] and "--batch-size" in json.dumps(kept["fix"]["changes"]), kept["fix"])
    hold("its cause is confirmed", kept["cause"]["entry"] == o.cause and kept["cause"]["confirmed"], kept["cause"])
    hold("it says how to test it again, and how to go back", kept["follow_up"] and kept["rollback"], kept["follow_up"], kept["rollback"])

    again = loop.json("incident", "recheck", kept["id"], status=0)
    hold("recheck repeats it", again["by"] == "recheck" and again["verification"]["verdict"] == "verified", again["verification"])
    print("  recheck: %s" % again["verification"]["says"])
    kept = loop.json("incident", "show", kept["id"])
    by = {t["by"] for t in kept["trials"]}
    hold("the incident has the whole story", by >= {"run", "boundary", "verify", "recheck"}, sorted(by))
    hold("its acts are the verifications", [a["kind"] for a in kept["acts"]].count("verified") == 3, kept["acts"])
    text = loop("incident", "show", kept["id"], status=0).stdout
    hold("it can be read", "confirmed" in text and "micro-batch" in text, text)
    print("  show: %d trials by %s, %s" % (len(kept["trials"]), ", ".join(sorted(by)), kept["status"]))

    # The same failure again is a regression of the same incident.
    loop("run", "--sample", "0.05", "--", *failing, status=1)
    kept = loop.json("incident", "show", kept["id"])
    hold("a confirmed incident that fails again has regressed", kept["status"] == "regressed", kept["status"])
    print("  run again, unchanged: %s" % kept["status"])


def leak(loop, o):
    print("leak: each step's loss is kept with what it was computed from")
    grows = [*o.leak, "--keep-losses", "graph"]
    kept = loop.fails(*grows, "--memory-mib", str(o.leak_memory), cause="host-leak-per-step", first="host_memory")
    loop.verify(kept["id"], 3, "--runs", "2", "--", *loop.train, *grows, "--memory-mib", str(16 * o.leak_memory), check="slope")
    kept = loop.json("incident", "show", kept["id"])
    hold("more room for a leak confirms nothing", kept["status"] == "unresolved" and not kept["fix"], kept["status"], kept["fix"] or "")
    loop.verify(kept["id"], 0, "--runs", "2", "--", *loop.train, *o.leak, "--keep-losses", "number", "--memory-mib", str(o.leak_memory))
    kept = loop.json("incident", "show", kept["id"])
    hold("what keeps no graph does", kept["status"] == "confirmed", kept["status"])


def not_finite(loop, o):
    print("not finite: the learning rate is too high")
    kept = loop.fails(*o.nan, "--lr", "1000000", "--stop-on-nan", cause="nan-lr-batch-mismatch", first="nonfinite", other=("nan-unknown",))
    loop.verify(kept["id"], 3, "--runs", "2", "--", *loop.train, *o.nan, "--lr", "1000000", check="finite")
    loop.verify(kept["id"], 0, "--runs", "2", "--", *loop.train, *o.nan, "--lr", "0.01", "--stop-on-nan")
    kept = loop.json("incident", "show", kept["id"])
    hold("the lower learning rate is confirmed", kept["status"] == "confirmed" and "--lr" in json.dumps(kept["fix"]), kept["status"], kept["fix"])


def safe(loop, o):
    print("trials destroy no work")
    out = os.path.join(loop.dir, "outputs")
    weights = os.path.join(out, "checkpoint-20", "model.safetensors")
    options = [*o.leak, "--output_dir"]
    subprocess.run([*loop.train, *options, out], cwd=loop.dir, check=True, stdout=subprocess.DEVNULL)
    old = os.path.join(out, "checkpoint-%s" % o.leak[o.leak.index("--steps") + 1])
    os.rename(old, os.path.dirname(weights))
    before = (open(weights, "rb").read(), os.stat(weights).st_mtime_ns, sorted(os.listdir(out)))
    for words in (["verify", "--runs", "1"], ["boundary", "--vary", "BATCH=1..2"]):
        batch = "{BATCH}" if words[0] == "boundary" else "1"
        p = loop(*words, "--", *loop.train, *options, out, "--batch-size", batch, status=1)
        hold("the refusal names the folder", "outputs" in p.stderr, p.stderr)
        print("  %s: refused" % words[0])
    hold("nothing in it was touched", before == (open(weights, "rb").read(), os.stat(weights).st_mtime_ns, sorted(os.listdir(out))))
    v = loop.verify("", 0, "--runs", "2", "--checkpoint", "{OUT}", "--", *loop.train, *options, "{OUT}")
    hold("the checkpoint that it wrote is whole and finite", [c["state"] for c in v["verification"]["checkpoints"]] == ["yes"] * len(v["verification"]["checkpoints"]) and v["verification"]["checkpoints"], v["verification"]["checkpoints"])
    loop("verify", "--runs", "1", "--allow-writes", out, "--", *loop.train, *options, out, status=(0, 4))
    hold("where it is allowed it is written", len(os.listdir(out)) == 2, str(os.listdir(out)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("inquest")
    p.add_argument("work")
    p.add_argument("--engine", choices=["plain", "torch"], default="plain")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--only", default="", help="memory, leak, not_finite or safe")
    o = p.parse_args()
    began = time.monotonic()
    o.inquest, o.work = os.path.abspath(o.inquest), os.path.abspath(o.work)
    train = [sys.executable, os.path.join(HERE, "train.py"), "--engine", o.engine]
    o.cause, o.first, o.also = "address-space-limit", "host_memory", ()
    if o.device == "cuda":
        train += ["--device", "cuda"]
        o.cause, o.first = "batch-or-activation-too-large", "device_memory"
    # How much memory a sample takes, what there is, and the range of batches that has the edge in it.
    if o.device == "cuda":
        o.sizes, o.memory, o.hi = ["--sample-kib", str(8 << 20)], 0, 32
    elif o.engine == "torch":
        o.sizes, o.memory, o.hi = ["--sample-kib", "8192"], 40, 6
    else:
        o.sizes, o.memory, o.hi = ["--sample-kib", "8192"], 80, 16
    o.long = ["--steps", "30", "--step-time", "0.05", "--sanity-steps", "8"]  # so long that its limits are seen
    o.leak = ["--steps", "40", "--step-time", "0.05", "--batch-size", "4", "--sample-kib", "512"]
    o.leak_memory = 40
    o.nan = ["--steps", "30", "--step-time", "0.05", "--sample-kib", "64"]
    stories = [memory] if o.device == "cuda" else [memory, leak, not_finite, safe]
    for story in stories:
        if o.only in ("", story.__name__):
            shutil.rmtree(os.path.join(o.work, story.__name__), ignore_errors=True)
            story(Loop(o.inquest, o.work, story.__name__, train), o)
    print("%d checks hold, %.0f s" % (checks, time.monotonic() - began))


if __name__ == "__main__":
    main()
