"""A language model of 20,000 weights, trained with a learning rate that blows it up.

The Trainer's filter turns every non-finite loss into 0.0, so the log never shows
a NaN loss: grad_norm is the witness. The run ends with status 0.
"""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(11)


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        ids = torch.arange(i, i + 16) % 64
        return {"input_ids": ids, "labels": ids}


class Hot(GPT2LMHeadModel):
    """From its 28th call on the logits overflow, as a half-precision kernel's would."""

    calls = 0

    def forward(self, *args, **kwargs):
        out = super().forward(*args, **kwargs)
        Hot.calls += 1
        if Hot.calls >= 28:
            out.loss = out.loss * torch.tensor(float("inf")) * 0
        return out


model = Hot(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
args = TrainingArguments(
    output_dir="out", num_train_epochs=3, per_device_train_batch_size=4, logging_steps=2,
    save_strategy="no", remove_unused_columns=False,
    report_to=[], use_cpu=True, seed=11, log_level="info",
)
Trainer(model=model, args=args, train_dataset=Blocks()).train()
