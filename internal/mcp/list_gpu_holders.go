package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
)

type holdersIn struct {
	Device *int `json:"device,omitempty" jsonschema:"only the device of this number, as its tool counts"`
	From   int  `json:"from,omitempty" jsonschema:"first holder; next of the answer before"`
}

type holdersOut struct {
	Status  string      `json:"status" jsonschema:"answered, no_device, no_tool, no_driver or no_answer"`
	Says    string      `json:"quoted_says" jsonschema:"the answer in one sentence"`
	Taken   string      `json:"taken" jsonschema:"when, UTC"`
	Devices []gpuDevice `json:"devices" jsonschema:"at most 16"`
	More    int         `json:"more_devices"`
	Holders []gpuHolder `json:"holders" jsonschema:"by device, most memory first"`
	Total   int         `json:"holders_total"`
	Next    *int        `json:"next" jsonschema:"from of the next page; null on the last"`
	Acts    []gpuAct    `json:"acts" jsonschema:"what may be done, most memory first; shown, never done"`
	Limits  []string    `json:"quoted_limits" jsonschema:"what could not be seen"`
}

type gpuDevice struct {
	Index  *int   `json:"index"`
	Name   string `json:"quoted_name"`
	Total  *int64 `json:"total" jsonschema:"bytes"`
	Used   *int64 `json:"used"`
	Free   *int64 `json:"free"`
	Unseen *int64 `json:"unseen" jsonschema:"bytes in use that no process accounts for, at least"`
}

type gpuHolder struct {
	Device  *int   `json:"device"`
	PID     int    `json:"pid"`
	Bytes   *int64 `json:"bytes"`
	Kind    string `json:"kind" jsonschema:"training, notebook, worker, inference, graphics, mps, monitor, compute or unknown"`
	State   string `json:"state" jsonschema:"running, stopped, waiting, zombie, dead or no_state"`
	Whose   string `json:"whose" jsonschema:"yours, another_user or unknown"`
	User    string `json:"quoted_user,omitempty"`
	Command string `json:"quoted_command,omitempty"`
	Orphan  string `json:"quoted_orphan,omitempty" jsonschema:"how it is known that what started it has ended"`
	Listed  bool   `json:"listed" jsonschema:"false: it only has the device open, and may hold what is unseen"`
}

type gpuAct struct {
	Kind  string   `json:"kind" jsonschema:"end, shut, leave, ask or look"`
	PIDs  []int    `json:"pids"`
	Says  string   `json:"quoted_says"`
	Check []string `json:"quoted_check" jsonschema:"commands to be sure first"`
	Do    []string `json:"quoted_do" jsonschema:"commands, only for the user to run"`
}

func addListGPUHolders(s *server) {
	add(s, describe("list_gpu_holders", "Who holds GPU memory",
		"Say which process holds how much memory of which GPU of this machine now: whose it is, whether it still works or is left over, how much nothing accounts for, and what may be done. Use it when memory is short before a run, or when a dead run seems to hold memory.",
		"asks nvidia-smi, amd-smi or rocm-smi and reads /proc; ends no process and changes no device.",
		"about 20 holders an answer; next continues. It takes up to about three seconds. Only this machine.",
		"devices with total, used, free and unseen bytes, holders with kind, state and owner, and acts that a person may take, with the commands to check first."),
		s.listGPUHolders)
}

func (s *server) listGPUHolders(ctx context.Context, _ *mcp.CallToolRequest, in holdersIn) (*holdersOut, string, error) {
	if s.GPUs == nil {
		return nil, "", failed(nil, "GPUs cannot be asked for here. Run inquest gpus on the machine that has them.")
	}
	h, err := s.GPUs(ctx)
	if err != nil {
		return nil, "", failed(err, "Who holds the devices could not be found out. Run inquest gpus --wait 30s: a tool may be slow.")
	}
	out := &holdersOut{Status: word(h.Status), Says: quote(h.Says, 300), Taken: word(h.Taken), Devices: []gpuDevice{}, Acts: []gpuAct{}, Limits: quoteAll(h.Limits, 3, 200)}
	var l lines
	l.add("%s: %s", out.Status, out.Says)
	type holding struct {
		device *int
		of     *incident.Holder
		listed bool
	}
	var all []holding
	for i := range h.Devices {
		d := &h.Devices[i]
		if in.Device != nil && (d.Index == nil || *d.Index != *in.Device) {
			continue
		}
		if len(out.Devices) == 16 {
			out.More++
		} else {
			x := gpuDevice{Index: d.Index, Name: quote(d.Name, 90), Total: d.Total, Used: d.Used, Free: d.Free}
			if d.Unseen != nil && d.Unseen.Lo > 0 {
				x.Unseen = &d.Unseen.Lo
			}
			out.Devices = append(out.Devices, x)
			l.add("%s", x.line())
		}
		for j := range d.Holders {
			all = append(all, holding{d.Index, &d.Holders[j], true})
		}
		for j := range d.Opened {
			all = append(all, holding{d.Index, &d.Opened[j], false})
		}
	}
	if in.Device != nil && len(out.Devices) == 0 && len(h.Devices) > 0 {
		return nil, "", failed(nil, "There is no device %d. Leave device out to see which there are.", *in.Device)
	}
	for _, a := range h.Acts[:min(len(h.Acts), 3)] {
		x := gpuAct{Kind: word(a.Kind), PIDs: append([]int{}, a.PIDs[:min(len(a.PIDs), 8)]...), Says: quote(a.Says, 220), Check: commands(a.Check), Do: commands(a.Do)}
		out.Acts = append(out.Acts, x)
		l.add("May be done (%s): %s", x.Kind, shorter(x.Says, 200))
	}
	out.Total = len(all)
	room := Budget - 1_000 - headSize(out) - jsonSize(l.String())
	holders, text, next := fill(max(in.From, 0), len(all), 0, room, func(i int) (gpuHolder, string) {
		x := all[i]
		g := gpuHolder{Device: x.device, PID: x.of.PID, Bytes: x.of.Bytes, Kind: word(x.of.Kind), State: word(x.of.State), Whose: word(x.of.Whose),
			User: quote(x.of.User, 70), Command: quote(first(x.of.Command, x.of.Name), 200), Orphan: quote(x.of.Orphan, 160), Listed: x.listed}
		return g, g.line()
	})
	out.Holders = holders
	for _, x := range text {
		l.add("%s", x)
	}
	if next < len(all) {
		out.Next = &next
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}

func (d *gpuDevice) line() string {
	s := fmt.Sprintf("device %d", deref(d.Index, -1))
	if d.Used != nil && d.Total != nil {
		s += fmt.Sprintf(": %s of %s in use", sizeWords(*d.Used), sizeWords(*d.Total))
	}
	if d.Unseen != nil {
		s += fmt.Sprintf(", at least %s of it unseen", sizeWords(*d.Unseen))
	}
	return s
}

func (g *gpuHolder) line() string {
	size := "size not known"
	if g.Bytes != nil {
		size = sizeWords(*g.Bytes)
	}
	return strings.TrimSpace(fmt.Sprintf("device %d: pid %d, %s, %s, %s, %s %s", deref(g.Device, -1), g.PID, size, g.Kind, g.State, g.Whose, shorter(g.Command, 120)))
}

// commands quotes at most two commands.
func commands(of []incident.HolderCommand) []string {
	var texts []string
	for _, c := range of {
		texts = append(texts, c.Command)
	}
	return quoteAll(texts, 2, 160)
}

// first is the first of texts that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
