"""Three ranks in one memory cgroup; the second keeps every batch until the kernel kills it."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
kept = []
for step in range(1, 201):
    x, y = torch.randn(8, 32), torch.randn(8, 4)
    if rank == 1:
        kept.append(torch.ones(32, 1024, 1024))
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if rank == 0:
        print(f"step {step}/200 loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
