package rows_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/format/rows"
)

// points reads a file and gives each of its points as run|name@step=value.
func points(t testing.TB, file, text string) (tracker string, all []string) {
	t.Helper()
	form, member := rows.FormOf(file, []byte(text))
	d, l := rows.NewDecoder(strings.NewReader(text), form, member), rows.NewLayout(file, form, member)
	var joined bytes.Buffer
	for {
		p, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Offset != int64(joined.Len()) || p.Line != int64(strings.Count(joined.String(), "\n"))+1 {
			t.Fatalf("a piece says byte %d line %d, it is byte %d", p.Offset, p.Line, joined.Len())
		}
		joined.Write(p.Raw)
		switch p.Kind {
		case rows.Header:
			l.Header(p.Cells)
		case rows.Row:
			r := l.Row(p.Cells)
			for _, pt := range r.Points {
				all = append(all, fmt.Sprintf("%s|%s@%d=%v", pt.Run, pt.Name, pt.Step, p.Cells[pt.Cell].Value))
			}
		}
	}
	if joined.String() != text {
		t.Fatalf("the pieces are not the file: %q of %q", joined.String(), text)
	}
	return l.Tracker, all
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct{ file, text, tracker, want string }{
		{"trainer_state.json", "{\"global_step\": 2, \"log_history\": [{\"loss\": NaN, \"step\": 1}, {\"loss\": 0.5, \"step\": 2}]}", "trainer_state", "|loss@1=NaN |loss@2=0.5"},
		{"v/metrics.csv", "loss,epoch,step\r\nnan,0,9\r\n,0,19\r\n", "lightning", "|loss@9=NaN |epoch@9=0 |epoch@19=0"},
		{"log.csv", "epoch,loss,val_loss\n0,1.5,NA\n1,inf,2\n", "keras", "|loss@0=1.5 |loss@1=+Inf |val_loss@1=2"},
		{"a.csv", "step,loss\n1,2\nstep,loss,lr\n2,3,4\n", "csv", "|loss@1=2 |loss@2=3 |lr@2=4"},
		{"a.csv", "step;note;loss\n1;\"a;b\nc\";2\n2;x\n3;y;1e999;7\n", "csv", "|loss@1=2 |loss@3=+Inf"},
		{"run-exp_1-tag-train_loss.csv", "Wall time,Step,Value\n1700000000.5,3,nan\n", "tensorboard-csv", "exp_1|train_loss@3=NaN"},
		{"run-x-tag-loss.json", "[[1700000000.5, 3, \"NaN\"], [1700000001.5, 4, 0.5]]", "tensorboard-json", "x|loss@3=NaN x|loss@4=0.5"},
		{"p.csv", "Step,a - b - loss,a - b - loss__MIN,a - b - loss__MAX\n5,NaN,1,2\n", "wandb-csv", "a - b|loss@5=NaN a - b|loss__MIN@5=1 a - b|loss__MAX@5=2"},
		{"m.csv", "key,value,timestamp,step\nloss,NaN,1700000000000,4\n", "mlflow-csv", "|loss@4=NaN"},
		{"m.json", "{\"metrics\": [{\"key\": \"loss\", \"value\": \"NaN\", \"timestamp\": 1700000000000, \"step\": \"4\"}]}", "mlflow-json", "|loss@4=NaN"},
		{"l.csv", "run,metric,step,value\nr1,loss,1,2\nr2,acc,1,nan\n", "csv", "r1|loss@1=2 r2|acc@1=NaN"},
		{"h.jsonl", "{'loss': nan, 'epoch': 0.1, 'step': 1}\n{'loss': inf, 'x': None, 'y': True, 'step': 2}", "jsonl", "|loss@1=NaN |epoch@1=0.1 |loss@2=+Inf"},
		{"h.jsonl", "\xef\xbb\xbf{\"step\": 1, \"note\": \"NaN, \\\"x\\\"\", \"loss\": \"0.5\"}{\"step\": 2, \"loss\": null}\x00\x00", "jsonl", "|loss@1=0.5"},
		{"result.json", "{\"training_iteration\": 1, \"time_total_s\": 2.5, \"config\": {\"lr\": NaN}, \"loss\": \"null\"}", "ray", "|time_total_s@1=2.5 |loss@1=NaN"},
		{"w/1/vis_data/scalars.json", "{\"loss\": 1.0, \"iter\": 10, \"step\": 10}\n{\"coco/mAP\": 0.5, \"step\": 10}", "mmengine", "|loss@10=1 |coco/mAP@10=0.5"},
		{"t.log.json", "{\"seed\": 1}\n{\"mode\": \"train\", \"epoch\": 1, \"iter\": 50, \"loss\": 1}\n{\"mode\": \"train\", \"epoch\": 1, \"iter\": 100, \"loss\": 1}\n{\"mode\": \"val\", \"epoch\": 1, \"iter\": 7, \"mAP\": 0.5}\n{\"mode\": \"train\", \"epoch\": 2, \"iter\": 50, \"loss\": 1}",
			"mmcv", "|epoch@50=1 |loss@50=1 |epoch@100=1 |loss@100=1 |val/epoch@100=1 |val/mAP@100=0.5 |epoch@150=2 |loss@150=1"},
	} {
		tracker, got := points(t, c.file, c.text)
		if tracker != c.tracker || strings.Join(got, " ") != c.want {
			t.Errorf("%s %q:\n got %s %s\nwant %s %s", c.file, c.text, tracker, strings.Join(got, " "), c.tracker, c.want)
		}
	}
}

// FuzzPieces: the pieces of a file are the file, and each says where it stands.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{
		"{\"log_history\": [{\"loss\": NaN, \"step\": 1}], \"x\": {\"y\": [1]}}", "{\"step\": 1}\n{'a': inf}\n", "step,loss\n1,\"n\na\"\n", "\xef\xbb\xbfa;b\r\n1;2\r\n", "[[1,2,\"NaN\"]]", "[{\"step\":1}]", "{\"a\":[[[{",
	} {
		f.Add("x.csv", s)
		f.Add("trainer_state.json", s)
	}
	f.Fuzz(func(t *testing.T, file, text string) { points(t, file, text) })
}
