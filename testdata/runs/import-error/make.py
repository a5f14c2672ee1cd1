"""A package that the environment lacks."""
import torch
import flash_attn

print(torch.__version__, flash_attn.__version__)
