(ulimit -v 3145728; "$BIN/python" train.py) > "$OUT/train.log" 2>&1
