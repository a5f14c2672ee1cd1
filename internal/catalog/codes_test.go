package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func encyclopediaCatalog(t *testing.T) *Catalog {
	t.Helper()
	c, err := Load(os.DirFS(encyclopediaDir))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestXidTable: every code that the driver's header and NVIDIA's catalogue list has a
// row, and the lookups of the wordings give its severity.
func TestXidTable(t *testing.T) {
	c := encyclopediaCatalog(t)
	x := c.Codes("xid")
	if x == nil {
		t.Fatal("no table xid")
	}
	for n := int64(1); n <= 176; n++ {
		if _, ok := x.Find(n); !ok {
			t.Errorf("Xid %d has no row", n)
		}
	}
	if _, ok := x.Find(9999); ok {
		t.Error("Xid 9999 has a row")
	}
	lookups := map[string]evidence.Lookup{}
	for _, w := range c.Plan().Wordings {
		for _, l := range w.Lookups {
			lookups[w.ID+" "+l.Attr] = l
		}
	}
	for _, f := range []struct{ wording, code, want string }{
		{"kernel/xid severity", "79", "hardware"}, {"kernel/xid severity", "031", "application"}, {"kernel/xid severity", "45", "consequence"},
		{"kernel/xid severity", "43", "consequence"}, {"kernel/xid severity", "119", "driver"}, {"kernel/xid severity", "149", "link"},
		{"kernel/xid severity", "63", "notice"}, {"kernel/xid severity", "9999", "notice"},
		{"kernel/xid-nonfatal severity", "149", "notice"}, {"kernel/xid-nonfatal severity", "79", "hardware"},
	} {
		l, ok := lookups[f.wording]
		if !ok {
			t.Errorf("%s is not looked up", f.wording)
		} else if got := l.Of(f.code); got != f.want {
			t.Errorf("%s of %s is %q, want %q", f.wording, f.code, got, f.want)
		}
	}
}

// TestCertainXids: what is a program's, the driver's or a consequence proves no fault of
// hardware; the uncorrectable and the lost device do.
func TestCertainXids(t *testing.T) {
	x := encyclopediaCatalog(t).Codes("xid")
	for code, want := range map[int64]bool{13: false, 31: false, 43: false, 45: false, 46: false, 62: false, 63: false, 74: false, 92: false, 109: false, 119: false, 154: false,
		48: true, 64: true, 79: true, 94: true, 95: true, 140: true, 171: true, 172: true} {
		if row, ok := x.Find(code); !ok || row.Certain != want {
			t.Errorf("Xid %d: certain %v, want %v", code, row.Certain, want)
		}
	}
}

// TestNoCodesInEntries: which codes are what stands in the table, not in conditions.
func TestNoCodesInEntries(t *testing.T) {
	c := encyclopediaCatalog(t)
	for _, h := range c.Entries() {
		e, err := c.Entry(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, expr := range e.conditions() {
			if strings.Contains(expr, "xid.code") {
				t.Errorf("%s: %s", h.ID, expr)
			}
		}
	}
}

func TestSXidTable(t *testing.T) {
	x := encyclopediaCatalog(t).Codes("sxid")
	for _, f := range []struct {
		code           int64
		name, severity string
	}{
		{20034, "DLPL_LTSSM_FAULT_UP", "fatal"}, {12028, "NPORT_EGRESS_PRIVRSPERR", "nonfatal"}, {11012, "NPORT_INGRESS_NCISOC_HDR_ECC_LIMIT_ERR", "nonfatal"},
		{12049, "NPORT_EGRESS", ""}, // a range, which leaves the severity to the line
	} {
		row, ok := x.Find(f.code)
		if !ok || row.Name != f.name || row.Severity != f.severity {
			t.Errorf("SXid %d: %+v", f.code, row)
		}
	}
	if _, ok := x.Find(5); ok {
		t.Error("SXid 5 has a row")
	}
}

func TestStateCodes(t *testing.T) {
	c := encyclopediaCatalog(t)
	span := evidence.Span{Artifact: "dmesg", Line: 3}
	known := evidence.Known{}
	known.Set("xid.code", evidence.IntOf(79), span)
	c.StateCodes(known)
	row, _ := c.Codes("xid").Find(79)
	for name, want := range map[string]string{"xid.meaning": row.Meaning, "xid.action": Actions[row.Action], "xid.who": row.Who, "xid.name": row.Name} {
		if got := known[name]; got.Value.S != want || len(got.Spans) != 1 || got.Spans[0] != span {
			t.Errorf("%s = %+v, want %q at the code's span", name, got, want)
		}
	}
	for n := range known {
		if strings.HasPrefix(n, "sxid.") {
			t.Errorf("%s is stated and no SXid is known", n)
		}
	}
	unlisted := evidence.Known{}
	unlisted.Set("xid.code", evidence.IntOf(9999), span)
	if c.StateCodes(unlisted); len(unlisted) != 1 {
		t.Errorf("a code without a row states %v", unlisted.Names())
	}
}

// TestErrorTable: the errors that a training job meets are all there.
func TestErrorTable(t *testing.T) {
	e := encyclopediaCatalog(t).Errors()
	if e == nil {
		t.Fatal("no table of errors")
	}
	for _, name := range strings.Fields(`cudaErrorInvalidValue cudaErrorMemoryAllocation cudaErrorInsufficientDriver cudaErrorInvalidDevice
		cudaErrorNoKernelImageForDevice cudaErrorECCUncorrectable cudaErrorNvlinkUncorrectable cudaErrorIllegalAddress cudaErrorLaunchOutOfResources
		cudaErrorAssert cudaErrorMisalignedAddress cudaErrorLaunchFailure cudaErrorSystemNotReady cudaErrorUnknown CUBLAS_STATUS_ALLOC_FAILED
		CUBLAS_STATUS_EXECUTION_FAILED CUDNN_STATUS_EXECUTION_FAILED ncclUnhandledCudaError ncclSystemError ncclRemoteError`) {
		if !slices.ContainsFunc(e.Errors, func(x CallError) bool { return x.Name == name }) {
			t.Errorf("%s is not listed", name)
		}
	}
	for _, x := range e.Errors { // what poisons the context, by the documentation of cudaError_t
		if sticky := []int{214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719}; x.Library == "cuda" && slices.Contains(sticky, x.Number) && (x.Sticky != "process" || x.Reported != "later") {
			t.Errorf("%s is %s, reported %s", x.Name, x.Sticky, x.Reported)
		}
	}
}

// TestLintCodes breaks one thing at a time.
func TestLintCodes(t *testing.T) {
	const good = "table: xid\ntitle: Codes\ndoc: What they are.\nsources: [The test]\nunlisted: notice\ncodes:\n  - {code: 1, severity: hardware, action: none, who: user, meaning: One.}\n  - {code: 2, severity: link, nonfatal: notice, action: replace, who: vendor, meaning: Two., entry: pool-held}\n"
	const errs = "table: cuda-errors\ntitle: Errors\ndoc: What they prove.\nsources: [The test]\nhonest:\n  - {id: way, how: do, what: It says more.}\nerrors:\n  - {library: l, name: E, number: 3, texts: [failed], sticky: \"no\", reported: later, proves: P., proves_not: N., causes: [{text: C, entry: pool-held}], honest: [way]}\n"
	const line = "lines/demo.yaml"
	for _, f := range []struct{ file, from, to, want string }{
		{"codes/xid.yaml", "", "", ""},
		{"codes/xid.yaml", "table: xid", "table: yid", `table "yid" differs from the file name "xid"`},
		{"codes/xid.yaml", "unlisted: notice", "unlisted: none", `unlisted "none" is not one of`},
		{"codes/xid.yaml", "code: 2", "code: 1", "codes[1]: 1 does not ascend"},
		{"codes/xid.yaml", "severity: link", "severity: bad", `codes[1].severity "bad"`},
		{"codes/xid.yaml", "nonfatal: notice", "nonfatal: bad", `codes[1].nonfatal "bad"`},
		{"codes/xid.yaml", "action: replace", "action: hope", `codes[1].action "hope"`},
		{"codes/xid.yaml", "who: vendor", "who: nobody", `codes[1].who "nobody"`},
		{"codes/xid.yaml", "severity: link", "severity: link, certain: true", "codes[1] is certain, and its severity is not hardware"},
		{"codes/xid.yaml", "severity: link", "severity: link, family: house", `codes[1].family "house"`},
		{"codes/xid.yaml", "meaning: Two.", `meaning: ""`, "codes[1].meaning is missing"},
		{"codes/xid.yaml", "entry: pool-held", "entry: gone", `codes[1].entry names "gone"`},
		{"codes/xid.yaml", "code: 2", "code: 2, colour: red", "unknown field"},
		{"codes/cuda-errors.yaml", "honest: [way]", "honest: [way, other]", `is not one of way`},
		{"codes/cuda-errors.yaml", `sticky: "no"`, "sticky: maybe", `errors[0].sticky "maybe"`},
		{"codes/cuda-errors.yaml", "reported: later", "reported: never", `errors[0].reported "never"`},
		{"codes/cuda-errors.yaml", "proves: P.", `proves: ""`, "errors[0].proves is missing"},
		{"codes/cuda-errors.yaml", "entry: pool-held", "entry: gone", `names "gone", which is not an entry`},
		{"codes/cuda-errors.yaml", "id: way,", "id: Way,", "is no id"},
		{line, "event: interrupted", "event: interrupted\n    lookup: {what: yid.severity}", `lookup what: no table "yid"`},
		{line, "event: interrupted", "event: interrupted\n    lookup: {what: xid.colour}", `"colour" is not one of`},
		{line, "event: interrupted", "event: interrupted\n    lookup: {hue: xid.severity}", "hue is not a text attribute"},
		{line, "event: interrupted", "event: interrupted\n    lookup: {what: xid.severity}", "goes by group xid, which the regexp does not have"},
	} {
		files := goodFiles(t)
		files["codes/xid.yaml"] = &fstest.MapFile{Data: []byte(good)}
		files["codes/cuda-errors.yaml"] = &fstest.MapFile{Data: []byte(errs)}
		text := string(files[f.file].Data)
		if !strings.Contains(text, f.from) {
			t.Errorf("%s does not hold %q", f.file, f.from)
			continue
		}
		files[f.file] = &fstest.MapFile{Data: []byte(strings.Replace(text, f.from, f.to, 1))}
		var all []string
		for _, p := range Lint(files) {
			all = append(all, p.String())
		}
		if got := strings.Join(all, "\n"); f.want == "" && got != "" || !strings.Contains(got, f.want) {
			t.Errorf("%q for %q:\n got %s\nwant %s", f.to, f.from, got, f.want)
		}
	}
}

// TestReplacedTable: a table of a rules folder replaces that of the same name, for the
// wordings of the encyclopedia too.
func TestReplacedTable(t *testing.T) {
	rules := fstest.MapFS{"codes/xid.yaml": {Data: []byte("table: xid\ntitle: Codes\ndoc: What they are here.\nsources: [The test]\nunlisted: notice\ncodes:\n  - {code: 901, severity: hardware, action: replace, who: vendor, meaning: A code of tomorrow.}\n")}}
	c, err := Load(os.DirFS(encyclopediaDir), rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Plan().Wordings {
		if w.ID != "kernel/xid" {
			continue
		}
		if a, b := w.Lookups[0].Of("901"), w.Lookups[0].Of("79"); a != "hardware" || b != "notice" {
			t.Errorf("901 is %q, 79 is %q", a, b)
		}
		return
	}
	t.Error("no wording kernel/xid")
}
