"""The output folder belongs to somebody else."""
import os

import torch

os.setuid(65534)
net = torch.nn.Linear(4, 4)
for step in range(1, 4):
    print(f"step {step} loss {net(torch.ones(1, 4)).pow(2).mean().item():.4f}", flush=True)
torch.save(net.state_dict(), "/srv/models/step-3.pt")
