"$BIN/torchrun" --standalone --nproc-per-node 2 --max-restarts 1 train.py > "$OUT/train.log" 2>&1
