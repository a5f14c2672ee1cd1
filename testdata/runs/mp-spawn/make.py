"""torch.multiprocessing.spawn: the third of three workers raises."""
import torch
import torch.multiprocessing as mp


def work(rank, steps):
    torch.manual_seed(rank)
    w = torch.zeros(5, requires_grad=True)
    for step in range(steps):
        x = torch.randn(5)
        loss = (w @ x - 1) ** 2
        loss.backward()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if rank == 2 and step == 4:
            torch.nn.functional.one_hot(torch.tensor([3, 7]), num_classes=5)


if __name__ == "__main__":
    mp.spawn(work, args=(20,), nprocs=3)
