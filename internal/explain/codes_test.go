package explain

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
)

func full(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(os.DirFS("../../encyclopedia"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTable(t *testing.T) {
	c := full(t)
	for _, f := range []struct {
		table, query string
		has, lacks   []string // of the text; has nil: no row is found
	}{
		{"xid", "79", []string{"Xid 79 ROBUST", "off the bus", "operator", "power-cycle"}, []string{"Xid 78"}},
		{"xid", "0079", []string{"Xid 79 ROBUST"}, nil},
		{"xid", "45", []string{"consequence, follows another fault"}, nil},
		{"xid", "149", []string{"Where the line says Nonfatal: notice"}, nil},
		{"xid", "", []string{"- 1 ROBUST", "- 176: "}, nil},
		{"xid", "consequence", []string{"- 43 ", "- 45 ", "- 137 "}, []string{"- 79 "}},
		{"xid", "79 94", []string{"2 codes", "- 79 ROBUST", "- 94 "}, []string{"- 95 "}},
		{"xid", "79 9999", []string{"Xid 79 ROBUST"}, nil},
		{"xid", "NVLink qqqq", nil, nil},
		{"xid", "9999", nil, nil},
		{"sxid", "20034", []string{"SXid 20034 DLPL_LTSSM_FAULT_UP", "fatal"}, nil},
		{"sxid", "10001", []string{"What it is: not fatal by itself"}, []string{"nonfatal, not"}},
		{"sxid", "12049", []string{"SXid 12049 NPORT_EGRESS", "the line says whether it is fatal"}, []string{"What it is"}},
		{"cuda-errors", "700", []string{"cudaErrorIllegalAddress", "Does not prove", "illegal-access", "compute-sanitizer", "Sticky: every later CUDA call"}, []string{"cudaErrorAssert"}},
		{"cuda-errors", "sticky", []string{"cuda 700 cudaErrorIllegalAddress", "nccl 6 ncclRemoteError"}, []string{"CUBLAS_STATUS_INVALID_VALUE"}},
		{"cuda-errors", "nccl", []string{"ncclSystemError", "NCCL_DEBUG=INFO"}, []string{"cudaErrorNoKernelImage"}},
		{"cuda-errors", "illegal memory access", []string{"cudaErrorIllegalAddress"}, []string{"cudaErrorInsufficientDriver"}},
		{"cuda-errors", "asynchronous ecc", []string{"cudaErrorECCUncorrectable"}, nil},
		{"cuda-errors", "qqqq", nil, nil},
		{"none", "", nil, nil},
	} {
		var b strings.Builder
		found, err := Table(&b, c, f.table, f.query, "text", 80)
		if err != nil || found != (f.has != nil) || !found && b.Len() > 0 {
			t.Errorf("%s %q: found %v, %v, %d bytes", f.table, f.query, found, err, b.Len())
			continue
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, x := range f.has {
			if !strings.Contains(text, x) {
				t.Errorf("%s %q lacks %q:\n%s", f.table, f.query, x, b.String())
			}
		}
		for _, x := range f.lacks {
			if strings.Contains(text, x) {
				t.Errorf("%s %q has %q", f.table, f.query, x)
			}
		}
	}
}

// TestTableFormats: every row of every table is written in every format.
func TestTableFormats(t *testing.T) {
	c := full(t)
	for _, table := range c.Tables() {
		for _, format := range []string{"text", "markdown", "html", "json"} {
			var b strings.Builder
			if found, err := Table(&b, c, table, "", format, 80); !found || err != nil {
				t.Fatalf("%s as %s: %v, %v", table, format, found, err)
			}
			if format == "json" {
				var v map[string]any
				if err := json.Unmarshal([]byte(b.String()), &v); err != nil || v["table"] != table {
					t.Errorf("%s: %v", table, err)
				}
			}
		}
	}
}

func TestTopic(t *testing.T) {
	c := full(t)
	for _, f := range []struct {
		query, table, rest string
		ok                 bool
	}{
		{"xid 79", "xid", "79", true}, {" Xid  79 ", "xid", "79", true}, {"cuda-errors", "cuda-errors", "", true},
		{"xids 79", "xids", "79", false}, {"nan after xid 79", "nan", "after xid 79", false},
	} {
		if table, rest, ok := Topic(c, f.query); table != f.table || rest != f.rest || ok != f.ok {
			t.Errorf("%q: %q %q %v", f.query, table, rest, ok)
		}
	}
}

func TestRows(t *testing.T) {
	c := full(t)
	for query, want := range map[string]string{
		"NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=x, GPU has fallen off the bus.":      "inquest explain xid 79",
		"nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 37 LTSSM Fault Up": "inquest explain sxid 20034",
		"Xid 31 and Xid 43":                                        "inquest explain xid 31, inquest explain xid 43",
		"CUDA error: misaligned address":                           "inquest explain cuda-errors cudaErrorMisalignedAddress",
		"CUDA error: an illegal memory access was encountered":     "inquest explain cuda-errors cudaErrorIllegalAddress",
		"CUBLAS_STATUS_EXECUTION_FAILED when calling cublasGemmEx": "inquest explain cuda-errors CUBLAS_STATUS_EXECUTION_FAILED",
		"what does xid 79 mean?":                                   "inquest explain xid 79",
		"GPU fell off the bus":                                     "inquest explain xid 79",
		"double bit ecc error on gpu 3":                            "inquest explain xid 48",
		"CUDA out of memory. Tried to allocate":                    "inquest explain cuda-errors cudaErrorMemoryAllocation",
		"79":                                                       "inquest explain xid 79",
		"99999":                                                    "",
		"out of memory":                                            "",
		"Xid 99999":                                                "",
		"my loss is nan":                                           "",
		"an invalid argument":                                      "",
	} {
		var commands []string
		for _, r := range Rows(c, query) {
			commands = append(commands, r.Command())
		}
		if got := strings.Join(commands, ", "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
