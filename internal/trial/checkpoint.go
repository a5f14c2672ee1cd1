package trial

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/format/safetensors"
	"github.com/inquest-dev/inquest/internal/format/torchzip"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Bounds of what is kept of a checkpoint.
const (
	maxCheckpointFiles = 4096
	maxNonfinite       = 64
	scanBuffer         = 1 << 20
)

// InspectCheckpoint looks at a checkpoint, a file or a folder, without executing anything in it:
// whether it is all there, whether its parts fit together, and whether every floating-point
// number in it is finite. It reads every byte of the tensors. An error means that ctx ended it;
// that path cannot be read is a problem of the checkpoint.
func InspectCheckpoint(ctx context.Context, path string) (incident.Checkpoint, error) {
	k := &inspection{ctx: ctx, root: path, buf: make([]byte, scanBuffer)}
	k.Checkpoint = incident.Checkpoint{Path: path, Files: []incident.CheckpointFile{}, Nonfinite: []incident.NonfiniteTensor{}, Problems: []string{}, Unchecked: []string{}, Notes: []string{}}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.problem("there is no such file or folder")
		k.Format = incident.FormatOther
	case err != nil:
		k.problem("%v", err)
		k.Format = incident.FormatOther
	case st.IsDir():
		k.folder(path)
	case !st.Mode().IsRegular():
		k.problem("it is neither a file nor a folder")
		k.Format = incident.FormatOther
	default:
		k.Format = k.file(path, filepath.Base(path), st.Size())
	}
	if err := ctx.Err(); err != nil {
		return k.Checkpoint, err
	}
	k.conclude()
	return k.Checkpoint, nil
}

// An inspection is one look at a checkpoint.
type inspection struct {
	incident.Checkpoint
	ctx     context.Context
	root    string
	buf     []byte
	names   map[string]map[string]bool   // file -> its tensors
	values  map[string]map[string]string // file -> numbers at the top of its object
	onlyNeg bool                         // some tensor holds -inf and nothing else that is not finite
	recog   int                          // files that are checkpoints or parts of one
}

func (k *inspection) problem(format string, args ...any) {
	k.Problems = bounded(k.Problems, format, args...)
}
func (k *inspection) unchecked(format string, args ...any) {
	k.Unchecked = bounded(k.Unchecked, format, args...)
}
func (k *inspection) note(format string, args ...any) { k.Notes = bounded(k.Notes, format, args...) }

// bounded appends a sentence to a list that has room for so many.
func bounded(list []string, format string, args ...any) []string {
	const most = 40
	switch {
	case len(list) < most:
		return append(list, fmt.Sprintf(format, args...))
	case len(list) == most:
		return append(list, "… and more")
	}
	return list
}

// partly are names of files and folders under which programs write what is not complete yet.
var partly = lazyre.New(`(?i)^(\.?tmp[-_].*|.*\.(tmp|part|partial|incomplete|temp|download)|.*\.tmp\..*|.*~)$`)

// halfWritten reports whether a file or folder says by its own name that it is not complete. The
// folders that it lies in say nothing: much lies below the folders of mktemp.
func halfWritten(name string) bool {
	return partly.MatchString(path.Base(filepath.ToSlash(filepath.Clean(name))))
}

// legacyMagic begins what torch.save wrote before PyTorch 1.6: a pickle, protocol 2, of
// 0x1950a86a20f9469cfc6c.
var legacyMagic = []byte("\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")

// file looks at one file, which reports call name, and returns its format.
func (k *inspection) file(path, name string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		k.problem("%s: %v", name, err)
		return incident.FormatOther
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		k.problem("%s: %v", name, err)
		return incident.FormatOther
	}
	head = head[:n]
	format := k.formatOf(name, head, size)
	tensors := k.Tensors
	if halfWritten(name) {
		k.problem("%s: by its name it was not written to its end", name)
	}
	switch format {
	case incident.FormatSafetensors:
		k.safetensors(f, name, size)
	case incident.FormatTorchZip:
		k.torch(f, name, size)
	case incident.FormatTorchOld, incident.FormatTorchTar:
		k.unchecked("%s was written by torch.save before PyTorch 1.6, whose form is not read here: load it where it is trusted (torch.load with weights_only=True) and save it again", name)
	case incident.FormatPickle:
		k.pickled(f, name)
	case incident.FormatOther:
		switch {
		case size == 0:
			k.problem("%s is empty (0 bytes)", name)
		case zeros(head):
			k.problem("%s begins with %d bytes that are all 0: it was not written", name, len(head))
		case checkpointName(name):
			k.problem("%s has the name of a checkpoint, and its bytes are none", name)
		default:
			k.unchecked("%s is no checkpoint of a known form", name)
		}
	}
	if len(k.Files) < maxCheckpointFiles {
		k.Files = append(k.Files, incident.CheckpointFile{Path: name, Format: format, Bytes: size, Tensors: k.Tensors - tensors})
	}
	k.Bytes += size
	if format != incident.FormatOther {
		k.recog++
	}
	return format
}

// formatOf tells a file by its first bytes; by its name where they are damaged.
func (k *inspection) formatOf(name string, head []byte, size int64) string {
	ext := strings.ToLower(filepath.Ext(name))
	switch {
	case size == 0, zeros(head):
		return incident.FormatOther
	case ext == ".safetensors", safetensors.Looks(head, size):
		return incident.FormatSafetensors
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return incident.FormatTorchZip
	case bytes.HasPrefix(head, legacyMagic):
		return incident.FormatTorchOld
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return incident.FormatTorchTar
	case head[0] == 0x80 && len(head) > 1 && head[1] <= 5:
		return incident.FormatPickle
	}
	return incident.FormatOther
}

func zeros(b []byte) bool {
	return len(b) > 0 && !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

// checkpointName reports whether a file is called as checkpoints are.
func checkpointName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".safetensors", ".pt", ".pth", ".ckpt", ".distcp":
		return true
	case ".bin":
		base := strings.ToLower(filepath.Base(name))
		return strings.HasPrefix(base, "pytorch_model") || strings.HasPrefix(base, "model") || strings.HasPrefix(base, "optimizer") || strings.HasPrefix(base, "adapter_model")
	}
	return false
}

// safetensors looks at one such file.
func (k *inspection) safetensors(r io.ReaderAt, name string, size int64) {
	f, err := safetensors.Read(r, size)
	if err != nil {
		k.problem("%s: %v", name, err)
	}
	if f == nil {
		return
	}
	if len(f.Tensors) == 0 && err == nil {
		k.note("%s holds no tensor", name)
	}
	names := map[string]bool{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		names[t.Name] = true
		k.Tensors++
		if k.ctx.Err() != nil {
			return
		}
		if t.Begin >= size || err != nil && t.End > size {
			continue
		}
		k.tensor(io.NewSectionReader(r, t.Begin, t.End-t.Begin), name, t.Name, t.DType, t.Shape, t.End-t.Begin, false)
	}
	k.keep(name, names, nil)
}

func (k *inspection) keep(file string, names map[string]bool, values map[string]string) {
	if k.names == nil {
		k.names, k.values = map[string]map[string]bool{}, map[string]map[string]string{}
	}
	k.names[file], k.values[file] = names, values
}

// tensor looks at the numbers of one tensor, n bytes of r.
func (k *inspection) tensor(r io.Reader, file, name, dtype string, shape []int64, n int64, big bool) {
	if !isFloat(dtype) {
		if !wholeTypes[dtype] {
			k.unchecked("%s: the type %s of tensor %q is not looked into", file, dtype, name)
		}
		return
	}
	got, err := scanFloats(r, dtype, big, k.buf)
	k.Scanned += got.elements * int64(floatTypes[dtype].size)
	if err != nil {
		k.problem("%s: tensor %q: %v", file, name, err)
		return
	}
	if read := got.elements * int64(floatTypes[dtype].size); read != n {
		k.problem("%s: tensor %q has %d of %d bytes", file, name, read, n)
		return
	}
	if got.any() {
		k.found(file, name, dtype, shape, got)
	}
}

var (
	// maskName are names of what holds -inf on purpose: what must not be attended to.
	maskName = lazyre.New(`(?i)(^|[._])(attn_|attention_|causal_|alibi_|window_)?(mask|masked_bias|causal|alibi|attn_bias|attention_bias|rel_pos_mask)(_buffer|_value)?([._]\d+)?$|mask`)
	// optimizerName are names of the state of an optimizer, and files that hold one.
	optimizerName = lazyre.New(`(?i)(^|[._/])(optimizer|optimizer_states?|optim|optimizers|exp_avg|exp_avg_sq|momentum_buffer|state\.\d+|fp32_from_fp16|base_optimizer_state|grad_scaler|lr_scheduler)([._/]|$)|optim_states\.pt$|(^|/)(optimizer|scheduler|scaler|optim)[^/]*\.(pt|bin|pth|safetensors)$`)
)

// found puts down a tensor with values that are not finite.
func (k *inspection) found(file, name, dtype string, shape []int64, n nonfinite) {
	t := incident.NonfiniteTensor{File: file, Name: name, DType: dtype, Shape: shape, Elements: n.elements, NaN: n.nan, PosInf: n.pos, NegInf: n.neg, Role: incident.RoleWeight, Refuses: true}
	if t.Shape == nil {
		t.Shape = []int64{}
	}
	only := n.nan == 0 && n.pos == 0
	switch {
	case only && maskName.MatchString(name):
		t.Role, t.Refuses = incident.RoleMask, false
	case optimizerName.MatchString(name) || optimizerName.MatchString(filepath.ToSlash(file)):
		t.Role = incident.RoleOptimizer
	case only:
		t.Refuses, k.onlyNeg = false, true
	}
	if len(k.Nonfinite) == maxNonfinite {
		k.MoreNonfinite++
		if t.Refuses && !slices.ContainsFunc(k.Nonfinite, func(x incident.NonfiniteTensor) bool { return x.Refuses }) {
			k.Nonfinite[maxNonfinite-1] = t
		}
		return
	}
	k.Nonfinite = append(k.Nonfinite, t)
}

// torch looks at an archive that torch.save wrote.
func (k *inspection) torch(r io.ReaderAt, name string, size int64) {
	f, err := torchzip.Read(r, size)
	if err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	for _, p := range f.Problems {
		k.problem("%s: %s", name, p)
	}
	if f.Script {
		k.note("%s is a TorchScript archive: its code was not looked at", name)
	}
	names := map[string]bool{}
	byStorage := make([][]*torchzip.Tensor, len(f.Storages))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		names[t.Name] = true
		byStorage[t.Storage] = append(byStorage[t.Storage], t)
	}
	k.Tensors += len(f.Tensors)
	var wrong []string
	for i := range f.Storages {
		if k.ctx.Err() != nil {
			return
		}
		if f.Storages[i].Member != nil {
			wrong = append(wrong, k.storage(name, &f.Storages[i], byStorage[i], f.Big)...)
		}
	}
	switch {
	case len(wrong) > 1 && len(wrong) == len(f.Storages):
		k.unchecked("%s: the checksum of no storage fits: it was written with torch.serialization.set_crc32_options(False), or is damaged", name)
	case len(wrong) > 0:
		for _, s := range wrong {
			k.problem("%s: the checksum of storage %s does not fit: its bytes are not those that were written", name, s)
		}
	}
	k.keep(name, names, f.Values)
	if len(f.Tensors) == 0 && len(f.Problems) == 0 {
		k.note("%s holds no tensor", name)
	}
}

// storage looks at the bytes of one storage and at the tensors in it. It returns the storage's
// key where the checksum does not fit.
func (k *inspection) storage(file string, s *torchzip.Storage, tensors []*torchzip.Tensor, big bool) []string {
	slices.SortStableFunc(tensors, func(a, b *torchzip.Tensor) int {
		switch {
		case a.Begin != b.Begin:
			return int(min(max(a.Begin-b.Begin, -1), 1))
		}
		return int(min(max(b.End-a.End, -1), 1))
	})
	m, err := s.Member.Open()
	if err != nil {
		k.problem("%s: storage %s: %v", file, s.Key, err)
		return nil
	}
	defer m.Close()
	at, broken := int64(0), error(nil)
	for _, t := range tensors {
		// Views of the same numbers are looked at once, by the name that stands first.
		begin := max(t.Begin, at)
		if !isFloat(t.DType) && !wholeTypes[t.DType] && t.Begin < t.End {
			k.unchecked("%s: the type of tensor %q is not looked into", file, t.Name)
		}
		if begin >= t.End || !isFloat(t.DType) || broken != nil {
			continue
		}
		if _, broken = io.CopyN(io.Discard, m, begin-at); broken != nil {
			break
		}
		got, err := scanFloats(io.LimitReader(m, t.End-begin), t.DType, big, k.buf)
		at, broken = t.End, err
		unit := int64(floatTypes[t.DType].size)
		k.Scanned += got.elements * unit
		if broken == nil && got.elements*unit != (t.End-begin)/unit*unit {
			k.problem("%s: tensor %q has %d of %d bytes", file, t.Name, got.elements*unit, t.End-begin)
			return nil
		}
		if got.any() {
			k.found(file, t.Name, t.DType, t.Shape, got)
		}
	}
	if broken == nil {
		_, broken = io.Copy(io.Discard, m)
	}
	switch {
	case errors.Is(broken, zip.ErrChecksum):
		return []string{s.Key}
	case broken != nil:
		k.problem("%s: storage %s: %v", file, s.Key, broken)
	}
	return nil
}

// pickled looks at a pickle without an archive: the metadata of a distributed checkpoint, or
// any object of Python's.
func (k *inspection) pickled(f io.ReadSeeker, name string) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	if _, err := pickle.Read(io.LimitReader(f, 256<<20), pickle.Options{Mode: pickle.Inert}); err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	if filepath.Base(name) != ".metadata" {
		k.unchecked("%s is a pickle: its objects are not looked into", name)
	}
}

// conclude says what was found.
func (k *inspection) conclude() {
	var refused, optimizer, masks int
	for _, t := range k.Nonfinite {
		switch {
		case t.Refuses && t.Role == incident.RoleOptimizer:
			optimizer++
		case t.Refuses:
			refused++
		case t.Role == incident.RoleMask:
			masks++
		}
	}
	if masks > 0 {
		k.note("%s -inf, as such tensors do on purpose", counted(masks, "mask holds", "masks hold"))
	}
	size := fmt.Sprintf("%s, %s of numbers looked at", counted(k.Tensors, "tensor", "tensors"), bytesText(k.Scanned))
	switch {
	case len(k.Problems) > 0:
		k.State, k.Says = incident.No, k.Problems[0]
		if n := len(k.Problems) - 1; n > 0 {
			k.Says += fmt.Sprintf(" (and %d more)", n)
		}
	case refused > 0:
		k.State, k.Says = incident.No, fmt.Sprintf("%s not finite, first %s", counted(refused+k.MoreNonfinite, "tensor of the model is", "tensors of the model are"), firstBad(k.Nonfinite, incident.RoleWeight))
	case optimizer > 0:
		k.State, k.Says = incident.No, fmt.Sprintf("the optimizer's state is not finite (%s, first %s); the weights are, and resuming from it would spread the rest", counted(optimizer, "tensor", "tensors"), firstBad(k.Nonfinite, incident.RoleOptimizer))
	case k.onlyNeg:
		k.State, k.Says = incident.Unknown, "a tensor holds -inf and nothing else that is not finite: often a mask, which its name does not say"
	case k.recog == 0:
		k.State, k.Says = incident.Unknown, "no checkpoint of a known form was found"
	case len(k.Unchecked) > 0:
		k.State, k.Says = incident.Unknown, k.Unchecked[0]
	case k.Tensors == 0:
		k.State, k.Says = incident.Unknown, "it holds no tensor"
	default:
		k.State, k.Says = incident.Yes, "all there, and every number finite: "+size
	}
}

func firstBad(list []incident.NonfiniteTensor, role string) string {
	for _, t := range list {
		if t.Refuses && t.Role == role {
			return fmt.Sprintf("%q (%s of %d elements)", t.Name, nonfiniteText(t.NaN, t.PosInf, t.NegInf), t.Elements)
		}
	}
	return ""
}

func nonfiniteText(nan, pos, neg int64) string {
	var parts []string
	for _, x := range []struct {
		n    int64
		what string
	}{{nan, "NaN"}, {pos, "+inf"}, {neg, "-inf"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}
