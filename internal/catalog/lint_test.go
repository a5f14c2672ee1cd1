package catalog

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestLintGood(t *testing.T) {
	for _, p := range Lint(goodFiles(t)) {
		t.Error(p)
	}
}

// TestLintRules breaks one thing at a time in testdata/good.
func TestLintRules(t *testing.T) {
	const entry, lines = "entries/device-memory/pool-held.yaml", "lines/demo.yaml"
	for _, f := range []struct {
		file, from, to string
		want           string
	}{
		{entry, "id: pool-held", "id: pool-kept", `pool-held.yaml:1: id "pool-kept" differs from the file name "pool-held"`},
		{entry, "area: device-memory", "area: outside", `area "outside" differs from the folder "device-memory"`},
		{entry, "area: device-memory", "area: inside", `area "inside" is not one of`},
		{entry, "title: The invented pool keeps what it has", "title: a person stopped the run", "title is already that of"},
		{entry, "about: [device_oom]", "about: [device_ooo]", `"device_ooo", which is not a declared event kind`},
		{entry, "about: [device_oom]", "about: [phase]", `"phase", a progress, which never leads`},
		{entry, "prior: 4", "prior: 12", "prior 12 is not 0 to 9"},
		{entry, "since: 0.1.0", `since: ""`, "since is missing or empty"},
		{entry, "needs: '!oom.bogus'", "needs: oom.bogs", "pool-held.yaml:7: needs does not compile"},
		{entry, "when: run.batch > 4 || oom.first_step", "when: run.batch", "for[1].when does not compile: condition is a int, not a bool"},
		{entry, "when: run.batch > 4 || oom.first_step", "when: run.batchsize > 4", "undeclared reference"},
		{entry, "when: run.batch > 4 || oom.first_step", "when: oom.requested > 4", "for[1].when does not compile"},
		{entry, "weight: strong", "weight: huge", `for[0].weight "huge" is not one of weak, strong, decisive`},
		{entry, "when: oom.reserved_unallocated.lo >= oom.requested.hi && oom.free.hi < oom.requested.lo", "when: \"true\"", "asks for no fact"},
		{entry, "{run.batch|large}", "{run.batch}", "pool-held.yaml:14: for[1].says names {run.batch}, which need not be known"},
		{entry, "{run.batch|large}", "{run.world}", "names {run.world}, which the condition does not ask for"},
		{entry, "{run.batch|large}", "{run.wrld|large}", `names "run.wrld", which is not a declared fact`},
		{entry, "    rules_out: true", "    rules_out: true\n    weight: weak", "has a weight and rules out"},
		{entry, "    weight: weak", "    weight: weak\n    rules_out: true", "that belongs under against"},
		{entry, "    weight: weak", "    weight: weak\n    proof: [oom.wher]", `for[1].proof names "oom.wher"`},
		{entry, "replay.expandable_avoids", "replay.avoids", `decides[0] names "replay.avoids"`},
		{entry, "replay.expandable_avoids", "oom.kind", "neither the entry nor the declaration of oom.kind says how"},
		{entry, "quick: The pool held enough. It was in pieces.", "quick: ''", "quick is missing or empty"},
		{entry, "search: [pool refused, idle pool]", "search: []", "search needs at least 1"},
		{entry, "search: [pool refused, idle pool]", "search: [a, a]", `search repeats "a"`},
		{entry, "{entry: stopped-by-hand, tell", "{entry: pool-held, tell", "look_alikes[0].entry is the entry itself"},
		{entry, "{entry: stopped-by-hand, tell", "{entry: stopped, tell", `look_alikes[0].entry names "stopped", which is not an entry`},
		{entry, "related: [stopped-by-hand]", "related: [gone]", `related[0] names "gone"`},
		{entry, "how: Read the message.", "how: ''", "checklist[0].how is missing"},
		{entry, "stack: pytorch", "stack: jax", "fix needs a stack any or pytorch"},
		{entry, "stack: pytorch", "stack: torch", `fix[0].stack "torch" is not one of`},
		{entry, "effect: reversible, level", "effect: none, level", `fix[0].steps[0].effect "none" is not one of`},
		{entry, "level: beginner", "level: expert", `fix[0].steps[0].level "expert"`},
		{entry, "lang: shell", "lang: sh", `fix[0].steps[0].lang "sh"`},
		{entry, "{do: Set the variable., code: \"export POOL=grow\", lang: shell, effect: reversible,", "{do: Reboot., effect: changes, level: advanced}\n      - {do: Set the variable., code: \"export POOL=grow\", lang: shell, effect: reversible,", "fix[0].steps[1] can be undone, behind a step that changes; steps that risk less come first"},
		{entry, "code: \"export POOL=grow\", lang: shell,", "", "fix has no step with code"},
		{entry, "code: \"export POOL=grow\"", "code: \" \"", "fix[0].steps[0].code is blank"},
		{entry, "lang: shell,", "lang: shell, runs: cpu,", "only python does"},
		{entry, "lang: shell,", "lang: shell, given: \"x = 1\",", "has given or then, and runs nowhere"},
		{entry, "when: oom.reserved_unallocated.lo >= oom.requested.hi, how", "when: \"1 > 0\", how", "asks for no fact, so no evidence can tick it"},
		{entry, "escalate: Not for the administrator.", "", "escalate is missing"},
		{entry, "scope: environment", "scope: world", `remedy.scope "world"`},
		{entry, "compute: alloc_conf", "compute: none", `remedy.edits[0].to names "fix.alloc_conf", but remedy.compute fills nothing in`},
		{entry, "cost: None worth naming.", "cost: ''", "remedy.cost is missing"},
		{entry, "rollback: Unset the variable.", "rollback: ''", "rollback is missing"},
		{entry, "unchanged: repeats", "unchanged: never", `rerun.unchanged "never" is not one of`},
		{entry, "needs: one_rank", "needs: few", `rerun.needs "few" is not one of`},
		{entry, "executive: The run stopped for want of memory in one piece.", "executive: ''", "readings.executive is missing"},
		{entry, "      standing: supported", "      standing: sure", `examples.match[0].standing "sure"`},
		{entry, "{rank0.log:", "{../rank0.log:", "which is not a relative path"},
		{entry, "    - files: {rank0.log: \"stopped by the person at the desk\\n\"}", "    []", "examples.no_match needs at least 1"},
		{entry, "sources: [The test of this package]", "sources: []", "sources needs at least 1"},
		{entry, "since: 0.1.0", "since: 0.1.0\nsinse: 0.1.0", `pool-held.yaml:6: unknown field "sinse"`},
		{lines, "source: demo", "source: domo", `source "domo" differs from the file name "demo"`},
		{lines, "id: demo/stopped", "id: other/stopped", "id is not demo/<short-name>"},
		{lines, "id: demo/stopped", "id: demo/batch", `id "demo/batch" is already in`},
		{lines, "event: interrupted", "event: disturbed", `event "disturbed" is not a declared kind`},
		{lines, "literal: pool refused", "literal: poo", "shorter than 4 bytes"},
		{lines, "literal: pool refused", "literal: Pool refused", "does not stand in sample"},
		{lines, `(?P<gpu>\d+)`, `(?P<gpu>\d+`, "missing closing )"},
		{lines, `(?P<gpu>\d+)`, `(?P<card>\d+)`, "group card is not an attribute of device_oom"},
		{lines, "attrs: {backend: cuda}", "attrs: {colour: red}", "attribute colour is not declared by device_oom"},
		{lines, "gpu: 1, backend: cuda", "gpu: 2", `gives gpu "1", not "2"`},
		{lines, "gpu: 1, backend: cuda", "gpu: 1, free: 1 GiB", "gives no free"},
		{lines, "gives: {requested: 1.50 GiB, reserved: 3.00 GiB, gpu: 1, backend: cuda}", "gives: {}", "no sample says what group reserved gives"},
		{lines, "facts: {run.batch: \"{n}\"}", "facts: {run.bach: \"{n}\"}", `facts names "run.bach"`},
		{lines, "facts: {run.batch: \"{n}\"}", "facts: {run.batch: \"{m}\"}", "filled from group m, which the regexp does not have"},
		{lines, "facts: {run.batch: \"{n}\"}", "facts: {run.batch: many}", `fact run.batch: "many" is not an integer`},
		{lines, "gives: {run.batch: 16}", "gives: {run.batch: 17}", `gives run.batch "16", not "17"`},
		{lines, "text: \"stopped by the person at the desk\"", "text: \"stopped by the person: micro batch: 3\"", "is also taken by demo/batch"},
		{lines, "    literal: stopped by the person\n", "    literal: stopped by the person\n    over: [demo/none]\n", `over names "demo/none"`},
		{lines, "    samples:\n      - text: \"stopped by the person at the desk\"\n", "    samples: []\n", "samples needs at least 1"},
	} {
		files := goodFiles(t)
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
		if got := strings.Join(all, "\n"); !strings.Contains(got, f.want) {
			t.Errorf("%q for %q:\n got %s\nwant %s", f.to, f.from, got, f.want)
		}
	}
}

// TestLintOver checks that precedence and also silence the cross matrix.
func TestLintOver(t *testing.T) {
	for _, f := range []struct{ from, to string }{
		{"    literal: stopped by the person\n", "    literal: stopped by the person\n    over: [demo/batch]\n"},
		{"at the desk\"\n", "at the desk\"\n        also: [demo/batch]\n"},
	} {
		files := goodFiles(t)
		text := strings.Replace(string(files["lines/demo.yaml"].Data), f.from, f.to, 1)
		text = strings.Replace(text, "at the desk\"", "at the desk, micro batch: 3\"", 1)
		files["lines/demo.yaml"] = &fstest.MapFile{Data: []byte(text)}
		for _, p := range Lint(files) {
			t.Error(p)
		}
	}
}
