package nvsmi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// rows writes down what comes out, one line a row.
type rows []string

func (r *rows) Version(v Version) { *r = append(*r, v.Of+" "+v.Text) }
func (r *rows) Device(d Device) {
	s := fmt.Sprintf("device %d %s %s %d..%d", d.Index, d.BusID, d.Slice, d.Used.Lo, d.Used.Hi)
	for _, x := range d.States {
		s += fmt.Sprintf(" %s=%d", x.What, x.Count)
	}
	*r = append(*r, s)
}
func (r *rows) Process(p Process) {
	*r = append(*r, fmt.Sprintf("process %d %d %s", p.GPU, p.PID, p.Name))
}
func (r *rows) Trouble(t Trouble) {
	*r = append(*r, fmt.Sprintf("trouble %s %d %s", t.What, t.GPU, t.BusID))
}
func (r *rows) Test(t Test)                     { *r = append(*r, fmt.Sprintf("test %s %s %d", t.Name, t.Result, t.GPU)) }
func (r *rows) Taken(s string, _ textline.Line) { *r = append(*r, "taken "+s) }

// decode feeds text to the tables that its lines begin.
func decode(text, command string) (out rows, foreign int) {
	var cur Table
	textline.Each(context.Background(), strings.NewReader(text), func(l textline.Line) {
		if cur != nil {
			if cur.Line(l) != Foreign {
				return
			}
			cur.End()
			cur = nil
		}
		t, class := Begin(l, command, &out)
		cur = t
		if class == Foreign {
			foreign++
		}
	}, func(textline.Line) {})
	if cur != nil {
		cur.End()
	}
	return out, foreign
}

func TestDecode(t *testing.T) {
	const header = "| NVIDIA-SMI 550.1  Driver Version: 550.1  CUDA Version: 12.4 |\n|===+===+===|\n"
	for _, c := range []struct {
		name, text, command string
		want                []string
	}{
		{"a device cut before its memory", header + "|   0  NVIDIA L4   On | 00000000:01:00.0 Off | 0 |\n", "", []string{"driver 550.1", "cuda 12.4", "device 0 00000000:01:00.0  0..-1"}},
		{"windows line ends", strings.ReplaceAll(header+"|   0  NVIDIA L4   On | 00000000:01:00.0 Off | 0 |\n| N/A 40C P0 10W / 72W | 1MiB / 23034MiB | 0% Default |\n", "\n", "\r\n"), "",
			[]string{"driver 550.1", "cuda 12.4", "device 0 00000000:01:00.0  1048576..2097151"}},
		{"no versions", "| NVIDIA-SMI 550.1  Driver Version: N/A  CUDA Version: ERR! |\n", "", nil},
		{"two tables", header + header, "", []string{"driver 550.1", "cuda 12.4", "driver 550.1", "cuda 12.4"}},
		{"picked by -i", "====NVSMI LOG====\nAttached GPUs : 8\nGPU 00000000:01:00.0\n    FB Memory Usage\n        Used : 5 MiB\n", "", []string{"device -1 00000000:01:00.0  5242880..6291455"}},
		{"all listed", "====NVSMI LOG====\nAttached GPUs : 1\nGPU 00000000:01:00.0\n    FB Memory Usage\n        Used : 5 MiB\n", "", []string{"device 0 00000000:01:00.0  5242880..6291455"}},
		{"aggregate counts alone", "====NVSMI LOG====\nGPU 00000000:01:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 0\n        Aggregate\n            DRAM Uncorrectable : 7\n", "", []string{"device 0 00000000:01:00.0  0..-1 ecc-aggregate-uncorrectable=7"}},
		{"rows without header or command", "0, 123, 456\n", "", nil},
		{"rows behind their command", "0, 123\n", "nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits", []string{"device 0   128974848..130023423"}},
		{"a table of something else", "index, name, price\n0, x, 3\n", "", nil},
		{"device handle", "Unable to determine the device handle for GPU2: 0000:5D:00.0: Unknown Error\n", "", []string{"trouble no-device-handle 2 0000:5D:00.0"}},
		{"words about it in prose", "we saw that the GPU is lost sometimes, No devices were found\n", "", nil},
	} {
		if got, _ := decode(c.text, c.command); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzDecode: whatever the text is, decoding ends, and what comes out is within
// its bounds.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"| NVIDIA-SMI 550.1  Driver Version: 550.1  CUDA Version: 12.4 |\n|===|\n|   0  NVIDIA L4   On | 00000000:01:00.0 Off | 0 |\n| N/A 40C P0 10W / 72W | 1MiB / 23034MiB | 0% Default |\n",
		"====NVSMI LOG====\nGPU 00000000:01:00.0\n    Processes\n        Process ID : 5\n            Name : x\n",
		"<nvidia_smi_log><gpu id=\"00000000:01:00.0\"><uuid>GPU-1</uuid></gpu></nvidia_smi_log>\n",
		"index, memory.used [MiB]\n0, 5 MiB\n", "# gpu pwr sm\n# Idx W %\n 0 5 6\n", "GPU 0: L4 (UUID: GPU-1)\n\t Link 0: <inactive>\n", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-3\n",
		"| Diagnostic  | Result |\n| Denylist | Fail |\n| Error | x |\n",
	} {
		f.Add(s, "nvidia-smi --query-gpu=index,memory.used")
	}
	f.Fuzz(func(t *testing.T, text, command string) {
		out, _ := decode(text, command)
		if lines := strings.Count(text, "\n") + 1; len(out) > 16*len(text)+lines {
			t.Fatalf("%d rows of %d bytes", len(out), len(text))
		}
	})
}
