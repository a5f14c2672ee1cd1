package ranklog

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

// The out-of-memory messages of PyTorch's device allocators
// (c10/cuda/CUDACachingAllocator.cpp, CUDAMallocAsyncAllocator.cpp,
// c10/xpu/XPUCachingAllocator.cpp, aten/src/ATen/mps/MPSAllocator.mm and Ascend's
// NPUCachingAllocator.cpp). The form is taken from the text, never from a
// version. Blanks may be any run,
// because joined and reflowed lines have other ones.
func spaced(p string) *lazyre.Regexp { return lazyre.New(strings.ReplaceAll(p, " ", `\s+`)) }

var (
	oomLead    = spaced(`\b(CUDA|HIP|XPU|NPU|MUSA|MLU) out of memory\.\s*(?:Tried to allocate (?:(more than 1EB)|` + sizeIn + `))?`)
	oomParen   = spaced(`^\.?\s*\((?:GPU|NPU|XPU) (\d+);([^)]*)(\))?`)
	oomField   = spaced(sizeIn + ` (total capacity|already allocated|current active|free|allowed|cached|reserved in total)`)
	oomSent    = spaced(`GPU (\d+) has a total capaci?ty of ` + sizeIn + `(?: of which ` + sizeIn + ` is free)?`)
	oomProc    = spaced(`^(?:Process (\d+)|(process)) has ` + sizeIn + ` memory in use`)
	oomAllowed = spaced(sizeIn + ` allowed;`)
	oomAlloc   = spaced(`Of the allocated memory ` + sizeIn + ` is allocated by PyTorch`)
	oomPrivate = spaced(sizeIn + ` allocated in private pools`)
	oomUnalloc = spaced(sizeIn + ` is reserved by PyTorch but unallocated`)
	oomMPS     = spaced(`MPS backend out of memory \(MPS allocated: ` + sizeIn + `, other allocations: ` + sizeIn + `(?:, max allowed: ` + sizeIn + `)?\)\.(?: Tried to allocate ` + sizeIn + `)?`)
	oomAsync   = spaced(`Allocation on device (\d+ )?would exceed allowed memory`)
	asyncField = spaced(`(Currently allocated|Requested|Device limit|Free \(according to CUDA\)|PyTorch limit \(set by user-supplied memory fraction\))\s*: ` + sizeIn)
)

// sizeIn is size with its blank already widened, so that spaced leaves its
// optional blank alone.
const sizeIn = `(\d[\d.,]*\s*(?:bytes|[KMGT]i?B))`

// asyncLead begins the message of backend:cudaMallocAsync, which has several lines.
const asyncLead = "would exceed allowed memory"

// An oomText is one message being read, with what the best reading of it so far
// gave.
type oomText struct {
	m        *message
	event    *evidence.Event
	lead     string // what stands before the message on its first line
	held     bool   // a traceback holds the event
	tb       *trace
	fields   int
	complete bool
}

// deviceOOM reads the allocator message in m, and asks for following lines where
// it is cut off.
func (s *session) deviceOOM(m *message, tb *trace) {
	text := unescape(m.text)
	lead := leadAt(text)
	if lead < 0 {
		return
	}
	m.oom = true
	o := &oomText{m: m, event: s.event(evidence.DeviceOOM, m), tb: tb, lead: text[:lead]}
	if s.inQuote(m) {
		o.event.Quoted = true
	}
	o.event.Who.Device = evidence.None
	o.best([]string{text[lead:]})
	if !o.complete && len(s.joins) < 64 {
		o.held = tb != nil && tb.claim(o.event, true)
		s.joins = append(s.joins, &join{m: m, oom: o, tb: tb, left: maxJoin, cands: []string{text[lead:]}})
		return
	}
	o.settle(s)
}

// raised is an exception's name before its message.
var raised = lazyre.New(`(?:Error|Exception)\b['"]?[:(]`)

// leadAt returns where an allocator's message begins in text, or -1.
func leadAt(text string) int {
	for _, re := range []*lazyre.Regexp{oomLead, oomMPS, oomAsync} {
		if at := re.FindStringIndex(text); at != nil {
			return at[0]
		}
	}
	return -1
}

// best reads every candidate and keeps the reading that understood most. Among
// equals the first wins.
func (o *oomText) best(cands []string) {
	for i, c := range cands {
		attrs, complete := readOOM(unescape(c))
		n := len(attrs)
		if complete {
			n++
		}
		if o.event.Attrs == nil || n > o.fields {
			o.event.Attrs, o.fields, o.complete = attrs, n, complete
			if i > 0 || len(cands) > 1 {
				o.event.Text = textline.Cut(strings.TrimLeft(o.lead, " ")+c, maxText)
			}
			if g, ok := attrs["gpu"]; ok {
				o.event.Who.Device = int(g.I)
			}
		}
	}
}

// keep drops the candidates that understand less than the best reading so far.
func (o *oomText) keep(cands []string) []string {
	out := cands[:0]
	for _, c := range cands {
		attrs, complete := readOOM(unescape(c))
		n := len(attrs)
		if complete {
			n++
		}
		if n >= o.fields {
			out = append(out, c)
		}
	}
	return out
}

// settle hands the event over.
func (o *oomText) settle(s *session) {
	if o.held {
		return // the traceback does
	}
	if _, ok := o.event.Attrs["requested"]; !ok && o.tb == nil && o.event.Attrs.Str("form") == "" && !raised.MatchString(o.m.text) {
		return // somebody speaks of running out of memory, in the allocator's words
	}
	if o.tb != nil && o.tb.claim(o.event, true) {
		return
	}
	s.emit(o.event)
}

// readOOM reads one allocator message, which begins at the start of text. Parts
// that are missing leave their attributes out. complete says that nothing more
// can follow that would add a figure.
func readOOM(text string) (a evidence.Attrs, complete bool) {
	a = evidence.Attrs{}
	set := func(name, text string) {
		if v, ok := reader.ParseSize(strings.Join(strings.Fields(text), " ")); ok {
			a[name] = v
		}
	}
	const skip = 12 // past the lead of the message itself
	if len(text) < skip {
		return a, true
	}
	if next := strings.Index(text[skip:], " out of memory. Tried to allocate"); next >= 0 {
		text = text[:skip+next] // a second message on the same line
	}
	if f := oomMPS.FindStringSubmatch(text); f != nil {
		a["backend"], a["form"] = evidence.TextOf("mps"), evidence.TextOf("mps")
		set("allocated", f[1])
		set("allowed", f[3])
		set("requested", f[4])
		other, ok := reader.ParseSize(f[2])
		if mine, ok2 := a["allocated"]; ok && ok2 {
			a["this_process"] = add(mine, other)
		}
		return a, f[4] != ""
	}
	if f := oomAsync.FindStringSubmatch(text); f != nil && strings.HasPrefix(text, "Allocation on device") {
		return readAsync(text, f[1])
	}
	lead := oomLead.FindStringSubmatchIndex(text)
	if lead == nil {
		return a, true
	}
	a["backend"] = evidence.TextOf(strings.ToLower(text[lead[2]:lead[3]]))
	rest := text[lead[1]:]
	switch {
	case lead[4] >= 0: // a size bug: nothing holds an exabyte
		a["form"] = evidence.TextOf("E")
		a["requested"] = evidence.SizeOf(1<<60, 1<<63-1)
		return a, true
	case lead[6] >= 0:
		set("requested", text[lead[6]:lead[7]])
	default:
		return a, false
	}
	if f := oomParen.FindStringSubmatch(rest); f != nil {
		readParen(a, f, rest, set)
		return a, f[3] != ""
	}
	sent := oomSent.FindStringSubmatch(rest)
	if sent == nil {
		return a, false
	}
	setInt(a, "gpu", sent[1])
	set("capacity", sent[2])
	set("free", sent[3])
	form := "E"
	switch {
	case strings.Contains(rest, "capacty") || strings.Contains(rest, "max_split_size_mb"):
		form = "D"
	case strings.Contains(rest, "PYTORCH_ALLOC_CONF") || strings.Contains(rest, "PYTORCH_HIP_ALLOC_CONF"):
		form = "F"
	}
	if a.Str("backend") == "xpu" {
		form = "xpu"
	}
	a["form"] = evidence.TextOf(form)
	readProcesses(a, rest, set)
	if f := before(rest, "allowed;", oomAllowed); f != nil {
		set("allowed", f[1])
	}
	if f := oomAlloc.FindStringSubmatch(rest); f != nil {
		set("allocated", f[1])
	}
	if f := before(rest, "pools", oomPrivate); f != nil {
		set("private_pools", f[1])
	}
	f := before(rest, "unallocated", oomUnalloc)
	if f != nil {
		set("unallocated", f[1])
	}
	// In these forms the rest is printed, and the total follows from the parts.
	alloc, ok1 := a["allocated"]
	un, ok2 := a["unallocated"]
	if ok1 && ok2 {
		sum := add(alloc, un)
		if p, ok := a["private_pools"]; ok {
			sum = add(sum, p)
		}
		a["reserved"] = sum
	}
	return a, f != nil
}

// before matches re, which ends with last and is short, in text: an expression
// that begins with a number is else tried at each of them.
func before(text, last string, re *lazyre.Regexp) []string {
	const reach = 400 // reflowed lines have long blanks
	for at := 0; ; {
		next := strings.Index(text[at:], last)
		if next < 0 {
			return nil
		}
		at += next + len(last)
		if f := re.FindStringSubmatch(text[max(0, at-reach):at]); f != nil {
			return f
		}
	}
}

// readParen reads the parenthesis of forms A to C and of the NPU and older XPU
// messages. There the total is printed, and the rest follows from it.
func readParen(a evidence.Attrs, f []string, rest string, set func(name, text string)) {
	setInt(a, "gpu", f[1])
	form := "B"
	for _, p := range oomField.FindAllStringSubmatch(f[2], -1) {
		switch strings.Fields(p[2])[0] {
		case "total":
			set("capacity", p[1])
		case "already":
			set("allocated", p[1])
		case "free":
			set("free", p[1])
		case "allowed":
			set("allowed", p[1])
			form = "B'"
		case "cached":
			set("reserved", p[1])
			form = "A"
		case "reserved":
			set("reserved", p[1])
		}
	}
	switch {
	case a.Str("backend") == "npu" || a.Str("backend") == "xpu":
		form = a.Str("backend")
	case form != "A" && strings.Contains(rest, "try setting max_split_size_mb"):
		form = "C"
	}
	a["form"] = evidence.TextOf(form)
	alloc, ok1 := a["allocated"]
	reserved, ok2 := a["reserved"]
	if ok1 && ok2 && reserved.Hi >= alloc.Lo {
		a["unallocated"] = evidence.SizeOf(max(0, reserved.Lo-alloc.Hi), reserved.Hi-alloc.Lo)
	}
}

// readProcesses reads what NVML listed: this process and others. A use of 2^64-1
// bytes means "not available" and is not added up.
func readProcesses(a evidence.Attrs, rest string, set func(name, text string)) {
	listed, others, self, known := 0, evidence.SizeOf(0, 0), false, true
	for at := 0; listed < 64; at++ {
		next := strings.Index(rest[at:], "rocess")
		if next < 0 {
			break
		}
		at += next
		if at == 0 {
			continue
		}
		p := oomProc.FindStringSubmatch(rest[at-1:])
		if p == nil || p[2] != "" && !strings.HasSuffix(strings.TrimRight(rest[:at-1], " \t\r\n\f\v"), "this") {
			continue
		}
		listed++
		if p[2] != "" {
			self = true
			set("this_process", p[3])
			continue
		}
		v, ok := reader.ParseSize(strings.Join(strings.Fields(p[3]), " "))
		if !ok {
			known = false
			continue
		}
		others = add(others, v)
	}
	if listed == 0 {
		return
	}
	a["processes"] = evidence.IntOf(int64(listed))
	if known && (listed > 1 || !self) {
		a["other_processes"] = others
	}
	a["unlisted_process"] = evidence.BoolOf(!self)
}

// readAsync reads the lines of backend:cudaMallocAsync. There the request is the
// exact tensor size, and a limit of 2^64-1 bytes means that none was set.
func readAsync(text, device string) (a evidence.Attrs, complete bool) {
	a = evidence.Attrs{"backend": evidence.TextOf("cuda"), "form": evidence.TextOf("async")}
	setInt(a, "gpu", strings.TrimSpace(device))
	for _, f := range asyncField.FindAllStringSubmatch(text, 8) {
		name := ""
		switch f[1][0] {
		case 'C':
			name = "allocated"
		case 'R':
			name = "requested"
		case 'D':
			name = "capacity"
		case 'F':
			name = "free"
		case 'P':
			name, complete = "allowed", true
		}
		if v, ok := reader.ParseSize(strings.Join(strings.Fields(f[2]), " ")); ok {
			a[name] = v
		}
	}
	return a, complete
}

func setInt(a evidence.Attrs, name, text string) {
	if v, ok := reader.ParseValue(text, evidence.Int); ok {
		a[name] = v
	}
}

// add is the interval sum.
func add(a, b evidence.Value) evidence.Value {
	sum := func(x, y int64) int64 {
		if x > 1<<63-1-y {
			return 1<<63 - 1
		}
		return x + y
	}
	return evidence.SizeOf(sum(a.Lo, b.Lo), sum(a.Hi, b.Hi))
}
