package explain

import (
	"slices"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// What a condition adds to the score of an entry whose kind of event a wording takes.
// An against that rules out takes away what the wording gave.
const (
	provedDecisive = 18
	provedStrong   = 15
	provedWeak     = 1
	// contradicted is what remains of the score of an entry about the event recognised
	// that the figures of the text leave no candidate.
	contradicted = 0.5
)

// stated are the facts that pasted text states by itself where the event recognised
// as lead is its fault, and the events recognised are all that it shows. They are what
// package detect makes of one event's own attributes; what takes a run to know stays
// unknown.
func stated(text string, lead catalog.Recognised, all []catalog.Recognised) map[string]evidence.Value {
	f := map[string]evidence.Value{
		"fault.kind": evidence.TextOf(string(lead.Kind)),
		"fault.text": evidence.TextOf(text),
	}
	if w := lead.Attrs.Str("what"); w != "" {
		f["fault.what"] = evidence.TextOf(w)
	}
	for _, r := range all {
		if r.Kind == "" {
			continue
		}
		f["seen."+string(r.Kind)] = evidence.IntOf(1) // two wordings may take one line
		switch r.Kind {
		case evidence.HostOOMKill, evidence.HostOOMSched, evidence.HostOOMRay:
			f["host.kill_recorded"] = evidence.BoolOf(true)
			put(f, "host.constraint", r.Attrs, "constraint")
			put(f, "host.limit", r.Attrs, "limit")
			put(f, "host.used", r.Attrs, "used")
		case evidence.Exited, evidence.LauncherSummary, evidence.WorkerKilled:
			put(f, "exit.signal", r.Attrs, "signal")
			put(f, "host.signal", r.Attrs, "signal")
			put(f, "exit.code", r.Attrs, "code")
		}
	}
	if lead.Kind.DeviceMemory() {
		memoryStated(f, lead)
	}
	return f
}

func memoryStated(f map[string]evidence.Value, lead catalog.Recognised) {
	f["oom.kind"] = evidence.TextOf(string(lead.Kind))
	for fact, attr := range map[string]string{
		"oom.requested": "requested", "oom.capacity": "capacity", "oom.free": "free", "oom.allocated": "allocated", "oom.reserved": "reserved",
		"oom.reserved_unallocated": "unallocated", "oom.private_pools": "private_pools", "oom.allowed": "allowed", "oom.backend": "backend",
		"oom.this_process": "this_process", "oom.kv_needed": "kv_needed", "oom.kv_available": "kv_available", "oom.where": "where",
	} {
		put(f, fact, lead.Attrs, attr)
	}
	requested, asked := f["oom.requested"]
	if !asked {
		return
	}
	capacity, sized := f["oom.capacity"]
	f["oom.bogus"] = evidence.BoolOf(evidence.ImpossibleRequest(requested, capacity, sized))
	reserved, ok1 := f["oom.reserved"]
	allocated, ok2 := f["oom.allocated"]
	if _, known := f["oom.reserved_unallocated"]; !known && ok1 && ok2 {
		f["oom.reserved_unallocated"] = reserved.Minus(allocated)
	}
	if unused, known := f["oom.reserved_unallocated"]; known {
		f["oom.reserve_short"] = evidence.BoolOf(unused.Hi < requested.Lo)
	}
}

// figures read the sizes that PyTorch's message of a failed request states, in the words of
// all its versions (CUDACachingAllocator.cpp). The readers' own parser of it needs a log.
var figures = map[string]*lazyre.Regexp{
	"requested":   lazyre.New(`(?i)tried to allocate (\d[\d.]* ?[KMGTP]?i?B)\b`),
	"capacity":    lazyre.New(`(?i)(?:total capacity of (\d[\d.]* ?[KMGTP]?i?B)\b|(\d[\d.]* ?[KMGTP]?i?B) total\b)`),
	"free":        lazyre.New(`(?i)(\d[\d.]* ?[KMGTP]?i?B) (?:is )?free\b`),
	"allocated":   lazyre.New(`(?i)(\d[\d.]* ?[KMGTP]?i?B) (?:already allocated|is allocated by)\b`),
	"reserved":    lazyre.New(`(?i)(\d[\d.]* ?[KMGTP]?i?B) reserved in total\b`),
	"unallocated": lazyre.New(`(?i)(\d[\d.]* ?[KMGTP]?i?B) (?:is )?reserved (?:by pytorch )?but unallocated\b`),
}

// requestRefused is the event that PyTorch's message of a failed request is, and false for
// other text.
func requestRefused(text string) (catalog.Recognised, bool) {
	r := catalog.Recognised{Kind: evidence.DeviceOOM, Attrs: evidence.Attrs{}}
	for attr, re := range figures {
		for i, s := range re.FindStringSubmatch(text) {
			if i == 0 || s == "" {
				continue
			}
			if v, err := catalog.Convert(evidence.Size, s); err == nil {
				r.Attrs[attr] = v
			}
		}
	}
	_, ok := r.Attrs["requested"]
	return r, ok
}

func put(f map[string]evidence.Value, fact string, attrs evidence.Attrs, attr string) {
	v, ok := attrs[attr]
	if s := evidence.FactOf(fact); ok && s != nil && s.Type == v.T {
		f[fact] = v
	}
}

// proved is what the conditions of e, over the facts that a text states, add to its
// score, and whether they leave it a candidate at all.
func proved(c *catalog.Catalog, e *catalog.Entry, facts map[string]evidence.Value) (add float64, candidate bool) {
	if e.Needs != "" && c.Eval(e.Needs, facts).Verdict == catalog.False {
		return 0, false
	}
	holds := func(x catalog.Condition) bool { return c.Eval(x.When, facts).Verdict == catalog.True }
	if slices.ContainsFunc(e.Against, func(x catalog.Condition) bool { return x.RulesOut && holds(x) }) {
		return 0, false
	}
	worth := map[string]float64{"decisive": provedDecisive, "strong": provedStrong, "weak": provedWeak}
	least := 0.0
	for _, x := range e.For {
		if holds(x) {
			add = max(add, worth[x.Weight])
		}
	}
	for _, x := range e.Against {
		if holds(x) {
			least = max(least, worth[x.Weight])
		}
	}
	return add - least/2, true
}
