#!/usr/bin/env python3
"""Zip a folder so that the same files give the same bytes.

    pack.py OUT.zip PARENT NAME

NAME is a folder in PARENT and the first part of every entry. Entries are sorted
and dated SOURCE_DATE_EPOCH (1980-01-01 without it).
"""
import os
import sys
import time
import zipfile


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    out, parent, name = sys.argv[1:]
    date = max(time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))[:6], (1980, 1, 1, 0, 0, 0))
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(os.path.join(parent, name)) for f in names)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for path in files:
            entry = zipfile.ZipInfo(os.path.relpath(path, parent).replace(os.sep, "/"), date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the mode below counts
            entry.external_attr = (0o100755 if path.endswith(".exe") else 0o100644) << 16
            with open(path, "rb") as f:
                z.writestr(entry, f.read())


if __name__ == "__main__":
    main()
