group=/sys/fs/cgroup/memory/train-job
mkdir -p $group
echo 200M > $group/memory.limit_in_bytes
seen=$(dmesg | wc -l)
{ bash -c "echo \$\$ > $group/cgroup.procs; exec \"$BIN/python\" train.py"; } > "$OUT/train.log" 2>&1
dmesg --ctime | tail -n +$((seen + 1)) | sed "s/$(uname -r)/6.18.0/" > "$OUT/dmesg.txt"
rmdir $group
