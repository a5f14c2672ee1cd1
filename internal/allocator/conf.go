package allocator

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ParseSettings reads the value of PYTORCH_CUDA_ALLOC_CONF (CUDAAllocatorConfig.cpp,
// since 2.9 also c10/core/AllocatorConfig.cpp): key:value pairs with commas between
// them, [key:value,...] lists, blanks anywhere. It refuses what PyTorch refuses; keys
// of any version are known. Keys without effect on where blocks go are checked and
// have none here either.
func ParseSettings(text string) (Settings, error) {
	var s Settings
	err := s.Apply(text)
	return s, err
}

// Apply sets what text says and leaves the rest. After an error s is as it was.
func (s *Settings) Apply(text string) error {
	next := *s
	p := confParser{tok: confTokens(text)}
	for p.i < len(p.tok) {
		key := p.take()
		if !p.expect(":") {
			return p.err
		}
		if err := p.option(&next, key); err != nil {
			return err
		}
		if p.i < len(p.tok) && !p.expect(",") {
			return p.err
		}
	}
	*s = next
	return nil
}

type confParser struct {
	tok []string
	i   int
	err error
}

// confTokens cuts text at the four marks of the grammar and drops blanks.
func confTokens(text string) []string {
	var out []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case strings.ContainsRune(",:[]", r):
			flush()
			out = append(out, string(r))
		case r != ' ':
			word.WriteRune(r)
		}
	}
	flush()
	return out
}

func (p *confParser) take() string {
	if p.i >= len(p.tok) {
		return ""
	}
	p.i++
	return p.tok[p.i-1]
}

func (p *confParser) expect(mark string) bool {
	if got := p.take(); got != mark {
		p.err = fmt.Errorf("allocator settings: expected %q, found %q", mark, got)
		return false
	}
	return true
}

func (p *confParser) option(s *Settings, key string) error {
	switch key {
	case "expandable_segments":
		return p.boolean(key, &s.Expandable)
	case "max_split_size_mb":
		return p.megabytes(key, 20, &s.MaxSplit)
	case "max_non_split_rounding_mb":
		return p.megabytes(key, 20, &s.NonSplit)
	case "large_segment_size_mb":
		return p.megabytes(key, 2, &s.Large)
	case "garbage_collection_threshold":
		return p.fraction(key, false, &s.GCThreshold)
	case "per_process_memory_fraction":
		return p.fraction(key, true, &s.Fraction)
	case "roundup_power2_divisions":
		return p.roundup(s)
	case "backend":
		switch v := p.take(); v {
		case "native":
			s.Async = false
		case "cudaMallocAsync", "hipMallocAsync":
			s.Async = true
		default:
			return fmt.Errorf("allocator settings: unknown backend %q: it is native or cudaMallocAsync", v)
		}
		return nil
	case "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
		"pinned_use_hip_host_register", "pinned_use_background_threads", "graph_capture_record_stream_reuse",
		"throw_on_cudamalloc_oom", "pinned_free_catch_all":
		return p.boolean(key, new(bool))
	case "pinned_num_register_threads", "pinned_reserve_segment_size_mb", "roundup_bypass_threshold_mb":
		return p.megabytes(key, 0, new(int64))
	}
	return fmt.Errorf("allocator settings: unrecognized key %q", key)
}

func (p *confParser) boolean(key string, to *bool) error {
	v := p.take()
	if v != "True" && v != "False" {
		return fmt.Errorf("allocator settings: %s is True or False, not %q", key, v)
	}
	*to = v == "True"
	return nil
}

func (p *confParser) megabytes(key string, least int64, to *int64) error {
	v := p.take()
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("allocator settings: %s is a number of MiB, not %q", key, v)
	}
	if n < least {
		return fmt.Errorf("allocator settings: %s is %d, it must be at least %d", key, n, least)
	}
	*to = min(n, bytesMax/mib) * mib
	return nil
}

func (p *confParser) fraction(key string, one bool, to *float64) error {
	v := p.take()
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f > 0 && (f < 1 || one && f == 1)) {
		return fmt.Errorf("allocator settings: %s lies between 0 and 1, it is %q", key, v)
	}
	*to = f
	return nil
}

// roundup reads one number for all sizes, or a list of size classes in MiB: the first
// one holds for smaller sizes too, and > for the last one and all above it
// (parseRoundUpPower2Divisions fills from the last class on, that one included; in 2.12
// and newer without it).
func (p *confParser) roundup(s *Settings) error {
	if p.i < len(p.tok) && p.tok[p.i] != "[" {
		n, err := p.divisions()
		if err == nil && n == 0 {
			err = fmt.Errorf("allocator settings: roundup_power2_divisions: 0 is no power of two")
		}
		for i := range s.Roundup {
			s.Roundup[i] = n
		}
		return err
	}
	if !p.expect("[") {
		return p.err
	}
	s.Roundup = [16]int64{}
	last := -1
	if p.i < len(p.tok) && p.tok[p.i] == "]" {
		p.i++
		return nil
	}
	for {
		class := p.take()
		if !p.expect(":") {
			return p.err
		}
		n, err := p.divisions()
		if err != nil {
			return err
		}
		if class == ">" {
			from := max(last, 0)
			if s.Version == Torch212 || s.Version == Torch213 {
				from = last + 1
			}
			for i := from; i < len(s.Roundup); i++ {
				s.Roundup[i] = n
			}
		} else if last, err = setClass(&s.Roundup, class, n, last); err != nil {
			return err
		}
		switch mark := p.take(); mark {
		case "]":
			return nil
		case ",":
		default:
			return fmt.Errorf("allocator settings: roundup_power2_divisions: expected \",\" or \"]\", found %q", mark)
		}
	}
}

func setClass(r *[16]int64, class string, n int64, last int) (int, error) {
	c, err := strconv.ParseUint(class, 10, 64)
	if err != nil || c == 0 || c&(c-1) != 0 {
		return last, fmt.Errorf("allocator settings: roundup_power2_divisions: the size class %q is no power of two", class)
	}
	i := min(bits.Len64(c)-1, len(r)-1)
	if last < 0 {
		for k := range i {
			r[k] = n
		}
	}
	r[i] = n
	return i, nil
}

func (p *confParser) divisions() (int64, error) {
	v := p.take()
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n&(n-1) != 0 || n > bytesMax/minBlock/2 {
		return 0, fmt.Errorf("allocator settings: roundup_power2_divisions: %q is neither 0 nor a power of two", v)
	}
	return n, nil
}
