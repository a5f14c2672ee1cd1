#!/usr/bin/env python3
"""Pack a static inquest binary as a Python wheel.

    wheel.py --binary FILE --platform linux/amd64 --version 1.2.3 --licenses FILE... --out DIR

The binary goes to <name>.data/scripts/, from where pip and uv put it on the
PATH as it is: no Python starts when inquest runs. The same inputs give the same
bytes: entries are sorted and dated SOURCE_DATE_EPOCH (1980-01-01 without it).

Formats: binary distribution format 1.0 (PEP 427), core metadata 2.4 (PEP 566,
PEP 639), platform tags (PEP 600, PEP 656).
"""
import argparse
import base64
import hashlib
import os
import re
import sys
import time
import zipfile

NAME = "inquest_gpu"
PROJECT = "inquest-gpu"
SUMMARY = "Says what failed first in a GPU training run, why, and the one change to make"
HOME = "https://github.com/inquest-dev/inquest"

# What a static binary without a C library runs on. macOS 12 is the oldest that
# the Go toolchain in go.mod supports.
TAGS = {
    "linux/amd64": ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_2_x86_64"],
    "linux/arm64": ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "musllinux_1_2_aarch64"],
    "darwin/amd64": ["macosx_12_0_x86_64"],
    "darwin/arm64": ["macosx_12_0_arm64"],
    "windows/amd64": ["win_amd64"],
    "windows/arm64": ["win_arm64"],
}


def python_version(version):
    """The PEP 440 form of a release tag: v1.2.3-rc.1 is 1.2.3rc1."""
    m = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not m:
        sys.exit("wheel.py: version %r is not like 1.2.3 or 1.2.3-rc.1" % version)
    number, phase, n = m.groups()
    return number + ({"alpha": "a", "beta": "b", "rc": "rc"}[phase] + n if phase else "")


def metadata(version, licenses, readme):
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", PROJECT),
        ("Version", version),
        ("Summary", SUMMARY),
        ("Project-URL", "Homepage, " + HOME),
        ("Keywords", "gpu,cuda,pytorch,out-of-memory,nan,nccl,training,diagnosis"),
        ("Classifier", "Environment :: Console"),
        ("Classifier", "Environment :: GPU :: NVIDIA CUDA"),
        ("Classifier", "Intended Audience :: Developers"),
        ("Classifier", "Intended Audience :: System Administrators"),
        ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
        ("Classifier", "Topic :: System :: Logging"),
        ("License-Expression", "Apache-2.0"),
        *(("License-File", os.path.basename(f)) for f in licenses),
        ("Requires-Python", ">=3.7"),
        ("Description-Content-Type", "text/markdown; charset=UTF-8"),
    ]
    return "".join("%s: %s\n" % f for f in fields) + "\n" + readme


def main():
    ap = argparse.ArgumentParser(description="Pack a static inquest binary as a Python wheel.")
    ap.add_argument("--binary", required=True)
    ap.add_argument("--platform", required=True, choices=sorted(TAGS))
    ap.add_argument("--version", required=True)
    ap.add_argument("--readme", required=True, help="the description, Markdown")
    ap.add_argument("--licenses", nargs="+", required=True)
    ap.add_argument("--out", required=True)
    o = ap.parse_args()

    version = python_version(o.version)
    tags = TAGS[o.platform]
    info = "%s-%s.dist-info" % (NAME, version)
    executable = "inquest.exe" if o.platform.startswith("windows/") else "inquest"

    def read(name):
        with open(name, "rb") as f:
            return f.read()

    files = {
        "%s-%s.data/scripts/%s" % (NAME, version, executable): read(o.binary),
        info + "/METADATA": metadata(version, o.licenses, read(o.readme).decode()).encode(),
        info + "/WHEEL": ("Wheel-Version: 1.0\nGenerator: inquest wheel.py\nRoot-Is-Purelib: false\n"
                          + "".join("Tag: py3-none-%s\n" % t for t in tags)).encode(),
    }
    for name in o.licenses:
        files["%s/licenses/%s" % (info, os.path.basename(name))] = read(name)

    record = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        record.append("%s,sha256=%s,%d\n" % (name, digest, len(files[name])))
    record.append(info + "/RECORD,,\n")
    files[info + "/RECORD"] = "".join(record).encode()

    # A zip cannot hold a date before 1980.
    date = max(time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))[:6], (1980, 1, 1, 0, 0, 0))
    os.makedirs(o.out, exist_ok=True)
    path = os.path.join(o.out, "%s-%s-py3-none-%s.whl" % (NAME, version, ".".join(tags)))
    # The archive's metadata come last, as the format recommends.
    order = sorted(files, key=lambda n: (n.startswith(info), n.endswith("/RECORD"), n))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name in order:
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the mode below counts
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            z.writestr(entry, files[name])
    print(path)


if __name__ == "__main__":
    main()
