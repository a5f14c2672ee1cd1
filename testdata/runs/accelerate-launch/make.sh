"$BIN/accelerate" launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no --num_cpu_threads_per_process 1 train.py > "$OUT/train.log" 2>&1
