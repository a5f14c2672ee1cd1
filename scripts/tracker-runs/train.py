#!/usr/bin/env python3
"""Trains a tiny model on the CPU and logs it to every tracker named, all at once.

    train.py --out DIR --id NAME [--trackers a,b,...] [--from 0] [--to 40] [--nan-at N] [--inf-at N] [--kill-at N]

The loss turns NaN because a sample of step --nan-at holds one, which the optimiser then
carries into the weights; the gradient norm is infinite at --inf-at because the loss is
scaled beyond float32. With --kill-at the process ends itself with SIGKILL after that
step was logged: no tracker gets a chance to close. Run again with a lower --from than that, the same --out and
--id, and the run is resumed and overlaps.

DIR/truth.jsonl gets one line for each step logged, as the loop knows it; DIR/job.log is what it
prints. Nothing is uploaded: every tracker is in its offline mode.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
import warnings

warnings.filterwarnings("ignore")

OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TRACKIO_QUIET": "1",
    "SWANLAB_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_LOGGING_CONSOLE": "ERROR",
    "COMET_DISABLE_AUTO_LOGGING": "1",
    "DVCLIVE_OPEN": "false",
    "DVC_NO_ANALYTICS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "GIT_PYTHON_REFRESH": "quiet",
}


class TensorBoard:
    """torch.utils.tensorboard: one more event file for each start."""

    def __init__(self, a, config):
        from torch.utils.tensorboard import SummaryWriter

        self.w = SummaryWriter(os.path.join(a.out, "tensorboard", a.id), purge_step=a.first if a.resumed else None, flush_secs=1)
        self.w.add_text("config", json.dumps(config), a.first)

    def log(self, step, row):
        for k, v in row.items():
            self.w.add_scalar(k, v, step)
        self.w.flush()

    def close(self):
        self.w.close()


class TensorBoardX(TensorBoard):
    def __init__(self, a, config):
        from tensorboardX import SummaryWriter

        self.w = SummaryWriter(os.path.join(a.out, "tensorboardx", a.id), flush_secs=1)


class WandB:
    def __init__(self, a, config):
        import wandb

        self.run = wandb.init(project="inquest", id=a.id, name=a.id, dir=a.out, config=config, resume="allow" if a.resumed else None)

    def log(self, step, row):
        self.run.log(row, step=step)

    def close(self):
        self.run.finish()


class MLflow:
    uri = "sqlite:///{out}/mlflow.db"

    def __init__(self, a, config):
        import mlflow
        from mlflow.tracking import MlflowClient

        self.c = MlflowClient(self.uri.format(out=os.path.abspath(a.out)))
        name = os.path.join(a.out, type(self).__name__ + ".run")
        if a.resumed:
            self.id = open(name).read()
        else:
            e = self.c.get_experiment_by_name("inquest")
            e = e.experiment_id if e else self.c.create_experiment("inquest", artifact_location=os.path.join(a.out, "artifacts"))
            self.id = self.c.create_run(e, run_name=a.id).info.run_id
            open(name, "w").write(self.id)
            for k, v in config.items():
                self.c.log_param(self.id, k, v)

    def log(self, step, row):
        for k, v in row.items():
            self.c.log_metric(self.id, k, v, step=step)

    def close(self):
        self.c.set_terminated(self.id)


class MLflowFiles(MLflow):
    uri = "file://{out}/mlruns"


class Trackio:
    def __init__(self, a, config):
        os.environ["TRACKIO_DIR"] = os.path.join(a.out, "trackio")
        import trackio

        self.t = trackio
        trackio.init(project="inquest", name=a.id, config=config, resume="allow" if a.resumed else "never")

    def log(self, step, row):
        self.t.log(row, step=step)

    def close(self):
        self.t.finish()


class Lightning:
    """Lightning's CSVLogger, a version folder for each start as its Trainer makes them."""

    def __init__(self, a, config):
        from lightning.pytorch.loggers import CSVLogger

        self.l = CSVLogger(os.path.join(a.out, "lightning_logs"), name=a.id, flush_logs_every_n_steps=1)
        self.l.log_hyperparams(config)

    def log(self, step, row):
        self.l.log_metrics(row, step)
        self.l.save()

    def close(self):
        self.l.finalize("success")


class SwanLab:
    def __init__(self, a, config):
        import swanlab

        self.run = swanlab.init(project="inquest", experiment_name=a.id, config=config, logdir=os.path.join(a.out, "swanlog"), mode="offline")

    def log(self, step, row):
        import swanlab

        swanlab.log(row, step=step)

    def close(self):
        import swanlab

        swanlab.finish()


class DVCLive:
    def __init__(self, a, config):
        from dvclive import Live

        self.l = Live(os.path.join(a.out, "dvclive"), resume=a.resumed, save_dvc_exp=False, dvcyaml=None, report=None)
        self.l.log_params(config)

    def log(self, step, row):
        self.l.step = step
        for k, v in row.items():
            self.l.log_metric(k, v, timestamp=True)

    def close(self):
        self.l.end()


class ClearML:
    def __init__(self, a, config):
        os.environ["CLEARML_CACHE_DIR"] = os.path.join(a.out, "clearml")
        # Without this, closing waits minutes for a process that it forked.
        conf = os.path.join(a.out, "home", "clearml.conf")
        with open(conf, "w") as f:
            f.write("sdk { development { report_use_subprocess: false } }\n")
        os.environ["CLEARML_CONFIG_FILE"] = conf
        from clearml import Task

        Task.set_offline(True)
        self.t = Task.init(project_name="inquest", task_name=a.id, auto_connect_frameworks=False, auto_resource_monitoring=False, reuse_last_task_id=False)
        self.t.connect(dict(config))

    def log(self, step, row):
        for k, v in row.items():
            self.t.get_logger().report_scalar(k, k, v, step)

    def close(self):
        self.t.close()


class Comet:
    def __init__(self, a, config):
        import comet_ml

        self.e = comet_ml.OfflineExperiment(project_name="inquest", offline_directory=os.path.join(a.out, "comet"), display_summary_level=0,
                                            auto_metric_logging=False, log_code=False, log_git_metadata=False, log_env_details=False)
        self.e.set_name(a.id)
        self.e.log_parameters(config)

    def log(self, step, row):
        for k, v in row.items():
            self.e.log_metric(k, v, step=step)

    def close(self):
        self.e.end()


class TrainerState:
    """transformers' TrainerState as its Trainer saves it, at the end and after every tenth step."""

    def __init__(self, a, config):
        from transformers import TrainerState as State

        self.dir = os.path.join(a.out, "trainer")
        self.s = State(max_steps=a.last, logging_steps=1, save_steps=10, train_batch_size=config["batch_size"])
        if a.resumed:
            at = max((n for n in (int(d.split("-")[1]) for d in os.listdir(self.dir) if d.startswith("checkpoint-")) if n <= a.first), default=0)
            if at:
                self.s = State.load_from_json(os.path.join(self.dir, f"checkpoint-{at}", "trainer_state.json"))

    def log(self, step, row):
        self.s.global_step = step + 1
        self.s.log_history.append({**row, "step": step, "epoch": step / 20})
        if (step + 1) % 10 == 0:
            d = os.path.join(self.dir, f"checkpoint-{step + 1}")
            os.makedirs(d, exist_ok=True)
            self.s.save_to_json(os.path.join(d, "trainer_state.json"))

    def close(self):
        self.s.save_to_json(os.path.join(self.dir, "trainer_state.json"))


class JSONLines:
    def __init__(self, a, config):
        self.f = open(os.path.join(a.out, a.id + ".jsonl"), "a", buffering=1)

    def log(self, step, row):
        self.f.write(json.dumps({"step": step, **row, "timestamp": time.time()}) + "\n")

    def close(self):
        self.f.close()


TRACKERS = {"tensorboard": TensorBoard, "tensorboardx": TensorBoardX, "wandb": WandB, "mlflow": MLflow, "mlflow-files": MLflowFiles, "trackio": Trackio,
            "lightning": Lightning, "swanlab": SwanLab, "dvclive": DVCLive, "clearml": ClearML, "comet": Comet, "trainer_state": TrainerState, "jsonl": JSONLines}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--id", default="run1")
    p.add_argument("--trackers", default=",".join(TRACKERS))
    p.add_argument("--from", dest="first", type=int, default=0)
    p.add_argument("--to", dest="last", type=int, default=40)
    p.add_argument("--nan-at", type=int, default=-1)
    p.add_argument("--inf-at", type=int, default=-1)
    p.add_argument("--kill-at", type=int, default=-1)
    a = p.parse_args()
    a.out = os.path.abspath(a.out)
    os.makedirs(a.out, exist_ok=True)
    os.environ.update(OFFLINE)
    truth = os.path.join(a.out, "truth.jsonl")
    a.resumed = os.path.exists(truth)
    # Where a tracker keeps its files in the home folder, that is the run's.
    os.environ["HOME"] = os.path.join(a.out, "home")
    os.makedirs(os.environ["HOME"], exist_ok=True)
    os.chdir(a.out)  # DVCLive sets up DVC where it stands

    import torch

    torch.manual_seed(0)
    config = {"batch_size": 4, "learning_rate": 0.05, "optimizer": "sgd", "seed": 0}
    loggers, missing = {}, {}
    for name in a.trackers.split(","):
        try:
            loggers[name] = TRACKERS[name](a, config)
        except Exception as e:  # a tracker that is not installed, or refuses to work offline
            missing[name] = f"{type(e).__name__}: {e}"
    log = open(os.path.join(a.out, "job.log"), "a", buffering=1)

    def say(text):
        log.write(text + "\n")

    say(f"$ python train.py --from {a.first} --to {a.last}")
    say("config: " + json.dumps(config))
    model = torch.nn.Linear(8, 1)
    opt = torch.optim.SGD(model.parameters(), lr=config["learning_rate"])
    out = open(truth, "a", buffering=1)
    for step in range(a.first, a.last):
        g = torch.Generator().manual_seed(step)
        x = torch.randn(config["batch_size"], 8, generator=g)
        if step == a.nan_at:
            x[0, 0] = math.nan
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        if step == a.inf_at:
            (loss * 1e38 * 1e38).backward()
        else:
            loss.backward()
        norm = torch.nn.utils.get_total_norm([q.grad for q in model.parameters()])
        if step != a.inf_at:  # such a step is skipped, as a loss scaler does it
            opt.step()
        row = {"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": config["learning_rate"]}
        for name, l in list(loggers.items()):
            try:
                l.log(step, row)
            except Exception as e:
                missing[name] = f"step {step}: {type(e).__name__}: {e}"
                del loggers[name]
        say(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()) + f",{int(time.time() * 1000) % 1000:03d} INFO step {step} loss {row['loss']} grad_norm {row['grad_norm']}")
        out.write(json.dumps({"segment": 1 if a.resumed else 0, "step": step, "time": time.time(), **row}) + "\n")
        time.sleep(0.05)
        if step == a.kill_at:
            time.sleep(3)  # what writes in the background writes
            json.dump(missing, open(os.path.join(a.out, f"missing-{int(a.resumed)}.json"), "w"))
            open(os.path.join(a.out, "killed"), "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    for name, l in loggers.items():
        try:
            l.close()
        except Exception as e:
            missing[name] = f"close: {type(e).__name__}: {e}"
    json.dump(missing, open(os.path.join(a.out, f"missing-{int(a.resumed)}.json"), "w"))
    say("training finished")


if __name__ == "__main__":
    sys.exit(main())
