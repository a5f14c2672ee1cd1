mkdir -p /srv/models && chmod 755 /srv/models
"$BIN/python" train.py > "$OUT/train.log" 2>&1
