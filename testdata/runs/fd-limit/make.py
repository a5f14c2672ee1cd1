"""Batches of many tensors from loader workers under a limit of 64 open files."""
import torch
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return {f"level{k}": torch.randn(4) for k in range(8)}


kept = []
for step, batch in enumerate(DataLoader(Boxes(), batch_size=4, num_workers=2)):
    kept.append(batch)
    print(f"step {step} loss {batch['level0'].pow(2).mean().item():.4f}", flush=True)
