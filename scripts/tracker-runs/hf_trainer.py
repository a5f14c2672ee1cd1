#!/usr/bin/env python3
"""Trains a tiny model with transformers' Trainer, which hides a loss that is not finite.

    hf_trainer.py --out DIR [--nan-at 25] [--to 40] [--report-to tensorboard,...]

The input of one batch holds a NaN; from then on the weights do. With the Trainer's default
logging_nan_inf_filter the rows of the log then say 0.0 for the loss, and NaN for the
gradient norm. DIR/job.log is what the run prints. Nothing is uploaded.
"""

import argparse
import contextlib
import math
import os
import sys
import warnings

from train import OFFLINE

warnings.filterwarnings("ignore")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--nan-at", type=int, default=25)
    p.add_argument("--to", type=int, default=40)
    p.add_argument("--report-to", default="tensorboard")
    a = p.parse_args()
    a.out = os.path.abspath(a.out)
    os.makedirs(os.path.join(a.out, "home"), exist_ok=True)
    os.environ.update(OFFLINE, HOME=os.path.join(a.out, "home"), WANDB_DIR=a.out, MLFLOW_TRACKING_URI=f"sqlite:///{a.out}/mlflow.db",
                      TRACKIO_DIR=os.path.join(a.out, "trackio"), TENSORBOARD_LOGGING_DIR=os.path.join(a.out, "tensorboard"))
    os.chdir(a.out)

    import torch
    from transformers import Trainer, TrainingArguments, set_seed

    set_seed(0)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.line = torch.nn.Linear(8, 1)

        def forward(self, x=None, labels=None):
            y = self.line(x)
            return {"loss": (y - labels).square().mean(), "logits": y}

    rows = []
    for i in range(4 * a.to):
        x = torch.randn(8)
        if i // 4 == a.nan_at - 1:
            x[0] = math.nan
        rows.append({"x": x, "labels": x.nan_to_num().sum().reshape(1)})

    class InOrder(Trainer):
        def _get_train_sampler(self, *args):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    args = TrainingArguments(output_dir=os.path.join(a.out, "output"), per_device_train_batch_size=4, max_steps=a.to, logging_steps=1, save_steps=10,
                             learning_rate=1e-2, use_cpu=True, report_to=a.report_to.split(","), disable_tqdm=True, save_total_limit=10)
    with open(os.path.join(a.out, "job.log"), "w", buffering=1) as log, contextlib.redirect_stdout(log):
        t = InOrder(model=Model(), args=args, train_dataset=rows)
        t.train()
        t.save_state()


if __name__ == "__main__":
    sys.exit(main())
