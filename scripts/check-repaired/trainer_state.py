"""Checks a repaired copy of transformers' trainer_state.json with TrainerState itself.

    python trainer_state.py SOURCE COPY

SOURCE and COPY are such files, or folders in which they lie at the same places. Exit status 1 and words where the
copy is not what it should be. Needs transformers. The copy is one that --drop-suspect and --dedupe did not thin further.
"""

import json, math, os, sys

from transformers.trainer_callback import TrainerState

MARKER = "inquest_failed_segment"


def files(path):
    if os.path.isfile(path):
        return {"": path}
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            if name == "trainer_state.json":
                found[os.path.relpath(os.path.join(folder, name), path)] = os.path.join(folder, name)
    return found


def number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def refuse(token):
    raise ValueError(f"{token} is no JSON")


def check(source, copy):
    wrong = []
    before = json.load(open(source))
    try:
        after = json.load(open(copy), parse_constant=refuse)
    except ValueError as e:
        return [f"not strict JSON: {e}"]
    state = TrainerState.load_from_json(copy)  # TypeError for a key that it does not know
    if set(after) != set(before):
        wrong.append(f"other keys at the top: {sorted(set(after) ^ set(before))}")
    if len(state.log_history) != len(before["log_history"]):
        return wrong + [f"{len(state.log_history)} rows of {len(before['log_history'])}"]
    lost = marked = 0
    for i, (a, b) in enumerate(zip(before["log_history"], state.log_history)):
        marked += b.get(MARKER) == 1
        for k, v in a.items():
            if number(v) and not math.isfinite(v):
                lost += 1
            elif b.get(k, None) != v:
                wrong.append(f"row {i}: {k} was {v}, is {b.get(k)}")
        for k, v in b.items():
            if number(v) and not math.isfinite(v):
                wrong.append(f"row {i}: {k} is {v}")
            elif k not in a and k != MARKER:
                wrong.append(f"row {i}: {k} is new")
    if lost and not marked:
        wrong.append(f"{lost} values were not finite, and no row is marked")
    print(f"{copy}: {len(state.log_history)} rows, {lost} values that were not finite, {marked} rows marked")
    return wrong


def main():
    source, copy = files(sys.argv[1]), files(sys.argv[2])
    if "" in source and "" not in copy:  # a file and the folder of its copy
        copy = {"": os.path.join(sys.argv[2], os.path.basename(sys.argv[1]))}
    wrong = [] if source else ["no trainer_state.json in the source"]
    for name in sorted(source):
        if name not in copy:
            wrong.append(f"{name} is missing")
            continue
        wrong += [f"{copy[name]}: {w}" for w in check(source[name], copy[name])]
    for w in wrong[:20]:
        print(w, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
