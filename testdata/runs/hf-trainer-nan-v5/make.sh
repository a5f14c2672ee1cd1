"$BIN5/python" train.py > "$OUT/train.log" 2>&1
cp out/trainer_state.json "$OUT/"
