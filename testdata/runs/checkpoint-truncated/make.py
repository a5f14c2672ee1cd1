"""A checkpoint that was cut while it was written is loaded for a resume."""
import torch

net = torch.nn.Linear(256, 256)
torch.save(net.state_dict(), "last.pt")
with open("last.pt", "r+b") as f:
    f.truncate(200000)
print("Resuming from last.pt", flush=True)
net.load_state_dict(torch.load("last.pt", map_location="cpu"))
