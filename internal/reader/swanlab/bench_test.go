package swanlab_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/reader"
)

// BenchmarkRead reads a log of eight series.
func BenchmarkRead(b *testing.B) {
	const n = 200_000
	names := []string{"train/loss", "train/grad_norm", "train/lr", "train/epoch", "eval/loss", "eval/accuracy", "__swanlab__.gpu.0.mem.value", "__swanlab__.gpu.0.pct"}
	var log bytes.Buffer
	w := leveldblog.NewWriter(&log, swanrecord.Ident+"\x02")
	for i := range int64(n) {
		w.Write(swanrecord.Encode(i+1, 1700000000+float64(i), swanrecord.Scalar, swanrecord.EncodePoint(names[i%8], i/8, 1700000000+float64(i), 1/float64(i+1))))
	}
	w.Flush()
	r := theReader()
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		in := reader.Input{Artifact: evidence.Artifact{Path: "run-x.swanlab"}, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(log.Bytes())), nil }}
		if err := r.Read(context.Background(), in, reader.NewCollector()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mscalars/s")
}
