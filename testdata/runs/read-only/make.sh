mkdir out
unshare -m bash -c 'mount -t tmpfs -o ro tmpfs out && "$0/python" train.py' "$BIN" > "$OUT/train.log" 2>&1
