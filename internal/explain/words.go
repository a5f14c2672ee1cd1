package explain

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// canon maps the many words for one thing to one term. Keys of several words
// are matched as phrases, longest first; keys of one word before stemming.
var canon = func() map[string]string {
	m := map[string]string{}
	for term, words := range map[string][]string{
		"oom":        {"ooms", "oomed", "out of memory", "outofmemory", "outofmemoryerror", "ran out of memory", "run out of memory", "memory exhausted", "resource exhausted", "resourceexhaustederror", "resource_exhausted"},
		"nan":        {"nans", "not a number", "non finite", "nonfinite", "non finite loss", "inf", "infs", "infinite", "infinity", "diverge", "diverged", "diverges", "diverging", "divergence", "blew up", "blow up", "went nan", "went to nan", "goes nan", "goes to nan", "turned nan", "turns nan", "became nan", "becomes nan"},
		"gpu":        {"gpus", "cuda", "device", "devices", "vram", "card", "cards", "graphics card", "graphics cards", "accelerator", "accelerators"},
		"gpu0":       {"gpu 0", "device 0", "card 0", "cuda 0"},
		"kill":       {"killed", "kills", "sigkill", "signal 9", "exit 137", "exit code 137", "exitcode 9", "kill 9", "kill -9", "sigkill -9"},
		"hang":       {"hangs", "hung", "hanging", "stuck", "freeze", "freezes", "frozen", "timeout", "timeouts", "timed out", "time out", "stall", "stalls", "stalled", "deadlock", "no progress"},
		"checkpoint": {"checkpoints", "ckpt", "ckpts", "state dict", "state_dict"},
		"eval":       {"evaluation", "evaluate", "evaluating", "validation", "validate", "validating", "val"},
		"loader":     {"dataloader", "data loader", "data_loader", "dataloaders", "data loaders"},
		"lr":         {"learning rate", "learning rates", "learning_rate"},
		"shm":        {"shared memory", "dev shm", "shmem"},
		"fp16":       {"float16", "half precision", "mixed precision", "amp"},
		"loss":       {"losses"},
		"train":      {"training", "trained", "trainer", "finetuning", "fine tuning", "finetune", "pretraining"},
		"restart":    {"restarts", "restarted", "requeue", "requeued", "resubmit"},
		"preempt":    {"preempted", "preemption", "preemptible", "spot"},
		"disk":       {"disks", "no space left", "enospc", "storage"},
		"walltime":   {"wall time", "wall clock", "wallclock", "time limit", "timelimit", "time limits", "run time limit", "maximum runtime"},
		"step":       {"steps", "iteration", "iterations", "iter", "iters"},
		"collective": {"collectives", "allreduce", "all_reduce", "all reduce", "all-reduce", "allgather", "all_gather", "all gather", "broadcast", "reduce_scatter"},
		"straight":   {"immediately", "right away", "straight away", "at once", "instantly"},
		"save":       {"saves", "saved", "saving", "written", "writing", "wrote"},
		"interrupt":  {"ctrl c", "control c", "ctrlc", "keyboardinterrupt", "keyboard interrupt", "sigint"},
		"grow":       {"grows", "growing", "grew", "increases", "increasing", "increase", "rises", "rising", "climbs", "climbing", "creeps up", "creep up", "goes up", "go up", "going up", "piles up", "pile up", "accumulates", "leak", "leaks", "leaking", "leaked"},
		"offbus":     {"off the bus", "fell off the bus", "fallen off the bus", "falls off the bus", "dropped off the bus", "falling off the bus", "fell off bus"},
		"checkpointing": {
			"gradient checkpointing", "activation checkpointing", "recompute", "recomputation", "remat"},
	} {
		for _, w := range words {
			m[w] = term
		}
	}
	return m
}()

// longestPhrase is the most words that a key of canon has.
var longestPhrase = func() int {
	n := 1
	for k := range canon {
		n = max(n, len(strings.Fields(k)))
	}
	return n
}()

// stop are words that say nothing about a failure.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an the of to in on at by for from with and or but if is are was were be been it its this that these those
		i we you my our your he they them as so than then when while why what which who how do does did has have had can could should will would
		not no get got gets getting become becomes became after before during again always just still very some any all there here into out up off more most only one two
		crash crashes crashed crashing work works worked working fail fails failed failing even though although plenty listed lot lots much many really idea begin happen happens happened happening reason reasons solve solved solution anyone know maybe somehow weird strange ever thing things try trying
		please help error errors problem issue job jobs just says say said means mean meaning tell tracked python py line file`) {
		m[w] = true
	}
	return m
}()

// stopWords are the words of stop, sorted.
var stopWords = slices.Sorted(maps.Keys(stop))

// denied is what stands behind a word that denies it: neither X nor Y, in several languages,
// up to three words or a mark. A plain "not" or "without" is left: what is missing or was
// forgotten is often the cause.
var denied = lazyre.New(`(?i)(?:^|[\s,;(])(?:neither|nor|ni|nem|weder|ни)(?:\s+[^\s,;.()]+){1,3}?(?:\s+noch(?:\s+[^\s,;.()]+){1,2}?)?(?:\s+(?:ni|nor|nem|ни)(?:\s+[^\s,;.()]+){1,2}?)*(?:[,;.()]|$)`)

// unspoken is text without what it says is not the case.
func unspoken(text string) string { return denied.ReplaceAllString(text, " ") }

// words cuts text into lower-case words: letters, digits and inner underscores.
// A number that stands behind a blank keeps its minus sign: -9 is an exit
// status, the 9 of 2-9 is not.
func words(text string) []string {
	var out []string
	start, last := -1, ' '
	low := strings.ToLower(text)
	for i, r := range low {
		inner := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case inner && start < 0:
			start = i
			if last == '-' && unicode.IsDigit(r) && (i < 2 || strings.ContainsRune(" \t\n\r(\"'=:", rune(low[i-2]))) {
				start = i - 1
			}
		case !inner && start >= 0:
			out = append(out, low[start:i])
			start = -1
		}
		last = r
	}
	if start >= 0 {
		out = append(out, low[start:])
	}
	return out
}

// A term is what is indexed of the words from to to.
type term struct {
	text     string
	from, to int
}

// terms turns words into what is indexed: phrases and synonyms become one term,
// stop words go, the rest is stemmed.
func terms(ws []string) []string {
	var out []string
	for _, t := range termsOf(ws) {
		out = append(out, t.text)
	}
	return out
}

func termsOf(ws []string) []term {
	var out []term
next:
	for i := 0; i < len(ws); {
		for n := min(longestPhrase, len(ws)-i); n >= 1; n-- {
			if t, ok := canon[strings.Join(ws[i:i+n], " ")]; ok {
				out = append(out, term{t, i, i + n})
				i += n
				continue next
			}
		}
		switch w := ws[i]; {
		case w == "-9" || w == "137": // the same end, as Python and as shells put it
			out = append(out, term{"kill", i, i + 1}, term{"-9", i, i + 1})
		case !stop[w] && len(w) > 1:
			out = append(out, term{stem(w), i, i + 1})
		}
		i++
	}
	return out
}

// stem removes the commonest English endings, so that "allocating", "allocated"
// and "allocates" meet. Both sides pass through it, so it need not give words.
func stem(w string) string {
	for _, s := range []struct{ end, with string }{
		{"ations", "at"}, {"ation", "at"}, {"ated", "at"}, {"ates", "at"}, {"ating", "at"}, {"ate", "at"},
		{"ies", "y"}, {"sses", "ss"}, {"ings", ""}, {"ing", ""}, {"ed", ""}, {"es", ""}, {"s", ""}, {"e", ""},
	} {
		if root, ok := strings.CutSuffix(w, s.end); ok && len(root) >= 3 && !strings.HasSuffix(root+s.end, "ss") {
			root += s.with
			if n := len(root); s.with == "" && n > 3 && root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
				root = root[:n-1]
			}
			return root
		}
	}
	return w
}

// correct returns the word of vocabulary, which is sorted, that a mistyped w of
// at least five letters stands for: one letter more, less or other, or two
// neighbours swapped, behind the first. Of several the first by the alphabet is taken.
func correct(w string, vocabulary []string) string {
	if len(w) < 5 {
		return w
	}
	if _, ok := slices.BinarySearch(vocabulary, w); ok {
		return w
	}
	from, _ := slices.BinarySearch(vocabulary, w[:1]) // the first letter is hardly ever the wrong one
	for _, v := range vocabulary[from:] {
		if v[0] != w[0] {
			break
		}
		if len(v) >= 5 && near(w, v) {
			return v
		}
	}
	return w
}

// near reports whether a and b differ by one edit.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) {
		return true
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// rerunWords say what a restart without a change does, and how much of the job
// shows the failure again.
func rerunWords(r catalog.Rerun) string {
	does := map[string]string{
		catalog.RerunRepeats:   "Fails again, wherever it runs.",
		catalog.RerunElsewhere: "Fails again on the same host; another is expected to pass.",
		catalog.RerunMayPass:   "May get past this point, and can fail again later.",
		catalog.RerunSafe:      "Is safe: nothing in the run caused the end.",
		catalog.RerunUnknown:   "Not known before the missing fact is.",
	}[r.Unchanged]
	from := map[string]string{
		catalog.FromLatest: "Resume from the newest complete checkpoint.",
		catalog.FromBefore: "Resume from a checkpoint older than the damage.",
		catalog.FromStart:  "Resume from none of this run's checkpoints.",
	}[r.From]
	needs := map[string]string{
		catalog.NeedsOneRank:  "One rank is enough to see it again.",
		catalog.NeedsDevice:   "One rank on the same device is enough to see it again.",
		catalog.NeedsOneHost:  "The ranks of one host are enough to see it again.",
		catalog.NeedsTwoRanks: "Two ranks are enough to see it again.",
		catalog.NeedsTwoHosts: "One rank on each of two hosts is enough to see it again.",
		catalog.NeedsJob:      "It needs the whole job to be seen again.",
	}[r.Needs]
	return strings.Join(strings.Fields(does+" "+from+" "+needs), " ")
}
