package leveldblog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	wandbIdent  = ":W&B\xe1\xbe"
	wandbHeader = wandbIdent + "\x00"
)

// A log of seven records of a run as W&B's writer makes it, and one of SwanLab's.
const (
	golden = "3a572642e1be00544c6fb51e000108018a01190a0861626364313233341a0470726f6a8a01060880e2cfaa065fd30d4917000108022a130a110a0a62617463685f73697a65820102333257df0d884000010803123c0a0c12046c6f7373820103302e350a0b12055f73746570820101300a1b120a5f74696d657374616d7082010c313730303030303030302e301202080083cdae174000010804123c0a0c12046c6f73738201034e614e0a0b12055f73746570820101310a1b120a5f74696d657374616d7082010c313730303030303030312e30120208018d392f243a000108053a3612060883e2cfaa061a2c0a1a6770752e302e6d656d6f7279416c6c6f6361746564427974657382010d38343832353630343039362e30edb9c0613c000108066a38080012060884e2cfaa061a2c746f7263682e4f75744f664d656d6f72794572726f723a2043554441206f7574206f66206d656d6f72792e0a3f1e0005090001080792010408011005"
	swan   = "3a53574cd6e1026a514cdd290001080112060881e2cfaa066a1d0a046c6f73731001180122060881e2cfaa062a0909000000000000e03f675a6777290001080212060882e2cfaa066a1d0a046c6f73731002180122060882e2cfaa062a0909000000000000f87f7e6a9f0610000108035a0c0802120843554441204f4f4d"
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write makes a log of the records.
func write(t testing.TB, header string, records ...[]byte) []byte {
	var b bytes.Buffer
	w := NewWriter(&b, header)
	for i, rec := range records {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			w.Flush()
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns copies of the records of a log and says of each record and damage, in
// order, where it stands.
func read(src io.Reader, ident string) (records [][]byte, places []string) {
	return drain(NewReader(src, ident))
}

func drain(r *Reader) (records [][]byte, places []string) {
	for {
		rec, err := r.Next()
		var d *Damage
		switch {
		case err == io.EOF:
			return records, places
		case errors.As(err, &d):
			places = append(places, fmt.Sprintf("%s %d+%d", d.Kind, d.Offset, d.Bytes))
		case err != nil:
			return records, append(places, err.Error())
		default:
			records = append(records, bytes.Clone(rec.Data))
			places = append(places, fmt.Sprintf("%d+%d", rec.Offset, rec.Length))
		}
	}
}

func equal(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func TestGolden(t *testing.T) {
	for _, g := range []struct {
		name, file, ident string
		version           byte
		n                 int
	}{
		{"wandb", golden, wandbIdent, 0, 7},
		{"swanlab", swan, ":SWL\xd6\xe1", 2, 3},
	} {
		data := unhex(t, g.file)
		records, places := read(iotest.OneByteReader(bytes.NewReader(data)), g.ident)
		if len(records) != g.n || len(places) != g.n {
			t.Fatalf("%s: %d records, want %d: %v", g.name, len(records), g.n, places)
		}
		r := NewReader(bytes.NewReader(data), g.ident)
		if r.Next(); r.Version() != g.version {
			t.Errorf("%s: version %d, want %d", g.name, r.Version(), g.version)
		}
		if got := write(t, g.ident+string(g.version), records...); !bytes.Equal(got, data) {
			t.Errorf("%s: written again it is\n%x\nwant\n%x", g.name, got, data)
		}
	}
}

// sized returns records of the given lengths, each with bytes of its own.
func sized(lengths ...int) [][]byte {
	var out [][]byte
	for i, n := range lengths {
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(i*7 + j*13 + 1)
		}
		out = append(out, b)
	}
	return out
}

func TestBlockEnds(t *testing.T) {
	room := Block - HeaderSize - chunkHeader // payload of a record that fills the first block
	for _, c := range [][]int{
		{room}, {room, 0, 5}, {room - 5, 5}, {room - 6, 20}, {room - 7, 20}, {room - 7, 0}, {room - 8, 20}, {room - 8, 1, 1},
		{room + 1, 3}, {3 * Block, 1}, {room, Block - chunkHeader, Block - chunkHeader - 7, 9}, {0, 0, 0}, {},
	} {
		want := sized(c...)
		data := write(t, wandbHeader, want...)
		got, places := read(bytes.NewReader(data), wandbIdent)
		if !equal(got, want) || len(places) != len(want) {
			t.Errorf("records of %v bytes: read %v", c, places)
		}
	}
	// Where seven bytes are left, some writers put zeros and not the header of an empty chunk.
	data := write(t, wandbHeader, sized(room-7)...)
	data = append(data, make([]byte, chunkHeader)...)
	data = append(data, write(t, wandbHeader, sized(20)...)[HeaderSize:]...)
	if _, places := read(bytes.NewReader(data), wandbIdent); fmt.Sprint(places) != fmt.Sprintf("[7+%d %d+27]", room, Block) {
		t.Errorf("padding of seven bytes: %v", places)
	}
}

func TestDamage(t *testing.T) {
	lengths := append([]int{30}, slices.Repeat([]int{5000}, 20)...)
	want := sized(lengths...)
	whole := write(t, wandbHeader, want...)
	// The numbers of records are those that W&B's reader gives for the same files.
	cases := []struct {
		name    string
		harm    func([]byte) []byte
		records []int // which are read: first and one beyond the last, by turns
		damages string
	}{
		{"none", func(b []byte) []byte { return b }, []int{0, 21}, "[]"},
		{"cut within a record", func(b []byte) []byte { return b[:70000] }, []int{0, 14}, "[truncated-tail 65142+4858]"},
		{"cut within the header of a chunk", func(b []byte) []byte { return b[:44+5007+3] }, []int{0, 2}, "[truncated-tail 5051+3]"},
		{"cut between two records", func(b []byte) []byte { return b[:44+5007] }, []int{0, 2}, "[]"},
		{"the header alone", func(b []byte) []byte { return b[:7] }, nil, "[]"},
		{"a byte changed", func(b []byte) []byte { b[40000] ^= 1; return b }, []int{0, 8, 15, 21}, "[bad-crc 35100+35056]"},
		{"two blocks damaged", func(b []byte) []byte { b[40000] ^= 1; b[66000] ^= 1; return b }, []int{0, 8}, "[bad-crc 35100+65105]"},
		{"zeros at the end", func(b []byte) []byte { return append(b, make([]byte, 500)...) }, []int{0, 21}, "[zero-fill 100205+500]"},
		{"blocks of zeros at the end", func(b []byte) []byte { return append(b, make([]byte, 5*Block)...) }, []int{0, 21}, "[zero-fill 100205+163840]"},
		{"junk at the end", func(b []byte) []byte { return append(b, "this is no record"...) }, []int{0, 21}, "[truncated-tail 100205+17]"},
		{"a length beyond the block", func(b []byte) []byte { b[44+4], b[44+5] = 0xff, 0xff; return b }, []int{0, 1, 8, 21}, "[bad-crc 44+35056]"},
		{"the first block zero", func(b []byte) []byte { clear(b[7:Block]); return b }, []int{8, 21}, "[zero-fill 7+35093]"},
		{"the beginning gone", func(b []byte) []byte { return append(b[:7:7], b[5051+5000:]...) }, nil, "[bad-crc 7+90154]"},
	}
	for _, c := range cases {
		got, places := read(bytes.NewReader(c.harm(bytes.Clone(whole))), wandbIdent)
		var left [][]byte
		for i := 0; i < len(c.records); i += 2 {
			left = append(left, want[c.records[i]:c.records[i+1]]...)
		}
		damages := slices.DeleteFunc(places, func(p string) bool { return p[0] >= '0' && p[0] <= '9' })
		if !equal(got, left) || fmt.Sprint(damages) != c.damages {
			t.Errorf("%s: %d records and %v, want %d and %s", c.name, len(got), damages, len(left), c.damages)
		}
	}
}

// TestParts: chunks with right checksums that make no record.
func TestParts(t *testing.T) {
	part := func(kind byte, body string) string {
		whole := write(t, wandbHeader, []byte(body))[HeaderSize:]
		whole[6] = kind
		binary.LittleEndian.PutUint32(whole, crc32.ChecksumIEEE(whole[6:]))
		return string(whole)
	}
	for _, c := range []struct{ log, want string }{
		{part(first, "a") + part(last, "b"), "[7+16]"},
		{part(first, "a") + part(full, "b"), "[bad-record 7+8 15+8]"},
		{part(first, "a") + part(first, "b") + part(last, "c"), "[bad-record 7+8 15+16]"},
		{part(middle, "a") + part(last, "b") + part(full, "c"), "[bad-record 7+16 23+8]"},
		{part(9, "a") + part(full, "c"), "[bad-record 7+8 15+8]"},
		{part(first, "a") + part(middle, "b"), "[truncated-tail 7+16]"},
	} {
		if _, places := read(strings.NewReader(wandbHeader+c.log), wandbIdent); fmt.Sprint(places) != c.want {
			t.Errorf("%q: %v, want %s", c.log, places, c.want)
		}
	}
}

func TestBound(t *testing.T) {
	const limit = 3 * Block
	want := sized(10, limit+1, limit, 20)
	r := NewReader(bytes.NewReader(write(t, wandbHeader, want...)), wandbIdent)
	r.limit = limit
	got, places := drain(r)
	if !equal(got, append(want[:1:1], want[2:]...)) || len(places) != 4 || places[1] != "bad-record 24+98333" {
		t.Errorf("%d records, %v", len(got), places)
	}
}

func TestSource(t *testing.T) {
	broken := errors.New("broken")
	data := unhex(t, golden)
	r := NewReader(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), wandbIdent)
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if n != 8 || err != broken {
		t.Errorf("%d records, then %v", n-1, err)
	}
	for _, s := range []string{"", ":W&B", "PK\x03\x04 and so on", swan} {
		if _, err := NewReader(strings.NewReader(s), wandbIdent).Next(); err != ErrHeader {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := NewReader(iotest.ErrReader(broken), wandbIdent).Next(); err != broken {
		t.Error(err)
	}
}

// TestReal: the logs that W&B's own writers left come out again byte for byte.
func TestReal(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/wandb/*/*.wandb")
	if len(files) == 0 {
		t.Skip("no shared/data/wandb beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		records, places := read(bytes.NewReader(data), wandbIdent)
		if len(records) < len(places) {
			t.Logf("%s: %d records, of %d places", filepath.Base(name), len(records), len(places))
			continue
		}
		if !bytes.Equal(write(t, wandbHeader, records...), data) {
			t.Errorf("%s: %d records written again give another file", filepath.Base(name), len(records))
		}
	}
}

// FuzzReader: whatever the bytes, the stretches that Next returns do not overlap, and what it
// returns as records, written again, reads the same.
func FuzzReader(f *testing.F) {
	f.Add(unhex(f, golden), wandbIdent)
	f.Add(unhex(f, swan), ":SWL\xd6\xe1")
	f.Add(write(f, wandbHeader, sized(5, Block, 40000)...), wandbIdent)
	f.Fuzz(func(t *testing.T, data []byte, ident string) {
		if len(ident) >= HeaderSize {
			return
		}
		r := NewReader(bytes.NewReader(data), ident)
		var records [][]byte
		for end := int64(0); ; {
			rec, err := r.Next()
			at, n := rec.Offset, rec.Length
			var d *Damage
			if errors.As(err, &d) {
				at, n = d.Offset, d.Bytes
			} else if err != nil {
				break
			}
			if at < end || n <= 0 && d == nil || at+n > int64(len(data)) {
				t.Fatalf("bytes %d to %d after %d of %d", at, at+n, end, len(data))
			}
			if end = at + n; d == nil {
				records = append(records, bytes.Clone(rec.Data))
			}
		}
		if len(records) == 0 {
			return
		}
		if again, _ := read(bytes.NewReader(write(t, wandbHeader, records...)), wandbIdent); !equal(again, records) {
			t.Fatal("written again, the records read otherwise")
		}
	})
}

func BenchmarkReader(b *testing.B) {
	data := write(b, wandbHeader, sized(slices.Repeat([]int{300}, 50000)...)...)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r := NewReader(bytes.NewReader(data), wandbIdent)
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			}
		}
	}
}
