package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

type memoryIn struct {
	Case  string   `json:"case,omitempty" jsonschema:"a case whose files have memory snapshots among them"`
	Paths []string `json:"paths,omitempty" jsonschema:"instead of case: snapshots of PyTorch's allocator, folders or archives of them"`
	From  int      `json:"from,omitempty" jsonschema:"first device; next of the answer before"`
}

type memoryOut struct {
	Case    string         `json:"case,omitempty"`
	Total   int            `json:"devices_total" jsonschema:"of all snapshots"`
	Devices []memoryDevice `json:"devices" jsonschema:"one for each device of each snapshot"`
	Next    *int           `json:"next" jsonschema:"from of the next page; null on the last"`
	Differs []string       `json:"quoted_differs" jsonschema:"how ranks differ"`
	Grown   []memoryUse    `json:"grown" jsonschema:"what grew from the first snapshot to the last, where several are of one process"`
	Limits  []string       `json:"quoted_limits"`
}

type memoryDevice struct {
	Snapshot  string        `json:"quoted_snapshot"`
	Rank      *int          `json:"rank"`
	Device    int           `json:"device"`
	Reserved  int64         `json:"reserved" jsonschema:"bytes when the snapshot was taken"`
	Allocated int64         `json:"allocated"`
	Events    int           `json:"events"`
	Peak      *int64        `json:"peak" jsonschema:"most bytes active at once; null without a history"`
	Made      []memoryUse   `json:"peak_made_by" jsonschema:"by stack, largest first"`
	Growth    string        `json:"quoted_growth,omitempty"`
	Suspects  []memoryUse   `json:"growing" jsonschema:"stacks whose allocations pile up"`
	Fragments string        `json:"quoted_fragmentation,omitempty"`
	Standing  string        `json:"fragmentation_standing,omitempty"`
	Refused   int           `json:"refused_requests"`
	Causes    []memoryCause `json:"causes" jsonschema:"what the snapshot shows of known causes"`
	Answers   []memoryTry   `json:"answers" jsonschema:"would another setting have avoided it: by a replay"`
	Fidelity  string        `json:"quoted_fidelity,omitempty" jsonschema:"how well the replay repeats the record"`
	Lacks     []string      `json:"quoted_lacks" jsonschema:"what the file does not hold"`
}

type memoryUse struct {
	Name  string `json:"quoted_name"`
	Bytes int64  `json:"bytes"`
}

type memoryCause struct {
	Fact  string `json:"fact"`
	Value bool   `json:"value"`
	Why   string `json:"quoted_why"`
}

type memoryTry struct {
	Setting string `json:"quoted_setting"`
	Answer  string `json:"answer" jsonschema:"avoided, not_avoided or cannot_tell"`
	Why     string `json:"quoted_why"`
}

func addSummarizeMemory(s *server) {
	add(s, describe("summarize_memory", "Summarize GPU memory snapshots",
		"Say what snapshots of PyTorch's caching allocator show: what made the peak, what grew, whether fragmentation refused a request, how ranks differ, and whether another allocator setting would have avoided the failure (by replaying the recorded history). Give case or paths.",
		"none; a snapshot is read as data, and nothing in it is executed.",
		"one or two devices an answer; next continues. A snapshot of a GiB takes some seconds.",
		"for each device totals, peak and the stacks that made it, growth with suspects, fragmentation with its standing, answers of the replay, and what the file lacks."),
		s.summarizeMemory)
}

func (s *server) summarizeMemory(ctx context.Context, _ *mcp.CallToolRequest, in memoryIn) (*memoryOut, string, error) {
	id := strings.TrimSpace(in.Case)
	switch {
	case (id == "") == (len(in.Paths) == 0):
		return nil, "", failed(nil, "Give case, or paths of memory snapshots.")
	case len(in.Paths) > maxPaths:
		return nil, "", failed(nil, "%d paths are more than the %d that are taken. Name the folder they are in.", len(in.Paths), maxPaths)
	case id == "":
		c, err := s.local("memory snapshots named over MCP", in.Paths)
		if err != nil {
			return nil, "", err
		}
		defer s.desk.Remove(c.ID)
		id = c.ID
	}
	m, err := s.desk.Memory(ctx, id)
	switch {
	case errors.Is(err, desk.ErrNothing):
		return nil, "", failed(nil, "There is no memory snapshot. torch.cuda.memory._record_memory_history() before the first step and torch.cuda.memory._dump_snapshot(\"oom.pickle\") when it fails make one; name that file.")
	case err != nil:
		return nil, "", err
	}
	out := memoryOf(m, in.Case)
	text := out.page(m, max(in.From, 0))
	return out, text, nil
}

// local opens a case of paths that is only read, not diagnosed.
func (s *server) local(name string, paths []string) (*incident.Case, error) {
	var clean []string
	for _, p := range paths {
		clean = append(clean, unquoted(p))
	}
	c, err := s.desk.Local(name, clean)
	if err != nil {
		return nil, failed(err, "What was named could not be opened. Check that each path exists and may be read, and call again.")
	}
	return c, nil
}

func memoryOf(m *incident.Memory, id string) *memoryOut {
	out := &memoryOut{Case: id, Devices: []memoryDevice{}, Differs: []string{}, Grown: []memoryUse{}, Limits: []string{}}
	var differs, limits []string
	if m.Ranks != nil {
		differs = texts(m.Ranks.Differs)
	}
	limits = append(texts(m.Limits), m.NotFound...)
	out.Differs, out.Limits = quoteAll(differs, 3, 240), quoteAll(limits, 3, 200)
	if m.Change != nil {
		out.Grown = uses(m.Change.Grown, 3)
	}
	return out
}

// page fills in the devices from one on and returns the answer as text.
func (out *memoryOut) page(m *incident.Memory, from int) string {
	type pair struct {
		s *incident.MemorySnapshot
		d *incident.MemoryDevice
	}
	var all []pair
	for i := range m.Snapshots {
		for j := range m.Snapshots[i].Devices {
			all = append(all, pair{&m.Snapshots[i], &m.Snapshots[i].Devices[j]})
		}
	}
	out.Total = len(all)
	devices, text, next := fill(from, len(all), 0, Budget-1_000-headSize(out), func(i int) (memoryDevice, string) {
		d := deviceOf(all[i].s, all[i].d)
		return d, d.text()
	})
	out.Devices = devices
	var l lines
	l.add("%d snapshots, %d devices.", len(m.Snapshots), out.Total)
	for _, x := range text {
		l.add("%s", x)
	}
	if next < len(all) {
		out.Next = &next
		l.add("More: from %d.", next)
	}
	return l.String()
}

func deviceOf(s *incident.MemorySnapshot, d *incident.MemoryDevice) memoryDevice {
	out := memoryDevice{Snapshot: quote(s.Artifact, 160), Rank: s.Rank, Device: d.Device, Reserved: d.Totals.Reserved, Allocated: d.Totals.Allocated, Events: d.Totals.Events,
		Made: []memoryUse{}, Suspects: []memoryUse{}, Fragments: quote(d.Fragmentation.Says, 300), Standing: word(d.Fragmentation.Standing),
		Refused: len(d.Pressure.OOMs) + d.Pressure.MoreOOMs, Causes: []memoryCause{}, Answers: []memoryTry{}, Lacks: quoteAll(s.Lacks, 3, 160)}
	if d.Peak != nil {
		out.Peak, out.Made = &d.Peak.Active, uses(d.Peak.Stacks, 4)
	}
	if g := d.Growth; g != nil {
		out.Growth = quote(g.Says, 300)
		for _, x := range g.Suspects[:min(len(g.Suspects), 3)] {
			out.Suspects = append(out.Suspects, memoryUse{quote(x.Name, 160), x.Bytes})
		}
	}
	for _, c := range d.Causes {
		if c.Value && len(out.Causes) < 3 {
			out.Causes = append(out.Causes, memoryCause{word(c.Fact), c.Value, quote(c.Why, 240)})
		}
	}
	if r := d.Replay; r != nil {
		out.Fidelity = quote(r.Fidelity.Why, 160)
		for _, a := range r.Answers[:min(len(r.Answers), 3)] {
			out.Answers = append(out.Answers, memoryTry{quote(a.Setting, 120), word(a.Answer), quote(a.Why, 200)})
		}
	}
	return out
}

func (d *memoryDevice) text() string {
	var l lines
	who := fmt.Sprintf("device %d", d.Device)
	if d.Rank != nil {
		who = fmt.Sprintf("rank %d, ", *d.Rank) + who
	}
	l.add("%s of %s: %s reserved, %s allocated, %d refused requests.", who, d.Snapshot, sizeWords(d.Reserved), sizeWords(d.Allocated), d.Refused)
	if d.Peak != nil {
		var made []string
		for _, u := range d.Made[:min(len(d.Made), 3)] {
			made = append(made, sizeWords(u.Bytes)+" "+shorter(u.Name, 100))
		}
		l.add("  peak %s: %s", sizeWords(*d.Peak), strings.Join(made, "; "))
	}
	l.with("  growth: %s", shorter(d.Growth, 240))
	l.with("  fragmentation (%s): %s", d.Standing, shorter(d.Fragments, 240))
	for _, a := range d.Answers {
		l.add("  %s: %s", shorter(a.Setting, 100), a.Answer)
	}
	return l.String()
}

func uses(of []incident.MemoryUse, n int) []memoryUse {
	out := []memoryUse{}
	for _, u := range of[:min(len(of), n)] {
		out = append(out, memoryUse{quote(u.Name, 160), u.Bytes})
	}
	return out
}

// texts are the sentences of statements.
func texts(of []incident.Statement) []string {
	var out []string
	for _, s := range of {
		out = append(out, s.Text)
	}
	return out
}
