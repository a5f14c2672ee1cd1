package memsnap

// salvage closes what is open when a pickle ends early, and returns the outermost value: what
// was complete goes where it would have gone; an entry, block or frame that was not
// is lost, and a segment keeps the blocks that it had.
func (m *machine) salvage() value {
	strays := m.strays
	for k := len(m.marks) - 1; k >= 0; k-- {
		h := m.marks[k].height
		items := m.stack[h:]
		m.stack, m.marks = m.stack[:h], m.marks[:k]
		if h > m.floor() {
			m.absorb(&m.stack[h-1], items)
		}
	}
	m.strays = strays
	if len(m.stack) == 0 {
		return value{}
	}
	m.nest(m.stack)
	m.strays = strays
	m.ripen(&m.stack[0])
	return m.stack[0]
}

func isList(v value) bool {
	switch v.tag {
	case tList, tStack, tTrace, tTraces, tBlocks, tSegments, tHistory, tMarks, tSolo, tPair:
		return true
	}
	return false
}

// isItem reports whether v is a dict that stands in lists.
func isItem(v value) bool {
	switch v.tag {
	case tFrame, tEvent, tBlock, tSegment, tPast, tMark:
		return true
	}
	return false
}

// absorb adds items, which lie above a mark, to the container into.
func (m *machine) absorb(into *value, items []value) {
	m.ripenAll(items)
	switch {
	case isList(*into):
		if k := len(items); k > 1 && isItem(items[k-1]) && isList(items[k-2]) {
			m.extend(&items[k-2], items[k-1:]) // an APPEND that was cut off
			items = items[:k-1]
		}
		m.extend(into, items)
	case into.tag == tDict || into.tag == tPart:
		for i := 0; i < len(items); i += 2 {
			if items[i].tag != tText && i > 0 { // it belongs into the value before it
				m.nest(items[i-1:])
				items = items[:i]
				break
			}
		}
		m.close(into, items[:len(items)/2*2])
	}
}

// nest adds each of vs to the one before it, from the last on: no mark lies between them.
func (m *machine) nest(vs []value) {
	for k := len(vs) - 1; k > 0; k-- {
		switch below := &vs[k-1]; {
		case isList(*below):
			m.extend(below, vs[k:k+1])
		case below.tag == tText && k > 1 && (vs[k-2].tag == tDict || vs[k-2].tag == tPart):
			m.close(&vs[k-2], vs[k-1:k+1])
			k--
		}
	}
}

// close fills the dict at d with what there is of it, if it is one of those that are
// worth something without the rest.
func (m *machine) close(d *value, pairs []value) {
	if d.tag == tPart {
		p := &m.parts[d.n]
		if p.done.tag != tUnset {
			return
		}
		pairs = append(p.pairs, pairs...)
	}
	have := m.read(pairs)
	if have.has(kAction) || have.has(kStage) || !have.has(kBlocks) && have&anyTop == 0 {
		m.become(d, value{tag: tOther})
		return
	}
	m.become(d, m.make(have))
}
