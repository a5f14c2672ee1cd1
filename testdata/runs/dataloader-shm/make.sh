unshare -m bash -c 'mount -t tmpfs -o size=1m tmpfs /dev/shm && "$0/python" train.py' "$BIN" > "$OUT/train.log" 2>&1
