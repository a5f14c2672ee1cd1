package cli

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// TestExpressionsCompile compiles the regular expressions of all packages of the program,
// which are otherwise compiled at their first use.
func TestExpressionsCompile(t *testing.T) {
	if n := lazyre.CompileAll(); n < 200 {
		t.Errorf("%d expressions; want those of all packages", n)
	}
}
