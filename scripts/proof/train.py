#!/usr/bin/env python3
"""A small training that fails for real, and its fixed variants.

It learns a line through images: each sample is padded to --sample-kib, a step runs the batch through
a small network, and prints what trainers print. What makes it fail is an option, and so is what makes
it pass:

    memory     --memory-mib M allows M MiB of address space above what the process has when it begins
               (RLIMIT_AS): a batch that is too large is refused memory. Cure: a smaller --batch-size.
    leak       --keep-losses graph keeps each step's loss with everything that it was computed from, so
               that memory grows by one batch a step. Cure: --keep-losses number.
    not finite --lr too high diverges, and the loss is not finite after some steps. Cure: a lower --lr.
               With --stop-on-nan the run ends there with an error, without it goes on.

--engine torch trains with PyTorch, --device cuda on a GPU, where no limit is needed to run out of memory;
--engine plain does the same with Python alone. The default is torch where it can be imported.

The last weights are written to --output_dir as safetensors, over what is there, as trainers do.
"""

import argparse
import json
import math
import os
import random
import struct
import sys
import time

try:
    import resource
except ImportError:  # Windows
    resource = None

FEATURES = 16


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--engine", choices=["torch", "plain"], default=None)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--grad-accum", type=int, default=1)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--sample-kib", type=int, default=8192, help="memory that one sample takes in a step")
    p.add_argument("--memory-mib", type=int, default=0, help="address space above what the process has at the start; 0 is no limit")
    p.add_argument("--keep-losses", choices=["number", "graph"], default="number")
    p.add_argument("--stop-on-nan", action="store_true")
    p.add_argument("--sanity-steps", type=int, default=0, help="steps with one sample, before the training")
    p.add_argument("--step-time", type=float, default=0, help="seconds that a step takes at least")
    p.add_argument("--output_dir", default="", help="where the weights go; none are written without it")
    return p.parse_args()


def kilobytes(key):
    """A figure of /proc/self/status, None where there is none."""
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def limit_address_space(mib):
    now = kilobytes("VmSize")
    if resource is None or now is None:
        sys.exit("this system has no limit on the address space that can be set here")
    # Blocks of a sample's size are mapped and given back one by one, so that what is refused
    # depends on the batch and not on the history of the heap.
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(-3, 256 << 10)  # M_MMAP_THRESHOLD
    except (OSError, AttributeError):
        pass
    resource.setrlimit(resource.RLIMIT_AS, ((now + mib * 1024) * 1024,) * 2)


class Plain:
    """A linear model over images that are read in full and looked at in FEATURES places."""

    def __init__(self, o):
        self.o, self.rng = o, random.Random(o.seed)
        self.truth = [self.rng.uniform(-1, 1) for _ in range(FEATURES)]
        self.weights = [0.0] * FEATURES

    def images(self, size):
        """A batch: each image a block of memory of its own, its pixels in the first places."""
        batch = []
        for _ in range(size):
            image = bytearray(self.o.sample_kib * 1024)
            image[:FEATURES] = bytes(self.rng.randrange(256) for _ in range(FEATURES))
            batch.append(image)
        return batch

    def step(self, size):
        total, gradient, kept = 0.0, [0.0] * FEATURES, []
        for _ in range(self.o.grad_accum):
            batch = self.images(size)
            kept.append(batch)
            for image in batch:
                x = [image[i] / 128 - 1 for i in range(FEATURES)]
                error = sum(w * v for w, v in zip(self.weights, x)) - sum(w * v for w, v in zip(self.truth, x))
                total += error * error
                for i, v in enumerate(x):
                    gradient[i] += 2 * error * v
            if self.o.keep_losses == "number":
                kept.clear()
            del batch, image
        n = size * self.o.grad_accum
        gradient = [g / n for g in gradient]
        self.weights = [w - self.o.lr * g for w, g in zip(self.weights, gradient)]
        return total / n, math.sqrt(sum(g * g for g in gradient)), kept

    def tensors(self):
        return {"linear.weight": self.weights}


class Torch:
    """A network whose activations take --sample-kib for each sample of a batch."""

    def __init__(self, o, torch):
        self.o, self.torch = o, torch
        if o.device == "cuda" and not torch.cuda.is_available():
            sys.exit("no CUDA device here")
        torch.set_num_threads(1)
        torch.manual_seed(o.seed)
        nn, depth = torch.nn, 8
        # Each block keeps its linear output and its activation until the backward pass.
        self.length = max(o.sample_kib * 1024 // (depth * 2 * FEATURES * 4), 1)
        blocks = [m for _ in range(depth) for m in (nn.Linear(FEATURES, FEATURES), nn.GELU())]
        self.model = nn.Sequential(*blocks, nn.Linear(FEATURES, 1)).to(o.device)
        self.truth = torch.randn(FEATURES, 1, device=o.device)

    def step(self, size):
        torch, kept, total = self.torch, [], 0.0
        self.model.zero_grad()
        for _ in range(self.o.grad_accum):
            x = torch.randn(size, self.length, FEATURES, device=self.o.device)
            loss = torch.nn.functional.mse_loss(self.model(x), x @ self.truth) / self.o.grad_accum
            loss.backward(retain_graph=self.o.keep_losses == "graph")
            total += loss.item()
            if self.o.keep_losses == "graph":
                kept.append(loss)
            del x, loss
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), float("inf")).item()
        # Plain gradient descent: torch.optim would import the compiler, which takes as long as all
        # of a short trial.
        with torch.no_grad():
            for p in self.model.parameters():
                p -= self.o.lr * p.grad
        return total, norm, kept

    def tensors(self):
        return {name: t.detach().float().flatten().tolist() for name, t in self.model.state_dict().items()}


def save(path, tensors):
    """Writes safetensors: the length of the header, the header, the numbers."""
    os.makedirs(path, exist_ok=True)
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, values in tensors.items():
        with_inf = [v if abs(v) < 3.4e38 or v != v else math.copysign(math.inf, v) for v in values]
        data = struct.pack("<%df" % len(values), *with_inf)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def main():
    o = options()
    torch = None
    if o.engine != "plain":
        try:
            import torch
        except ImportError:
            if o.engine == "torch" or o.device == "cuda":
                sys.exit("PyTorch cannot be imported here")
    training = Torch(o, torch) if torch else Plain(o)
    if o.memory_mib:
        limit_address_space(o.memory_mib)
    print("training", "with PyTorch" if torch else "with Python alone", "batch_size=%d" % o.batch_size, flush=True)
    for i in range(o.sanity_steps):
        training.step(1)
        print("sanity check %d of %d passed" % (i + 1, o.sanity_steps), flush=True)
        time.sleep(max(o.step_time, 0.2))
    losses = []
    for step in range(1, o.steps + 1):
        began = time.monotonic()
        loss, norm, kept = training.step(o.batch_size)
        losses.append((loss, kept) if o.keep_losses == "graph" else loss)
        kept = None
        rss = kilobytes("VmRSS")
        print("step %d loss %.4g grad_norm %.4g lr %g%s" % (step, loss, norm, o.lr, " rss_mib %d" % (rss // 1024) if rss else ""), flush=True)
        if o.stop_on_nan and not math.isfinite(loss):
            raise FloatingPointError("loss is not finite at step %d: %r" % (step, loss))
        if o.step_time > 0:
            time.sleep(max(0, o.step_time - (time.monotonic() - began)))
    if o.output_dir:
        save(os.path.join(o.output_dir, "checkpoint-%d" % o.steps), training.tensors())
        print("Saving model checkpoint to %s/checkpoint-%d" % (o.output_dir, o.steps), flush=True)
    print("training completed", flush=True)


if __name__ == "__main__":
    main()
