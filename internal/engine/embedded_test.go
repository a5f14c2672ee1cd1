package engine_test

import (
	"context"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestEmbeddedTable(t *testing.T) {
	text := `step 10 loss 2.5
step 20 loss 2.4
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 3.10 GiB already allocated; 1.02 GiB free; 3.30 GiB reserved in total by PyTorch)
$ nvidia-smi
Tue Mar  3 10:11:12 2026
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 515.65.01    Driver Version: 515.65.01    CUDA Version: 11.7     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  NVIDIA RTX A5000    On   | 00000000:3B:00.0 Off |                  Off |
| 30%   33C    P8    18W / 230W |  18991MiB / 24256MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|=============================================================================|
|    0   N/A  N/A      7012      C   python3                         18989MiB |
+-----------------------------------------------------------------------------+
$ echo done
`
	r, err := engine.Read(context.Background(), options(t, job(t, map[string]string{"train.log": text})))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := map[evidence.Kind]int64{}
	for _, e := range r.Sources[0].Events {
		found[e.Kind] = e.Span.Line
	}
	if found[evidence.GPUUsage] != 13 || found[evidence.GPUProcess] != 19 {
		t.Errorf("device rows at lines %d and %d, want 13 and 19", found[evidence.GPUUsage], found[evidence.GPUProcess])
	}
}
