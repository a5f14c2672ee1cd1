"""A Lightning regression whose log goes below zero: anomaly detection names the operation."""
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        x, y = batch
        out = self.layer(x).squeeze(1)
        loss = ((torch.log(out + 3.0) - y) ** 2).mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.4)


data = DataLoader(TensorDataset(torch.randn(400, 8), torch.randn(400)), batch_size=8)
L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
          detect_anomaly=True).fit(Net(), data)
