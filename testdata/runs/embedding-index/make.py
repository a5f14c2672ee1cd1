"""A token id beyond the vocabulary, on the CPU."""
import torch

torch.manual_seed(8)
emb = torch.nn.Embedding(1000, 16)
head = torch.nn.Linear(16, 1000)
opt = torch.optim.AdamW([*emb.parameters(), *head.parameters()], lr=1e-3)
for step in range(1, 31):
    ids = torch.randint(0, 1000, (4, 12))
    if step == 17:
        ids[2, 5] = 1003  # a special token that was added after the model was built
    loss = torch.nn.functional.cross_entropy(head(emb(ids)).view(-1, 1000), ids.view(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"iter {step}: loss {loss.item():.4f}", flush=True)
