"""Checks a repaired copy of a table or of lines of JSON with pandas.

    python table.py SOURCE COPY

SOURCE and COPY are such files (.csv, .tsv, .json, .jsonl; also .log.json), or SOURCE is a file and COPY the folder of
its copy. Exit status 1 and words where the copy is not what it should be. Needs pandas. The copy is one that
--drop-suspect and --dedupe did not thin further.
"""

import json, math, os, sys

import pandas

MARKER = "inquest_failed_segment"


def table(path):
    """The cells as text by row and column, of a table; empty ones are left out."""
    sep = "\t" if path.endswith(".tsv") else ","
    frame = pandas.read_csv(path, sep=sep, dtype=str, keep_default_na=False, skipinitialspace=True)
    frame.columns = [c.strip() for c in frame.columns]
    return [{k: v.strip() for k, v in row.items() if isinstance(v, str) and v.strip()} for row in frame.to_dict("records")]


def flat(value, name=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from flat(v, f"{name}/{k}" if name else k)
    elif not isinstance(value, list):
        yield name, value


def lines(path, torn):
    rows = []
    for line in open(path):
        if not line.strip("\0 \r\n"):
            continue
        try:
            rows.append({k: v if isinstance(v, str) else json.dumps(v) for k, v in flat(json.loads(line))})
        except ValueError:
            if not torn:
                raise
    if not torn and rows:
        pandas.read_json(path, lines=True)
    return rows


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def main():
    source, copy = sys.argv[1:3]
    if os.path.isdir(copy):
        copy = os.path.join(copy, os.path.basename(source))
    if source.endswith((".csv", ".tsv")):
        before, after = table(source), table(copy)
    else:
        before, after = lines(source, True), lines(copy, False)
    wrong, lost, marked = [], 0, 0
    if len(before) != len(after):
        wrong.append(f"{len(after)} rows of {len(before)}")
    for i, (a, b) in enumerate(zip(before, after)):
        marked += any(k.endswith(MARKER) and number(v) == 1 for k, v in b.items())
        for k, v in a.items():
            x = number(v)
            if k.startswith("config/"):
                continue  # settings are copied as they are
            if x is not None and not math.isfinite(x):
                lost += 1
            elif b.get(k) != v:
                wrong.append(f"row {i}: {k} was {v!r}, is {b.get(k)!r}")
        for k, v in b.items():
            x = number(v)
            if x is not None and not math.isfinite(x) and not k.startswith("config/"):
                wrong.append(f"row {i}: {k} is {v}")
            if k not in a and not k.endswith(MARKER):
                wrong.append(f"row {i}: {k} is new")
    if lost and not marked:
        wrong.append(f"{lost} values were not finite, and no row is marked")
    print(f"{copy}: {len(after)} rows, {lost} values that were not finite, {marked} rows marked")
    for w in wrong[:20]:
        print(w, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
