"$BIN/torchrun" --standalone --nproc-per-node 2 train.py > "$OUT/train.log" 2>&1 &
sleep 12
kill -TERM $!
wait
