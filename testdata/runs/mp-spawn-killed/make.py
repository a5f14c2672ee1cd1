"""torch.multiprocessing.spawn: the second worker is killed."""
import os
import time

import torch.multiprocessing as mp


def work(rank, steps):
    for step in range(steps):
        if rank == 0:
            print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
        if rank == 1 and step == 6:
            os.kill(os.getpid(), 9)
        time.sleep(0.1)


if __name__ == "__main__":
    mp.spawn(work, args=(40,), nprocs=2)
