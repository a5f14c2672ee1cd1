"""Writes the pickles of this folder again: python3 make.py (Python 3.8 or newer).

Each value is written in every protocol, as NAME.P.pkl with the protocol P. The
expectations stand in value_test.go. objects.*.pkl would import and call when Python
loads it; it is for the inert mode and for the refusals of the other.
"""
import collections
import os
import pickle

HERE = os.path.dirname(os.path.abspath(__file__))

shared = {"name": "step", "line": 7}
plain = {
    "none": None, "true": True, "false": False,
    "ints": [0, 1, 255, 256, 65535, 65536, -1, -2147483648, 2147483648, 2**63 - 1, -2**63],
    "big": [2**63, -2**63 - 1, 10**40],
    "floats": [0.0, -1.5, 1e300, float("inf")],
    "text": ["", "plain", "h\u00e4\u00df \u4f60\u597d", "line\nend \\u0041", "x" * 300],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "nested": {"a": {"b": {"c": [[[]]]}}},
    "shared": [shared, shared],
}
binary = {"bytes": [b"", b"\x00\xff", b"y" * 300], "set": {5}, "frozen": frozenset([6]), "array": bytearray(b"abc")}


class Thing:
    def __init__(self):
        self.field = 3


def write(name, value, protocols):
    for p in protocols:
        with open(os.path.join(HERE, "%s.%d.pkl" % (name, p)), "wb") as f:
            f.write(pickle.dumps(value, protocol=p))


write("plain", plain, range(6))
write("binary", {k: binary[k] for k in ("bytes",)}, [3, 4, 5])
write("sets", {k: binary[k] for k in ("set", "frozen")}, [4, 5])
write("array", {"array": binary["array"]}, [5])
Thing.__module__ = "thing"
import sys, types
sys.modules["thing"] = types.ModuleType("thing")
sys.modules["thing"].Thing = Thing
write("objects", [Thing(), collections.OrderedDict([("k", 1)])], range(6))
