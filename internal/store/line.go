package store

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds on records, in bytes of JSON.
const (
	maxInline = 256 << 10 // of a record that stands in a line
	maxRecord = 64 << 20  // of any
	maxFile   = 1 << 30   // of a file of records that is read
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the line of a record. A large record is written into a file of its own
// first, whose name begins with prefix.
func encode(r incident.Record, prefix string) ([]byte, error) {
	b, err := marshal(r)
	if err != nil {
		return nil, err
	}
	if len(b) > maxRecord {
		return nil, fmt.Errorf("a record of %d bytes; at most %d", len(b), maxRecord)
	}
	if len(b) > maxInline {
		if r.Attached, err = attach(b, attachedName(prefix, r.Seq)); err != nil {
			return nil, err
		}
		b, err = json.Marshal(incident.Record{Seq: r.Seq, At: r.At, Kind: r.Kind, Attached: r.Attached})
		if err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(b, "\t%08x\n", crc32.Checksum(b, castagnoli)), nil
}

// marshal is json.Marshal. What a trial begins with it writes without looking at the types of a
// whole diagnosis first, which takes a millisecond that the user's command waits for.
func marshal(r incident.Record) ([]byte, error) {
	if r.Kind != incident.RecordBegun {
		return json.Marshal(r)
	}
	return json.Marshal(struct {
		Seq   int             `json:"seq"`
		At    string          `json:"at"`
		Kind  string          `json:"kind"`
		Begun *incident.Trial `json:"begun,omitempty"`
	}{r.Seq, r.At, r.Kind, r.Begun})
}

func attachedName(prefix string, seq int) string {
	return prefix + "-" + strconv.Itoa(seq) + ".json.gz"
}

// attach writes b compressed into a new file. One that stands there already is of a write
// that failed: nothing names it yet.
func attach(b []byte, name string) (*incident.Attached, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	z := gzip.NewWriter(f)
	_, err = z.Write(b)
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		os.Remove(name)
		return nil, err
	}
	sum := sha256.Sum256(b)
	return &incident.Attached{Name: filepath.Base(name), Bytes: int64(len(b)), Digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// attached reads the record that stands in a file beside dir's records.
func attached(a *incident.Attached, dir string) (*incident.Record, error) {
	if !isID(a.Name) || a.Bytes < 0 || a.Bytes > maxRecord {
		return nil, errors.New("its file has no name or size that this program gives")
	}
	f, _, err := openRegular(filepath.Join(dir, a.Name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(z, a.Bytes+1))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); a.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return nil, errors.New("it is not what was written")
	}
	var r incident.Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// decode reads one line, without its end.
func decode(line []byte) (*incident.Record, error) {
	const tail = 9 // a tab and the sum
	n := len(line) - tail
	if n < 0 || line[n] != '\t' {
		return nil, errors.New("it has no check sum")
	}
	sum, err := strconv.ParseUint(string(line[n+1:]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[:n], castagnoli) {
		return nil, errors.New("its check sum is another")
	}
	var r incident.Record
	if err := json.Unmarshal(line[:n], &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// A damage counts what of a file of records could not be read.
type damage struct {
	broken int    // complete lines that are no records
	first  int    // the first of them, from 1
	why    string // of it
	torn   int64  // bytes behind the last complete line
	cut    bool   // the file goes on behind what was read
}

// readRecords calls fn for each record in r, in order. Lines that are no record are counted
// and passed over. An error is one of reading.
func readRecords(r io.Reader, fn func(*incident.Record)) (damage, error) {
	var d damage
	in := bufio.NewReaderSize(io.LimitReader(r, maxFile), 64<<10)
	bad := func(line int, why string) {
		if d.broken++; d.broken == 1 {
			d.first, d.why = line, why
		}
	}
	var line []byte
	for n := 1; ; n++ {
		line = line[:0]
		long := false
		var size int64
		for {
			part, err := in.ReadSlice('\n')
			size += int64(len(part))
			if long = long || len(line)+len(part) > 2*maxInline; !long {
				line = append(line, part...)
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			d.torn = size
			if !errors.Is(err, io.EOF) {
				return d, err
			}
			one := make([]byte, 1)
			more, _ := r.Read(one)
			d.cut = more > 0
			return d, nil
		}
		if long {
			bad(n, fmt.Sprintf("it has %d bytes", size))
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if bytes.HasSuffix(line, []byte("!")) {
			bad(n, "its writing failed")
			continue
		}
		rec, err := decode(line)
		if err != nil {
			bad(n, err.Error())
			continue
		}
		fn(rec)
	}
}
