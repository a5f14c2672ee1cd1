"""Writes the files of this folder with ClearML's own code. No network is used."""
import glob, os, shutil, subprocess, sys, tempfile

TRAIN = """
from clearml import Task
Task.set_offline(True)
t = Task.init(project_name="toy", task_name="nan-run", auto_connect_frameworks=False, auto_resource_monitoring=False)
t.connect({"lr": 1e-3, "batch_size": 32})
log = t.get_logger()
import time
for i in range(12):
    loss = 1 / (i + 1) if i < 8 else float("nan")
    norm = 2.0 + i if i < 7 else (float("inf") if i == 7 else float("nan"))
    log.report_scalar("train", "loss", loss, i)
    log.report_scalar("train", "grad_norm", norm, i)
    log.report_scalar("train", "skipped", 0.0 if i < 10 else 1.0, i)
    log.report_scalar(":monitor:gpu", "gpu_0_mem_used_gb", 10.0 + i, i)
    print("step", i, "loss", loss)
    if i == 3:
        log.flush(wait=True)
        time.sleep(4)
log.flush()
t.close()
"""

with tempfile.TemporaryDirectory() as d:
    with open(d + "/train.py", "w") as f:
        f.write(TRAIN)
    env = dict(os.environ, HOME=d, CLEARML_CACHE_DIR=d + "/cache")
    subprocess.run([sys.executable, "train.py"], cwd=d, env=env, capture_output=True, check=True)
    for folder in glob.glob(d + "/**/offline-*/", recursive=True):
        for name in ("metrics.jsonl", "log.jsonl", "task.json"):
            shutil.copy(folder + name, name)
