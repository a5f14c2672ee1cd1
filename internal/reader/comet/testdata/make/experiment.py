"""Writes the files of this folder with Comet's own code. No network is used."""
import glob, json, os, subprocess, sys, tempfile, zipfile

TRAIN = """
import comet_ml
e = comet_ml.OfflineExperiment(project_name="toy", workspace="ws", offline_directory=".cometml-runs")
e.log_parameters({"lr": 1e-3, "batch_size": 32})
e.set_name("nan-run")
e.add_tag("a")
for i in range(12):
    loss = 1 / (i + 1) if i < 8 else float("nan")
    norm = 2.0 + i if i < 7 else (float("inf") if i == 7 else float("nan"))
    e.log_metric("train_loss", loss, step=i)
    e.log_metrics({"grad_norm": norm, "sys.gpu.0.used_memory": 20000000000.0 + i}, step=i)
    print("step", i, "loss", loss)
print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB")
e.log_other("k", "v")
e.end()
"""

with tempfile.TemporaryDirectory() as d:
    with open(d + "/train.py", "w") as f:
        f.write(TRAIN)
    subprocess.run([sys.executable, "train.py"], cwd=d, env=dict(os.environ, HOME=d), capture_output=True, check=True)
    with zipfile.ZipFile(glob.glob(d + "/.cometml-runs/*.zip")[0]) as z:
        open("experiment.json", "wb").write(z.read("experiment.json"))
        with open("messages.json", "w") as out:
            for line in z.read("messages.json").decode().splitlines():
                if json.loads(line)["type"] not in ("installed_packages", "os_packages"):
                    out.write(line + "\n")
