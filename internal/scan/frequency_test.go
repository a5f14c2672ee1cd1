package scan

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCountFrequencies prints the table of frequency.go, counted over the text
// files below the folders in INQUEST_SCAN_SAMPLES (separated as in PATH; each
// folder weighs the same). Without the variable it is skipped.
func TestCountFrequencies(t *testing.T) {
	folders := filepath.SplitList(os.Getenv("INQUEST_SCAN_SAMPLES"))
	if len(folders) == 0 {
		t.Skip("INQUEST_SCAN_SAMPLES names no folders to count")
	}
	var one [classes]float64
	var two [classes][classes]float64
	for _, folder := range folders {
		var n1 [classes]float64
		var n2 [classes][classes]float64
		total := 0.0
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || total > 64<<20 {
				return err
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			b = b[:min(len(b), 16<<20)]
			if strings.ContainsRune(string(b[:min(len(b), 1024)]), 0) {
				return nil // not text
			}
			for i := 1; i < len(b); i++ {
				n1[classOf[b[i-1]]]++
				n2[classOf[b[i-1]]][classOf[b[i]]]++
			}
			total += float64(len(b))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f bytes", folder, total)
		for a := range one {
			one[a] += n1[a] / total
			for b := range two[a] {
				two[a][b] += n2[a][b] / total
			}
		}
	}
	cell := func(p float64) byte {
		return byte('0' + min(40, math.Round(-2*math.Log2(max(p, 1e-9)))))
	}
	var out strings.Builder
	row := make([]byte, classes)
	sum := 0.0
	for a := range one {
		sum += one[a]
	}
	for a := range one {
		row[a] = cell(one[a] / sum)
	}
	fmt.Fprintf(&out, "%q\n", row)
	for a := range two {
		for b := range two[a] {
			row[b] = cell((two[a][b] + 1e-8) / (one[a] + 1e-8*float64(classes)))
		}
		fmt.Fprintf(&out, "\t%q,\n", row)
	}
	fmt.Print(out.String())
}

func TestRarest(t *testing.T) {
	tests := []struct {
		text         string
		stride, gram int
		want         int
	}{
		{"the the Xq#@zZ~", 5, 4, 7},
		{"abcdefgh", 5, 4, 0},
		{"in zq%", 2, 3, 2},
		{"e", 1, 1, 0},
	}
	for _, tt := range tests {
		if got := rarest(tt.text, mesh{tt.stride, tt.gram}); got != tt.want {
			t.Errorf("rarest(%q, %d, %d) = %d, want %d", tt.text, tt.stride, tt.gram, got, tt.want)
		}
	}
}
