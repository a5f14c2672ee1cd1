#!/usr/bin/env python3
"""Kills inquest itself with SIGKILL at random moments, and looks at what is kept.

    killed.py INQUEST WORK [POINTS]

In turns inquest runs a command, searches a boundary, verifies, writes a note, lists and exports, all
on one store, and is killed within what it takes. After every kill the store must be readable and have
everything that was there before: each trial that had ended as it was, each note that was acknowledged.
At the end the index is removed, and what is made anew must list the same. The moments are those of a
seed, as far as a machine repeats them.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

TRAINS = 'n=0; while [ $n -lt 20 ]; do echo "step $n loss 1.$n"; n=$((n+1)); done; echo "MemoryError: batch %s"; exit 1'


def main():
    inquest, work, points = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int((sys.argv + ["200"])[3])
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    store = os.path.join(work, "store")
    env = {**os.environ, "XDG_STATE_HOME": os.path.join(work, "state"), "PYTHONDONTWRITEBYTECODE": "1"}
    rnd = random.Random(11)

    def start(words, **streams):
        at = words.index("--") if "--" in words else len(words)
        return subprocess.Popen([inquest, *words[:at], "--store", store, *words[at:]], cwd=work, env=env, stdin=subprocess.DEVNULL, start_new_session=True, **streams)

    def read(*words):
        p = start([*words, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate()
        if p.returncode != 0:
            sys.exit("inquest %s: status %d: %s" % (" ".join(words), p.returncode, err.decode()[-2000:]))
        return json.loads(out)

    def kept():
        """What every trial says that has ended, and all notes."""
        trials, notes = {}, set()
        for i in read("incident", "list", "--all")["incidents"]:
            shown = read("incident", "show", i["id"])
            for t in shown["trials"]:
                if t["verdict"]:  # the last that is written of it
                    trials[t["id"]] = {k: v for k, v in t.items() if k not in ("incident", "problems")}
            notes |= {a.get("text", "") for a in shown["acts"]}
        return trials, notes

    run = ["run", "--sample", "0", "--", "sh", "-c", TRAINS % 0]
    start(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
    turns = [
        lambda n: run,
        lambda n: ["incident", "note", "last", "note %d" % n],
        lambda n: ["boundary", "--vary", "B=1..4", "--repeats", "1", "--", "sh", "-c", "[ {B} -le 2 ] || { echo MemoryError: {B}; exit 1; }"],
        lambda n: ["verify", "--incident", "last", "--runs", "2", "--", "sh", "-c", "echo step 1 loss 1"],
        lambda n: ["incident", "list"],
        lambda n: ["incident", "export", "last", "-o", "bundle-%d.tar.gz" % n],
    ]
    # How long each takes when it is let.
    takes = []
    for i, turn in enumerate(turns):
        began = time.monotonic()
        start(turn(-1 - i), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
        takes.append(time.monotonic() - began)
    before, notes = kept()
    killed = 0
    for n in range(points):
        which = n % len(turns)
        p = start(turns[which](n), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rnd.uniform(0, takes[which]))
        p.send_signal(signal.SIGKILL)
        status = p.wait()
        killed += status == -signal.SIGKILL
        try:
            os.killpg(p.pid, signal.SIGKILL)  # the command that it ran
        except ProcessLookupError:
            pass
        if which == 1 and status == 0:
            notes.add("note %d" % n)
        if n % len(turns) == len(turns) - 1 or n == points - 1:
            now, said = kept()
            lost = {t for t, r in before.items() if now.get(t) != r} | (notes - said)
            if lost:
                sys.exit("after %d kills these are lost or changed: %s" % (n + 1, sorted(lost)))
            before, notes = now, said
    listed = read("incident", "list", "--all")
    for name in os.listdir(store):
        if name.startswith("index"):
            os.remove(os.path.join(store, name))
    again = read("incident", "list", "--all")
    if listed != again:
        sys.exit("the index made anew lists something else:\n%s\n%s" % (json.dumps(listed)[:2000], json.dumps(again)[:2000]))
    print("%d of %d were killed before they ended; %d trials and %d notes are kept" % (killed, points, len(before), len(notes)))


if __name__ == "__main__":
    main()
