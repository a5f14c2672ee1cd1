"""A checkpoint of another model: one weight has another size, one name is missing."""
import torch

old = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
new = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 12), torch.nn.LayerNorm(12))
torch.save(old.state_dict(), "old.pt")
print("=> loading checkpoint old.pt", flush=True)
new.load_state_dict(torch.load("old.pt"))
