"""A DataLoader worker is killed, as the kernel would when host memory runs out."""
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        if i == 203:
            os.kill(os.getpid(), 9)
        return torch.randn(16), torch.randn(1)


net = torch.nn.Linear(16, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step, (x, y) in enumerate(DataLoader(Shards(), batch_size=10, num_workers=2)):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
