package torchzip

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t testing.TB, name string) (*File, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Read(bytes.NewReader(data), int64(len(data)))
}

func TestRead(t *testing.T) {
	f, err := read(t, "good.pt")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Problems) > 0 || f.Values["epoch"] != "3" || len(f.Storages) != 3 {
		t.Errorf("problems %q, values %v, %d storages", f.Problems, f.Values, len(f.Storages))
	}
	var got []string
	for _, x := range f.Tensors {
		got = append(got, x.Name+" "+x.DType)
	}
	want := []string{"model.layer.weight F32", "model.head.weight F32", "model.layer.bias BF16", "steps I64"}
	if !slices.Equal(got, want) {
		t.Errorf("tensors %q, want %q", got, want)
	}
	if w := f.Tensors[0]; !slices.Equal(w.Shape, []int64{2, 3}) || w.Begin != 0 || w.End != 24 || w.Storage != f.Tensors[1].Storage {
		t.Errorf("tensor %+v", w)
	}
	if f, err = read(t, "view.pt"); err != nil || f.Tensors[0].Begin != 4 || f.Tensors[0].End != 12 {
		t.Errorf("view: %v, %+v", err, f)
	}
	if f, err = read(t, "fp8.pt"); err != nil || f.Tensors[0].DType != "F8_E4M3" || f.Tensors[0].End != 3 {
		t.Errorf("fp8: %v, %+v", err, f)
	}
}

func TestReadDamaged(t *testing.T) {
	for name, want := range map[string]string{"absent.pt": "storage 0 are not in the archive", "short.pt": "storage 0 has 23 bytes"} {
		f, err := read(t, name)
		if err != nil || !strings.Contains(strings.Join(f.Problems, "\n"), want) {
			t.Errorf("%s: %v, %+v; want %q", name, err, f, want)
		}
	}
	if _, err := read(t, "cut.pt"); err == nil {
		t.Error("cut.pt was read")
	}
}

// TestPrefixes reads every prefix of a file: an error or a value, and no end that is not one.
func TestPrefixes(t *testing.T) {
	data, err := os.ReadFile("testdata/nan.pt")
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if f, err := Read(bytes.NewReader(data[:n]), int64(n)); err == nil && len(f.Tensors) == 4 && len(f.Problems) == 0 {
			t.Errorf("%d of %d bytes were read as if they were all", n, len(data))
		}
	}
}

func TestNoTorch(t *testing.T) {
	empty := append([]byte("PK\x05\x06"), make([]byte, 18)...) // the directory of an empty archive
	if _, err := Read(bytes.NewReader(empty), int64(len(empty))); !errors.Is(err, ErrNotTorch) {
		t.Errorf("an empty archive: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.pt")
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, y := range x.Tensors {
			if y.Begin < 0 || y.End < y.Begin || y.End > x.Storages[y.Storage].Bytes {
				t.Errorf("tensor %q at %d to %d of %d", y.Name, y.Begin, y.End, x.Storages[y.Storage].Bytes)
			}
		}
	})
}
