package wandb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/wandb"
)

// rows makes a log of n rows as wandb-core writes them: items of a row in the order of a Go map, with
// wide items a row besides the three that W&B adds.
func rows(n, wide int) []byte {
	var b bytes.Buffer
	w := leveldblog.NewWriter(&b, wandblog.Header)
	run := protowire.AppendBytes(nil, 1, "bench1")
	w.Write(wandblog.Make(nil, 1, wandblog.Run, run))
	item := func(dst []byte, key, value string) []byte {
		in := protowire.AppendBytes(nil, 2, key)
		return protowire.AppendBytes(dst, 1, protowire.AppendBytes(in, 16, value))
	}
	keys := []string{"_timestamp", "_runtime", "_step"}
	for i := range wide {
		keys = append(keys, fmt.Sprintf("train/metric_%d", i))
	}
	for i := range n {
		var body []byte
		for j := range keys {
			switch k := keys[(i*7+j)%len(keys)]; k {
			case "_timestamp":
				body = item(body, k, fmt.Sprintf("1.79610%010de+09", int64(i)*1000))
			case "_runtime":
				body = item(body, k, fmt.Sprint(float64(i)*0.251285144))
			case "_step":
				body = item(body, k, fmt.Sprint(i))
			default:
				body = item(body, k, fmt.Sprint(1/(1+float64(i)*0.37+float64(j))))
			}
		}
		step := binary.AppendUvarint([]byte{8}, uint64(i))
		body = protowire.AppendBytes(body, 2, step)
		w.Write(wandblog.Make(nil, int64(i+2), wandblog.History, body))
	}
	w.Flush()
	return b.Bytes()
}

// BenchmarkRead is the speed of reading a log: items parsed a second, their numbers included,
// checksums on.
func BenchmarkRead(b *testing.B) {
	for _, wide := range []int{7, 17, 47} {
		b.Run(fmt.Sprintf("%d metrics a row", wide), func(b *testing.B) {
			n := 600000 / (wide + 3)
			data := rows(n, wide)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				err := wandb.New(silent{}).Read(context.Background(), reader.Input{
					Artifact: evidence.Artifact{Path: "run-bench1.wandb"},
					Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
				}, reader.NewCollector())
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*(wide+3))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mitems/s")
		})
	}
}
