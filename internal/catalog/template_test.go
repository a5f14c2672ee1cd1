package catalog

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestExpand(t *testing.T) {
	facts := map[string]evidence.Value{
		"oom.requested": evidence.SizeOf(2<<30, 2<<30), "run.batch": evidence.IntOf(8), "fix.micro_batch": evidence.IntOf(4),
		"run.command": evidence.TextOf("python run.py {run.world}"), "fault.text": evidence.TextOf("\x1b[31mred\u202e\nnext"),
		"memory.growth_per_step": evidence.FloatOf(3 << 20),
	}
	for _, f := range []struct{ text, want, unknown string }{
		{"asked for {oom.requested}", "asked for 2.00 GiB", ""},
		{"{run.batch} to {fix.micro_batch|half}", "8 to 4", ""},
		{"world {run.world|of unknown size}.", "world of unknown size.", ""},
		{"world {run.world}, {run.world} and {run.lr}", "world {run.world}, {run.world} and {run.lr}", "run.world run.lr"},
		{"{run.command}", "python run.py {run.world}", ""},
		{`{"zero": {"stage": 2}} {x.shape} f"{loss.item()}" {}`, `{"zero": {"stage": 2}} {x.shape} f"{loss.item()}" {}`, ""},
		{"{seen.xid} faults", "0 faults", ""},
		{"{fault.text}", "[31mred next", ""},
		{"{memory.growth_per_step} a step", "3.00 MiB a step", ""},
		{"{run.lr|}", "", ""},
	} {
		got, unknown := Expand(f.text, facts)
		if got != f.want || strings.Join(unknown, " ") != f.unknown {
			t.Errorf("Expand(%q) = %q, %q; want %q, %q", f.text, got, unknown, f.want, f.unknown)
		}
	}
	long, _ := Expand("{fault.text}", map[string]evidence.Value{"fault.text": evidence.TextOf(strings.Repeat("é", 1000))})
	if len(long) > maxInserted+len("…") {
		t.Errorf("value of %d bytes", len(long))
	}
}

func TestExpandSentences(t *testing.T) {
	facts := map[string]evidence.Value{"run.batch": evidence.IntOf(8)}
	for _, f := range []struct{ text, want string }{
		{"It was {run.batch}. The world was {run.world}. All stopped.", "It was 8. All stopped."},
		{"See torch.cuda e.g. version 2.5 of {run.world}. Fine.", "Fine."},
		{"World {run.world|unknown}. `code` follows.\n\nNext {run.lr} paragraph\n\nLast.", "World unknown. `code` follows.\n\nLast."},
		{"Only {run.world}", ""},
		{"Is it? (Yes.) {run.batch} it is.", "Is it? (Yes.) 8 it is."},
	} {
		if got := ExpandSentences(f.text, facts); got != f.want {
			t.Errorf("ExpandSentences(%q) = %q, want %q", f.text, got, f.want)
		}
		if got := strings.Join(sentences(f.text), ""); got != f.text {
			t.Errorf("sentences of %q join to %q", f.text, got)
		}
	}
}

func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"{run.precision|half precision} and {x}":                      "half precision and {x}",
		"a fault ({fault.what}), by signal {exit.signal}":             "a fault, by signal N",
		"step {oom.step} to {nan.step}, not {oom.step}":               "step N to M, not N",
		"{oom.allocated} of {oom.capacity} in the phase {oom.phase}.": "‹allocated› of ‹capacity› in the phase ‹phase›.",
		"idle ({oom.reserved_unallocated} of {oom.capacity})":         "idle (‹idle reserve› of ‹capacity›)",
		"ranks {dist.stuck_ranks}, {setting.a.b}":                     "ranks ‹numbers›, ‹a b›",
		"f({oom.step}) and ({oom.step}) alone":                        "f(N) and alone",
	} {
		if got := Prose(text); got != want {
			t.Errorf("Prose(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	if got := Plain("{run.batch|the batch} of {run.world}, {seen.xid} and {x}"); got != "the batch of {run.world}, {seen.xid} and {x}" {
		t.Errorf("got %q", got)
	}
}

func TestTemplateNames(t *testing.T) {
	if got := strings.Join(TemplateNames("{run.batch|x} {x.y} {fix.lr} {run.batch} {setting.a.b}"), " "); got != "run.batch fix.lr setting.a.b" {
		t.Errorf("names %s", got)
	}
}

func TestExpandCommand(t *testing.T) {
	facts := map[string]evidence.Value{"run.command": evidence.TextOf("torchrun train.py | tee x"), "fault.rank": evidence.IntOf(3)}
	for host, want := range map[string]string{
		"node-1":        "--exclude=node-1",
		"$(id)":         "--exclude='$(id)'",
		"`id`":          "--exclude='`id`'",
		"a b;c&d|e":     "--exclude='a b;c&d|e'",
		"it's":          `--exclude='it'\''s'`,
		"~root":         "--exclude='~root'",
		"a*?[x]{1,2}":   "--exclude='a*?[x]{1,2}'",
		"#x":            "--exclude='#x'",
		"n1.example.eu": "--exclude=n1.example.eu",
	} {
		facts["fault.host"] = evidence.TextOf(host)
		if got, _ := ExpandCommand("--exclude={fault.host|NODE}", facts); got != want {
			t.Errorf("host %q: %s, want %s", host, got, want)
		}
	}
	if got, _ := ExpandCommand("A=1 {run.command} {fault.rank}", facts); got != "A=1 torchrun train.py | tee x 3" {
		t.Error(got)
	}
	if got := ShellWord(""); got != "''" {
		t.Error(got)
	}
}
