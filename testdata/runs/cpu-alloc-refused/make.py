"""A plain CPU run under a limit of address space: the allocator is refused."""
import torch

kept = []
for step in range(1, 200):
    x = torch.randn(64, 1024)
    loss = (x * x).mean()
    kept.append(torch.zeros(64, 1024, 1024))  # 256 MiB a step, never let go
    print(f"step {step} loss {loss.item():.4f}", flush=True)
