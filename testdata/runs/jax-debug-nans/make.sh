JAX_PLATFORMS=cpu "$BINJ/python" train.py > "$OUT/train.log" 2>&1
