package allocator

import (
	"strings"
	"testing"
)

func TestRound(t *testing.T) {
	all := func(n int64) (r [16]int64) {
		for i := range r {
			r[i] = n
		}
		return r
	}
	for _, c := range []struct {
		size, div     int64
		version       Version
		want, segment int64
	}{
		{1, 0, 0, 512, 2097152},
		{0, 0, 0, 512, 2097152},
		{513, 0, 0, 1024, 2097152},
		{1048576, 0, 0, 1048576, 2097152},
		{1048577, 0, 0, 1049088, 20971520},
		{10485759, 0, 0, 10485760, 10485760},
		{10485761, 0, 0, 10486272, 12582912},
		{104857601, 0, 0, 104858112, 106954752},
		{1200, 4, 0, 1536, 2097152}, // the guard: not more than 512 * 4
		{3000, 4, 0, 3072, 2097152},
		{5242881, 4, 0, 6291456, 20971520},
		{5242881, 8, 0, 5767168, 20971520},
		{1074790400, 16, 0, 1140850688, 1140850688},
		{8388608, 4, 0, 8388608, 20971520}, // powers of two stay
		{3001, 1, Torch22, 3072, 2097152},
		{3001, 1, Torch21, 3001, 2097152},
		{512, 1, Torch21, 512, 2097152},
		{3001, 4, Torch21, 3072, 2097152},
	} {
		s := Settings{Roundup: all(c.div), Version: c.version}
		if got := s.Round(c.size); got != c.want || s.SegmentSize(got) != c.segment {
			t.Errorf("Round(%d) by %d = %d, segment %d; want %d, %d", c.size, c.div, got, s.SegmentSize(got), c.want, c.segment)
		}
	}
}

func TestRoundClass(t *testing.T) {
	s, err := ParseSettings("roundup_power2_divisions:[256:1, 512:2, 1024:4, >:8]")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ size, want int64 }{
		{100<<20 + 1, 100<<20 + 512},
		{300<<20 + 1, 300<<20 + 512},
		{600<<20 + 1, 768 << 20},
		{(1 << 30) + 1, 1152 << 20}, // the class before > has its divisions too
		{(1 << 40) + 1, (1 << 40) + (1 << 37)},
	} {
		if got := s.Round(c.size); got != c.want {
			t.Errorf("Round(%d) = %d, want %d", c.size, got, c.want)
		}
	}
}

func TestParseSettings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"expandable_segments:True", "expandable_segments:True"},
		{" expandable_segments : True , max_split_size_mb:128", "expandable_segments:True,max_split_size_mb:128"},
		{"max_split_size_mb:20", "max_split_size_mb:20"},
		{"garbage_collection_threshold:0.8", "garbage_collection_threshold:0.8"},
		{"roundup_power2_divisions:8", "roundup_power2_divisions:8"},
		{"roundup_power2_divisions:[1:4,>:4]", "roundup_power2_divisions:4"},
		{"backend:native,pinned_num_register_threads:8,", ""},
		{"backend:cudaMallocAsync", "backend:cudaMallocAsync"},
		{"per_process_memory_fraction:1", "per_process_memory_fraction:1"},
		{"max_non_split_rounding_mb:200,large_segment_size_mb:40", "max_non_split_rounding_mb:200,large_segment_size_mb:40"},
	} {
		s, err := ParseSettings(c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.text, s.String(), err, c.want)
		}
	}
	for _, text := range []string{
		"no_such_key:1", "expandable_segments:true", "expandable_segments", "expandable_segments:", "max_split_size_mb:19",
		"max_split_size_mb:-1", "max_split_size_mb:x", "garbage_collection_threshold:1", "garbage_collection_threshold:0",
		"garbage_collection_threshold:nan", "roundup_power2_divisions:3", "roundup_power2_divisions:0", "roundup_power2_divisions:[3:4]",
		"roundup_power2_divisions:[4:4", "roundup_power2_divisions:[4", "backend:other", ",", "max_split_size_mb:20 30:1", "max_split_size_mb:20:30",
	} {
		s := Settings{MaxSplit: 7}
		if err := s.Apply(text); err == nil || s != (Settings{MaxSplit: 7}) || !strings.Contains(err.Error(), "allocator settings") {
			t.Errorf("%q: %v, settings %+v", text, err, s)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add("roundup_power2_divisions:[256:1,512:2,>:8],expandable_segments:True")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSettings(text)
		if err != nil {
			return
		}
		again, err := ParseSettings(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q: %q became %q, %v", text, s.String(), again.String(), err)
		}
	})
}

func TestParseChange(t *testing.T) {
	c, err := ParseChange("expandable_segments:True capacity:80GiB empty_cache@12")
	if err != nil || c != (Change{"expandable_segments:True", 80 << 30, true, 12}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"", "capacity:x", "capacity:-1", "empty_cache@x", "nothing:1", "capacity:1e30"} {
		if _, err := ParseChange(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// What torch.cuda.memory._snapshot() states of this text in 2.3 and 2.9, and in 2.12 and 2.15.
func TestRoundupLastClass(t *testing.T) {
	for version, want := range map[Version]int64{Torch22: 1, Torch212: 2, Torch213: 2} {
		s := Settings{Version: version}
		if err := s.Apply("roundup_power2_divisions:[2:8,64:2,>:1]"); err != nil {
			t.Fatal(err)
		}
		if got := s.Roundup; got != [16]int64{8, 8, 0, 0, 0, 0, want, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
			t.Errorf("%v: %v", version, got)
		}
	}
}
