"""The data set is read whole into host memory that the process may not have."""
import numpy as np

print("loading shards", flush=True)
rows = [np.ones((256, 1024, 128), dtype=np.float32) for _ in range(4)]
print("normalising", flush=True)
table = np.concatenate(rows * 16)
