"$BIN/python" -c "import socket,time; s=socket.socket(); s.bind(('0.0.0.0',29741)); s.listen(); time.sleep(25)" &
sleep 1
"$BIN/torchrun" --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 29741 train.py > "$OUT/train.log" 2>&1
wait
