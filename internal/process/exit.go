package process

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The statuses of a command that did not start.
const (
	cannotRun = 126
	notFound  = 127
)

// variable is the value of a variable in env, where the last one counts.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Within is name as seen from dir, the folder that a command starts in.
func Within(dir, name string) string {
	if dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// isText reports whether a file without an interpreter's line may be a script: its first
// line holds no NUL, as bash has it.
func isText(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 80)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false
	}
	line, _, _ := bytes.Cut(head[:n], []byte{'\n'})
	return bytes.IndexByte(line, 0) < 0
}
