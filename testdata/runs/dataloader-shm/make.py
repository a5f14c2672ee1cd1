"""DataLoader workers with a /dev/shm of one MiB, as in a container without --shm-size."""
import torch
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.zeros(3, 128, 128)


for step, x in enumerate(DataLoader(Frames(), batch_size=16, num_workers=2)):
    print(f"step {step} loss {x.mean().item():.4f}", flush=True)
