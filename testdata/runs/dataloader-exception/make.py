"""A DataLoader worker raises: samples of different lengths cannot be stacked."""
import torch
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.randn(100 if i != 37 else 96)


for step, x in enumerate(DataLoader(Clips(), batch_size=8, num_workers=2)):
    print(f"step {step} loss {x.pow(2).mean().item():.4f}", flush=True)
