package parquet_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/parquet"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, parquet.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	for head, want := range map[string]reader.Confidence{"PAR1\x15\x04": reader.Sure, "PAR": reader.No, "step,loss\n": reader.No, "": reader.No} {
		if got := parquet.New().Sniff(evidence.Artifact{Path: "x.parquet"}, []byte(head)); got != want {
			t.Errorf("%q: got %d, want %d", head, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.parquet")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := readertest.Read(context.Background(), parquet.New(), nil, "x.parquet", data); err != nil {
			t.Fatal(err)
		}
	})
}
