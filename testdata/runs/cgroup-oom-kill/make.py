"""The process goes over the memory limit of its cgroup; the kernel kills it."""
kept = []
for step in range(1, 100):
    kept.append(bytearray(16 << 20))
    print(f"step {step} loss {1 / step:.4f}", flush=True)
