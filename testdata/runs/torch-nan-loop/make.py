"""A plain loop that notices its NaN loss itself and raises."""
import logging
import math

import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(message)s")
log = logging.getLogger("train")
torch.manual_seed(2)
net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=30.0)
for step in range(200):
    x = torch.randn(32, 10)
    loss = (net(x).squeeze(1) - x.sum(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9)
    opt.step()
    log.info("epoch 0 step %d/200 | loss %.4f | grad_norm %.3f | lr 30", step, loss.item(), norm.item())
    if not math.isfinite(loss.item()):
        raise ValueError(f"Loss is {loss.item()} at step {step}, stopping training")
