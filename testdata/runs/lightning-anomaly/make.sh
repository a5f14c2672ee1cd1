"$BIN/python" train.py > "$OUT/train.log" 2>&1
