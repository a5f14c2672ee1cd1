/usr/bin/python3 train.py > "$OUT/train.log" 2>&1
