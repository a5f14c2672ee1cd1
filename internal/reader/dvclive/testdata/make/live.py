"""Writes the folder dvclive beside this one with DVCLive's own code."""
import os, shutil
from dvclive import Live

shutil.rmtree("dvclive", ignore_errors=True)
live = Live("dvclive", save_dvc_exp=False, report=None, dvcyaml=None)
live.log_params({"lr": 1e-3, "batch_size": 32, "model": {"hidden": 64}})
for i in range(12):
    live.log_metric("train/loss", 1 / (i + 1) if i < 8 else float("nan"))
    live.log_metric("grad_norm", 2.0 + i if i < 7 else (float("inf") if i == 7 else float("nan")), timestamp=True)
    live.log_metric("system/vram/usage (GB)/0", 10.0 + i)
    live.next_step()
live.log_metric("final/acc", 0.5, plot=False)
live.end()
