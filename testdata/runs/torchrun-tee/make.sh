"$BIN/torchrun" --standalone --nproc-per-node 2 --tee 3 --log-dir logs train.py > "$OUT/console.log" 2>&1
mkdir "$OUT/logs"
mv logs/* "$OUT/logs/none_k2v7d1qz" # torchrun draws the name
find "$OUT" -name '*.log' -empty -delete
