package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A diagTable is the result of dcgmi diag, DCGM 2 to 4. A test has one row; its
// errors and warnings follow, cut to the width of the column:
//
//	+---------------------------+------------------------------------------------+
//	| Diagnostic                | Result                                         |
//	+===========================+================================================+
//	|-----  Hardware  ----------+------------------------------------------------|
//	| GPU Memory                | Fail - GPU: 3                                  |
//	| Error                     | GPU 3 was detected to have 2 uncorrectable ... |
//	|                           | ors.                                           |
//
// A text is cut every 45 bytes, inside words too.
//
// In DCGM 4 the devices of a test follow below it, as GPU3: Fail.
type diagTable struct {
	out  Out
	head bool
	cur  Test
	open bool
	last int // bytes of the last piece of the text
}

func diag(_ textline.Line, text string, out Out) Table {
	if strings.HasPrefix(text, "| Diagnostic ") && strings.Contains(text, "| Result ") {
		return &diagTable{out: out}
	}
	return nil
}

const (
	maxDetail = 512
	width     = 45
)

func (t *diagTable) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	switch {
	case text == "":
		return Blank
	case text[0] == '+':
		return Rule
	case text[0] != '|':
		return Foreign
	case !t.head:
		t.head = true
		return Header
	case strings.HasPrefix(text, "|---"):
		t.End()
		return Header
	}
	cell := strings.SplitN(strings.Trim(text, "|"), "|", 2)
	if len(cell) != 2 {
		return Foreign
	}
	name, value := strings.TrimSpace(cell[0]), strings.TrimSpace(cell[1])
	switch name {
	case "":
		if gpu, result, ok := strings.Cut(value, ": "); ok && strings.HasPrefix(gpu, "GPU") && resultOf(result) != "" {
			t.device(gpu[3:], result, l)
			return Row
		}
		t.more(value, !strings.HasPrefix(value, "Error:") && !strings.HasPrefix(value, "Warning:"))
		return Row
	case "Error", "Warning", "Info":
		t.more(value, false)
		return Row
	}
	if of, ok := map[string]string{"DCGM Version": "dcgm", "Driver Version Detected": "driver"}[name]; ok {
		if value != "" {
			t.out.Version(Version{of, value, l})
		}
		return Field
	}
	result := resultOf(value)
	if result == "" {
		return Field
	}
	t.End()
	t.cur, t.open = Test{Name: name, Result: result, GPU: None, At: l}, true
	if _, gpus, ok := strings.Cut(value, "GPU: "); ok {
		t.cur.GPU = textline.Small(gpus) // None where it names several
	} else if _, gpus, ok := strings.Cut(value, "GPUs: "); ok {
		t.cur.Detail = "GPUs " + strings.TrimSpace(gpus)
	}
	return Row
}

// resultOf reads the word at the start of a result.
func resultOf(v string) string {
	word, _, _ := strings.Cut(v, " ")
	switch s := strings.ToLower(word); s {
	case "pass", "fail", "skip", "warn":
		return s
	}
	return ""
}

// device takes the result of one device below its test.
func (t *diagTable) device(gpu, result string, l textline.Line) {
	if !t.open {
		return
	}
	one := Test{Name: t.cur.Name, Result: resultOf(result), GPU: textline.Small(gpu), At: l}
	if one.Result != "pass" {
		t.End()
		t.cur, t.open = one, true
	}
}

func (t *diagTable) more(v string, joined bool) {
	if !t.open || len(t.cur.Detail)+len(v) > maxDetail {
		return
	}
	if t.cur.Detail != "" && (!joined || t.last < width) {
		t.cur.Detail += " "
	}
	t.cur.Detail += v
	t.last = len(v)
}

func (t *diagTable) End() {
	if t.open {
		t.out.Test(t.cur)
	}
	t.open = false
}
