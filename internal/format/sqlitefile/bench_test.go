package sqlitefile

import (
	"bytes"
	"context"
	"testing"
)

// BenchmarkScan reads a table like MLflow's metrics, whose primary key is an index
// between its pages, and adds up four of its columns. scripts/bench/mlflow.sh sets a large
// one against Python's sqlite3.
func BenchmarkScan(b *testing.B) {
	const rows = 200_000
	files := made(b, `CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL,
 step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL, PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 199999)
 INSERT INTO metrics SELECT 'system/gpu_'||(i%12)||'_utilization_percentage', 2.5+i/1e6, 1700000000000+i*97, printf('%032x', i/40000), i/12, 0 FROM n`, false)
	db := files["x.db"]
	f, err := Open(context.Background(), Source{DB: bytes.NewReader(db), Size: int64(len(db))})
	if err != nil {
		b.Fatal(err)
	}
	t := f.Table("metrics")
	for b.Loop() {
		n, sum := 0, 0.0
		err := f.Scan(context.Background(), t, func(r *Row) error {
			n++
			sum += r.Float(1) + float64(r.Int(2)+r.Int(4)+r.Int(5)) + float64(len(r.Bytes(0))+len(r.Bytes(3)))
			return nil
		}, func(d Damage) { b.Fatal(d) })
		if err != nil || n != rows {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
