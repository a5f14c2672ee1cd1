(ulimit -v 6291456; "$BIN/python" train.py) > "$OUT/train.log" 2>&1
