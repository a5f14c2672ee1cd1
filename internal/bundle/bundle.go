// Package bundle makes what an incident is escalated with: its report, the lines that prove it,
// its environment and trials, and the logs themselves, rid of secrets and of the names of people,
// machines and places, so that the same diagnosis can be made from it elsewhere. Nothing is sent.
// Its bytes depend on what it is made of only.
package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
	"github.com/inquest-dev/inquest/internal/report"
)

// Reports is the folder of a bundle that holds what is said of the logs; a diagnosis of the bundle
// does not read it.
const Reports = "inquest-report"

// Logs is the folder of a bundle that holds the logs.
const Logs = "logs"

// A File is one file of a bundle.
type File struct {
	Path string // slash path in the bundle
	What string
	Data []byte
}

// A Log is a text artifact that goes into the bundle.
type Log struct {
	Path string // as the diagnosis names it
	Text string
}

// An Input is what a bundle is made of. Names has learned nothing yet.
type Input struct {
	Names *redact.Names
	Logs  []Log
	// Diagnosis is that of the originals.
	Diagnosis   *incident.Incident
	Kept        *incident.Kept // nil without a store
	Comparisons []incident.Comparison
	LeftOut     []incident.BundleLeftOut // with original paths
	// Short is the path by which the bundle names an artifact, before names are taken out of
	// it; nil keeps the diagnosis's.
	Short func(string) string

	counts map[string]int
}

func (in *Input) short(p string) string {
	if in.Short == nil {
		return p
	}
	return in.Short(p)
}

// Redact returns the logs of the bundle, their names and texts redacted, in the order of their
// names.
func Redact(in *Input) []File {
	n := in.Names
	learn(in)
	var out []File
	seen := map[string]int{}
	for _, l := range in.Logs {
		name := safeName(n, in.short(l.Path))
		if seen[name]++; seen[name] > 1 {
			ext := path.Ext(name)
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), seen[name], ext)
		}
		text := l.Text
		if path.Base(l.Path) == "record.jsonl" {
			text = records(n, text)
		} else {
			text = n.Text(text)
		}
		out = append(out, File{Path: Logs + "/" + name, What: "log, redacted", Data: []byte(text)})
	}
	for i := range in.LeftOut {
		in.LeftOut[i].Path = safeName(n, in.short(in.LeftOut[i].Path))
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// learn makes known all names in what goes into the bundle.
func learn(in *Input) {
	n := in.Names
	if d := in.Diagnosis; d != nil {
		for _, h := range d.Hosts {
			n.Add(redact.Host, h.Host)
		}
		for _, r := range d.Ranks {
			if r.Host != nil {
				n.Add(redact.Host, *r.Host)
			}
		}
	}
	if k := in.Kept; k != nil {
		for i := range k.Trials {
			t := &k.Trials[i]
			if e := t.Environment; e != nil {
				n.Add(redact.Host, e.Host)
				for _, name := range []string{"USER", "LOGNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER"} {
					n.Add(redact.User, e.Variables[name])
				}
			}
			n.Learn(strings.Join(t.Command, " "))
			if t.Dir != "" {
				n.Learn("'" + t.Dir + "'")
			}
		}
		bare := withoutDiagnosis(k)
		if b, err := json.Marshal(&bare); err == nil {
			n.Learn(string(b))
		}
	}
	for _, l := range in.Logs {
		n.Learn(l.Path)
		n.Learn(l.Text)
	}
	for _, l := range in.LeftOut {
		n.Learn(l.Path)
	}
}

// safeName is the name of an artifact in the bundle: relative, and without names of people and
// places.
func safeName(n *redact.Names, p string) string {
	p = strings.ReplaceAll(strings.ReplaceAll(p, `\`, "/"), "!", "/")
	rooted := strings.HasPrefix(p, "/")
	p = path.Clean("/" + p)[1:]
	if rooted {
		p = strings.TrimPrefix(n.Path("/"+p), "/")
	} else {
		p = n.Path(p)
	}
	p = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`:*?"<>|`, r) {
			return '_'
		}
		return r
	}, p)
	if p == "" || p == "-" || p == "." {
		return "standard-input.log"
	}
	// Nothing in a name of the bundle keeps a diagnosis from reading it.
	return strings.ReplaceAll(p, Reports+"/", "reports/")
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// records redacts the records of a trial: each stays a record, with a sum that fits.
func records(n *redact.Names, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.TrimRight(line, "\r\n"), line[len(strings.TrimRight(line, "\r\n")):]
		text, sum, summed := strings.Cut(body, "\t")
		out, ok := JSON(n, []byte(text))
		switch {
		case !ok:
			b.WriteString(n.Text(body))
		case summed && len(sum) == 8 && fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli)) == sum:
			fmt.Fprintf(&b, "%s\t%08x", out, crc32.Checksum(out, castagnoli))
		default:
			b.Write(out)
			b.WriteString(body[len(text):])
		}
		b.WriteString(end)
	}
	return b.String()
}

// JSON redacts every text in a JSON document, which stays one and keeps its order; keys of objects
// are names of fields and of variables, and tell a secret. It reports false where it is none.
func JSON(n *redact.Names, doc []byte) ([]byte, bool) {
	if !json.Valid(doc) {
		return nil, false
	}
	out := make([]byte, 0, len(doc))
	key, before := "", ""
	for i := 0; i < len(doc); {
		if doc[i] != '"' {
			if doc[i] == '[' || doc[i] == '{' {
				before = ""
			}
			out = append(out, doc[i])
			i++
			continue
		}
		end := i + 1
		for doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		end++
		literal := doc[i:end]
		i = end
		next := i
		for next < len(doc) && strings.IndexByte(" \t\r\n", doc[next]) >= 0 {
			next++
		}
		var s string
		if json.Unmarshal(literal, &s) != nil {
			return nil, false
		}
		if next < len(doc) && doc[next] == ':' {
			key, before = s, ""
			out = append(out, literal...)
			continue
		}
		safe := value(n, key, s)
		if secretOption(before) && s != "" {
			safe = redact.Mask
		}
		before = s
		if safe == s {
			out = append(out, literal...)
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(safe) != nil {
			return nil, false
		}
		out = append(out, bytes.TrimRight(b.Bytes(), "\n")...)
	}
	return out, true
}

// value is one text of a document, under its key.
func value(n *redact.Names, key, s string) string {
	const before = `": "`
	if key == "" || strings.ContainsAny(s, "\r\n") || strings.ContainsAny(key, "\"\\\r\n") || len(s) > 4096 {
		return n.Text(s)
	}
	if kept[key] {
		return n.Text(s)
	}
	quoted, err := json.Marshal(s)
	if err != nil || strings.ContainsAny(s, `"\`) {
		return n.Text(s)
	}
	with := n.Text(`"` + key + `": ` + string(quoted))
	if _, out, ok := strings.Cut(with, before); ok && strings.HasSuffix(out, `"`) {
		return strings.TrimSuffix(out, `"`)
	}
	return n.Text(s)
}

// kept are keys of our own records whose values are words of the program or what a program
// printed, and no field of a sample of data.
var kept = map[string]bool{"text": true, "title": true, "why": true, "quote": true, "says": true, "basis": true, "key": true, "token": true, "code": true, "signature": true}

// secretOption reports whether a word of a command line says that the next one is a secret.
func secretOption(s string) bool {
	return strings.HasPrefix(s, "-") && !strings.Contains(s, "=") && strings.Contains(redact.Thorough(s+" aB3dE5gH7jK9mN1pQ"), redact.Mask)
}

// Say writes the files that speak of the incident. d is the diagnosis of the redacted logs, so that
// nothing is in it that was taken out of them, and every line that it names is one of the bundle.
func Say(in *Input, d *incident.Incident) ([]File, error) {
	var out []File
	defer func() { in.counts = in.Names.Counts() }()
	add := func(name, what string, data []byte) {
		out = append(out, File{Path: Reports + "/" + name, What: what, Data: data})
	}
	for _, f := range []struct{ name, format, what string }{{"report.txt", "text", "the diagnosis, for a terminal"}, {"report.md", "markdown", "the diagnosis, for an issue"}, {"report.html", "html", "the diagnosis, one page"}, {"incident.json", "json", "the diagnosis, for programs (" + incident.Schema + ")"}} {
		var b bytes.Buffer
		if err := report.Write(&b, f.format, d, report.Options{Width: 100, Full: true, ASCII: f.format == "text"}); err != nil {
			return nil, err
		}
		add(f.name, f.what, b.Bytes())
	}
	add("evidence.txt", "the lines that prove it, with those around", evidenceLines(d))
	k := in.Kept
	if k == nil {
		return out, nil
	}
	document := func(name, what string, v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		safe, ok := JSON(in.Names, b)
		if !ok {
			return fmt.Errorf("write %s: not to be redacted", name)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, safe, "", " "); err != nil {
			return err
		}
		add(name, what, append(indented.Bytes(), '\n'))
		return nil
	}
	if k.Environment != nil {
		if err := document("environment.json", "what the failure ran in", k.Environment); err != nil {
			return nil, err
		}
	}
	bare := withoutDiagnosis(k)
	if err := document("story.json", "the incident with its trials and what was done ("+incident.KeptSchema+")", &bare); err != nil {
		return nil, err
	}
	var trials bytes.Buffer
	for i := range in.Comparisons {
		b, err := json.Marshal(&in.Comparisons[i])
		if err != nil {
			return nil, err
		}
		safe, ok := JSON(in.Names, b)
		var c incident.Comparison
		if !ok || json.Unmarshal(safe, &c) != nil {
			continue
		}
		if i > 0 {
			trials.WriteString("\n")
		}
		if err := report.WriteComparison(&trials, "markdown", &c, report.Options{Full: true}); err != nil {
			return nil, err
		}
	}
	if trials.Len() > 0 {
		add("trials.md", "what changed between the trials, and what came of it", trials.Bytes())
	}
	return out, nil
}

// withoutDiagnosis is a kept incident without the diagnoses in it, which are made again.
func withoutDiagnosis(k *incident.Kept) incident.Kept {
	bare := *k
	bare.Diagnosis = nil
	bare.Acts = slices.Clone(k.Acts)
	for i := range bare.Acts {
		bare.Acts[i].Diagnosis = nil
	}
	return bare
}

// evidenceLines are the quoted lines of a diagnosis with what stands around them.
func evidenceLines(d *incident.Incident) []byte {
	var b bytes.Buffer
	if f := d.FirstFault; f != nil {
		fmt.Fprintf(&b, "first fault: %s\n", strings.ReplaceAll(f.Text, "\n", " "))
		if f.Span != nil {
			fmt.Fprintf(&b, "  in %s, line %d\n", f.Span.Artifact, f.Span.Line)
		}
		b.WriteString("\n")
	}
	for i := range d.Hypotheses {
		h := &d.Hypotheses[i]
		fmt.Fprintf(&b, "%s (%s)\n", h.Title, h.Standing)
		statements(&b, "for", h.For)
		statements(&b, "against", h.Against)
	}
	for _, q := range d.Context {
		fmt.Fprintf(&b, "\n%s, from line %d\n", q.Artifact, q.Line)
		for i, l := range q.Lines {
			fmt.Fprintf(&b, "%7d  %s\n", q.Line+int64(i), l)
		}
	}
	return b.Bytes()
}

func statements(b *bytes.Buffer, what string, list []incident.Statement) {
	for _, s := range list {
		fmt.Fprintf(b, "  %s: %s\n", what, s.Text)
		for _, sp := range s.Spans {
			fmt.Fprintf(b, "    %s:%d: %s\n", sp.Artifact, sp.Line, strings.ReplaceAll(sp.Quote, "\n", " "))
		}
	}
}

// Manifest is the manifest of a bundle of these files.
func Manifest(in *Input, d *incident.Incident, tool incident.Tool, to string, files []File, check incident.BundleCheck) *incident.Bundle {
	m := &incident.Bundle{Schema: incident.BundleSchema, Tool: tool, Incident: in.Diagnosis.ID, Status: in.Diagnosis.Status, Check: check, LeftOut: in.LeftOut, Removed: removed(in.Names, in.counts),
		Limits: []string{"A name that no line gives away as one, and prose outside of fields that say that it is prose, cannot be told from other words: read the bundle before it leaves your hands.",
			"Identifiers and bus addresses of devices, numbers of jobs and processes, versions and commits are kept: they are evidence."}}
	if in.Kept != nil {
		m.Kept, m.Status = in.Kept.ID, in.Kept.Status
	}
	m.To = Receivers(d, to)
	m.Message = Message(m, d)
	if m.LeftOut == nil {
		m.LeftOut = []incident.BundleLeftOut{}
	}
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		m.Contents = append(m.Contents, incident.BundleFile{Path: f.Path, What: f.What, Size: int64(len(f.Data)), SHA256: hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(m.Contents, func(a, b incident.BundleFile) int { return strings.Compare(a.Path, b.Path) })
	return m
}

// removed says what was taken out, by kind.
func removed(n *redact.Names, counts map[string]int) []incident.BundleRemoved {
	names, first := map[string]int{}, map[string]string{}
	for _, t := range n.Map() {
		if names[t.Kind]++; first[t.Kind] == "" {
			first[t.Kind] = t.Token
		}
	}
	first[redact.Secrets] = redact.Mask
	out := []incident.BundleRemoved{}
	for _, k := range redact.Kinds {
		if counts[k] > 0 {
			out = append(out, incident.BundleRemoved{Kind: k, Count: counts[k], Names: names[k], Token: first[k]})
		}
	}
	return out
}
