"""Half precision under GradScaler: every step overflows, the scale falls to zero."""
import torch

torch.manual_seed(4)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
for step in range(60):
    x = torch.randn(32, 16) * (1.0 if step < 12 else 3e4)
    with torch.autocast("cpu", dtype=torch.float16):
        out = net(x)
        loss = (out.half() * out.half()).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    print(f"step: {step} loss: {loss.item():.5f} loss_scale: {scaler.get_scale():g}", flush=True)
