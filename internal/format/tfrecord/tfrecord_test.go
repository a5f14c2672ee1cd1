package tfrecord

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// read lists what a Reader makes of b: "offset:data" for records, "kind offset+length" for
// damage. It fails where the two do not make up the whole file.
func read(t testing.TB, r io.Reader, size int) []string {
	t.Helper()
	var all []string
	at, number := int64(0), int64(0)
	in := NewReader(r)
	for {
		data, err := in.Next()
		var d *Damage
		switch {
		case err == nil:
			number++
			if in.Offset() != at || in.Size() != len(data)+16 || in.Number() != number || !bytes.Equal(in.Raw()[12:in.Size()-4], data) {
				t.Fatalf("record %d at %d of %d bytes, expected at %d", in.Number(), in.Offset(), in.Size(), at)
			}
			at += int64(in.Size())
			all = append(all, fmt.Sprintf("%d:%s", in.Offset(), short(data)))
		case errors.As(err, &d):
			if d.Offset != at || d.Length <= 0 {
				t.Fatalf("damage %d+%d, expected at %d", d.Offset, d.Length, at)
			}
			at += d.Length
			all = append(all, fmt.Sprintf("%s %d+%d", [...]string{"cut", "data", "framing", "zeros", "long"}[d.Kind], d.Offset, d.Length))
		case err == io.EOF:
			if size >= 0 && at != int64(size) {
				t.Fatalf("ends at %d of %d", at, size)
			}
			return all
		default:
			return append(all, err.Error())
		}
	}
}

func short(b []byte) string {
	if len(b) > 20 {
		return fmt.Sprintf("%s…%d", b[:4], len(b))
	}
	return string(b)
}

func TestChecksum(t *testing.T) {
	if got := crc32.Checksum([]byte("123456789"), castagnoli); got != 0xe3069283 {
		t.Errorf("CRC-32C is %x", got)
	}
	if got := Checksum(nil); got != 0xa282ead8 {
		t.Errorf("masked checksum of nothing is %x", got)
	}
	const golden = "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d" // written by TensorBoard
	b, _ := hex.DecodeString(golden)
	if got := Append(nil, b[12:36]); !bytes.Equal(got, b) {
		t.Errorf("got %x", got)
	}
	if n, ok := Header(b); n != 24 || !ok {
		t.Errorf("header %d %v", n, ok)
	}
	if _, ok := Header(b[:11]); ok {
		t.Error("a header of 11 bytes is none")
	}
}

// file is the records one, two, ... of the given data.
func file(data ...string) []byte {
	var b []byte
	for _, d := range data {
		b = Append(b, []byte(d))
	}
	return b
}

func TestDamage(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	f := func(name string, b []byte, want ...string) {
		t.Helper()
		for how, r := range map[string]io.Reader{"whole": bytes.NewReader(b), "bytes": iotest.OneByteReader(bytes.NewReader(b)), "with EOF": iotest.DataErrReader(bytes.NewReader(b))} {
			if got := read(t, r, len(b)); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, %s:\ngot  %q\nwant %q", name, how, got, want)
			}
		}
	}
	flip := func(b []byte, at int) []byte {
		b[at] ^= 1
		return b
	}
	f("nothing", nil)
	f("one", file("one"), "0:one")
	f("empty data", file("", "a"), "0:", "16:a")
	f("longer than the window", file("a", long, "b"), "0:a", fmt.Sprintf("17:xxxx…%d", len(long)), fmt.Sprintf("%d:b", 33+len(long)))

	f("flipped data", flip(file("one", "two", "three"), 32), "0:one", "data 19+19", "38:three")
	f("flipped data at the end", flip(file("one", "two"), 32), "0:one", "data 19+19")
	f("flipped length", flip(file("one", "two", "three"), 19), "0:one", "framing 19+19", "38:three")
	f("flipped length checksum", flip(file("one", "two", "three"), 28), "0:one", "framing 19+19", "38:three")
	f("flipped first length", flip(file("one", "two"), 7), "framing 0+19", "19:two")
	f("flipped data and next length", flip(flip(file("one", "two", "three", "four"), 32), 38), "0:one", "data 19+40", "59:four")

	f("cut in the header", file("one", "two")[:19+5], "0:one", "cut 19+5")
	f("cut in the data", file("one", "two")[:19+13], "0:one", "cut 19+13")
	f("cut in the checksum", file("one", "two")[:19+18], "0:one", "cut 19+18")
	f("cut and written on", append(file("one", "two")[:19+13], file("three")...), "0:one", "data 19+13", "32:three")
	f("cut and written on by a short record", append(file("one", "a much longer text")[:19+13], file("2")...), "0:one", "cut 19+13", "32:2")
	f("bytes missing", append(file("one", "two")[:19+13], file("two", "three", "four")[14:]...), "0:one", "data 19+18", "37:three", "58:four")

	f("zeros at the end", append(file("one"), make([]byte, 500)...), "0:one", "zeros 19+500")
	f("few zeros at the end", append(file("one"), 0, 0, 0), "0:one", "zeros 19+3")
	f("only zeros", make([]byte, window*2+5), fmt.Sprintf("zeros 0+%d", window*2+5))
	f("hole", append(append(file("one"), make([]byte, window+77)...), file("two")...), "0:one", fmt.Sprintf("zeros 19+%d", window+77), fmt.Sprintf("%d:two", 19+window+77))
	even := strings.Repeat("y", 256) // its length begins with a zero byte
	f("hole before an even length", append(append(file("one"), make([]byte, 100)...), file(even)...), "0:one", "zeros 19+100", "119:yyyy…256")
	f("hole that ends within a record", append(append(file("one"), make([]byte, 100)...), file("two", "three")[9:]...), "0:one", "zeros 19+100", "framing 119+10", "129:three")
	f("junk", []byte("this is no file of records at all"), "framing 0+33")
	f("much junk", bytes.Repeat([]byte("still working\n"), 50000), "framing 0+700000")
	f("junk and a record", append(bytes.Repeat([]byte("z"), window-6), file("one")...), fmt.Sprintf("framing 0+%d", window-6), fmt.Sprintf("%d:one", window-6))
}

func TestTooLong(t *testing.T) {
	const n = MaxRecord + 1
	head := Append(nil, make([]byte, n))
	foot := head[HeaderSize+n:]
	head = head[:HeaderSize]
	body := func() io.Reader { return io.LimitReader(zero{}, n) }
	f := func(want string, parts ...io.Reader) {
		t.Helper()
		if got := read(t, io.MultiReader(parts...), -1); strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	next := fmt.Sprint(n + 16)
	f("long 0+"+next+", "+next+":one", bytes.NewReader(head), body(), bytes.NewReader(foot), bytes.NewReader(file("one")))
	f("data 0+"+next+", "+next+":one", bytes.NewReader(head), body(), strings.NewReader("abcd"), bytes.NewReader(file("one")))
	f("cut 0+"+fmt.Sprint(n+12+2), bytes.NewReader(head), body(), strings.NewReader("ab"))
	f("cut 0+112", bytes.NewReader(head), io.LimitReader(zero{}, 100))
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestGrowth: a length alone allocates nothing.
func TestGrowth(t *testing.T) {
	b := binary.LittleEndian.AppendUint64(nil, MaxRecord)
	b = binary.LittleEndian.AppendUint32(b, Checksum(b))
	r := NewReader(bytes.NewReader(append(b, "abc"...)))
	if _, err := r.Next(); err == nil || len(r.buf) > window {
		t.Errorf("%v with a buffer of %d", err, len(r.buf))
	}
}

// TestTrials: headers that lead nowhere cost no more than the budget.
func TestTrials(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, 1<<20)
	head = binary.LittleEndian.AppendUint32(head, Checksum(head))
	b := bytes.Repeat(head, 300_000)
	r := NewReader(bytes.NewReader(append(b, file("one")...)))
	r.spent = maxTrial - 5<<20
	var d *Damage
	if _, err := r.Next(); !errors.As(err, &d) || d.Length != int64(len(b)) {
		t.Errorf("%v", err)
	}
	if data, err := r.Next(); string(data) != "one" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 5, 19, 25, 35} {
		got := read(t, io.MultiReader(bytes.NewReader(file("one", "two")[:n]), iotest.ErrReader(broken)), -1)
		if got[len(got)-1] != "broken" || len(got) != n/19+1 {
			t.Errorf("after %d bytes: %q", n, got)
		}
	}
	if got := read(t, idle{}, -1); len(got) != 1 || got[0] != io.ErrNoProgress.Error() {
		t.Errorf("%q", got)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// TestFlips: a flipped bit costs no more than the record that it is in.
func TestFlips(t *testing.T) {
	b := file("one", "two", strings.Repeat("long ", 60), "", "five")
	clean := read(t, bytes.NewReader(b), len(b))
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			got := read(t, bytes.NewReader(b), len(b))
			kept := 0
			for _, g := range got {
				for _, c := range clean {
					if g == c {
						kept++
					}
				}
			}
			if kept != len(clean)-1 || len(got) != len(clean) {
				t.Errorf("bit %d of byte %d flipped: %q", bit, i, got)
			}
			b[i] ^= 1 << bit
		}
	}
}

// FuzzReader: records and damage make up the file, whatever it is, however it is read; and
// what is written behind it is found.
func FuzzReader(f *testing.F) {
	f.Add(file("one", "two"), uint16(0))
	f.Add(append(file("one"), make([]byte, 40)...), uint16(13))
	f.Add(file("one", "", strings.Repeat("x", 256))[:60], uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		want := read(t, bytes.NewReader(b), len(b))
		got := read(t, pieces{bytes.NewReader(b), rng}, len(b))
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("in pieces:\n%q\nat once:\n%q", got, want)
		}
		// A marker that no record of b can hold as part of its own data.
		marker := make([]byte, 24)
		for i := range marker {
			marker[i] = byte(rng.Uint32())
		}
		all := Append(bytes.Clone(b), marker)
		got = read(t, bytes.NewReader(all), len(all))
		if last := fmt.Sprintf("%d:%s", len(b), short(marker)); got[len(got)-1] != last {
			t.Fatalf("the record at %d behind it is not found: %q", len(b), got)
		}
	})
}

type pieces struct {
	r   io.Reader
	rng *rand.Rand
}

func (p pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rng.IntN(40))])
}

func BenchmarkReader(b *testing.B) {
	var data []byte
	for range 100_000 {
		data = Append(data, make([]byte, 60))
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r := NewReader(bytes.NewReader(data))
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}
