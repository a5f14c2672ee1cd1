package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// maxLine bounds a line of a table.
const maxLine = 1 << 20

var errLongLine = errors.New("over limit: line longer than 1 MiB")

// A field is one cell of a line with its byte range in it.
type field struct {
	text     string
	from, to int
}

// cells splits a line at delim; double quotes protect a delimiter.
func cells(dst []field, line string, delim byte) []field {
	dst = dst[:0]
	for from := 0; ; {
		to := from
		quoted := false
		for to < len(line) && (quoted || line[to] != delim) {
			if line[to] == '"' {
				quoted = !quoted
			}
			to++
		}
		text := strings.TrimSpace(line[from:to])
		if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
			text = strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
		}
		dst = append(dst, field{text, from, to})
		if to >= len(line) || len(dst) > maxCells {
			return dst
		}
		from = to + 1
	}
}

// delimiter returns the delimiter of a header: the one of comma, tab and
// semicolon that occurs most, 0 when there is none.
func delimiter(line []byte) byte {
	best, most := byte(0), 0
	for _, d := range []byte{',', '\t', ';'} {
		if n := bytes.Count(line, []byte{d}); n > most {
			best, most = d, n
		}
	}
	return best
}

// columnName reduces a header cell to a metric name: W&B's panel export puts
// "run - " before it and adds columns with the least and greatest value, which
// are dropped.
func columnName(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasSuffix(text, "__MIN") || strings.HasSuffix(text, "__MAX") {
		return ""
	}
	if i := strings.LastIndex(text, " - "); i >= 0 {
		text = text[i+3:]
	}
	return text
}

// readTable reads a table with a header. An empty cell says that nothing was
// logged, which is not NaN. A header in the middle (a resumed run that
// appended) begins a new one.
func readTable(b *bufio.Reader, out *rows, name string) error {
	out.source = "csv"
	var header, line []field
	var names []string
	var delim byte
	var off, num int64
	for {
		text, size, err := readLine(b)
		if err != nil && err != io.EOF && !errors.Is(err, errLongLine) {
			return err
		}
		if len(text) > 0 {
			num++
			if errors.Is(err, errLongLine) {
				out.damage(num, off, fmt.Errorf("reading table: %w", err))
			} else {
				s := strings.TrimRight(string(text), "\r\n")
				if num == 1 {
					s = strings.TrimPrefix(s, "\xef\xbb\xbf")
				}
				shift := int64(len(strings.TrimRight(string(text), "\r\n")) - len(s))
				switch {
				case strings.TrimSpace(s) == "":
				case header == nil:
					delim = delimiter([]byte(s))
					header = cells(nil, s, delim)
					names = columnNames(header, name)
				default:
					line = cells(line, s, delim)
					if len(line) > 1 && line[0].text == header[0].text && line[1].text == header[1].text {
						header = append(header[:0], line...)
						names = columnNames(header, name)
						break
					}
					out.add(tableRow(out, names, line, s, num, off+shift))
				}
			}
			off += size
		}
		if err == io.EOF {
			return nil
		}
	}
}

// columnNames names the columns; a TensorBoard download has its metric in the
// name of the file.
func columnNames(header []field, file string) []string {
	names := make([]string, len(header))
	for i, h := range header {
		names[i] = columnName(h.text)
		if len(names[i]) > maxKey {
			names[i] = names[i][:maxKey]
		}
	}
	if len(names) == 3 && names[0] == "Wall time" && names[1] == "Step" && names[2] == "Value" {
		base := strings.TrimSuffix(path.Base(file), path.Ext(file))
		if i := strings.LastIndex(base, "tag-"); i >= 0 {
			base = base[i+4:]
		}
		names[2] = base
	}
	return names
}

func tableRow(out *rows, names []string, line []field, s string, num, off int64) *row {
	r := &out.scratch
	r.cells, r.line = r.cells[:0], num
	for i, f := range line {
		if i >= len(names) || names[i] == "" || f.text == "" {
			continue
		}
		v, ok := parse(f.text)
		r.cells = append(r.cells, cell{key: names[i], text: f.text, v: v, number: ok, line: num, column: 1, offset: off, quote: cut(s)})
	}
	return r
}

func cut(s string) string { return s[:min(len(s), 4*maxQuote)] }

// readLine returns the next line with its newline and its length in bytes. Of a
// line longer than maxLine it returns the beginning and errLongLine.
func readLine(b *bufio.Reader) (text []byte, size int64, err error) {
	long := false
	for {
		part, err := b.ReadSlice('\n')
		size += int64(len(part))
		if len(text)+len(part) > maxLine {
			long = true
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || err == io.EOF):
			return text, size, errLongLine
		default:
			return text, size, err
		}
	}
}
