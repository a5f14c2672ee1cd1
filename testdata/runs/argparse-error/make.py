"""A flag that the script does not know."""
import argparse

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, required=True)
p.add_argument("--lr", type=float, default=1e-3)
p.parse_args(["--batch-size", "16", "--learning-rate", "3e-4"])
