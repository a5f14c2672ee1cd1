package explain

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// Stub returns the YAML of a new entry for its writer to fill in: every field,
// with the questions that it answers as comments. The lint refuses it until
// they are answered. The error is for an id that is not lower-case words joined
// by hyphens.
func Stub(id string) (string, error) {
	if !catalog.ValidID(id) {
		return "", fmt.Errorf("write stub: id %q is not lower-case words joined by hyphens", id)
	}
	return strings.NewReplacer("ID", id, "AREAS", strings.Join(catalog.Areas, ", "), "STACKS", strings.Join(catalog.Stacks, ", ")).Replace(stub), nil
}

const stub = `# Put this file at entries/<area>/ID.yaml. docs/entry-format.md explains the fields;
# "inquest diagnose --rules DIR LOG" reads a folder of entries and checks them first.
id: ID
title: ""           # One line: what happened, as a person would say it to another?
area: ""            # AREAS
about: []           # Which event kinds, when they lead a run to its end, can have this cause?
since: ""           # The version of inquest that first has it.
prior: 0            # 0 to 9: how common is it among runs that end so? It breaks ties only.
needs: ""           # CEL: when is this known not to be a candidate at all? Leave the line out if never.

for:
  - when: ""        # CEL over declared facts: what, when known, speaks for it?
    weight: ""      # weak: a little likelier; strong: supports it; decisive: decides it, alone, when nothing speaks against it.
    says: ""        # One sentence for the report, with {fact.name} where the run's value belongs.
against:
  - when: ""        # What cannot be so if this is the cause?
    rules_out: true # Or weight: weak, or weight: strong.
    says: ""
decides:
  - fact: ""        # Which declared fact would settle it against its rivals? Cheapest first.
    asks: ""        # That fact in words: "how long the failing batch's longest sample was".
    how: ""         # The command that obtains it. Leave the line out to use the fact's own.

quick: ""           # Two or three sentences: what is it, and what is the one thing to do?
search: []          # Which words do people type, which error texts do they paste?
symptoms:
  - what: ""        # What does the person see?
    why: ""         # Why does this cause make it so?
mechanism: ""       # What happens, in order, down to the part that fails?
systems: ""         # Which frameworks, devices and versions?
look_alikes:
  - entry: ""       # Which entry is taken for this one?
    tell: ""        # Which observation tells them apart?
checklist:
  - item: ""        # A statement that is true when this is the cause.
    when: ""        # CEL that ticks it.
    how: ""         # How does a person find out when the evidence does not say?

fix:
  - stack: ""       # STACKS. One must be any or pytorch.
    why: ""         # Why does it work?
    steps:
      - do: ""      # Reading and reversible steps first.
        code: ""
        lang: ""    # python, shell, yaml, json, text
        effect: ""  # reads, reversible, changes
        level: ""   # beginner, advanced
remedy:
  scope: ""         # code, config, environment, launcher, host, device, data, vendor, measure
  change: ""        # The one change, in one sentence, with {fix.…} values where compute names a calculation.
  compute: none     # micro_batch, eval_batch, seq_cap, alloc_conf, gpu_fraction, mem_limit, shm_size, lr_cut, bf16, workers, none
  why: ""           # Why this and nothing larger?
  edits:
    - stack: ""
      where: ""     # Which file, flag or variable?
      from: ""
      to: ""
  command: "{run.command}"
  verify: ""        # Which run shows that it worked?
  expected: ""      # What must that run show?
  cost: ""          # Speed, quality, money?
  effect: ""        # reads, reversible, changes
  next_failure: ""  # If it still fails, how, and what does that mean?
  alternatives: []
verify: ""          # How does a person see that the cause is gone?
risks: []           # What can the change break?
rollback: ""        # How is it undone?
escalate: ""        # When is this for the administrator, the vendor or a library's maintainers? If never, say so.
prevention: []      # What keeps it from coming back?
related: []         # Ids of other entries.
sources: []         # Documentation, source files with version, papers.
rerun:
  unchanged: ""     # A restart without any change: repeats, elsewhere, may_pass, safe, unknown?
  from: ""          # From which checkpoint: latest, before (older than the damage), start?
  needs: ""         # To see it again: none, one_rank, device, one_host, two_ranks, two_hosts, job?
readings:
  executive: ""     # Two to four sentences: what was lost, why, what is done, how we know.
  engineer: ""      # What fails, what to change, what to look at.
  on_call: ""       # Safe to restart? Whom to wake? What to do now?
examples:
  match:
    - log: ""       # A small log of your own making that must lead here.
      standing: possible
  no_match:
    - log: ""       # A log that looks alike and must not.
`
