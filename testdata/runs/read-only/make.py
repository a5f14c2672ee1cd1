"""The output folder is mounted read-only."""
import torch

net = torch.nn.Linear(4, 4)
for step in range(1, 4):
    print(f"step {step} loss {net(torch.ones(1, 4)).pow(2).mean().item():.4f}", flush=True)
with open("out/metrics.txt", "w") as f:
    f.write("step,loss\n")
