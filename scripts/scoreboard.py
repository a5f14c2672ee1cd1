#!/usr/bin/env python3
"""Hold the accuracy on labelled cases to what it has been.

    scoreboard.py BINARY        compare with testdata/scoreboard.txt
    scoreboard.py BINARY --update

The cases and the scorer lie beside the checkout; without them nothing is
compared, and that is said. A floor that is missed fails; so does any cause that
is called established and is not labelled so.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCORER = os.path.join(ROOT, "..", "shared", "tools", "score.py")
CASES = os.path.join(ROOT, "..", "shared", "cases")
BOARD = os.path.join(ROOT, "testdata", "scoreboard.txt")
HEAD = "# What each score must reach: right answers of those asked. over must be 0. Written by scripts/scoreboard.py --update.\n"


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--update"]):
        sys.exit(__doc__.strip())
    if not (os.path.isfile(SCORER) and os.path.isdir(CASES)):
        print("skipped: no labelled cases beside this checkout")
        return
    with tempfile.TemporaryDirectory() as tmp:
        result = os.path.join(tmp, "score.json")
        subprocess.run([sys.executable, SCORER, "--bin", os.path.abspath(sys.argv[1]), "--json", result, CASES], check=True)
        with open(result) as f:
            got = json.load(f)
    totals, errors = got["totals"], got["errors"]
    if sys.argv[2:]:
        with open(BOARD, "w") as f:
            f.write(HEAD + "".join("%-8s %d/%d\n" % (k, *totals[k]) for k in totals if totals[k][1]))
        return
    floors = {}
    with open(BOARD) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, score = line.split()
                floors[name] = [int(x) for x in score.split("/")]
    bad = ["%d cases gave no incident" % errors] if errors else []
    if totals["over"][0]:
        bad.append("over is %d, must be 0: a wrong cause is called established" % totals["over"][0])
    for name, (floor, asked) in floors.items():
        have, now = totals[name]
        if name != "over" and have * asked < floor * now:
            bad.append("%s is %d/%d, was %d/%d" % (name, have, now, floor, asked))
    if bad:
        sys.exit("scoreboard: " + "; ".join(bad))
    print("scoreboard: no score fell")


if __name__ == "__main__":
    main()
