package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A looker looks at one file after the other.
type looker struct {
	*walker
	*found
	head []byte // buffer of one worker for the files on disk
}

// sure is the confidence from which a claim overrides a name that says code,
// data or document.
const sure = 50

// certain is the confidence from which a zip is a reader's own and not a
// folder: its first bytes may well hold a member's text.
const certain = 90

// file looks at a listed file: by name, then by its first bytes.
func (l *looker) file(ctx context.Context, c candidate) {
	it := item{path: c.path, place: c.place, named: c.named}
	if ext, skip := isForeign(c.place); skip && !c.named && !l.belongs(c.place) && !(l.o.Exports && ext == ".parquet") {
		l.pass(ext, statSize(c.full))
		return
	}
	f, info, err := open(c.full)
	if err != nil {
		l.unreadable(it, err)
		return
	}
	it.stored, it.mod, it.disk = info.Size(), info.ModTime(), c.full
	n, err := readInto(f, l.head)
	f.Close()
	if err != nil && err != io.EOF {
		l.unreadable(it, plainError(err))
		return
	}
	name := c.full
	l.lookHead(ctx, it, content{
		size: it.stored,
		open: func() (io.ReadCloser, error) { f, _, err := open(name); return f, err },
		at:   func() (io.ReaderAt, io.Closer, error) { f, _, err := open(name); return f, f, err },
	}, l.head[:n])
}

// look looks at something that was not opened yet.
func (l *looker) look(ctx context.Context, it item, c content) {
	head, err := c.readHead(headLen)
	if len(head) == 0 && err != nil {
		l.unreadable(it, err)
		return
	}
	l.lookHead(ctx, it, c, head)
}

// lookHead decides what c is from its first bytes. It keeps no part of head.
func (l *looker) lookHead(ctx context.Context, it item, c content, head []byte) {
	// 1. Undo compression, by magic. A cut stream still has a head.
	for layer := 0; ; layer++ {
		k := codecOf(head)
		if k == nil {
			break
		}
		if layer == maxLayers {
			l.overLimit(it, fmt.Sprintf("compressed more than %d times over", maxLayers))
			return
		}
		c = c.decoded(k, l.o.MaxArchiveBytes)
		var err error
		head, err = c.readHead(headLen)
		if len(head) == 0 && err != nil {
			l.unreadable(it, err)
			return
		}
	}
	// 2. An archive is a folder.
	if isTar(head) {
		l.tar(ctx, it, c)
		return
	}
	kind, confidence := l.claim(it, c.size, head)
	if isZip(head) && confidence < certain {
		if isTorchZip(head) {
			l.pass("torch archive", it.stored)
			return
		}
		l.zip(ctx, it, c)
		return
	}
	if isBugReport(head) {
		l.bugReport(ctx, it, c)
		return
	}
	// 3. Text in UTF-16 is read as UTF-8.
	note := ""
	if confidence < sure {
		if order := utf16Of(head); order != nil {
			c = c.utf8(order)
			note = "decoded from UTF-16"
			if u, err := c.readHead(headLen); err == nil || len(u) > 0 {
				head = u
				kind, confidence = l.claim(it, -1, head)
			}
		}
	}
	// 4. Zeros where a file system or a log rotation lost text are a hole in it.
	if confidence == 0 && note == "" {
		if rest := l.afterHole(it, c, head); rest != nil {
			if kind, confidence = l.claim(it, c.size, rest); kind != "" {
				head, note = rest, "holes of zero bytes"
			}
		}
	}
	// 5. What a database is may stand further on.
	if kind == "" {
		kind, confidence = l.probe(it, c, head)
	}
	// 6. Keep or count.
	text := isText(head)
	_, codeOrData := isForeign(it.place)
	kept := kind != "" && (confidence >= sure || !codeOrData && (it.named || l.o.All || !isSettings(it.place)))
	companion := !kept && l.belongs(it.place)
	if len(head) == 0 && !companion {
		l.silent(it, 0, 0, "empty")
		return
	}
	if !companion && len(head) < headLen && len(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))) == 0 {
		l.silent(it, it.stored, c.size, "blank")
		return
	}
	fate := ""
	switch {
	case kept:
	case companion:
		kind, confidence = "", 0
	case kind == "" && text && l.o.All && !codeOrData:
	case it.named:
		kind, fate, note = "", fateNotRecognised, notRecognised(text, codeOrData)
	default:
		l.pass(reason(it.place, text), it.stored)
		return
	}
	file := File{Artifact: it.artifact(c.size), Open: c.open, At: c.at, ModTime: it.mod, Named: it.named, Place: it.place, Confidence: confidence}
	file.Kind, file.Fate, file.Note = kind, fate, note
	file.disk, file.companion = it.disk, companion
	if !companion && !l.o.All && l.dataSet(&file) {
		return
	}
	file.Head = append([]byte(nil), head...)
	l.files = append(l.files, file)
}

// database is how the files of SQLite begin.
const database = "SQLite format 3\x00"

// probe asks what a database is.
func (l *looker) probe(it item, c content, head []byte) (string, int) {
	if l.o.Probe == nil || c.at == nil || !bytes.HasPrefix(head, []byte(database)) {
		return "", 0
	}
	at, closer, err := c.at()
	if err != nil {
		return "", 0
	}
	defer closer.Close()
	return l.o.Probe(it.artifact(c.size), at)
}

// belongs reports whether a reader claims files at such a place for another file.
func (l *looker) belongs(place string) bool {
	if l.o.Anchor == nil {
		return false
	}
	_, _, ok := l.o.Anchor("", place)
	return ok
}

// maxHole bounds the zeros that are read over at the start of a file.
const maxHole = 256 << 20

// afterHole returns what head says without its holes, nil where it has none. Of a
// file that starts with nothing but a hole it reads on to what follows: a log that
// was truncated while its writer held it open goes on where it was.
func (l *looker) afterHole(it item, c content, head []byte) []byte {
	rest := withoutHoles(head)
	if len(rest) == len(head) {
		return nil
	}
	if len(rest) > 0 {
		return rest
	}
	if !it.named && !logName.MatchString(path.Base(it.place)) {
		return nil
	}
	rc, err := c.open()
	if err != nil {
		return nil
	}
	defer rc.Close()
	buf := make([]byte, 1<<20)
	for read := 0; read < maxHole; {
		n, err := io.ReadFull(rc, buf)
		if rest := bytes.TrimLeft(buf[:n], "\x00"); len(rest) > 0 {
			return rest[:min(len(rest), headLen)]
		}
		if read += n; err != nil {
			return nil
		}
	}
	return nil
}

// statSize returns the size of a file that is not opened, 0 if it is gone.
func statSize(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

func notRecognised(text, codeOrData bool) string {
	switch {
	case text && codeOrData:
		return "code, data or a document by its name"
	case text:
		return "text that no reader knows"
	}
	return "binary data that no reader knows"
}

func reason(place string, text bool) string {
	ext := extension(place)
	if ext == "" {
		ext = "no extension"
	}
	if text {
		return ext + ", text not recognised"
	}
	return ext + ", binary"
}

func (l *looker) claim(it item, size int64, head []byte) (string, int) {
	if len(head) == 0 {
		return "", 0
	}
	kind, confidence := l.o.Sniff(it.artifact(size), head)
	if confidence <= 0 {
		return "", 0
	}
	return kind, confidence
}

// silent keeps a file that holds nothing, or nothing but blanks, and that a rank
// should have written to, since silence is evidence too, or that was named; the
// rest are counted.
func (l *looker) silent(it item, stored, size int64, note string) {
	o := ownerOf(it.place)
	if !it.named && o.Rank == evidence.None && o.LocalRank == evidence.None {
		l.pass("empty file", stored)
		return
	}
	l.settled(it, size, fateRead, note, nil)
}

// settled adds a file whose fate is decided. Opening it gives err, or nothing
// at all where that is nil.
func (l *looker) settled(it item, size int64, fate, note string, err error) {
	file := File{Artifact: it.artifact(size), ModTime: it.mod, Place: it.place}
	file.Fate, file.Note = fate, note
	file.Open = func() (io.ReadCloser, error) {
		if err != nil {
			return nil, err
		}
		return io.NopCloser(strings.NewReader("")), nil
	}
	l.files = append(l.files, file)
}

func (l *looker) unreadable(it item, err error) {
	if le := (*LimitError)(nil); errors.As(err, &le) {
		l.overLimit(it, le.What)
		return
	}
	l.settled(it, -1, fateUnreadable, err.Error(), err)
	l.problem(it.path, err)
}

func (l *looker) overLimit(it item, what string) {
	err := &LimitError{what}
	l.settled(it, -1, fateOverLimit, what, err)
	l.problem(it.path, err)
}
