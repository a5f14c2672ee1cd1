// Package torchzip reads the directory of a checkpoint that torch.save wrote (the zip form,
// since PyTorch 1.6) as data: which tensors it names, of what type and shape, and in which
// member of the archive their bytes lie. Nothing in it is imported or called.
//
//	NAME/data.pkl      a pickle of the object; a tensor is a call of
//	                   torch._utils._rebuild_tensor_v2(storage, offset, size, stride, …), and a
//	                   storage a persistent id ('storage', torch.FloatStorage, key, location, numel)
//	NAME/data/KEY      the bytes of the storage KEY, stored without compression
//	NAME/byteorder     little or big; absent before PyTorch 2.1: that of the writer
//	NAME/version       3
//
// NAME is the same in the whole archive. Written by torch/serialization.py (_save) and
// caffe2/serialize/inline_container.cc; read here as versions 1.6 to 2.9 write it.
package torchzip

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// Bounds of what is read.
const (
	maxPickle  = 256 << 20 // bytes of data.pkl
	maxTensors = 1 << 20
	maxDepth   = 200
	maxName    = 1024 // bytes of a tensor's name
)

// ErrNotTorch is for a zip archive that no torch.save wrote.
var ErrNotTorch = errors.New("no data.pkl in the archive: torch.save did not write it")

// A File is what the archive says.
type File struct {
	Tensors  []Tensor
	Storages []Storage
	Big      bool // the bytes are big-endian
	Script   bool // a TorchScript archive: code stands beside the tensors
	// Values has numbers and texts at the top of the object: epoch, dp_world_size and the like.
	Values   map[string]string
	Problems []string // what of it does not fit together
	Members  int
}

// A Tensor is one tensor of the object.
type Tensor struct {
	Name    string // keys from the object to it, joined by dots
	DType   string // as safetensors calls it: F32, BF16, I64, …; "" where it is none of those
	Shape   []int64
	Storage int   // index in Storages
	Begin   int64 // the bytes of the storage from the first number of the tensor
	End     int64 // to behind the last one
}

// A Storage is what tensors are views of.
type Storage struct {
	Key    string
	DType  string // of its elements; "" for bytes
	Bytes  int64
	Member *zip.File // nil where the archive lacks it
}

// types are the names of PyTorch's element types and of its storages.
var types = map[string]string{
	"float64": "F64", "double": "F64", "DoubleStorage": "F64", "float32": "F32", "float": "F32", "FloatStorage": "F32",
	"float16": "F16", "half": "F16", "HalfStorage": "F16", "bfloat16": "BF16", "BFloat16Storage": "BF16",
	"int64": "I64", "long": "I64", "LongStorage": "I64", "int32": "I32", "int": "I32", "IntStorage": "I32",
	"int16": "I16", "short": "I16", "ShortStorage": "I16", "int8": "I8", "CharStorage": "I8", "uint8": "U8", "ByteStorage": "U8",
	"bool": "BOOL", "BoolStorage": "BOOL", "complex64": "C64", "ComplexFloatStorage": "C64", "complex128": "C128", "ComplexDoubleStorage": "C128",
	"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "uint16": "U16", "uint32": "U32", "uint64": "U64",
	"float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
	"QInt8Storage": "I8", "QUInt8Storage": "U8", "QInt32Storage": "I32",
}

// Size is the number of bytes of one element of a type, 0 where it is not known.
func Size(dtype string) int64 {
	switch dtype {
	case "F64", "I64", "U64", "C64":
		return 8
	case "C128":
		return 16
	case "F32", "I32", "U32":
		return 4
	case "F16", "BF16", "I16", "U16":
		return 2
	case "I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ":
		return 1
	}
	return 0
}

// Read reads an archive of size bytes. An error means that nothing can be said of it; what does
// not fit together is in Problems.
func Read(r io.ReaderAt, size int64) (*File, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) {
			return nil, fmt.Errorf("read archive: its directory, which is written last, is not there: %w", err)
		}
		return nil, fmt.Errorf("read archive: %w", err)
	}
	f := &File{Values: map[string]string{}, Members: len(z.File)}
	members := map[string]*zip.File{}
	var data *zip.File
	for _, m := range z.File {
		if _, twice := members[m.Name]; twice {
			f.problem("the member %q stands twice", m.Name)
		}
		members[m.Name] = m
		if strings.HasSuffix(m.Name, "/data.pkl") && strings.Count(m.Name, "/") == 1 && data == nil || m.Name == "data.pkl" {
			data = m
		}
		if strings.Contains(m.Name, "/code/") {
			f.Script = true
		}
	}
	if data == nil {
		return nil, ErrNotTorch
	}
	prefix := strings.TrimSuffix(data.Name, "data.pkl")
	if m := members[prefix+"byteorder"]; m != nil {
		text, err := readMember(m, 64)
		if err != nil {
			f.problem("byteorder: %v", err)
		}
		f.Big = strings.TrimSpace(string(text)) == "big"
	}
	v, err := readPickle(data)
	if err != nil {
		f.problem("data.pkl: %v", err)
	}
	if v != nil {
		w := &walk{f: f, members: members, prefix: prefix + "data/", storages: map[string]int{}, seen: map[*pickle.Value]bool{}}
		w.value(v, "", 0)
		f.top(v)
	}
	return f, nil
}

func (f *File) problem(format string, args ...any) {
	if len(f.Problems) < 64 {
		f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
	}
}

func readMember(m *zip.File, most int64) ([]byte, error) {
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

func readPickle(m *zip.File) (*pickle.Value, error) {
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := pickle.Read(io.LimitReader(r, maxPickle), pickle.Options{Mode: pickle.Inert, Nodes: 8 << 20})
	if err != nil {
		return v, err
	}
	// To its end, so that its checksum is compared.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return v, err
	}
	return v, nil
}

// top keeps the numbers and short texts that stand at the top of the object.
func (f *File) top(v *pickle.Value) {
	v = content(v)
	if v == nil || v.Kind != pickle.KindDict {
		return
	}
	for i := 0; i+1 < len(v.Items) && len(f.Values) < 256; i += 2 {
		k, x := v.Items[i], v.Items[i+1]
		if k.Kind != pickle.KindString || len(k.Text) > maxName {
			continue
		}
		switch x.Kind {
		case pickle.KindInt, pickle.KindBool:
			f.Values[k.Text] = fmt.Sprint(x.Int)
		case pickle.KindFloat:
			f.Values[k.Text] = fmt.Sprint(x.Float())
		case pickle.KindString:
			if len(x.Text) <= maxName {
				f.Values[k.Text] = x.Text
			}
		}
	}
}

// content is the dict that a call of OrderedDict and its like was filled with, or v itself.
func content(v *pickle.Value) *pickle.Value {
	if v == nil || v.Kind != pickle.KindCall {
		return v
	}
	for _, x := range v.Items[min(2, len(v.Items)):] {
		if x.Kind == pickle.KindDict {
			return x
		}
	}
	return v
}

// A walk goes through the object and collects its tensors.
type walk struct {
	f        *File
	members  map[string]*zip.File
	prefix   string
	storages map[string]int // key -> index
	seen     map[*pickle.Value]bool
}

// value collects what is below v, which is called name.
func (w *walk) value(v *pickle.Value, name string, depth int) {
	if v == nil || w.seen[v] || len(w.f.Tensors) >= maxTensors {
		return
	}
	switch v.Kind {
	case pickle.KindList, pickle.KindTuple, pickle.KindSet, pickle.KindDict, pickle.KindCall, pickle.KindState:
	default:
		return
	}
	if depth > maxDepth {
		w.f.problem("%q lies deeper than is followed", short(name))
		return
	}
	w.seen[v] = true
	switch v.Kind {
	case pickle.KindDict:
		for i := 0; i+1 < len(v.Items); i += 2 {
			w.value(v.Items[i+1], join(name, keyText(v.Items[i])), depth+1)
		}
	case pickle.KindCall:
		if w.tensor(v, name) {
			return
		}
		for i, x := range v.Items {
			switch {
			case i == 0: // what is called
			case i == 1 && x.Kind == pickle.KindTuple:
				for j, y := range x.Items { // of a parameter the tensor has the parameter's name
					if j == 0 {
						w.value(y, name, depth+1)
					} else {
						w.value(y, join(name, fmt.Sprint(j)), depth+1)
					}
				}
			default:
				w.value(x, name, depth+1)
			}
		}
	case pickle.KindState:
		for _, x := range v.Items {
			w.value(x, name, depth+1)
		}
	default:
		for i, x := range v.Items {
			w.value(x, join(name, fmt.Sprint(i)), depth+1)
		}
	}
}

func keyText(k *pickle.Value) string {
	switch k.Kind {
	case pickle.KindString:
		return k.Text
	case pickle.KindInt:
		return fmt.Sprint(k.Int)
	}
	return "?"
}

func join(name, key string) string {
	if name == "" {
		return short(key)
	}
	return short(name + "." + key)
}

func short(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

// tensor takes v for a tensor where it is a call that makes one.
func (w *walk) tensor(v *pickle.Value, name string) bool {
	if len(v.Items) < 2 || v.Items[0].Kind != pickle.KindGlobal || v.Items[1].Kind != pickle.KindTuple {
		return false
	}
	args := v.Items[1].Items
	dtype := ""
	switch v.Items[0].Text {
	case "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_qtensor":
	case "torch._utils _rebuild_tensor_v3": // storage, offset, size, stride, requires_grad, hooks, dtype
		if len(args) > 6 && args[6].Kind == pickle.KindGlobal {
			dtype = types[lastWord(args[6].Text)]
		}
	case "torch._tensor _rebuild_from_type_v2", "torch._utils _rebuild_from_type_v2", "torch._tensor _rebuild_from_type": // what, type, its arguments, state
		for i, x := range args {
			if i > 0 && args[0].Kind == pickle.KindGlobal && x.Kind == pickle.KindTuple {
				return w.tensor(&pickle.Value{Kind: pickle.KindCall, Items: []*pickle.Value{args[0], x}}, name)
			}
		}
		return false
	default:
		return false
	}
	if len(args) < 3 || args[0].Kind != pickle.KindPersID {
		return false
	}
	s, ok := w.storage(args[0])
	if !ok {
		return true
	}
	st := &w.f.Storages[s]
	if dtype == "" {
		dtype = st.DType
	}
	t := Tensor{Name: name, DType: dtype, Storage: s}
	shape, ok1 := numbers(args[2])
	strides := rowMajor(shape)
	if len(args) > 3 {
		if got, ok := numbers(args[3]); ok && len(got) == len(shape) {
			strides = got
		}
	}
	unit := Size(dtype)
	offset := args[1].Int
	if !ok1 || args[1].Kind != pickle.KindInt || offset < 0 || unit > 0 && offset > math.MaxInt64/unit/2 {
		w.f.problem("tensor %q has no shape and offset that can be read", name)
		return true
	}
	t.Shape = shape
	if unit == 0 { // of a type that is not known: its storage as a whole
		t.Begin, t.End = 0, st.Bytes
	} else if last, ok := extent(shape, strides); !ok || last > math.MaxInt64/unit-offset-1 {
		w.f.problem("tensor %q: shape %v has no size that can be", name, shape)
		return true
	} else {
		t.Begin, t.End = offset*unit, (offset+last)*unit
	}
	if t.End > st.Bytes {
		w.f.problem("tensor %q reaches to byte %d of a storage of %d", name, t.End, st.Bytes)
		return true
	}
	w.f.Tensors = append(w.f.Tensors, t)
	return true
}

// storage finds the storage of a persistent id; it is looked up in the archive once.
func (w *walk) storage(id *pickle.Value) (int, bool) {
	if len(id.Items) != 1 || id.Items[0].Kind != pickle.KindTuple || len(id.Items[0].Items) < 5 {
		return 0, false
	}
	p := id.Items[0].Items // 'storage', type, key, location, numel
	if p[0].Text != "storage" || p[4].Kind != pickle.KindInt || p[4].Int < 0 {
		return 0, false
	}
	key := keyText(p[2])
	if i, ok := w.storages[key]; ok {
		return i, true
	}
	s := Storage{Key: key, Bytes: p[4].Int}
	if p[1].Kind == pickle.KindGlobal {
		s.DType = types[lastWord(p[1].Text)]
	}
	if unit := Size(s.DType); unit > 0 {
		if s.Bytes > math.MaxInt64/unit {
			w.f.problem("storage %s is said to have %d elements", key, p[4].Int)
			return 0, false
		}
		s.Bytes *= unit
	}
	s.Member = w.members[w.prefix+key]
	switch m := s.Member; {
	case m == nil:
		w.f.problem("the bytes of storage %s are not in the archive", key)
	case m.UncompressedSize64 != uint64(s.Bytes):
		w.f.problem("storage %s has %d bytes, and its tensors call for %d", key, m.UncompressedSize64, s.Bytes)
	}
	w.storages[key] = len(w.f.Storages)
	w.f.Storages = append(w.f.Storages, s)
	return len(w.f.Storages) - 1, true
}

func lastWord(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

// numbers reads a tuple of integers; torch.Size is one as well.
func numbers(v *pickle.Value) ([]int64, bool) {
	if v.Kind == pickle.KindCall && len(v.Items) > 1 && v.Items[1].Kind == pickle.KindTuple && len(v.Items[1].Items) == 1 {
		v = v.Items[1].Items[0]
	}
	if v.Kind != pickle.KindTuple && v.Kind != pickle.KindList || len(v.Items) > 64 {
		return nil, false
	}
	out := make([]int64, 0, len(v.Items))
	for _, x := range v.Items {
		if x.Kind != pickle.KindInt || x.Int < 0 {
			return nil, false
		}
		out = append(out, x.Int)
	}
	return out, true
}

func rowMajor(shape []int64) []int64 {
	out, n := make([]int64, len(shape)), int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		out[i] = n
		if shape[i] > 0 && n <= math.MaxInt64/shape[i] {
			n *= shape[i]
		}
	}
	return out
}

// extent is how many elements lie from the first to behind the last of a view.
func extent(shape, strides []int64) (int64, bool) {
	last := int64(0)
	for i, d := range shape {
		if d == 0 {
			return 0, true
		}
		if strides[i] > 0 && d-1 > (math.MaxInt64-last)/strides[i] {
			return 0, false
		}
		last += (d - 1) * strides[i]
	}
	return last + 1, last < math.MaxInt64
}
