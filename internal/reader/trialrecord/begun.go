package trialrecord

import (
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// begun takes the first record: the command, and who runs it.
func (p *pass) begun(n *jsontree.Node) {
	if n == nil {
		return
	}
	if pid, ok := whole(n.Get("pid"), 1<<31-1); ok && pid > 0 {
		p.who.PID = int(pid)
	}
	launch := n.Get("launch")
	if rank, ok := whole(launch.Get("rank"), 1<<20); ok {
		p.who.Rank = int(rank)
	}
	if local, ok := whole(launch.Get("local_rank"), 1<<20); ok {
		p.who.LocalRank = int(local)
	}
	if env := n.Get("environment"); env != nil && env.Sort == jsontree.Object {
		p.who.Host = hostName(env.Get("host"))
	}
	if p.who.Rank != evidence.None || p.who.LocalRank != evidence.None || p.who.Host != "" {
		p.own()
	}
	at := p.stamp(n.Get("begun"))
	p.began = at.Time
	if command := n.Get("command"); command != nil && len(command.Items) > 0 {
		line := commandLine(words(command))
		attrs := evidence.Attrs{"what": evidence.TextOf("command"), "command": evidence.TextOf(line)}
		if k, ok := whole(launch.Get("restart"), 1<<20); ok && k > 0 {
			attrs["restart"] = evidence.IntOf(k)
		}
		p.s.Event(p.event(evidence.LaunchMark, command, at, attrs))
		p.options(line, command)
	}
	if world, ok := whole(launch.Get("world_size"), 1<<20); ok && world > 0 {
		p.fact("run.world", evidence.IntOf(world), launch.Get("world_size"))
	}
	p.variables(n.Get("set"))
	p.environment(n.Get("environment"))
}

// own says whose the record is.
func (p *pass) own() {
	p.s.Owner(evidence.Owner{Host: p.who.Host, Rank: p.who.Rank, LocalRank: p.who.LocalRank, Basis: "its launcher's variables"})
}

// options states the settings of a command, as the reader of logs understands them.
func (p *pass) options(line string, at *jsontree.Node) {
	found, err := reader.Within(p.ctx, p.log, evidence.Artifact{Path: p.a.Path, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}, []byte("$ "+line+"\n"))
	if err != nil {
		return
	}
	sp := p.span(at)
	for _, f := range found.Facts {
		if strings.HasPrefix(f.Name, "run.") || strings.HasPrefix(f.Name, "setting.") {
			f.Who, f.Span = evidence.Nobody(), sp
			p.s.Fact(f)
		}
	}
}

// environment takes what the trial ran in.
func (p *pass) environment(n *jsontree.Node) {
	if n == nil || n.Sort != jsontree.Object {
		return
	}
	if h := hostName(n.Get("host")); h != "" && h != p.who.Host {
		p.who.Host = h
		p.own()
	}
	if v, ok := size(n.Get("memory")); ok {
		p.memory = v.Lo
		p.fact("host.memory", v, n.Get("memory"))
	}
	if v, ok := size(n.Get("limits", "address_space")); ok {
		p.fact("host.address_limit", v, n.Get("limits", "address_space"))
	}
	if x := n.Get("limits", "shared_memory"); x != nil {
		if v, ok := size(x); ok {
			p.s.Event(p.event(evidence.DiskUsage, x, evidence.Stamp{}, evidence.Attrs{"mount": evidence.TextOf("/dev/shm"), "size": v}))
		}
	}
	p.variables(n.Get("variables"))
	if x := n.Get("packages", "torch"); x != nil && x.Sort == jsontree.String {
		p.fact("run.torch", evidence.TextOf(textline.OneLine(x.Text, 64)), x)
	}
	for i, d := range n.List("devices") {
		if i == maxDevices {
			break
		}
		index, ok := whole(d.Get("index"), 1<<16)
		if !ok {
			continue
		}
		attrs := evidence.Attrs{"gpu": evidence.IntOf(index)}
		if v, ok := size(d.Get("memory")); ok {
			attrs["total"] = v
		}
		for attr, key := range map[string]string{"name": "name", "uuid": "uuid"} {
			if text := textline.OneLine(d.Str(key), 128); text != "" {
				attrs[attr] = evidence.TextOf(text)
			}
		}
		e := p.event(evidence.GPUUsage, d, evidence.Stamp{}, attrs)
		// The machine's own index: which rank works there, nothing here says.
		e.Who = evidence.Nobody()
		e.Who.Host, e.Who.Device = p.who.Host, int(index)
		if bus := textline.OneLine(d.Str("bus_id"), 32); bus != "" {
			e.Who.BusID = bus
		}
		p.s.Event(e)
	}
}

// variables states the environment variables that set what some fact is about.
func (p *pass) variables(n *jsontree.Node) {
	if n == nil || n.Sort != jsontree.Object {
		return
	}
	var known []*jsontree.Node
	for name, x := range n.Pairs() {
		low, short := reader.SettingName(name)
		if k, ok := reader.SettingKeyOf(low, short); ok && !k.Weak && x.Sort == jsontree.String {
			known = append(known, x)
		}
	}
	sort.Slice(known, func(i, j int) bool { return known[i].From < known[j].From })
	set := reader.NewSettings(p.s)
	for _, x := range known {
		set.Add(x.Key, textline.OneLine(x.Text, maxText), p.span(x))
	}
	set.Close()
}

func hostName(n *jsontree.Node) string {
	if n == nil || n.Sort != jsontree.String {
		return ""
	}
	return textline.OneLine(n.Text, 128)
}
