#!/usr/bin/env python3
"""Writes the checkpoints beside it, byte for byte as torch.save lays them out, without PyTorch.

The names of PyTorch's classes and functions are put under stand-ins, and storages are pickled by
persistent ids, as torch/serialization.py does. Run it again with: python3 make.py
"""

import io
import os
import pickle
import struct
import sys
import types
import zipfile
import zlib
from collections import OrderedDict

HERE = os.path.dirname(os.path.abspath(__file__))


def module(name):
    m = sys.modules[name] = types.ModuleType(name)
    return m


torch, utils, storage_module = module("torch"), module("torch._utils"), module("torch.storage")


def name(obj, m, as_):
    obj.__module__, obj.__qualname__, obj.__name__ = m.__name__, as_, as_
    setattr(m, as_, obj)
    return obj


def function(m, as_):
    def f(*args):
        return None

    return name(f, m, as_)


rebuild = function(utils, "_rebuild_tensor_v2")
rebuild3 = function(utils, "_rebuild_tensor_v3")
parameter = function(utils, "_rebuild_parameter")
KINDS = {k: name(type(k, (), {}), torch, k) for k in ("FloatStorage", "HalfStorage", "BFloat16Storage", "DoubleStorage", "LongStorage")}
UNTYPED = name(type("UntypedStorage", (), {}), storage_module, "UntypedStorage")
SIZE = {"FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "DoubleStorage": 8, "LongStorage": 8}


class dtype:
    """torch.float8_e4m3fn pickles as the global of that name."""

    __module__ = "torch"

    def __init__(self, of):
        self.of = of

    def __reduce__(self):
        return self.of


for t in ("float8_e4m3fn", "float8_e5m2"):
    setattr(torch, t, dtype(t))


class Storage:
    def __init__(self, kind, key, data):
        self.kind, self.key, self.data = kind, key, data


class Tensor:
    def __init__(self, storage, offset, size, stride, param=False, of=None):
        self.storage, self.offset, self.size, self.stride, self.param, self.of = storage, offset, size, stride, param, of

    def __reduce__(self):
        if self.of:
            return rebuild3, (self.storage, self.offset, self.size, self.stride, False, OrderedDict(), self.of)
        if self.param:
            return parameter, (Tensor(self.storage, self.offset, self.size, self.stride), True, OrderedDict())
        return rebuild, (self.storage, self.offset, self.size, self.stride, False, OrderedDict())


class Pickler(pickle.Pickler):
    def __init__(self, *args):
        super().__init__(*args)
        self.storages = {}

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        self.storages[obj.key] = obj
        kind = UNTYPED if obj.kind == "UntypedStorage" else KINDS[obj.kind]
        return ("storage", kind, obj.key, "cpu", len(obj.data) // SIZE.get(obj.kind, 1))


def save(path, obj, leave_out=(), change=None, crc=True):
    b = io.BytesIO()
    p = Pickler(b, 2)
    p.dump(obj)
    root = os.path.splitext(os.path.basename(path))[0]
    with zipfile.ZipFile(os.path.join(HERE, path), "w", zipfile.ZIP_STORED) as z:

        def put(member, data):
            z.writestr(zipfile.ZipInfo(root + "/" + member, (1980, 1, 1, 0, 0, 0)), data)

        put("data.pkl", b.getvalue())
        put(".format_version", "1")
        put("byteorder", "little")
        for key, s in p.storages.items():
            if key not in leave_out:
                put("data/" + key, change(s.data) if change else s.data)
        put("version", "3\n")


def floats(*v):
    return struct.pack("<%df" % len(v), *v)


NAN, INF = float("nan"), float("inf")


def model(w=(1, 2, 3, 4, 5, 6)):
    s = Storage("FloatStorage", "0", floats(*w))
    h = Storage("BFloat16Storage", "1", b"\x80\x3f\x00\x40")
    return OrderedDict([("layer.weight", Tensor(s, 0, (2, 3), (3, 1), True)), ("head.weight", Tensor(s, 0, (2, 3), (3, 1), True)), ("layer.bias", Tensor(h, 0, (2,), (1,)))])


def main():
    n = Storage("LongStorage", "2", struct.pack("<q", 7))
    save("good.pt", {"model": model(), "epoch": 3, "steps": Tensor(n, 0, (), ())})
    save("nan.pt", {"model": model((1, NAN, 3, INF, 5, -INF)), "optimizer": {"state": {0: {"exp_avg": Tensor(Storage("FloatStorage", "3", floats(0, INF)), 0, (2,), (1,))}}}})
    save("optimizer.pt", {"model": model(), "optimizer": {"state": {0: {"exp_avg": Tensor(Storage("FloatStorage", "3", floats(0, INF)), 0, (2,), (1,))}}}})
    save("mask.pt", OrderedDict([("attn.mask", Tensor(Storage("FloatStorage", "0", floats(0, -INF, 0, 0)), 0, (2, 2), (2, 1)))]))
    save("only.pt", OrderedDict([("attn.window", Tensor(Storage("FloatStorage", "0", floats(0, -INF, 0, 0)), 0, (2, 2), (2, 1)))]))
    # Only what a view shows counts: NaN behind it was never a number of the model's.
    save("view.pt", {"w": Tensor(Storage("FloatStorage", "0", floats(NAN, 1, 2, NAN)), 1, (2,), (1,))})
    u = Storage("UntypedStorage", "0", bytes([0, 0x7F, 0x38]))
    save("fp8.pt", {"w": Tensor(u, 0, (3,), (1,), of=torch.float8_e4m3fn)})
    save("absent.pt", model(), leave_out=("0",))
    save("short.pt", model(), change=lambda b: b[:-1])
    data = open(os.path.join(HERE, "good.pt"), "rb").read()
    open(os.path.join(HERE, "cut.pt"), "wb").write(data[: len(data) * 2 // 3])
    at = data.index(floats(1, 2, 3, 4, 5, 6))
    open(os.path.join(HERE, "flipped.pt"), "wb").write(data[:at] + b"\x01" + data[at + 1 :])


if __name__ == "__main__":
    main()
