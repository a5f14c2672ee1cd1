package tfevent

// Tags remembers of each tag of a file what its metadata said, and something of the
// caller's. The zero value is empty.
type Tags[T any] struct {
	byName map[string]*Tag[T]
	last   *Tag[T]
	over   Tag[T]
}

// A Tag is what is remembered of one tag.
type Tag[T any] struct {
	Name   string // of the series
	Plugin string
	Of     T

	key   string
	known bool
	next  *Tag[T] // that came behind it the last time
}

// maxTags bounds the tags of a file that are remembered.
const maxTags = 1 << 16

// Find returns what is remembered of a tag. Writers log the same tags in the same order again
// and again. Beyond maxTags nothing is remembered: the result is empty, and valid until the
// next call.
func (t *Tags[T]) Find(tag []byte) *Tag[T] {
	last := t.last
	if last != nil {
		if n := last.next; n != nil && n.key == string(tag) {
			t.last = n
			return n
		}
	}
	n := t.byName[string(tag)]
	if n == nil {
		if len(t.byName) >= maxTags {
			t.over = Tag[T]{Name: Name(tag)}
			return &t.over
		}
		if t.byName == nil {
			t.byName = map[string]*Tag[T]{}
		}
		n = &Tag[T]{Name: Name(tag), key: string(tag)}
		t.byName[n.key] = n
	}
	if last != nil {
		last.next = n
	}
	t.last = n
	return n
}

// Learn takes the metadata of a value of the tag; that of the first one counts. It may be
// nil.
func (t *Tag[T]) Learn(metadata []byte) {
	if metadata != nil && !t.known {
		t.known = true
		t.Plugin, _ = Plugin(metadata)
	}
}

// Scalar reports whether a Plain event is one of a tag that shows scalars.
func (p *Plain) Scalar(plugin string) bool {
	return !p.Tensor || plugin == "" || plugin == Scalars
}
