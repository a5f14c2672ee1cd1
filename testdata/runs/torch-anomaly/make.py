"""A plain PyTorch loop in anomaly mode: the square root of zero has an infinite slope."""
import torch

torch.manual_seed(1)
torch.autograd.set_detect_anomaly(True)
net = torch.nn.Linear(6, 6)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(1, 41):
    x = torch.randn(16, 6)
    out = net(x)
    if step == 23:
        out = out * 0  # a batch of padding only
    distance = (out * out).sum(1).sqrt()
    loss = distance.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
