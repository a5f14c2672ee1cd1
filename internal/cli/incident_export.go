package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/bundle"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/redact"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
)

const incidentExportLong = `export writes a bundle to escalate an incident with: its diagnosis, the lines that prove it, what
it ran in, its trials, and the logs, from which inquest diagnose makes the same diagnosis
elsewhere. It says whom it should go to, and why, with a message to send. Nothing is sent.

Secrets are masked, and names of people, hosts, projects and places, e-mail and network addresses,
and samples of prompts and data are replaced before anything is written: the same name by the same
token throughout. What was taken out, and how often, is in the bundle's manifest; which token
stands for which name is in a file beside the bundle (its name and .map.json) that only you can
read and that does not belong into it. Memory snapshots, trackers' files and other binary files
are left out and named. The bundle is diagnosed before it is written, and export says whether that
gives the same.

No program knows every name: read a bundle before it leaves your hands.

ID is that of an incident, of one of its trials, or last. With --from, logs are bundled that are
in no store.

Status: 0 written, or shown with --dry-run; 1 it could not be; 2 wrong usage; 130 interrupted.`

// Bounds of the logs of a bundle, in bytes.
const (
	bundleLog  = 32 << 20
	bundleLogs = 128 << 20
)

type exportFlags struct {
	store   storeFlag
	out, to string
	from    []string
	dry     bool
}

func incidentExportCommand(a *app) *cobra.Command {
	var f exportFlags
	var o output
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Write a bundle to escalate an incident with, without secrets and names",
		Long:  incidentExportLong,
		Example: `  inquest incident export last --dry-run
  inquest incident export i-3f0c -o for-the-vendor.tar.gz --to vendor
  inquest incident export --from run/logs -o bundle.tar.gz`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (len(f.from) > 0) {
				return fmt.Errorf("%w: inquest incident export takes the id of one incident, or --from with paths of logs", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.to != "" {
				if err := oneOf("to", f.to, incident.ToOwner, incident.ToAdministrator, incident.ToVendor); err != nil {
					return err
				}
			}
			if err := o.checkWidth(); err != nil {
				return err
			}
			if err := o.checkReport(report.BundleFormats()); err != nil {
				return err
			}
			return a.export(cmd.Context(), &f, o, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "the bundle: an archive (.tar.gz), or the name of a new folder (default inquest-ID.tar.gz)")
	fl.StringVar(&f.to, "to", "", "whom it is for: owner, administrator or vendor (default what the diagnosis says)")
	fl.StringArrayVar(&f.from, "from", nil, "diagnose and bundle these files, folders or archives, which are in no store; may be given more than once")
	fl.BoolVar(&f.dry, "dry-run", false, "write nothing: show what would be in it and what is taken out")
	o.reportFlags(cmd, "", report.BundleFormats(), "")
	f.store.flag(cmd)
	return cmd
}

// export makes the bundle, checks it and writes it.
func (a *app) export(ctx context.Context, f *exportFlags, o output, args []string) error {
	in := &bundle.Input{Names: redact.NewNames()}
	paths := f.from
	if len(args) > 0 {
		st, err := f.store.open()
		if err != nil {
			return err
		}
		if in.Kept, err = a.incident(ctx, st, args[0]); err != nil {
			return err
		}
		if paths, err = foldersOf(st, in.Kept); err != nil {
			return err
		}
		for i := range in.Kept.Trials {
			if t := &in.Kept.Trials[i]; t.ID != in.Kept.Original {
				if x, _, err := ledger.BeforeAfter(in.Kept); err == nil && t.Begun > x.Begun && len(in.Comparisons) < 50 {
					in.Comparisons = append(in.Comparisons, ledger.Compare(*x, *t))
				}
			}
		}
	}
	in.Short = func(p string) string { return shortPath(paths, p) }
	opts, err := a.options(paths)
	if err != nil {
		return err
	}
	opts.Progress = a.progress()
	if in.Diagnosis, err = engine.Diagnose(ctx, opts); err != nil {
		return err
	}
	opts.Progress = nil
	if err := readLogs(ctx, opts, in); err != nil {
		return err
	}
	if len(in.Logs) == 0 {
		return fmt.Errorf("%w: no text of which a bundle could be made", errUnread)
	}
	files := bundle.Redact(in)
	d, err := a.diagnoseBundle(ctx, files)
	if err != nil {
		return err
	}
	now := *d
	d.ID = in.Diagnosis.ID
	said, err := bundle.Say(in, d)
	if err != nil {
		return err
	}
	check := bundle.Check(in.Names, in.Diagnosis, &now)
	files = append(files, said...)
	tool := incident.Tool{Name: "inquest", Version: version()}
	m := bundle.Manifest(in, d, tool, f.to, files, check)
	if err := a.write(o, func(w io.Writer, ro report.Options) error { return report.WriteBundle(w, o.format, m, ro) }); err != nil {
		return err
	}
	if f.dry {
		return nil
	}
	manifest, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	files = append(files, bundle.File{Path: bundle.Reports + "/manifest.json", Data: append(manifest, '\n')}, bundle.File{Path: bundle.Reports + "/message.txt", Data: []byte(m.Message)})
	return a.writeBundle(f.out, in, m, files)
}

// foldersOf are the folders of the trials whose failure an incident is: all processes of the
// launch of the original one.
func foldersOf(st *store.Store, k *incident.Kept) ([]string, error) {
	siblings := ledger.Siblings(k.Trials, k.Original)
	if len(siblings) == 0 {
		return nil, fmt.Errorf("the trial of the failure of %s is not on record", k.ID)
	}
	var out []string
	for _, t := range siblings {
		dir := st.TrialDir(*t)
		if t.Log != "" {
			if _, err := os.Stat(dir); err != nil {
				dir = filepath.Dir(t.Log)
			}
		}
		out = append(out, dir)
	}
	return out, nil
}

// shortPath is the path of an artifact from the last folder of the named path on that it lies
// below.
func shortPath(paths []string, p string) string {
	slashed := filepath.ToSlash(p)
	for _, f := range paths {
		f = strings.TrimSuffix(filepath.ToSlash(f), "/")
		rest, ok := strings.CutPrefix(slashed, f)
		base := path.Base(f)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '!') && base != "." && base != ".." && base != "/" {
			return base + rest
		}
	}
	return p
}

// readLogs reads the text artifacts of the job that was diagnosed, within bounds, and notes those
// that are left out.
func readLogs(ctx context.Context, o engine.Options, in *bundle.Input) error {
	r, err := engine.Read(ctx, o)
	if err != nil {
		return err
	}
	defer r.Close()
	var total int64
	for i := range r.Files {
		file := &r.Files[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		leave := func(why string) {
			in.LeftOut = append(in.LeftOut, incident.BundleLeftOut{Path: file.Path, Size: file.Size, Why: why})
		}
		if total >= bundleLogs {
			leave("the logs of the bundle have their limit of 128 MiB")
			continue
		}
		text, why := readLog(file.Open)
		if why != "" {
			leave(why)
			continue
		}
		total += int64(len(text))
		in.Logs = append(in.Logs, bundle.Log{Path: file.Path, Text: text})
	}
	return nil
}

// readLog is the text of an artifact, or why it is not put into a bundle.
func readLog(open func() (io.ReadCloser, error)) (text, why string) {
	rc, err := open()
	if err != nil {
		return "", "it could not be read"
	}
	defer rc.Close()
	b, err := io.ReadAll(io.LimitReader(rc, bundleLog+1))
	switch {
	case len(b) > bundleLog:
		return "", "it is larger than 32 MiB"
	case err != nil && len(b) == 0:
		return "", "it could not be read"
	case !isText(b):
		return "", "it is no text: what a binary file holds cannot be redacted"
	}
	return string(b), ""
}

// isText reports whether bytes are text: few that are none of UTF-8, and few control characters but
// where a file system lost a block.
func isText(b []byte) bool {
	head := b[:min(len(b), 64<<10)]
	odd, run := 0, bytes.Repeat([]byte{0}, 64)
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\b' && c != '\f' {
			odd++
		}
	}
	// What a model generates may hold a few; a block that a file system lost holds nothing else.
	if odd > len(head)/50 && (odd > len(head)/2 || !bytes.Contains(head, run)) {
		return false
	}
	bad := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad <= len(head)/50+4
}

// diagnoseBundle diagnoses the redacted logs as whoever gets the bundle will, from a folder that
// is removed again. Its artifacts are named as in the bundle.
func (a *app) diagnoseBundle(ctx context.Context, files []bundle.File) (*incident.Incident, error) {
	dir, err := os.MkdirTemp("", "inquest-bundle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := bundle.WriteTree(dir, files); err != nil {
		return nil, err
	}
	o, err := a.options([]string{dir})
	if err != nil {
		return nil, err
	}
	d, err := engine.Diagnose(ctx, o)
	if err != nil {
		return nil, err
	}
	// The folder is no part of what is said. Slashes, as artifacts are named.
	prefix := filepath.ToSlash(dir)
	replace := strings.NewReplacer(prefix+"/", "", dir+string(filepath.Separator), "", prefix, ".")
	renameIn(reflect.ValueOf(d), replace.Replace)
	return d, nil
}

// renameIn replaces every string in v, which can be set, by what fn makes of it.
func renameIn(v reflect.Value, fn func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fn(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			renameIn(v.Elem(), fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				renameIn(v.Field(i), fn)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			renameIn(v.Index(i), fn)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			renameIn(x, fn)
			v.SetMapIndex(k, x)
		}
	case reflect.Interface:
		if s, ok := v.Interface().(string); ok {
			v.Set(reflect.ValueOf(fn(s)))
		}
	}
}

// writeBundle writes the bundle and, beside it, what its tokens stand for.
func (a *app) writeBundle(out string, in *bundle.Input, m *incident.Bundle, files []bundle.File) error {
	if out == "" {
		id := m.Kept
		if id == "" {
			id = m.Incident
		}
		out = "inquest-" + strings.TrimPrefix(id, "inq-") + ".tar.gz"
	}
	out = filepath.Clean(out)
	mapName := strings.TrimSuffix(strings.TrimSuffix(out, ".tgz"), ".tar.gz") + ".map.json"
	for _, name := range []string{out, mapName} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%w: %s exists already; nothing is overwritten", errWrite, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", errWrite, err)
		}
	}
	doc := struct {
		Warning string         `json:"warning"`
		Bundle  string         `json:"bundle"`
		Tokens  []redact.Token `json:"tokens"`
	}{"This file says what the tokens of the bundle stand for. It is for you, and not part of the bundle.", filepath.Base(out), in.Names.Map()}
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	w, err := os.OpenFile(mapName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	_, err = w.Write(append(b, '\n'))
	if e := w.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = bundle.Write(out, files, bundleTime(in))
	}
	if err != nil {
		os.Remove(mapName)
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	fmt.Fprintf(a.err, "inquest: wrote %s; what its tokens stand for is in %s, which is for you only\n", printable(out), printable(mapName))
	return nil
}

// bundleTime is the time of every file of a bundle: that of the failure, as far as it is known.
func bundleTime(in *bundle.Input) time.Time {
	if in.Kept != nil {
		if t, err := time.Parse(time.RFC3339Nano, in.Kept.First); err == nil {
			return t
		}
	}
	if f := in.Diagnosis.FirstFault; f != nil && f.Time != nil && f.Time.UTC != nil {
		if t, err := time.Parse(time.RFC3339Nano, *f.Time.UTC); err == nil {
			return t
		}
	}
	return time.Unix(0, 0)
}
