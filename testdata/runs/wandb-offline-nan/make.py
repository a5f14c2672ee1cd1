"""A plain loop that logs to an offline W&B run; the loss is NaN at the end."""
import torch
import wandb

torch.manual_seed(6)
run = wandb.init(project="probe", name="lr-sweep-3")
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 61):
    x = torch.randn(32, 8)
    target = torch.log(x[:, 0] + 3.2)  # not a number once in a while
    loss = (net(x).squeeze(1) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    run.log({"train/loss": loss.item()}, step=step)
    if step % 5 == 0:
        print(f"step {step} | train/loss {loss.item():.4f}", flush=True)
run.finish()
