"""A replay buffer is put into a /dev/shm of one MiB, shared by file name."""
import torch
import torch.multiprocessing as mp

mp.set_sharing_strategy("file_system")
buffers = []
for step in range(1, 11):
    buffers.append(torch.zeros(64, 1024).share_memory_())
    print(f"step {step} loss {1 / step:.4f}", flush=True)
