mkdir ckpt
unshare -m bash -c 'mount -t tmpfs -o size=700k tmpfs ckpt && "$0/python" train.py' "$BIN" > "$OUT/train.log" 2>&1
