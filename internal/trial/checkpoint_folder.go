package trial

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// folder looks at every file of a checkpoint that is a folder, and at whether its parts are all
// there: the shards that an index names, the ranks that stand in the names of DeepSpeed's files,
// the files that the metadata of torch.distributed.checkpoint name.
func (k *inspection) folder(root string) {
	k.Format = incident.FormatFolder
	if halfWritten(root) {
		k.problem("by its name the folder was not written to its end")
	}
	var files []string
	sizes := map[string]int64{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		rel, e := filepath.Rel(root, p)
		if e != nil {
			rel = p
		}
		rel = filepath.ToSlash(rel)
		switch {
		case k.ctx.Err() != nil:
			return k.ctx.Err()
		case err != nil:
			k.problem("%s: %v", rel, err)
			return nil
		case d.IsDir():
			if rel != "." && halfWritten(rel) {
				k.problem("%s: by its name the folder was not written to its end", rel)
			}
			return nil
		}
		// Links are followed to files, as into the cache of a hub; not to folders.
		st, err := os.Stat(p)
		switch {
		case err != nil:
			k.problem("%s: %v", rel, err)
		case st.Mode().IsRegular():
			files, sizes[rel] = append(files, rel), st.Size()
		}
		return nil
	})
	if err != nil && k.ctx.Err() == nil {
		k.problem("%v", err)
	}
	sort.Slice(files, func(i, j int) bool { return evidence.Natural(files[i], files[j]) < 0 })
	if len(files) == 0 && len(k.Problems) == 0 {
		k.problem("the folder is empty")
		return
	}
	if len(files) > maxCheckpointFiles {
		k.unchecked("%d of %d files were not looked at", len(files)-maxCheckpointFiles, len(files))
		files = files[:maxCheckpointFiles]
	}
	dcp := map[string]bool{} // files that metadata describe
	for _, f := range files {
		if path.Base(f) == ".metadata" {
			k.distributed(root, f, sizes, dcp)
		}
	}
	for _, f := range files {
		if k.ctx.Err() != nil {
			return
		}
		full := filepath.Join(root, filepath.FromSlash(f))
		switch {
		case dcp[f], path.Base(f) == ".metadata" && k.Format == incident.FormatDCP:
		case halfWritten(f) || checkpointName(f) || k.looksLike(full):
			k.file(full, f, sizes[f])
		case strings.HasSuffix(f, ".index.json"): // below
		case sizes[f] == 0 && companion.MatchString(f):
			k.problem("%s is empty (0 bytes)", f)
		}
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".index.json") {
			k.index(root, f, sizes)
		}
	}
	k.deepSpeed(root, files, sizes)
	if k.recog == 0 && len(k.Problems) == 0 {
		k.unchecked("none of the %d files in the folder is a checkpoint of a known form", len(files))
	}
}

// companion are files beside the weights that no loader can do with empty.
var companion = lazyre.New(`(^|/)(config|tokenizer|tokenizer_config|generation_config|trainer_state|adapter_config|special_tokens_map)\.json$|(^|/)latest$`)

// looksLike reports whether the first bytes of a file are those of a checkpoint.
func (k *inspection) looksLike(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json", ".txt", ".md", ".py", ".yaml", ".yml", ".log", ".jsonl", ".csv", ".model", ".png", ".html", ".whl", ".jar", ".npz":
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return false
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	return k.formatOf(name, head[:n], st.Size()) != incident.FormatOther
}

// index compares the index of a sharded checkpoint with its shards.
func (k *inspection) index(root, name string, sizes map[string]int64) {
	k.Format = incident.FormatSharded
	text, err := readBounded(filepath.Join(root, filepath.FromSlash(name)), 256<<20)
	if err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	var x struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &x); err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	if len(x.WeightMap) == 0 {
		k.problem("%s names no tensor", name)
		return
	}
	k.recog++
	dir := path.Dir(name)
	absent := map[string][]string{}
	lost := map[string]bool{}
	var names []string
	for tensor := range x.WeightMap {
		names = append(names, tensor)
	}
	slices.Sort(names)
	for _, tensor := range names {
		shard := path.Join(dir, x.WeightMap[tensor])
		if _, there := sizes[shard]; !there {
			lost[shard] = true
		} else if have := k.names[shard]; have != nil && !have[tensor] {
			absent[shard] = append(absent[shard], tensor)
		}
	}
	for _, shard := range sortedKeys(lost) {
		k.problem("%s, which %s names, is missing", shard, path.Base(name))
	}
	for _, shard := range sortedKeys(absent) {
		k.problem("%s lacks %s that %s says it has, first %q", shard, counted(len(absent[shard]), "tensor", "tensors"), path.Base(name), absent[shard][0])
	}
}

func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return text, err
}

var (
	modelStates = lazyre.New(`^(.*/)?mp_rank_(\d+)_model_states\.pt$`)
	optimStates = lazyre.New(`^(.*/)?(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_(optim|model)_states\.pt$`)
	layerStates = lazyre.New(`^(.*/)?layer_(\d+)-model_(\d+)-model_states\.pt$`)
)

// deepSpeed compares the ranks in the names of DeepSpeed's files with each other, and with the
// numbers of ranks that the files state.
func (k *inspection) deepSpeed(root string, files []string, sizes map[string]int64) {
	type group struct {
		mp    map[int]bool                    // model-parallel ranks
		zero  map[string]map[int]map[int]bool // optim or model -> model-parallel rank -> data-parallel ranks
		world map[string]int
		// layer -> model-parallel ranks, of a pipeline. Layers without weights have no file, so
		// their numbers have gaps; but each layer has a file of every model-parallel rank.
		layers map[int]map[int]bool
	}
	groups := map[string]*group{}
	of := func(dir string) *group {
		if groups[dir] == nil {
			groups[dir] = &group{mp: map[int]bool{}, zero: map[string]map[int]map[int]bool{}, world: map[string]int{}, layers: map[int]map[int]bool{}}
		}
		return groups[dir]
	}
	for _, f := range files {
		if m := modelStates.FindStringSubmatch(f); m != nil {
			g := of(m[1])
			g.mp[atoi(m[2])] = true
			for _, key := range []string{"dp_world_size", "mp_world_size"} {
				if n, err := strconv.Atoi(k.values[f][key]); err == nil && n > 0 && n < 1<<20 {
					g.world[key] = n
				}
			}
		} else if m := optimStates.FindStringSubmatch(f); m != nil {
			g := of(m[1])
			if g.zero[m[4]] == nil {
				g.zero[m[4]] = map[int]map[int]bool{}
			}
			if g.zero[m[4]][atoi(m[3])] == nil {
				g.zero[m[4]][atoi(m[3])] = map[int]bool{}
			}
			g.zero[m[4]][atoi(m[3])][atoi(m[2])] = true
		} else if m := layerStates.FindStringSubmatch(f); m != nil {
			g := of(m[1])
			if g.layers[atoi(m[2])] == nil {
				g.layers[atoi(m[2])] = map[int]bool{}
			}
			g.layers[atoi(m[2])][atoi(m[3])] = true
		}
	}
	for _, dir := range sortedKeys(groups) {
		g := groups[dir]
		k.Format = incident.FormatDeepSpeed
		k.missing(dir+"mp_rank_%02d_model_states.pt", g.mp, g.world["mp_world_size"], len(g.mp) > 0)
		for _, kind := range sortedKeys(g.zero) {
			most := g.world["dp_world_size"]
			for _, ranks := range g.zero[kind] {
				for r := range ranks {
					most = max(most, r+1)
				}
			}
			var mps []int
			for mp := range g.zero[kind] {
				mps = append(mps, mp)
			}
			slices.Sort(mps)
			for _, mp := range mps {
				k.missing(dir+"zero_pp_rank_%d_mp_rank_"+fmt.Sprintf("%02d_%s_states.pt", mp, kind), g.zero[kind][mp], most, true)
			}
		}
		model := g.world["mp_world_size"]
		for _, ranks := range g.layers {
			for r := range ranks {
				model = max(model, r+1)
			}
		}
		for _, layer := range slices.Sorted(maps.Keys(g.layers)) {
			k.missing(fmt.Sprintf("%slayer_%02d", dir, layer)+"-model_%02d-model_states.pt", g.layers[layer], model, true)
		}
		if g.world["dp_world_size"] == 0 {
			k.note("no file of %s states how many ranks there were; ranks behind the last one that is there would not be missed", cmp.Or(dir, "the folder"))
		}
	}
	if _, there := sizes["latest"]; there && len(groups) > 0 {
		text, err := readBounded(filepath.Join(root, "latest"), 4096)
		if tag := strings.TrimSpace(string(text)); err == nil && tag != "" {
			if _, ok := groups[tag+"/"]; !ok {
				k.problem("latest names %q, and no such checkpoint is in the folder", tag)
			}
		}
	}
}

// missing says which numbers below want, or below the highest that is there, are not there.
func (k *inspection) missing(format string, have map[int]bool, want int, expected bool) {
	if !expected {
		return
	}
	for r := range have {
		want = max(want, r+1)
	}
	if want > 1<<20 {
		k.problem("a rank of %d", want-1)
		return
	}
	var gone []string
	for r := range want {
		if !have[r] {
			gone = append(gone, fmt.Sprintf(format, r))
		}
	}
	if len(gone) > 0 {
		k.problem("%s of %d missing: %s", counted(len(gone), "file is", "files are"), want, strings.Join(gone[:min(len(gone), 4)], ", "))
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1<<31 - 1
	}
	return n
}

// distributed looks at a checkpoint of torch.distributed.checkpoint: .metadata is a pickle whose
// storage_data say which object lies in which file, where and how long it is; an object that is a
// tensor is an archive of torch.save, and others are pickles.
func (k *inspection) distributed(root, name string, sizes map[string]int64, seen map[string]bool) {
	f, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		k.problem("%s: %v", name, err)
		return
	}
	defer f.Close()
	v, err := pickle.Read(io.LimitReader(f, 512<<20), pickle.Options{Mode: pickle.Inert, Nodes: 16 << 20})
	if err != nil {
		k.problem("%s: %v", name, err)
	}
	if v == nil {
		return
	}
	parts := storageInfos(v)
	if len(parts) == 0 {
		k.unchecked("%s names no file", name)
		return
	}
	k.Format = incident.FormatDCP
	dir := path.Dir(name)
	byFile := map[string][]storageInfo{}
	for _, p := range parts {
		rel := path.Join(dir, p.file)
		byFile[rel] = append(byFile[rel], p)
	}
	for _, rel := range sortedKeys(byFile) {
		size, there := sizes[rel]
		if !there {
			k.problem("%s, which %s names, is missing", rel, name)
			continue
		}
		seen[rel] = true
		k.recog++
		k.part(root, rel, size, byFile[rel])
	}
}

// part looks at one file of a distributed checkpoint.
func (k *inspection) part(root, rel string, size int64, parts []storageInfo) {
	f, err := os.Open(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		k.problem("%s: %v", rel, err)
		return
	}
	defer f.Close()
	before := k.Tensors
	slices.SortFunc(parts, func(a, b storageInfo) int { return int(min(max(a.offset-b.offset, -1), 1)) })
	for _, p := range parts {
		if k.ctx.Err() != nil {
			return
		}
		if p.offset < 0 || p.length < 0 || p.offset > size || p.length > size-p.offset {
			k.problem("%s has %d bytes; an object of it reaches to byte %d: the file ends early", rel, size, p.offset+p.length)
			break
		}
		r := io.NewSectionReader(f, p.offset, p.length)
		var head [4]byte
		if n, _ := r.ReadAt(head[:], 0); n == 4 && string(head[:]) == "PK\x03\x04" {
			k.torch(r, rel, p.length)
		}
	}
	k.Bytes += size
	if len(k.Files) < maxCheckpointFiles {
		k.Files = append(k.Files, incident.CheckpointFile{Path: rel, Format: incident.FormatDCP, Bytes: size, Tensors: k.Tensors - before})
	}
}

// A storageInfo is where an object of a distributed checkpoint lies.
type storageInfo struct {
	file           string
	offset, length int64
}

// storageInfos collects all dicts with relative_path, offset and length below v.
func storageInfos(v *pickle.Value) []storageInfo {
	var out []storageInfo
	seen := map[*pickle.Value]bool{}
	stack := []*pickle.Value{v}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		if v.Kind == pickle.KindDict {
			if p := v.Get("relative_path"); p != nil && p.Kind == pickle.KindString {
				if o, n := v.Get("offset"), v.Get("length"); o != nil && n != nil && o.Kind == pickle.KindInt && n.Kind == pickle.KindInt && !path.IsAbs(p.Text) {
					out = append(out, storageInfo{p.Text, o.Int, n.Int})
				}
			}
		}
		switch v.Kind {
		case pickle.KindString, pickle.KindBytes, pickle.KindInt, pickle.KindFloat:
		default:
			stack = append(stack, v.Items...)
		}
	}
	return out
}
