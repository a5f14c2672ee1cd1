"$BIN/torchrun" --standalone --nproc-per-node 3 train.py > "$OUT/train.log" 2>&1
