"$BIN/torchrun" --standalone --nproc-per-node 4 train.py > "$OUT/train.log" 2>&1
