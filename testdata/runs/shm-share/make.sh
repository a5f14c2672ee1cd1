unshare -m bash -c 'mount -t tmpfs -o size=1m tmpfs /dev/shm; { "$1/python" train.py; }' train.sh "$BIN" > "$OUT/train.log" 2>&1
