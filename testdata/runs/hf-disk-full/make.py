"""The first checkpoint of the Trainer does not fit on the disk."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(3)


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        ids = torch.arange(i, i + 16) % 64
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=64, n_layer=2, n_head=2))
args = TrainingArguments(
    output_dir="out", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=4,
    save_strategy="steps", save_steps=8, report_to=[], use_cpu=True, seed=3,
)
Trainer(model=model, args=args, train_dataset=Blocks()).train()
