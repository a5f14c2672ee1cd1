group=/sys/fs/cgroup/memory/job_4187
mkdir -p $group
echo 3G > $group/memory.limit_in_bytes
seen=$(dmesg | wc -l)
bash -c "echo \$\$ > $group/cgroup.procs; exec \"$BIN/torchrun\" --standalone --nproc-per-node 3 train.py" > "$OUT/train.log" 2>&1
dmesg --ctime | tail -n +$((seen + 1)) | sed "s/$(uname -r)/6.18.0/" > "$OUT/dmesg.txt"
sleep 1
rmdir $group
