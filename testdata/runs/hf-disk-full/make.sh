mkdir out
unshare -m bash -c 'mount -t tmpfs -o size=200k tmpfs out && "$0/python" train.py' "$BIN" > "$OUT/train.log" 2>&1
