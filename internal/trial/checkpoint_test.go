package trial

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

func inspect(t *testing.T, path string) incident.Checkpoint {
	t.Helper()
	c, err := InspectCheckpoint(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// tensors makes a safetensors file with one tensor of the values.
func tensors(name string, values ...float32) []byte {
	n := len(values) * 4
	header := `{"` + name + `":{"dtype":"F32","shape":[` + itoa(len(values)) + `],"data_offsets":[0,` + itoa(n) + `]}}`
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func itoa(n int) string { return fmt.Sprint(n) }

func TestInspectTorch(t *testing.T) {
	for name, want := range map[string]struct{ state, says string }{
		"good.pt":      {incident.Yes, "every number finite"},
		"view.pt":      {incident.Yes, "every number finite"},
		"mask.pt":      {incident.Yes, "every number finite"},
		"only.pt":      {incident.Unknown, "often a mask"},
		"nan.pt":       {incident.No, `"model.layer.weight" (1 NaN, 1 +inf, 1 -inf of 6 elements)`},
		"optimizer.pt": {incident.No, "the optimizer's state is not finite"},
		"fp8.pt":       {incident.No, "1 NaN of 3"},
		"absent.pt":    {incident.No, "not in the archive"},
		"short.pt":     {incident.No, "23 bytes"},
		"cut.pt":       {incident.No, "directory"},
		"flipped.pt":   {incident.No, "checksum of storage 0"},
	} {
		c := inspect(t, filepath.Join("..", "format", "torchzip", "testdata", name))
		if c.State != want.state || !strings.Contains(c.Says, want.says) || c.Format != incident.FormatTorchZip {
			t.Errorf("%s: %s %s: %q, want %s %q", name, c.Format, c.State, c.Says, want.state, want.says)
		}
	}
}

func TestInspectFiles(t *testing.T) {
	dir := t.TempDir()
	nan := float32(math.NaN())
	for _, c := range []struct {
		name         string
		data         []byte
		format, says string
		state        string
	}{
		{"a.safetensors", tensors("w", 1, 2, 3), incident.FormatSafetensors, "every number finite", incident.Yes},
		{"b.safetensors", tensors("w", 1, nan, 3), incident.FormatSafetensors, "1 NaN of 3", incident.No},
		{"c.safetensors", tensors("w", 1, 2, 3)[:70], incident.FormatSafetensors, "ends early", incident.No},
		{"d.safetensors", nil, incident.FormatOther, "empty", incident.No},
		{"e.pt", make([]byte, 4096), incident.FormatOther, "all 0", incident.No},
		{"f.pt", []byte("this is a log"), incident.FormatOther, "name of a checkpoint", incident.No},
		{"g.pt", append(append([]byte{}, legacyMagic...), "rest"...), incident.FormatTorchOld, "before PyTorch 1.6", incident.Unknown},
		{"model.safetensors.tmp", tensors("w", 1), incident.FormatSafetensors, "not written to its end", incident.No},
		{"tmp-checkpoint.safetensors", tensors("w", 1), incident.FormatSafetensors, "not written to its end", incident.No},
		{"notes.txt", []byte("text"), incident.FormatOther, "no checkpoint", incident.Unknown},
		{"odd.safetensors", bytes.Replace(tensors("w", 1, 2), []byte(`"F32"`), []byte(`"XYZ"`), 1), incident.FormatSafetensors, "XYZ", incident.Unknown},
		{"whole.safetensors", bytes.Replace(tensors("w", 1, nan), []byte(`"F32"`), []byte(`"I32"`), 1), incident.FormatSafetensors, "every number finite", incident.Yes},
		{"x.pkl", []byte("\x80\x04N."), incident.FormatPickle, "not looked into", incident.Unknown},
	} {
		put(t, filepath.Join(dir, c.name), c.data)
		got := inspect(t, filepath.Join(dir, c.name))
		if got.State != c.state || got.Format != c.format || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %s %s %q, want %s %s %q", c.name, got.Format, got.State, got.Says, c.format, c.state, c.says)
		}
	}
	if got := inspect(t, filepath.Join(dir, "none")); got.State != incident.No || !strings.Contains(got.Says, "no such") {
		t.Errorf("nothing there: %+v", got)
	}
}

func TestInspectFolders(t *testing.T) {
	good := tensors("w", 1, 2)
	zip, err := os.ReadFile("../format/torchzip/testdata/good.pt")
	if err != nil {
		t.Fatal(err)
	}
	index := []byte(`{"metadata":{"total_size":16},"weight_map":{"w":"model-00001-of-00002.safetensors","v":"model-00002-of-00002.safetensors"}}`)
	for _, c := range []struct {
		name         string
		files        map[string][]byte
		format, says string
		state        string
	}{
		{"empty", map[string][]byte{}, incident.FormatFolder, "empty", incident.No},
		{"plain", map[string][]byte{"config.json": []byte("{}"), "model.safetensors": good}, incident.FormatFolder, "every number finite", incident.Yes},
		{"empty config", map[string][]byte{"config.json": nil, "model.safetensors": good}, incident.FormatFolder, "config.json is empty", incident.No},
		{"shards", map[string][]byte{"model.safetensors.index.json": index, "model-00001-of-00002.safetensors": good, "model-00002-of-00002.safetensors": tensors("v", 1)}, incident.FormatSharded, "every number finite", incident.Yes},
		{"a shard less", map[string][]byte{"model.safetensors.index.json": index, "model-00001-of-00002.safetensors": good}, incident.FormatSharded, "model-00002-of-00002.safetensors, which model.safetensors.index.json names, is missing", incident.No},
		{"another tensor", map[string][]byte{"model.safetensors.index.json": index, "model-00001-of-00002.safetensors": good, "model-00002-of-00002.safetensors": good}, incident.FormatSharded, `lacks 1 tensor`, incident.No},
		{"deepspeed", map[string][]byte{"latest": []byte("global_step5"), "global_step5/mp_rank_00_model_states.pt": zip, "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt": zip, "global_step5/zero_pp_rank_1_mp_rank_00_optim_states.pt": zip}, incident.FormatDeepSpeed, "every number finite", incident.Yes},
		{"a rank less", map[string][]byte{"latest": []byte("global_step5"), "global_step5/mp_rank_00_model_states.pt": zip, "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt": zip, "global_step5/zero_pp_rank_2_mp_rank_00_optim_states.pt": zip}, incident.FormatDeepSpeed, "zero_pp_rank_1_mp_rank_00_optim_states.pt", incident.No},
		{"a pipeline, whose layers without weights have no file", map[string][]byte{"latest": []byte("s5"), "s5/mp_rank_00_model_states.pt": zip, "s5/layer_00-model_00-model_states.pt": zip, "s5/layer_00-model_01-model_states.pt": zip, "s5/layer_02-model_00-model_states.pt": zip, "s5/layer_02-model_01-model_states.pt": zip}, incident.FormatDeepSpeed, "every number finite", incident.Yes},
		{"a layer without a model-parallel rank", map[string][]byte{"latest": []byte("s5"), "s5/mp_rank_00_model_states.pt": zip, "s5/layer_00-model_00-model_states.pt": zip, "s5/layer_00-model_01-model_states.pt": zip, "s5/layer_02-model_00-model_states.pt": zip}, incident.FormatDeepSpeed, "layer_02-model_01-model_states.pt", incident.No},
		{"latest is not there", map[string][]byte{"latest": []byte("global_step9"), "global_step5/mp_rank_00_model_states.pt": zip}, incident.FormatDeepSpeed, "global_step9", incident.No},
		{"half written", map[string][]byte{"model.safetensors": good, "optimizer.pt.partial": zip}, incident.FormatFolder, "not written to its end", incident.No},
		{"nothing", map[string][]byte{"README.md": []byte("# x")}, incident.FormatFolder, "no checkpoint of a known form", incident.Unknown},
	} {
		dir := filepath.Join(t.TempDir(), "checkpoint")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, data := range c.files {
			put(t, filepath.Join(dir, filepath.FromSlash(name)), data)
		}
		got := inspect(t, dir)
		if got.State != c.state || got.Format != c.format || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %s %s %q, want %s %s %q", c.name, got.Format, got.State, got.Says, c.format, c.state, c.says)
		}
	}
}

// TestScanFloats holds the fast way to one element after the other.
// TestInspectPlace: what the folders are called in which a checkpoint lies says nothing of it; its
// own name and those of the folders in it do.
func TestInspectPlace(t *testing.T) {
	for _, c := range []struct{ root, file, state string }{
		{"tmp.Xy12/tmp-work/step.tmp/checkpoint-40", "model.safetensors", incident.Yes},
		{"tmp.Xy12", "model.safetensors", incident.Yes},
		{"run/tmp-checkpoint-40", "model.safetensors", incident.No},
		{"run/out", "tmp-checkpoint-40/model.safetensors", incident.No},
		{"run/out", "checkpoint-40/model.safetensors", incident.Yes},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, c.root, c.file), tensors("w", 1, 2))
		if got := inspect(t, filepath.Join(dir, c.root)); got.State != c.state {
			t.Errorf("%s of %s: %s (%s), want %s", c.file, c.root, got.State, got.Says, c.state)
		}
	}
}

func TestScanFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for dtype, f := range floatTypes {
		for round := range 40 {
			b := make([]byte, (64*3+8*round)/f.size*f.size)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			if round%2 == 0 { // few that are not finite
				for i := range b {
					b[i] &= 0x3b
				}
				if len(b) > 100 {
					copy(b[96:], bytes.Repeat([]byte{0xff}, f.size))
				}
			}
			var want nonfinite
			f.count(b, false, &want)
			got, err := scanFloats(bytes.NewReader(b), dtype, false, make([]byte, 128))
			if want.elements = int64(len(b) / f.size); err != nil || got != want {
				t.Fatalf("%s: %+v %v, want %+v", dtype, got, err, want)
			}
		}
	}
	b := binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(-1))))
	if got, _ := scanFloats(bytes.NewReader(b), "F32", true, make([]byte, 64)); got.neg != 1 || got.nan+got.pos != 0 {
		t.Errorf("big-endian -inf: %+v", got)
	}
}

func BenchmarkScan(b *testing.B) {
	data, buf := make([]byte, 64<<20), make([]byte, scanBuffer)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		scanFloats(bytes.NewReader(data), "BF16", false, buf)
	}
}
