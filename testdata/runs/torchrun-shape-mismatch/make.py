"""Two ranks; the second meets a batch with one column too few."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(1, 31):
    x, y = torch.randn(8, 32), torch.randn(8, 4)
    if step == 7 and rank == 1:
        x = x[:, :31]
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if rank == 0:
        print(f"step {step}/30 loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
