"""Writes the logs of this folder with SwanLab's own code. Run with swanlab 0.10.3, no network is used."""
import glob, json, math, os, shutil, struct, subprocess, sys, tempfile

TRAIN = """
import sys, swanlab
run = swanlab.init(project="toy", experiment_name="nan-run", mode="offline", logdir=sys.argv[1],
                   config={"lr": 1e-3, "batch_size": 32, "model": {"hidden": 64}}, description="tiny", tags=["a", "b"])
for i in range(12):
    loss = 1 / (i + 1) if i < 8 else float("nan")
    norm = 2.0 + i if i < 7 else (float("inf") if i == 7 else float("nan"))
    swanlab.log({"train/loss": loss, "grad_norm": norm, "lr": 1e-3 * (12 - i)}, step=i)
    print("step", i, "loss", loss)
if len(sys.argv) > 2:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB")
swanlab.finish()
"""


def train(name, *more):
    with tempfile.TemporaryDirectory() as d:
        env = dict(os.environ, HOME=d)
        subprocess.run([sys.executable, "-c", TRAIN, d + "/log", *more], env=env, capture_output=True)
        run = glob.glob(d + "/log/run-*")[0]
        shutil.copy(glob.glob(run + "/*.swanlab")[0], name)
        if not more:
            os.makedirs("files", exist_ok=True)
            shutil.copy(run + "/files/config.yaml", "files/config.yaml")


def main():
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.sdk.internal.core_python import store

    def write(name, payloads, version=2):
        if os.path.exists(name):
            os.remove(name)
        store.LEVELDBLOG_HEADER_VERSION = version
        w = store.DataStoreWriter()
        w.open(name)
        for p in payloads:
            w.write(p)
        w.close()
        store.LEVELDBLOG_HEADER_VERSION = 2

    def read(name):
        r = store.DataStoreReader()
        r.open(name)
        return list(r)

    train("finished.swanlab")
    train("crashed.swanlab", "crash")

    # killed: columns of the machine, no finish record, cut.
    out = []
    for p in read("finished.swanlab"):
        rec = Record()
        rec.ParseFromString(p)
        if rec.HasField("finish"):
            continue
        out.append(p)
        if rec.HasField("start"):
            for i, (key, name) in enumerate([("__swanlab__.gpu.0.mem.value", "GPU 0 Memory Allocated (MB)"), ("npu.0.temp", "NPU 0 Temperature")]):
                c = Record(num=1000 + i, timestamp=rec.timestamp)
                c.column.column_class, c.column.column_type, c.column.column_key, c.column.column_name = 2, 1, key, name
                out.append(c.SerializeToString())
        if rec.HasField("scalar") and rec.scalar.key == "lr":
            for key, v in [("__swanlab__.gpu.0.mem.value", 20000.0 + 500 * rec.scalar.step), ("npu.0.temp", math.nan)]:
                s = Record(num=2000, timestamp=rec.timestamp)
                s.scalar.CopyFrom(rec.scalar)
                s.scalar.key, s.scalar.value.number = key, v
                out.append(s.SerializeToString())
    write("killed.swanlab", out)
    data = open("killed.swanlab", "rb").read()
    open("killed.swanlab", "wb").write(data[:-11])

    # flipped: over several blocks.
    out = []
    for p in read("finished.swanlab"):
        rec = Record()
        rec.ParseFromString(p)
        out.append(p)
        if rec.HasField("log"):
            rec.log.line = "x" * 4000
            out.append(rec.SerializeToString())
    write("flipped.swanlab", out)
    data = bytearray(open("flipped.swanlab", "rb").read())
    data[40000] ^= 0x20
    open("flipped.swanlab", "wb").write(data)

    # backup: version 1.
    def line(kind, **data):
        return (json.dumps({"model_type": kind, "data": data}, ensure_ascii=False) + "\n").encode()

    at = "2026-05-31T00:54:%02d.924155+00:00"
    lines = [
        line("Header", backup_type="DEFAULT", create_time=at % 0),
        line("Project", name="toy", workspace=None, public=None),
        line("Experiment", id="kd4v3b6ndym9m725v4d7q", name="nan-run", colors=["#905f4a", "#905f4a"], description="tiny", tags=["a"]),
        line("Log", create_time=at % 0, message="swanlab: Tracking run with swanlab version 0.6.8", epoch=1, level="INFO"),
        line("Runtime", conda_filename=None, requirements_filename=None, metadata_filename=None, config_filename="config.yaml"),
    ]
    column = dict(name=None, column_type="FLOAT", chart_reference="STEP", section_name=None, section_sort=None, error=None, y_range=None,
                  chart_name=None, chart_index=None, metric_name=None, metric_color=None)
    for i, (key, cls) in enumerate([("loss", "CUSTOM"), ("grad_norm", "CUSTOM"), ("__swanlab__.gpu.0.mem.value", "SYSTEM")]):
        lines.append(line("Column", key=key, kid=str(i), cls=cls, section_type="PUBLIC", **column))
    for i in range(12):
        for key, v in [("loss", 1 / (i + 1) if i < 8 else "NaN"), ("grad_norm", 2.0 + i if i != 7 else "INF"), ("__swanlab__.gpu.0.mem.value", 20000.0 + i)]:
            lines.append(line("Scalar", metric={"index": i, "data": v, "create_time": at % (i + 1)}, key=key, step=i, epoch=i + 1))
    lines.append(line("Media", metric={"index": 3, "data": ["image-step3.png"], "create_time": at % 4}, key="pic", kid=3, key_encoded="pic", step=3, epoch=1, buffers_name=["image-step3.png"]))
    lines.append(line("Log", create_time=at % 20, message="RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB", epoch=2, level="ERROR"))
    lines.append(line("Footer", success=False, create_time=at % 21))
    write("backup.swanlab", lines, version=1)


main()
