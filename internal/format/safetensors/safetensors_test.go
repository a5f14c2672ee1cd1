package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
)

// file puts a header and n bytes of data together.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestRead(t *testing.T) {
	// Written by the safetensors package for Python (0.5): save_file of w, b and i with numpy.
	data, err := os.ReadFile("testdata/numpy.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors) != 3 || f.Metadata["format"] != "np" {
		t.Errorf("%+v", f)
	}
	for n := range data {
		if _, err := Read(bytes.NewReader(data[:n]), int64(n)); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := Read(bytes.NewReader(append(data, 0)), int64(len(data)+1)); err == nil || !strings.Contains(err.Error(), "behind the last tensor") {
		t.Errorf("a byte more: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		header string
		n      int
		want   string // "" is none
	}{
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8, ""},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   `, 8, ""},
		{`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 4, ""},
		{`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0, ""},
		{`{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,5]}}`, 5, ""},
		{`{}`, 0, ""},
		{`[]`, 0, "does not begin"},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4, "takes 8 bytes"},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12, "belong to none"},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 6, "overlaps"},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8, "twice"},
		{`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4, "no size"},
		{`{"a":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,4]}}`, 4, "no size"},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4, "said to lie"},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,9223372036854775807]}}`, 4, "said to lie"},
		{`{"a":{"dtype":"F32","shape":[1]}}`, 4, "data_offsets"},
		{`{"a":`, 0, "EOF"},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x`, 8, "behind its object"},
		{`{"__metadata__":{"a":1}}`, 0, "metadata"},
	} {
		b := file(c.header, c.n)
		_, err := Read(bytes.NewReader(b), int64(len(b)))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.header, err, c.want)
		}
	}
	long := binary.LittleEndian.AppendUint64(nil, 1<<62)
	if _, err := Read(bytes.NewReader(long), 8); err == nil {
		t.Error("a header of 4 EiB was read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, y := range x.Tensors {
			if y.Begin < x.Begin || y.End < y.Begin || y.End > int64(len(data)) {
				t.Errorf("tensor %q at %d to %d of %d", y.Name, y.Begin, y.End, len(data))
			}
		}
	})
}
