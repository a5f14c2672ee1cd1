KERAS_BACKEND=tensorflow "$BINJ/python" train.py > "$OUT/train.log" 2>&1
