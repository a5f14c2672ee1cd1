"""Makes a real dump of torch.distributed's flight recorder, on CPU with Gloo:

    pip install torch; python3 gloo.py OUT

Three processes share a group. Rank 2 leaves out the last all_reduce, so that ranks
0 and 1 wait in it when all write their dumps.
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main(rank, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", TORCH_FR_BUFFER_SIZE="64", TORCH_NCCL_TRACE_BUFFER_SIZE="64")
    dist.init_process_group("gloo", rank=rank, world_size=3, timeout=datetime.timedelta(seconds=60))
    pair = dist.new_group([0, 2])
    x = torch.ones(4)
    for _ in range(3):
        dist.all_reduce(x)
    if rank != 1:
        dist.all_reduce(x, group=pair)
    work = None
    if rank != 2:
        work = dist.all_reduce(x, async_op=True)
    time.sleep(3)
    from torch._C import _distributed_c10d as c
    print(rank, [n for n in dir(c) if "trace" in n or "fr_" in n], flush=True)
    for name, suffix, kw in (("_dump_fr_trace_json", ".json", dict(includeCollectives=True, onlyActive=False)), ("_dump_fr_trace", "", dict(includeCollectives=True, includeStackTraces=True, onlyActive=False))):
        f = getattr(c, name, None)
        if f is None:
            continue
        data = f(**kw)
        with open(os.path.join(out, "comm_lib_trace_rank_%d%s" % (rank, suffix)), "wb") as w:
            w.write(data if isinstance(data, bytes) else data.encode())
    os._exit(0)


if __name__ == "__main__":
    mp.spawn(main, args=(sys.argv[1],), nprocs=3, join=True)
