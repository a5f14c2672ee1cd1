package desk

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A file larger than the file system takes is one that is too large, and not a fault of the desk.
func TestRefuseLargerThanFileSystemTakes(t *testing.T) {
	p := &putting{d: new(Desk), c: &held{state: incident.CaseReceiving, dir: "place"}}
	err := p.refuse(&fs.PathError{Op: "write", Path: "place/a.log", Err: syscall.EFBIG})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "elsewhere") || strings.Contains(err.Error(), "place/") {
		t.Error(err)
	}
}
