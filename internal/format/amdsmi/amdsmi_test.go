package amdsmi

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// rows writes down what comes out, one line a row.
type rows []string

func (r *rows) Version(of, text string, _ textline.Line) { *r = append(*r, of+" "+text) }
func (r *rows) Device(d Device) {
	s := fmt.Sprintf("device %d %s %d..%d", d.Index, d.BusID, d.Used.Lo, d.Used.Hi)
	for _, x := range d.States {
		s += fmt.Sprintf(" %s=%d", x.What, x.Count)
	}
	*r = append(*r, s)
}
func (r *rows) Process(p Process) {
	*r = append(*r, fmt.Sprintf("process %d %d %s", p.GPU, p.PID, p.Name))
}

// decode feeds text to the tables that its lines begin.
func decode(text string) rows {
	var out rows
	var cur Table
	textline.Each(context.Background(), strings.NewReader(text), func(l textline.Line) {
		if cur != nil {
			if cur.Line(l) != Foreign {
				return
			}
			cur.End()
		}
		cur, _ = Begin(l, &out)
	}, func(textline.Line) {})
	if cur != nil {
		cur.End()
	}
	return out
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a percentage alone", "==== ROCm System Management Interface ====\n==== Concise Info ====\nGPU  Temp   AvgPwr  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%\n0    35.0c  41.0W   0Mhz  0Mhz  0%   auto  300.0W   61%   97%\n", []string{"device 0  0..-1"}},
		{"not supported", "==== ROCm System Management Interface ====\nGPU[0]\t\t: Not supported\n", []string{"device 0  0..-1"}},
		{"only a list of processes", "GPU: 0\n    PROCESS_INFO:\n        NAME: x\n        PID: 7\n", []string{"process 0 7 x"}},
		{"settings in YAML", "GPU: none\n    LIMIT: 5\n", nil},
		{"a spreadsheet", "device,colour\ncard0,red\n", nil},
	} {
		if got := decode(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func noLine(int64) textline.Line { return textline.Line{} }

func TestJSON(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for _, c := range []struct {
		name, text string
		want       []string
		fails      bool
	}{
		{"the list in an object", `{"gpu_data":[{"gpu":1,"mem_usage":{"used_vram":{"value":2,"unit":"MB"}}}]}`, []string{"device 1  2097152..3145727"}, false},
		{"two documents", `{"card0":{"GPU use (%)":"3"}}` + "\n" + `{"card0":{"GPU use (%)":"4"}}`, []string{"device 0  0..-1", "device 0  0..-1"}, false},
		{"nothing", "", nil, false},
		{"cut", `[{"gpu":0,"usage":{"gfx_activity":`, nil, true},
		{"too deep", deep, nil, true},
		{"null", `[{"gpu":0,"usage":null,"bdf":"0000:01:00.0"}]`, []string{"device 0 0000:01:00.0 0..-1"}, false},
	} {
		var got rows
		err := JSON(strings.NewReader(c.text), noLine, &got)
		if !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: got %q and %v, want %q", c.name, got, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("==== ROCm System Management Interface ====\nGPU[0]\t\t: GPU use (%): 3\n")
	f.Add("GPU: 0\n    MEM_USAGE:\n        USED_VRAM: 3 MB\n")
	f.Add("| AMD-SMI 26 amdgpu version: 6 |\n|===|\n| 0000:05:00.0 X | 0 % 40 °C 0 5/9 W |\n| 0 0 0 SPX | 0 % N/A 5/9 MB |\n")
	f.Add(`[{"gpu":0,"mem_usage":{"used_vram":{"value":283,"unit":"MB"}}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		decode(text)
		var out rows
		last := int64(0)
		err := JSON(strings.NewReader(text), func(offset int64) textline.Line {
			if offset < last || offset > int64(len(text)) {
				t.Fatalf("offset %d after %d of %d bytes", offset, last, len(text))
			}
			last = offset
			return textline.Line{}
		}, &out)
		if err == io.EOF {
			t.Fatal("the end of the text is no error")
		}
	})
}
