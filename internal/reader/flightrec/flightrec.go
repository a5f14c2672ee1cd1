// Package flightrec reads the dumps of the flight recorder of torch.distributed:
// what each rank had enqueued, started and completed in each of its process
// groups when it wrote the dump.
//
// ProcessGroupNCCL writes one file per rank on a time-out, an exception or on demand,
// since PyTorch 2.2 (torch/csrc/distributed/c10d/FlightRecorder*.hpp; before 2.7
// TraceUtils.h and NCCLUtils.hpp). The file is a pickle of protocol 2 without
// classes; the HTTP handler dump_nccl_trace_json and _dump_nccl_trace_json give
// the same as JSON, with numbers of pg_status as strings and 0 for times that are
// not known. Its prefix is free (TORCH_NCCL_DEBUG_INFO_TEMP_FILE,
// TORCH_FR_DUMP_TEMP_FILE); the global rank is appended to it. The top level:
//
//	version     "1.x", "2.x": text, compared part by part
//	pg_config   {name: {name, desc, ranks}}; ranks is text: "[0, 1, 2]", or empty
//	pg_status   {pg_id: {last_enqueued_collective, last_started_collective, last_completed_collective}};
//	            -1 is none; the numbers are of the last work, collective or point-to-point
//	entries     list, oldest first: a ring of the last TORCH_NCCL_TRACE_BUFFER_SIZE, or only those not completed
//	nccl_version, comm_lib_version, nccl_comm_state: not used
//
// An entry has record_id, pg_id, process_group (name, description), collective_seq_id and p2p_seq_id (1.x:
// seq_id), op_id, profiling_name ("nccl:all_reduce", "nccl:send 0->3" with ranks of the group), state
// (scheduled, started, completed), time_created_ns, input_sizes, input_dtypes, output_sizes, output_dtypes,
// is_p2p, timeout_ms, retired and frames (innermost first).
package flightrec

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
	"github.com/inquest-dev/inquest/internal/reader"
)

// Limits of one dump. A ring of 2000 entries with stacks takes a few megabytes.
const (
	maxBytes   = 256 << 20
	maxText    = 64 << 20
	maxNodes   = 2 << 20
	maxGroups  = 512
	maxEntries = 1 << 17
	maxRanks   = 1 << 17 // of one group
)

// New returns the reader of flight-recorder dumps.
func New() reader.Reader { return flightrec{} }

type flightrec struct{}

func (flightrec) Name() string { return "flightrec" }

// Sniff claims pickles and JSON objects that begin with what only these dumps
// have.
func (flightrec) Sniff(_ evidence.Artifact, head []byte) reader.Confidence {
	word := func(w string) bool { return bytes.Contains(head, []byte(w)) }
	switch {
	case binary(head):
	case opens(head, '{'):
		word = func(w string) bool { return bytes.Contains(head, []byte(`"`+w+`"`)) }
	default:
		return reader.No
	}
	switch {
	case word("pg_config") && (word("pg_status") || word("entries") || word("version")),
		word("collective_seq_id") && word("p2p_seq_id"),
		word("record_id") && word("profiling_name"):
		return reader.Sure
	case word("pg_config"), word("pg_status") && word("last_enqueued_collective"):
		return reader.Likely
	}
	return reader.No
}

// binary reports whether head is that of a pickle of protocol 2 or later.
func binary(head []byte) bool {
	return len(head) > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
}

func opens(head []byte, with byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == with
}

// Read reads one dump. What lies behind it in the file is not looked at, but
// read, so that the digest is the file's.
func (flightrec) Read(ctx context.Context, in reader.Input, sink reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	raw := reader.Stopping(ctx, rc)
	limited := &io.LimitedReader{R: raw, N: maxBytes}
	r := bufio.NewReaderSize(limited, 64<<10)
	head, _ := r.Peek(4096)
	var top *pickle.Value
	if binary(head) {
		top, err = pickle.Read(r, pickle.Options{Nodes: maxNodes, Bytes: maxText})
	} else {
		top, err = readJSON(r)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	damaged := err != nil
	if damaged {
		if limited.N <= 0 {
			err = fmt.Errorf("it has more than %d MiB", maxBytes>>20)
		}
		sink.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "record", Offset: damagedAt(err)}, err)
	}
	d := &dump{path: in.Artifact.Path, cut: damaged, groups: map[string]*group{}, sink: sink}
	d.interpret(top)
	d.name(in.Artifact)
	d.say()
	if _, err := io.Copy(io.Discard, raw); err != nil { // r holds no more than its buffer
		return err
	}
	return ctx.Err()
}

// damagedAt is the offset that an error names.
func damagedAt(err error) int64 {
	var p *pickle.Error
	var j *jsonError
	switch {
	case errors.As(err, &p):
		return p.Offset
	case errors.As(err, &j):
		return j.offset
	}
	return 0
}
