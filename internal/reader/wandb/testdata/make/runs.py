"""Makes the logs of this folder with W&B itself: python runs.py KIND OUT, offline."""

import os
import signal
import subprocess
import sys
import time

kind, out = sys.argv[1], sys.argv[2]
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=out, WANDB_ERROR_REPORTING="false")

import wandb  # noqa: E402

nan, inf = float("nan"), float("inf")
settings = wandb.Settings(console="wrap", x_stats_sampling_interval=2)
name = dict(project="demo", id=kind + "1", name=kind, tags=["small"], config={"batch_size": 32, "lr": 3e-4, "model": {"d": 512, "layers": [1, 2]}, "optimizer": "adamw"})
if kind == "resumed":
    name.update(id="killed1", resume="allow")
run = wandb.init(**name, settings=settings)

if kind == "metric":
    # As the callbacks of transformers and Lightning do it.
    run.define_metric("train/global_step")
    run.define_metric("*", step_metric="train/global_step", step_sync=True)
    for i in range(1, 7):
        run.log({"train/loss": nan if i > 4 else 3.0 / i, "train/grad_norm": inf if i > 3 else 1.0, "train/global_step": i * 10})
    run.finish()
    sys.exit()

first, last = {"resumed": (80, 100), "killed": (1, 140)}.get(kind, (1, 13))
for i in range(first, last):
    row = {"loss": 2.5 / i, "grad_norm": 0.5 + 0.1 * i, "lr": 3e-4}
    if kind in ("nan", "oom"):
        if i >= 9:
            row["grad_norm"] = inf if i == 9 else nan
        if i >= 10:
            row["loss"] = nan
        row["eval"] = {"acc": 0.08 * i, "bad": -inf if i == 11 else 1.0}
        row["flag"], row["text"] = True, 'a "NaN" in a text'
        if i == 2:
            row["hist"] = wandb.Histogram([1, 2, 3])
    run.log(row, step=i)
    if kind in ("nan", "oom"):
        print(f"step {i} loss {row['loss']}")
    if kind == "nan" and i == 5:
        run.log({"loss": 1.0}, step=3)  # refused
    if kind == "nan" and i == 6:
        run.alert("slow", "the loader is behind", level="WARN")
if kind == "killed":
    # The service holds the newest records back until a block is full.
    time.sleep(3)
    for pid in subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "oom":
    raise RuntimeError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. "
        "Including non-PyTorch memory, this process has 77.93 GiB memory in use. Of the allocated memory 76.00 GiB is allocated "
        "by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated."
    )
run.finish()
