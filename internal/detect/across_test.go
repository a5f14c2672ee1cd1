package detect_test

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestAcross compares a launch that ran out of memory with one that did not.
func TestAcross(t *testing.T) {
	type settings map[string]int64
	for _, tc := range []struct {
		name         string
		full, fits   settings
		smaller, was bool
	}{
		{"half the batch", settings{"run.batch": 16}, settings{"run.batch": 8}, true, false},
		{"the same again", settings{"run.batch": 16, "setting.lr": 1}, settings{"run.batch": 16, "setting.lr": 2}, false, true},
		{"a smaller model", settings{"run.batch": 16, "setting.n_layer": 30}, settings{"run.batch": 8, "setting.n_layer": 6}, false, false},
		{"a smaller model at the same batch", settings{"run.batch": 16, "setting.hidden-size": 4096}, settings{"run.batch": 16, "setting.hidden-size": 512}, false, false},
		{"fewer parameters", settings{"run.batch": 16, "run.params": 9e9}, settings{"run.batch": 16, "run.params": 1e9}, false, false},
		{"another length", settings{"run.batch": 16, "run.seq_len": 8192}, settings{"run.batch": 8, "run.seq_len": 2048}, false, false},
		{"a batch not stated", settings{"setting.n_layer": 30}, settings{"run.batch": 8}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			known := func(s settings) evidence.Known {
				k := evidence.Known{}
				for n, v := range s {
					k.Set(n, evidence.IntOf(v), evidence.Span{Artifact: "sweep.log", Kind: "text", Line: 1})
				}
				return k
			}
			full := &detect.Previous{Facts: known(tc.full), Memory: true}
			detect.Across([]*detect.Previous{full, {Facts: known(tc.fits), Points: 40}})
			if got := full.Facts.True("run.smaller_batch_fits"); got != tc.smaller {
				t.Errorf("run.smaller_batch_fits is %v", got)
			}
			if got := full.Facts.True("run.same_config_fits"); got != tc.was {
				t.Errorf("run.same_config_fits is %v", got)
			}
		})
	}
}

// TestAcrossPrecision: 16-bit numbers of either kind take the same memory; so does not mixed
// precision beside 16 bits throughout, or 32.
func TestAcrossPrecision(t *testing.T) {
	for _, tc := range []struct {
		full, fits string
		want       bool
	}{
		{"bf16", "fp16", true}, {"bf16-true", "fp16-true", true}, {"bf16", "bf16", true},
		{"fp32", "fp16", false}, {"bf16-true", "bf16", false}, {"fp32", "fp8", false},
	} {
		known := func(batch int64, p string) evidence.Known {
			k := evidence.Known{}
			k.Set("run.batch", evidence.IntOf(batch), evidence.Span{Artifact: "a.log", Kind: "text", Line: 1})
			k.Set("run.precision", evidence.TextOf(p), evidence.Span{Artifact: "a.log", Kind: "text", Line: 2})
			return k
		}
		full := &detect.Previous{Facts: known(12, tc.full), Memory: true}
		detect.Across([]*detect.Previous{{Facts: known(6, tc.fits), Points: 40}, full})
		if got := full.Facts.True("run.smaller_batch_fits"); got != tc.want {
			t.Errorf("%s after %s: %v", tc.full, tc.fits, got)
		}
	}
}
