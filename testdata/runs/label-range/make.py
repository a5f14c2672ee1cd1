"""A label beyond the number of classes, on the CPU."""
import torch

net = torch.nn.Linear(20, 10)
for step in range(1, 21):
    y = torch.randint(0, 10, (16,))
    if step == 9:
        y[3] = 10
    loss = torch.nn.functional.cross_entropy(net(torch.randn(16, 20)), y)
    print(f"Epoch 1 [{step}/20] loss={loss.item():.4f}", flush=True)
