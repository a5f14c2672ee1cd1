"""A CUDA build of PyTorch on a machine without a driver."""
import torch

print("torch", torch.__version__, "cuda", torch.version.cuda, flush=True)
net = torch.nn.Linear(8, 8).to("cuda")
