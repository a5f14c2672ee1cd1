"""A CPU build of PyTorch is asked for a GPU."""
import torch

print("torch", torch.__version__, flush=True)
net = torch.nn.Linear(8, 8).cuda()
