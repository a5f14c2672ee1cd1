package artifact

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// foreign lists the extensions of files that are code, data sets, weights,
// media or documents: they are passed over unopened. It saves opening a
// million samples; it never decides what is read, so what is not listed is
// looked at. Not listed on purpose: .pkl, .pickle (memory snapshots and flight
// recorder dumps), .json, .jsonl, .csv, .txt, .yaml, .db, .sqlite, .ipynb, .sh.
var foreign = words(`
	.safetensors .pt .pth .ckpt .npy .npz .parquet .arrow .feather .h5 .hdf5 .gguf .ggml .onnx .tflite .pb
	.msgpack .distcp .tfrecord .tfrecords .mdb .lmdb .mds .idx .tiktoken .model .spm .engine .plan .orc .avro .zarr
	.jpg .jpeg .png .gif .bmp .tif .tiff .webp .ico .svg .heic .avif .exr .ppm .pgm .dcm .nii .ply .obj .stl .glb .las
	.mp4 .mkv .avi .mov .webm .m4v .mp3 .wav .flac .ogg .opus .m4a .aac
	.py .pyc .pyi .pyx .pxd .c .cc .cpp .cxx .cu .cuh .h .hh .hpp .go .rs .java .kt .scala .js .mjs .jsx .ts .tsx .css .scss
	.rb .php .cs .swift .lua .jl .cmake .proto
	.so .a .dll .dylib .exe .class .jar .whl .egg .deb .rpm .apk .iso .img .sif .qcow2 .cubin .fatbin .ptx
	.pdf .doc .docx .xls .xlsx .ppt .pptx .md .rst .tex .bib .html .htm .woff .woff2 .ttf .otf .eot
	.nsys-rep .qdrep .ncu-rep .qdstrm .prof .pstats .map .lock .po .mo .patch .diff`)

// foreignNames are whole names that say the same, without extension.
var foreignNames = words(`
	license notice copying readme authors changelog makefile dockerfile requirements.txt constraints.txt
	vocab.txt merges.txt inquest-repair.json .gitignore .gitattributes .gitmodules .dockerignore .ds_store`)

// structured lists the extensions of files that hold settings rather than what
// happened. They are looked at, and kept only if a reader is sure of them or
// the name says that a rank or host wrote them (attempt_0/3/error.json).
var structured = words(`.json .yaml .yml .toml .ini .cfg .conf .xml .vocab .merges .properties`)

// bundleReports is the folder of a bundle of an incident that holds what was said of its logs.
const bundleReports = "inquest-report"

// foreignFolders are never entered below a named path.
var foreignFolders = words(`
	.git .hg .svn node_modules __pycache__ site-packages dist-packages .ipynb_checkpoints
	inquest-report .mypy_cache .pytest_cache .ruff_cache .tox .venv .conda .eggs`)

func words(s string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// isForeign reports whether a file of that name is passed over unopened, and
// what it is counted as.
func isForeign(name string) (string, bool) {
	if strings.HasPrefix(name, bundleReports+"/") || strings.Contains(name, "/"+bundleReports+"/") {
		return bundleReports, true
	}
	if base := strings.ToLower(path.Base(name)); foreignNames[base] {
		return base, true
	}
	ext := extension(name)
	return ext, foreign[ext]
}

// isSettings reports whether a file of that name rather holds settings.
func isSettings(name string) bool {
	if !structured[extension(uncompressedName(name))] || logName.MatchString(path.Base(name)) {
		return false
	}
	o := ownerOf(name)
	return o.Rank == evidence.None && o.LocalRank == evidence.None && o.Attempt == "" && o.Host == ""
}

// extension returns the lower-case extension of a slash path, "" if it has
// none or one that is a number or no plain word.
func extension(name string) string {
	ext := strings.ToLower(path.Ext(path.Base(name)))
	if len(ext) < 2 || len(ext) > 12 {
		return ""
	}
	letters := false
	for _, c := range ext[1:] {
		switch {
		case c >= 'a' && c <= 'z':
			letters = true
		case c >= '0' && c <= '9' || c == '-' || c == '_':
		default:
			return ""
		}
	}
	if !letters {
		return ""
	}
	return ext
}

// manyAlike is from how many on files of one extension that no reader is sure
// of, and that neither are named like logs nor name an owner, are taken for
// samples of a data set.
const manyAlike = 1000

// logName matches names that logs have.
var logName = lazyre.New(`(?i)(?:^|[^a-z])(?:logs?|stdout|stderr|output|console|slurm|dmesg|messages|syslog)(?:[^a-z]|$)|\.(?:log|out|err|[oe]\d+)(?:\.(?:gz|zst|xz|bz2))?$`)

// doubtful reports whether a file of this owner may be a sample of a data set.
func doubtful(file *File, o evidence.Owner) bool {
	return file.Fate == "" && !file.Named && file.Confidence < sure && o.Rank == evidence.None &&
		o.LocalRank == evidence.None && o.Host == "" && !logName.MatchString(path.Base(file.Place))
}

// dataSet reports whether dropData is certain to drop the file, because this
// looker alone has seen enough like it, and counts it then: a folder of a
// hundred thousand samples is not held in memory first.
func (f *found) dataSet(file *File) bool {
	if file.Fate != "" || file.Named || file.Confidence >= sure || !doubtful(file, ownerOf(file.Place)) {
		return false
	}
	ext := extension(file.Place)
	if f.doubts == nil {
		f.doubts = make(map[string]int)
	}
	if f.doubts[ext]++; f.doubts[ext] <= manyAlike {
		return false
	}
	f.addAlike(ext, tally{1, max(file.Size, 0)})
	return true
}

// dropData drops what looks like a data set in text, which a reader of any text
// would take, and says so.
func dropData(r *Result, f *found) {
	count := make(map[string]int)
	for ext, t := range f.alike {
		what := strings.TrimSpace(ext + " files like a data set")
		f.pass(what, t.bytes)
		u := f.passed[what]
		u.count += t.count - 1
		f.passed[what] = u
		count[ext] += int(t.count)
	}
	doubts := make([]bool, len(r.Files))
	for i := range r.Files {
		if file := &r.Files[i]; doubtful(file, file.Owner) {
			doubts[i] = true
			count[extension(file.Place)]++
		}
	}
	gone := make(map[int]bool)
	for i := range r.Files {
		file := &r.Files[i]
		ext := extension(file.Place)
		if count[ext] < manyAlike || !doubts[i] {
			continue
		}
		gone[i] = true
		f.pass(strings.TrimSpace(ext+" files like a data set"), file.Size)
	}
	r.drop(gone)
	for ext, n := range count {
		if n >= manyAlike {
			f.problem("", &LimitError{strings.Join(strings.Fields(fmt.Sprintf(
				"%d %s files look like a data set: no reader is sure of them and no name is a log's; name those to read one by one, or ask for all", n, ext)), " ")})
		}
	}
}

// isText reports whether head looks like text in UTF-8 or a one-byte code: no
// NUL, and few control characters besides those of terminals.
func isText(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	control := 0
	for _, c := range head {
		if c < ' ' && (c < '\a' || c > '\r') && c != 0x1b {
			control++
		}
	}
	high := 0
	if !utf8.Valid(trimRune(head)) {
		for _, c := range head {
			if c >= 0x80 {
				high++
			}
		}
	}
	return control*20 <= len(head) && high*3 <= len(head)
}

// hole is how many zero bytes in a row are a hole in a text and not a part of
// some binary format's numbers.
const hole = 64

// withoutHoles returns head without its runs of at least hole zero bytes and
// without one that head's end cuts. It may be head itself.
func withoutHoles(head []byte) []byte {
	var out []byte
	kept := 0 // head[:kept] is dealt with
	for i := 0; i < len(head); {
		if head[i] != 0 {
			i++
			continue
		}
		end := i
		for end < len(head) && head[end] == 0 {
			end++
		}
		if end-i >= hole || end == len(head) {
			out = append(out, head[kept:i]...)
			kept = end
		}
		i = end
	}
	if kept == 0 {
		return head
	}
	return append(out, head[kept:]...)
}

// trimRune drops a rune that the end of the head cut.
func trimRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// isTar reports whether head starts with a tar header: its checksum (bytes
// 148 to 155, octal, counted as spaces) is right. This also knows archives
// older than the "ustar" magic.
func isTar(head []byte) bool {
	if len(head) < 512 {
		return false
	}
	var stated, unsigned, signed int64
	digits := false
	for _, c := range head[148:156] {
		if c >= '0' && c <= '7' {
			stated, digits = stated*8+int64(c-'0'), true
		} else if digits {
			break
		}
	}
	for i, c := range head[:512] {
		if i >= 148 && i < 156 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return digits && head[0] != 0 && (stated == unsigned || stated == signed)
}

// isZip knows a zip's first local header and an empty zip.
func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTorchZip knows what torch.save writes: a zip whose first member is
// <name>/data.pkl (or .format_version, byteorder). Its thousands of members
// are tensors.
func isTorchZip(head []byte) bool {
	if len(head) < 30 || !isZip(head) {
		return false
	}
	n := int(head[26]) | int(head[27])<<8
	name := string(head[30:min(30+n, len(head))])
	switch path.Base(name) {
	case "data.pkl", ".format_version", "byteorder", ".data":
		return strings.Contains(name, "/")
	}
	return false
}
