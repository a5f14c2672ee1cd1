#!/bin/sh
# Build the stand-in for one installation of torch: make.sh TORCH_DIR OUT_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
gcc -O1 -Wall -Wextra -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$2/libcuda.so.1" "$here/standin.c" -ldl -lpthread
ln -sf libcuda.so.1 "$2/libnvidia-ml.so.1"
python3 "$here/stubs.py" "$1/lib" "$2"
