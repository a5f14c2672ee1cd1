package slurm

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// units are powers of 1024. Slurm counts in them whatever it prints.
const units = "BKMGTPE"

// size reads "64G", "9.12M", "66060288K", "204800Mn" (per node), "4000Mc" (per
// CPU), "62.91 GB" (seff). Without a unit the number counts in unit. measured is
// an interval of what prints so; what somebody set is what it says.
func size(text string, unit int64, measured bool) (evidence.Value, bool) {
	text = strings.TrimSpace(text)
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	f, err := strconv.ParseFloat(text[:i], 64)
	if err != nil || i > 20 {
		return evidence.Value{}, false
	}
	scale := float64(unit)
	switch rest := strings.ToUpper(strings.TrimSpace(text[i:])); {
	case rest == "":
	case len(rest) <= 2 && strings.IndexByte(units, rest[0]) >= 0 && strings.Trim(rest[1:], "BNC") == "":
		scale = math.Pow(1024, float64(strings.IndexByte(units, rest[0])))
	default:
		return evidence.Value{}, false
	}
	at := f * scale
	if !(scale > 0) || !(at < math.MaxInt64/4) {
		return evidence.Value{}, false
	}
	if !measured {
		return evidence.SizeOf(int64(at), int64(at)), true
	}
	if dot := strings.IndexByte(text[:i], '.'); dot >= 0 { // rounded to the nearest
		last := scale / math.Pow(10, float64(i-dot-1)) / 2
		return evidence.RoundedSize(at, last), true
	}
	return evidence.SizeOf(int64(at), int64(at)+max(int64(scale), 1)-1), true
}

// when reads Slurm's "2026-01-02T03:04:05", with a fraction in logs. It has no
// zone: it is the local time of the cluster.
func when(text string) evidence.Stamp {
	text = strings.TrimSpace(text)
	for layout, e := range map[string]time.Duration{"2006-01-02T15:04:05": time.Second / 2, "2006-01-02T15:04:05.000": time.Millisecond / 2, "2006-01-02T15:04:05.000000": time.Microsecond / 2} {
		if len(text) != len(layout) {
			continue
		}
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 1990 {
			return evidence.Stamp{Time: t, Written: text, Error: e, Clock: "wall"}
		}
	}
	return evidence.Stamp{}
}

// epoch is the stamp of whole seconds since 1970, as JSON has them.
func epoch(text string) evidence.Stamp {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1e8 || n > 1e11 {
		return evidence.Stamp{}
	}
	return evidence.Stamp{Time: time.Unix(n, 5e8).UTC(), Written: text, Zone: "Z", Error: time.Second / 2, Clock: "wall"}
}

// maxHosts bounds what a node list is expanded to.
const maxHosts = 4096

// hosts expands a node list: node[001-004,7],login2. ok is false where it is no
// list or names more than maxHosts.
func hosts(list string) (out []string, ok bool) {
	list = strings.TrimSpace(list)
	if list == "" || list == "None" || list == "(null)" || strings.HasPrefix(list, "None ") || strings.HasSuffix(list, "+") || strings.ContainsAny(list, " ()|") {
		return nil, false
	}
	for list != "" {
		end, depth := 0, 0
		for ; end < len(list) && (list[end] != ',' || depth > 0); end++ {
			switch list[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
		}
		item := list[:end]
		list = strings.TrimPrefix(list[end:], ",")
		if out, ok = expand(out, "", item); !ok {
			return nil, false
		}
	}
	return out, len(out) > 0
}

// expand appends the hosts of one element, prefix before each.
func expand(out []string, prefix, item string) ([]string, bool) {
	open := strings.IndexByte(item, '[')
	if open < 0 {
		if item == "" && prefix == "" || strings.IndexByte(item, ']') >= 0 || len(out) >= maxHosts {
			return nil, false
		}
		return append(out, prefix+item), true
	}
	size := strings.IndexByte(item[open:], ']')
	if size < 0 || strings.Count(item, "[") > 4 || len(prefix) > 256 {
		return nil, false
	}
	head, tail := prefix+item[:open], item[open+size+1:]
	for _, r := range strings.Split(item[open+1:open+size], ",") {
		from, to, ranged := strings.Cut(r, "-")
		if !ranged {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b < a || b-a >= maxHosts || len(from) > 9 {
			return nil, false
		}
		for n := a; n <= b; n++ {
			num := strconv.Itoa(n)
			num = strings.Repeat("0", max(0, len(from)-len(num))) + num
			var ok bool
			if out, ok = expand(out, head+num, tail); !ok {
				return nil, false
			}
		}
	}
	return out, true
}

// onlyHost is the host of a list of one, else "".
func onlyHost(list string) string {
	if h, ok := hosts(list); ok && len(h) == 1 {
		return h[0]
	}
	return ""
}

// states are the job states of Slurm in full; sacct cuts them to its column and
// marks the cut with '+'.
var states = [...]string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "CONFIGURING", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PENDING", "PREEMPTED",
	"RUNNING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "REVOKED", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "TIMEOUT"}

// compact are the codes of squeue.
var compact = map[string]string{"BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED",
	"NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "TO": "TIMEOUT"}

// stateOf returns the full word of a state and the user of "CANCELLED by 1000";
// "" for no state.
func stateOf(text string) (state, by string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	by, _ = strings.CutPrefix(rest, "by ")
	cut := strings.HasSuffix(word, "+")
	word = strings.TrimSuffix(word, "+")
	for _, s := range states {
		if word == s || cut && len(word) >= 2 && strings.HasPrefix(s, word) {
			return s, by
		}
	}
	return compact[word], by
}

// setExit files Slurm's "code:signal".
func setExit(attrs evidence.Attrs, text string) {
	code, signal, ok := strings.Cut(strings.TrimSpace(text), ":")
	if !ok {
		return
	}
	if n, err := strconv.ParseInt(code, 10, 32); err == nil {
		attrs["code"] = evidence.IntOf(n)
	}
	if n, err := strconv.ParseInt(signal, 10, 32); err == nil && n > 0 {
		attrs["signal"] = evidence.IntOf(n)
	}
}
