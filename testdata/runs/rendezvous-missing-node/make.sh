"$BIN/torchrun" --nnodes 2 --node-rank 0 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29731 --rdzv-conf join_timeout=8 train.py > "$OUT/train.log" 2>&1
