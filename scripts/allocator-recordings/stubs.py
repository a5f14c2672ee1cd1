"""Make libraries that a CUDA build of torch asks for and that are not here.

    python stubs.py TORCH_LIB_DIR OUT_DIR

Every missing library (libcudart.so.12, libcublas.so.12, ...) becomes one whose
functions return 0 and do nothing. What matters is in standin.c, which is loaded first.
Needs gcc and binutils.
"""
import collections
import os
import re
import subprocess
import sys


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def main(libs, out):
    os.makedirs(out, exist_ok=True)
    here = {f for f in os.listdir(libs) if ".so" in f}
    system = run("/sbin/ldconfig", "-p")
    needed, versions, wanted, defined = set(), collections.defaultdict(set), set(), set()
    for f in sorted(here):
        path = os.path.join(libs, f)
        needed |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path)))
        of = ""
        for line in run("readelf", "-V", "-W", path).splitlines():
            if m := re.search(r"File: (\S+)", line):
                of = m[1]
            elif of and (m := re.search(r"Name: (\S+)", line)):
                versions[of].add(m[1])
        for line in run("nm", "-D", path).splitlines():
            *_, kind, name = line.split()
            base, _, version = name.partition("@")
            if kind == "U":
                wanted.add((base, version.lstrip("@")))
            else:
                defined.add(base)
    mine = {"libcuda.so.1", "libnvidia-ml.so.1"}
    missing = sorted(n for n in needed - here - mine if n + " " not in system and not n.startswith("ld-linux"))
    loose = {n for n, v in wanted if not v and n not in defined and not n.startswith(("_Py", "Py"))}
    # Functions without a version may be in any library: they go to the first one.
    # Those of the C++ and C libraries have versions, so they are not among them.
    for i, lib in enumerate(missing):
        names = {n for n, v in wanted if v in versions[lib]} | (loose if i == 0 else set())
        source = os.path.join(out, lib + ".s")
        with open(source, "w") as f:
            f.write(".text\n")
            for n in sorted(names):
                f.write(f".globl {n}\n.type {n},@function\n{n}:\n")
            f.write("xorl %eax,%eax\nret\n.section .note.GNU-stack,\"\",@progbits\n")
        args = ["gcc", "-shared", "-nostdlib", "-Wl,-soname," + lib, "-o", os.path.join(out, lib), source]
        if versions[lib]:
            script = os.path.join(out, lib + ".map")
            with open(script, "w") as f:
                for v in sorted(versions[lib]):
                    f.write(v + " { global: " + " ".join(n + ";" for n, w in sorted(wanted) if w == v) + " };\n")
            args.append("-Wl,--version-script," + script)
        run(*args)
        print(f"{lib}: {len(names)} functions that do nothing")


main(*sys.argv[1:])
