#!/usr/bin/env python3
"""Writes the event files beside this folder: make.py [FOLDER]

With the writers that training code uses (torch, tensorboardX and TensorBoard itself), at fixed
times, and then with damage of known places. Needs torch, tensorboard and tensorboardX.
"""
import os, shutil, struct, sys, tempfile, time

OUT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
NAN, INF = float("nan"), float("inf")
T0 = 1700000000.0
time.time = lambda: T0  # what writers stamp their version record and name with

import torch
from torch.utils.tensorboard import SummaryWriter
from tensorboardX import SummaryWriter as XWriter
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter


def keep(work, name):
    """Moves the only event file below work to its place."""
    found = [os.path.join(d, f) for d, _, fs in os.walk(work) for f in fs if "tfevents" in f]
    assert len(found) == 1, found
    shutil.move(found[0], os.path.join(OUT, "events.out.tfevents." + name))
    shutil.rmtree(work)


def read(name):
    with open(os.path.join(OUT, "events.out.tfevents." + name), "rb") as f:
        return f.read()


def write(name, data):
    with open(os.path.join(OUT, "events.out.tfevents." + name), "wb") as f:
        f.write(data)


def records(data):
    at = 0
    while at < len(data):
        n = struct.unpack_from("<Q", data, at)[0] + 16
        yield at, n
        at += n


# A training loop under torch: simple values, of which the gradient norm turns NaN first.
work = tempfile.mkdtemp()
w = SummaryWriter(work)
for step in range(0, 60, 5):
    t = T0 + step
    w.add_scalar("train/loss", 2.5 - step / 40 if step < 45 else (INF if step == 45 else NAN), step, walltime=t)
    w.add_scalar("train/grad_norm", 1.0 + step / 100 if step < 40 else NAN, step, walltime=t)
    w.add_scalar("train/lr", 3e-4, step, walltime=t)
w.add_histogram("weights", torch.tensor([0.5, 1.0, -1.0]), 50, walltime=T0 + 50)
w.close()
keep(work, "1700000000.torch.42.0")

# The other encodings that torch knows.
work = tempfile.mkdtemp()
w = SummaryWriter(work)
for step in range(4):
    w.add_scalar("new_style", 0.1 if step != 2 else NAN, step, walltime=T0 + step, new_style=True)
    w.add_scalar("double", 0.1 if step != 2 else -INF, step, walltime=T0 + step, new_style=True, double_precision=True)
w.close()
keep(work, "1700000000.torch-styles.42.0")

# tensorboardX, a run that was resumed with purge_step and overlaps.
work = tempfile.mkdtemp()
w = XWriter(work)
for step in list(range(6)) + list(range(3, 9)):
    w.add_scalar("loss", NAN if step == 7 else 1.0 / (step + 1), step, walltime=T0 + step)
w.close()
keep(work, "1700000000.tensorboardx.42.0")
work = tempfile.mkdtemp()
w = SummaryWriter(work, purge_step=20)
for step in range(20, 23):
    w.add_scalar("loss", 0.1, step, walltime=T0 + step)
w.close()
keep(work, "1700000000.purge.42.0")

# Every type of scalar tensor, with metadata on the first value of its tag only, as
# TensorFlow 2 writes it, and as tensor_content.
work = tempfile.mkdtemp()
w = EventFileWriter(work)


def tensor(tag, step, proto, plugin="scalars"):
    v = summary_pb2.Summary.Value(tag=tag, tensor=proto)
    if step == 0:
        v.metadata.plugin_data.plugin_name = plugin
        v.metadata.data_class = summary_pb2.DATA_CLASS_SCALAR if plugin == "scalars" else summary_pb2.DATA_CLASS_TENSOR
    w.add_event(event_pb2.Event(wall_time=T0 + step, step=step, summary=summary_pb2.Summary(value=[v])))


P = tensor_pb2.TensorProto
SCALAR, ONE = tensor_shape_pb2.TensorShapeProto(), tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
for step, x in enumerate([1.5, NAN, -INF]):
    half = {1.5: 0x3E00, -INF: 0xFC00}.get(x, 0x7E00)
    bf16 = {1.5: 0x3FC0, -INF: 0xFF80}.get(x, 0x7FC0)
    tensor("content/float", step, P(dtype=1, tensor_shape=SCALAR, tensor_content=struct.pack("<f", x)))
    tensor("content/double", step, P(dtype=2, tensor_shape=SCALAR, tensor_content=struct.pack("<d", x)))
    tensor("content/half", step, P(dtype=19, tensor_shape=SCALAR, tensor_content=struct.pack("<H", half)))
    tensor("content/bfloat16", step, P(dtype=14, tensor_shape=SCALAR, tensor_content=struct.pack("<H", bf16)))
    tensor("float", step, P(dtype=1, tensor_shape=ONE, float_val=[x]))
    tensor("double", step, P(dtype=2, double_val=[x]))
    tensor("half", step, P(dtype=19, half_val=[half]))
    tensor("bfloat16", step, P(dtype=14, half_val=[bf16]))
    tensor("float8_e5m2", step, P(dtype=24, float8_val=bytes([{1.5: 0x3E, -INF: 0xFC}.get(x, 0x7E)])))
    tensor("float8_e4m3fn", step, P(dtype=25, float8_val=bytes([{1.5: 0x3C}.get(x, 0x7F)])))
    i = [7, -3, 1 << 40][step]
    tensor("int64", step, P(dtype=9, int64_val=[i]))
    tensor("int32", step, P(dtype=3, int_val=[i % 100 - 50]))
    tensor("uint8", step, P(dtype=4, tensor_content=bytes([200 + step])))
    tensor("int16", step, P(dtype=5, tensor_content=struct.pack("<h", -300 - step)))
    tensor("uint64", step, P(dtype=23, uint64_val=[(1 << 63) + step]))
    tensor("bool", step, P(dtype=10, bool_val=[step == 1]))
    tensor("embedding", step, P(dtype=1, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=3)]), float_val=[1, x, 2]), "tensors")
w.close()
keep(work, "1700000000.tensors.42.0.v2")

# Configuration the ways frameworks log it.
work = tempfile.mkdtemp()
w = SummaryWriter(work)
w.add_text("args", '{\n  "per_device_train_batch_size": 8,\n  "learning_rate": 5e-05,\n  "fsdp": [],\n  "deepspeed": null,\n  "bf16": true\n}', walltime=T0)
w.add_text("model_config", '{"hidden_size": 768, "rope_scaling": {"factor": 2.0}}', walltime=T0)
w.add_text("micro_batch_size", "4", 1000, walltime=T0)
w.add_text("global_batch_size", "512", 1000, walltime=T0)
w.add_text("sys.argv", "train.py /data --arch transformer --lr 0.0005 --fp16 --max-tokens=4096", walltime=T0)
w.add_text("hyperparameters", "|param|value|\n|-|-|\n|gamma|0.99|\n|env_id|CartPole-v1|", walltime=T0)
for step in range(3):
    w.add_text("samples", "step %d: once upon a time" % step, step, walltime=T0)
w.add_scalar("loss", 1.0, 0, walltime=T0 + 1)
w.close()
keep(work, "1700000000.texts.42.0")
work = tempfile.mkdtemp()
w = SummaryWriter(work)
w.add_hparams({"lr": 0.1, "bsize": 32, "name": "adam", "amp": True}, {"hparam/accuracy": 0.5}, run_name=".")
w.close()
found = sorted((os.path.getsize(os.path.join(d, f)), os.path.join(d, f)) for d, _, fs in os.walk(work) for f in fs if "tfevents" in f)
shutil.move(found[-1][1], os.path.join(OUT, "events.out.tfevents.1700000000.hparams.42.1"))
shutil.rmtree(work)

# A writer that never logged, and one that never wrote.
work = tempfile.mkdtemp()
SummaryWriter(work).close()
keep(work, "1700000000.version-only.42.0")
write("1700000000.empty.42.0", b"")

# Damage.
data = read("1700000000.torch.42.0")
at = list(records(data))
write("1700000000.cut.42.0", data[: at[20][0] + 30])
flipped = bytearray(data)
flipped[at[9][0] + 25] ^= 0x10  # data: the loss at step 10 is lost
flipped[at[15][0]] ^= 0x01  # length
write("1700000000.flipped.42.0", bytes(flipped))
hole = at[12][0]
write("1700000000.zeros.42.0", data[:hole] + bytes(4096) + data[hole : at[20][0]] + bytes(700))

# Events as nobody should write them.
def frame(b):
    h = struct.pack("<Q", len(b))
    return h + struct.pack("<I", masked_crc32c(h)) + b + struct.pack("<I", masked_crc32c(b))


def event(step, *values, wall=T0):
    return event_pb2.Event(wall_time=wall, step=step, summary=summary_pb2.Summary(value=list(values))).SerializeToString()


V = summary_pb2.Summary.Value
bad = [
    event(0, V(tag="\x1b[31mred\x1b[0m\nloss", simple_value=NAN)),
    event(0, V(tag="", simple_value=1)),
    event(0, V(tag="x" * 2000, simple_value=2)),
    event(-7, V(tag="loss", simple_value=3), wall=NAN),
    event(1 << 62, V(tag="loss", simple_value=4), wall=1e300),
    event(1, V(tag="huge", tensor=P(dtype=1, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1 << 40)] * 3), float_val=[NAN]))),
    event(1, V(tag="negative", tensor=P(dtype=1, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=-1)]), float_val=[NAN]))),
    event(1, V(tag="unknown type", tensor=P(dtype=99, tensor_content=b"\0\0\xc0\x7f"))),
    event(1, V(tag="short", tensor=P(dtype=2, tensor_content=b"\0\0\xc0"))),
    b"\x09\0\0\0",
    b"\x2a\xff\xff\xff\xff\x0f",
    event(2, V(tag="loss", simple_value=5))[:-3],
    event(2, V(tag="loss", simple_value=6)) + b"\x52\x02\x0a\x00",
    b"",
]
write("1700000000.hostile.42.0", read("1700000000.version-only.42.0") + b"".join(map(frame, bad)))
