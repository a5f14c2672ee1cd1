package tfevents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/tfevents"
)

func TestReader(t *testing.T) {
	readertest.Run(t, tfevents.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}
