package tfevents_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/tfevents"
)

// tags are logged one after the other at each step, as training loops do.
var tags = []string{
	"train/loss", "train/grad_norm", "train/lr", "eval/acc", "layer_0/act_mean", "layer_1/act_mean", "layer_2/act_mean", "layer_3/act_mean",
	"layer_4/act_mean", "layer_5/act_mean", "layer_6/act_mean", "layer_7/act_mean", "layer_8/act_mean", "layer_9/act_mean", "layer_10/act_mean",
	"layer_11/act_mean", "layer_12/act_mean", "layer_13/act_mean", "layer_14/act_mean", "layer_15/act_mean",
}

// generate writes an event file of n scalars: as torch does, or as tensors of TensorFlow 2.
func generate(w io.Writer, n int, tensors bool) error {
	buf := tfrecord.Append(nil, tfevent.VersionEvent(1.7e9))
	for i := range n {
		wall, step, v := 1.7e9+float64(i)*.01, int64(i/len(tags)), 2.5+float32(i*7919%1000)/1000
		e := tfevent.ScalarEvent(wall, step, tags[i%len(tags)], v)
		if tensors {
			tensor := protowire.AppendBytes(protowire.AppendVarint(nil, 1, 1), 2, "")
			tensor = protowire.AppendBytes(tensor, 5, protowire.AppendFloat(nil, 0, v)[1:])
			value := protowire.AppendBytes(protowire.AppendBytes(nil, 1, tags[i%len(tags)]), 8, tensor)
			if step == 0 {
				value = protowire.AppendBytes(value, 9, protowire.AppendBytes(nil, 1, protowire.AppendBytes(nil, 1, "scalars")))
			}
			e = protowire.AppendDouble(nil, 1, wall)
			if step != 0 {
				e = protowire.AppendVarint(e, 2, uint64(step))
			}
			e = protowire.AppendBytes(e, 5, protowire.AppendBytes(nil, 1, value))
		}
		if buf = tfrecord.Append(buf, e); len(buf) > 1<<20 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}

// TestMakeFile writes the file that TFEVENTS_MAKE names, for scripts/bench.
func TestMakeFile(t *testing.T) {
	name := os.Getenv("TFEVENTS_MAKE")
	if name == "" {
		t.Skip("TFEVENTS_MAKE names no file")
	}
	n, err := strconv.Atoi(os.Getenv("TFEVENTS_SCALARS"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(generate(f, n, os.Getenv("TFEVENTS_KIND") == "tensor"), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestReadFile reads the file that TFEVENTS names and nothing else: scripts/bench measures its
// process.
func TestReadFile(t *testing.T) {
	name := os.Getenv("TFEVENTS")
	if name == "" {
		t.Skip("TFEVENTS names no file")
	}
	s := &whole{Collector: reader.NewCollector()}
	err := tfevents.New().Read(t.Context(), reader.Input{Artifact: evidence.Artifact{Path: name}, Open: func() (io.ReadCloser, error) { return os.Open(name) }, Size: -1}, s)
	if err != nil || len(s.run.Damage) > 0 {
		t.Fatal(err, s.run.Damage)
	}
	n := int64(0)
	for _, tr := range s.run.Tracks {
		n += tr.Series.Count
	}
	t.Logf("%d scalars", n)
}

// BenchmarkRead measures one processor, checksums included.
func BenchmarkRead(b *testing.B) {
	const n = 400_000
	for _, kind := range []string{"simple", "tensor"} {
		b.Run(kind, func(b *testing.B) {
			var data bytes.Buffer
			if err := generate(&data, n, kind == "tensor"); err != nil {
				b.Fatal(err)
			}
			in := reader.Input{
				Artifact: evidence.Artifact{Path: "run/events.out.tfevents.1700000000.node7.42.0"},
				Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
				Size:     int64(data.Len()),
			}
			b.SetBytes(int64(data.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if err := tfevents.New().Read(context.Background(), in, reader.NewCollector()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mscalars/s")
		})
	}
}
