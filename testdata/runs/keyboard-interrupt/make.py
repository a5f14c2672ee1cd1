"""Ctrl-C at a terminal: the loop sleeps, SIGINT arrives."""
import os
import signal
import time

from tqdm import tqdm

for step in tqdm(range(100), desc="train"):
    time.sleep(0.02)
    if step == 60:
        os.kill(os.getpid(), signal.SIGINT)
