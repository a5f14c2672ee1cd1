package explain

import (
	"strings"
	"testing"
)

// TestProved: of entries about one error, the one that the figures of the text prove is first.
func TestProved(t *testing.T) {
	x, err := NewIndex(full(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ text, want string }{
		{"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.56 GiB total capacity; 20.10 GiB already allocated; 512.00 MiB free; 33.90 GiB reserved in total by PyTorch)", "fragmentation"},
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98304000.00 GiB. GPU 1 has a total capacity of 79.15 GiB of which 70.00 GiB is free.", "bogus-allocation-size"},
		{"RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.", "shm-exhausted"},
	} {
		if got := x.Find(f.text); len(got) == 0 || got[0].ID != f.want {
			t.Errorf("%q: %+v, want %s", f.text, got[:min(2, len(got))], f.want)
		}
	}
	small := "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.56 GiB of which 512.00 MiB is free. 100.00 MiB is reserved by PyTorch but unallocated"
	if got := x.Find(small)[0].ID; got == "fragmentation" || got == "bogus-allocation-size" {
		t.Errorf("%q: %s, which its figures rule out", small, got)
	}
}

func TestUnspoken(t *testing.T) {
	for _, f := range []struct{ text, want string }{
		{"nan, ni datos malos ni fp16, no sé", "nan, no sé"},
		{"loss is nan, neither bad data nor fp16", "loss is nan,"},
		{"NaN, weder fp16 noch kaputte Daten", "NaN,"},
		{"no oom line in dmesg", "no oom line in dmesg"},
		{"without torch.no_grad", "without torch.no_grad"},
	} {
		if got := strings.Join(strings.Fields(unspoken(f.text)), " "); got != f.want {
			t.Errorf("%q is %q, want %q", f.text, got, f.want)
		}
	}
}
