"""The third checkpoint does not fit on the disk."""
import torch

net = torch.nn.Linear(256, 256)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(1, 41):
    loss = net(torch.randn(4, 256)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    if step % 10 == 0:
        torch.save({"model": net.state_dict(), "step": step}, f"ckpt/step-{step}.pt")
        print(f"Saved checkpoint ckpt/step-{step}.pt", flush=True)
