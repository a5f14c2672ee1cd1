// Package evidencefile is the form in which "inquest scan" keeps what it read of a
// job's artifacts, so that it can be carried from many hosts to one place and be
// diagnosed there. A file holds records: one for each artifact, and one for each
// scan with what was seen and not read.
//
// Layout, version 2 (integers little endian):
//
//	magic    "inquest evidence 2\n"
//	block*   kind      1 byte: 'w' scans, 'a' artifacts
//	         stored    uint32, bytes of the payload as stored
//	         raw       uint32, bytes of it decompressed
//	         sum       uint32, CRC-32C of kind, raw and the stored payload
//	         payload   one zstd frame: records, each a uvarint length and so many bytes
//	end      kind 'e', then stored, raw and sum of a payload that is not compressed:
//	         two uvarints, the numbers of scans and artifacts
//
// Scans stand before artifacts, artifacts in the order of their paths. The same
// records give the same bytes. Whoever finds a block damaged has every block
// before it.
package evidencefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const magic = "inquest evidence 2\n"

// anyMagic begins a file of this or another version.
const anyMagic = "inquest evidence "

// Bounds of a block and of one record.
const (
	blockTarget = 256 << 10 // a block is written when its records reach this
	MaxRecord   = 64 << 20  // bytes of one encoded record
	maxStored   = MaxRecord + 1<<20
	maxRatio    = 4000 // raw over stored bytes, above which a block is refused; logs repeat themselves
)

const (
	kindWalk     = 'w'
	kindArtifact = 'a'
	kindEnd      = 'e'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Is reports whether head begins an evidence file of some version.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte(anyMagic)) }

// A Damage says where an evidence file stops being readable.
type Damage struct {
	Offset int64
	What   string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("evidence file, at byte %d: %s", d.Offset, d.What)
}

// A Writer writes an evidence file: first the scans, then the artifacts in the
// order of their paths.
type Writer struct {
	w        io.Writer
	enc      *zstd.Encoder
	kind     byte
	block    []byte
	scans    uint64
	records  uint64
	lastPath string
	err      error
}

// NewWriter writes the magic to w.
func NewWriter(w io.Writer) (*Writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w, magic)
	return &Writer{w: w, enc: enc, err: err}, err
}

// Scan adds a scan.
func (w *Writer) Scan(s *Scan) error {
	if w.records > 0 {
		panic("evidencefile: a scan after artifacts")
	}
	w.scans++
	return w.add(kindWalk, s.encode())
}

// Artifact adds an encoded artifact.
func (w *Writer) Artifact(path string, encoded []byte) error {
	if w.records > 0 && path < w.lastPath {
		panic("evidencefile: artifacts out of order")
	}
	w.records, w.lastPath = w.records+1, path
	return w.add(kindArtifact, encoded)
}

func (w *Writer) add(kind byte, record []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(record) > MaxRecord {
		return fmt.Errorf("a record of %d bytes; at most %d", len(record), MaxRecord)
	}
	if len(w.block) > 0 && (kind != w.kind || len(w.block)+len(record) > blockTarget) {
		w.flush()
	}
	w.kind = kind
	w.block = binary.AppendUvarint(w.block, uint64(len(record)))
	w.block = append(w.block, record...)
	return w.err
}

func (w *Writer) flush() {
	if len(w.block) == 0 || w.err != nil {
		return
	}
	w.put(w.kind, w.enc.EncodeAll(w.block, nil), len(w.block))
	w.block = w.block[:0]
	if cap(w.block) > 4*blockTarget {
		w.block = nil
	}
}

func (w *Writer) put(kind byte, stored []byte, raw int) {
	if w.err != nil {
		return
	}
	head := header(kind, len(stored), raw, stored)
	if _, w.err = w.w.Write(head[:]); w.err == nil {
		_, w.err = w.w.Write(stored)
	}
}

const headerLen = 13

func header(kind byte, stored, raw int, payload []byte) [headerLen]byte {
	var h [headerLen]byte
	h[0] = kind
	binary.LittleEndian.PutUint32(h[1:], uint32(stored))
	binary.LittleEndian.PutUint32(h[5:], uint32(raw))
	binary.LittleEndian.PutUint32(h[9:], checksum(h[:9], payload))
	return h
}

func checksum(head, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, head[:1])
	sum = crc32.Update(sum, castagnoli, head[5:9])
	return crc32.Update(sum, castagnoli, payload)
}

// Close writes the end. It does not close the writer below.
func (w *Writer) Close() error {
	w.flush()
	end := binary.AppendUvarint(binary.AppendUvarint(nil, w.scans), w.records)
	w.put(kindEnd, end, len(end))
	return w.err
}

// A Place is where an artifact's record lies in its file: the block at Offset,
// and the record in it.
type Place struct {
	Offset int64
	Index  int
}

// Read reads an evidence file from its start and hands over each scan, and each
// artifact as it is encoded; the bytes are valid only until fn returns. The error
// is a *Damage where the file itself is at fault; what stands before that was
// handed over.
func Read(r io.Reader, scan func(*Scan), artifact func(at Place, encoded []byte)) error {
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		if err == nil && Is(head) {
			return &Damage{0, fmt.Sprintf("version %.20q; this program reads version 1", bytes.TrimSpace(head[len(anyMagic):]))}
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		return &Damage{int64(n), "no evidence file, or cut in its first line"}
	}
	dec, err := newDecoder()
	if err != nil {
		return err
	}
	defer dec.Close()
	at := int64(len(magic))
	var scans, records uint64
	for {
		kind, raw, n, err := readBlock(r, dec, at)
		if err != nil {
			return err
		}
		switch kind {
		case kindEnd:
			a, i := binary.Uvarint(raw)
			b, j := binary.Uvarint(raw[max(i, 0):])
			if i <= 0 || j <= 0 || i+j != len(raw) || a != scans || b != records {
				return &Damage{at, fmt.Sprintf("%d scans and %d artifacts do not agree with its end", scans, records)}
			}
			return nil
		case kindWalk:
			err = split(raw, at, func(_ int, rec []byte) error {
				s, err := decodeScan(rec)
				if err == nil {
					scans++
					scan(s)
				}
				return err
			})
		case kindArtifact:
			err = split(raw, at, func(i int, rec []byte) error {
				records++
				artifact(Place{at, i}, rec)
				return nil
			})
		default:
			err = &Damage{at, fmt.Sprintf("a block of the unknown kind %q", kind)}
		}
		if err != nil {
			return err
		}
		at += n
	}
}

// split hands over the records of a block.
func split(raw []byte, at int64, fn func(i int, rec []byte) error) error {
	for i := 0; len(raw) > 0; i++ {
		n, k := binary.Uvarint(raw)
		if k <= 0 || n > uint64(len(raw)-k) {
			return &Damage{at, "a record reaches beyond its block"}
		}
		if err := fn(i, raw[k:k+int(n)]); err != nil {
			return &Damage{at, err.Error()}
		}
		raw = raw[k+int(n):]
	}
	return nil
}

// A Cache holds the blocks that were asked for last, of any file. It may be used by
// several goroutines at once.
type Cache struct {
	mu   sync.Mutex
	dec  *zstd.Decoder
	last []cached // the newest first
}

type cached struct {
	of     *Blocks
	offset int64
	raw    []byte
}

// cachedBlocks is how many blocks stay: neighbours are asked for one after the
// other, by a few goroutines.
const cachedBlocks = 4

// NewCache returns an empty Cache.
func NewCache() (*Cache, error) {
	dec, err := newDecoder()
	return &Cache{dec: dec}, err
}

// Blocks gives access to single artifacts of one file, which is open only while it
// is read: a job has as many of them as hosts. It may be used by several
// goroutines at once.
type Blocks struct {
	cache *Cache
	open  func() (io.ReaderAt, io.Closer, error)
}

// Blocks returns access to what open opens.
func (c *Cache) Blocks(open func() (io.ReaderAt, io.Closer, error)) *Blocks { return &Blocks{c, open} }

// Artifact returns the encoded artifact at a place.
func (b *Blocks) Artifact(p Place) ([]byte, error) {
	c := b.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, err := b.block(p.Offset)
	if err != nil {
		return nil, err
	}
	var out []byte
	err = split(raw, p.Offset, func(i int, rec []byte) error {
		if i == p.Index {
			out = bytes.Clone(rec)
		}
		return nil
	})
	if err == nil && out == nil {
		err = &Damage{p.Offset, "the block changed while it was read"}
	}
	return out, err
}

// block returns the block at an offset; the cache is locked.
func (b *Blocks) block(offset int64) ([]byte, error) {
	c := b.cache
	for _, x := range c.last {
		if x.of == b && x.offset == offset {
			return x.raw, nil
		}
	}
	r, closer, err := b.open()
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	_, raw, _, err := readBlock(io.NewSectionReader(r, offset, maxStored+headerLen), c.dec, offset)
	if err != nil {
		return nil, err
	}
	c.last = slices.Insert(c.last, 0, cached{b, offset, raw})
	clear(c.last[min(cachedBlocks, len(c.last)):])
	c.last = c.last[:min(cachedBlocks, len(c.last))]
	return raw, nil
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxRecord+1<<20), zstd.WithDecoderMaxWindow(8<<20))
}

// readBlock reads the block at offset at and returns its payload decompressed and
// how long the block is.
func readBlock(r io.Reader, dec *zstd.Decoder, at int64) (kind byte, raw []byte, n int64, err error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, 0, cut(err, at, "cut before its end")
	}
	stored, size := binary.LittleEndian.Uint32(h[1:]), binary.LittleEndian.Uint32(h[5:])
	if stored > maxStored || size > maxStored || uint64(size) > uint64(stored)*maxRatio {
		return 0, nil, 0, &Damage{at, fmt.Sprintf("a block that states %d bytes, %d decompressed", stored, size)}
	}
	// A header may lie: the buffer grows with what there is.
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, r, int64(stored)); err != nil {
		return 0, nil, 0, cut(err, at, "cut inside a block")
	}
	payload := buf.Bytes()
	if checksum(h[:9], payload) != binary.LittleEndian.Uint32(h[9:]) {
		return 0, nil, 0, &Damage{at, "the checksum of a block does not agree"}
	}
	if kind = h[0]; kind == kindEnd {
		return kind, payload, headerLen + int64(stored), nil
	}
	raw, err = dec.DecodeAll(payload, make([]byte, 0, min(int(size), 1<<20)))
	if err != nil || len(raw) != int(size) {
		return 0, nil, 0, &Damage{at, "a block that does not decompress to what it states"}
	}
	return kind, raw, headerLen + int64(stored), nil
}

func cut(err error, at int64, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Damage{at, what}
	}
	return err
}
