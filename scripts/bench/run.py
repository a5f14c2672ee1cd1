"""Pairs of runs, directly and below inquest run; see run.sh."""

import glob
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time

inquest, state, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])

# Prints 1 GiB in blocks that no rule of text fits.
PRINTS = """
import os
block = bytes(range(256)) * 4096
for _ in range(1024):
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
"""
COMPUTES = "x = 0\nfor i in range(20_000_000): x += i * i\n"


def quartiles(values):
    q = statistics.quantiles(values, n=4)
    return f"median {q[1]:.2f}, quartiles {q[0]:.2f} and {q[2]:.2f}"


def until_exec(argv):
    """Milliseconds until the command runs."""
    began = time.time_ns()
    out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return (int(out) - began) / 1e6


def seconds(argv):
    began = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def printing(argv):
    """Seconds, and the digest of what arrived."""
    digest, began = hashlib.blake2b(), time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as p:
        buffer = bytearray(1 << 20)
        while n := p.stdout.readinto(buffer):
            digest.update(memoryview(buffer)[:n])
    assert p.returncode == 0
    return time.perf_counter() - began, digest.digest()


def below(argv, *flags):
    return [inquest, "run", *flags, "--", *argv]


date = [shutil.which("date"), "+%s%N"]
noop = [shutil.which("true")]
for argv in (date, below(date)):  # both are in memory from now on
    until_exec(argv)

print("load average %.1f %.1f %.1f on %d processors" % (*os.getloadavg(), os.cpu_count()))
delays = [until_exec(below(date)) - until_exec(date) for _ in range(pairs)]
print(f"delay to exec, {pairs} pairs, ms: {quartiles(delays)}, least {min(delays):.2f}")

whole = [1000 * (seconds(below(noop)) - seconds(noop)) for _ in range(pairs)]
print(f"run of true, {pairs} pairs, ms more: {quartiles(whole)}")

compute = [sys.executable, "-c", COMPUTES]
direct, wrapped = [], []
for _ in range(7):
    direct.append(seconds(compute))
    wrapped.append(seconds(below(compute)))
a, b = statistics.median(direct), statistics.median(wrapped)
print(f"computing, 7 pairs: {a:.2f} s directly, {b:.2f} s below it, {100 * (b - a) / a:+.2f} %; fastest {min(direct):.2f} and {min(wrapped):.2f} s")

prints = [sys.executable, "-c", PRINTS]
direct, digest = printing(prints)
wrapped, passed = printing(below(prints))
print(f"1 GiB of output: {direct:.2f} s directly, {wrapped:.2f} s below it; {'unchanged' if passed == digest else 'CHANGED'}")
logs = sorted(glob.glob(os.path.join(state, "inquest", "trials", "*", "*", "output.log")), key=os.path.getmtime)
with open(logs[-1], "rb") as f:
    kept = hashlib.file_digest(f, "blake2b").digest()
print(f"its log: {'the same' if kept == digest else 'NOT THE SAME'}, {os.path.getsize(logs[-1])} bytes")
sys.exit(passed != digest)
